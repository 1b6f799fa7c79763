"""Aggregates and windows: calls over many rows."""
