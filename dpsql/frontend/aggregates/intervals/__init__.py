"""Confidence intervals of aggregates."""
