"""Exact numbers, intervals and their enclosures."""
