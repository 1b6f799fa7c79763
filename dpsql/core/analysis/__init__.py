"""What the rows of a plan reveal: stability, bounds and keys, derived node by node."""
