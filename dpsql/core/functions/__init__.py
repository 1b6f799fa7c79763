"""Scalar functions: types, intervals of their values, totality and NULLs, one family a file."""
