"""A database that is made up from a policy: its rows, and a service that charges nobody for them."""
