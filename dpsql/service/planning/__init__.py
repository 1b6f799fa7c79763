"""From a query to its plan, with what is public."""
