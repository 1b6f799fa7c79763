"""Statements over noisy tables, and how their numbers are made of noisy ones."""
