"""Totals that are the sums of their parts: least squares over noisy numbers that count the same rows."""
