"""Sets of values that an expression can take, as keys: written out, or too many for that."""
