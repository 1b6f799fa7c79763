"""Names, types and clauses: from sqlglot's tree to nodes of our own."""
