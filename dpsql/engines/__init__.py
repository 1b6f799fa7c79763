"""Databases that hold the data."""
