"""Rewrites that find the groups of a release."""
