"""The other clauses of a SELECT."""
