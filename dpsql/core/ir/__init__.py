"""The plan of a query: nodes, expressions, types, and what is measured of them."""
