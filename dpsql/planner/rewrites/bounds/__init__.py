"""Rewrites that bound what one unit contributes, and values with it."""
