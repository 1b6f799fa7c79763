"""Batches: many counts and sums, measured together."""
