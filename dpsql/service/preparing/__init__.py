"""Prepared tables: contributions bounded once, when the data is loaded, and not in each query."""
