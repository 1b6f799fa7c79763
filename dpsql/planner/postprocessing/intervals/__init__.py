"""Confidence intervals of released numbers, and of numbers made of them."""
