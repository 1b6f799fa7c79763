"""The chain of entries, and the head that is kept apart from it."""
