"""One statement of a client, read: what it is to the front."""
