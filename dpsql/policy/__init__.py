"""Policies as people write them."""
