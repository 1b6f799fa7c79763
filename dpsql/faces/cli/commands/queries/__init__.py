"""`dpsql query` and what else is asked of one query or batch."""
