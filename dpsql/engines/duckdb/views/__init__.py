"""Stored views."""
