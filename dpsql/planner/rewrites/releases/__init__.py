"""Rewrites that say what becomes a release, and of which components."""
