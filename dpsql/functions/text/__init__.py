"""Functions of texts."""
