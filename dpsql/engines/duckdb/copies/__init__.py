"""Prepared copies of tables."""
