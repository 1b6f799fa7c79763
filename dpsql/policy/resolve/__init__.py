"""From a file of the right form to a policy: names, types and numbers checked."""
