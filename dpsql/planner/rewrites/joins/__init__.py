"""Rewrites of joins."""
