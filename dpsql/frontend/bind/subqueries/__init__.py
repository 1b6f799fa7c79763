"""Queries within expressions."""
