"""The FROM clause: where the rows of a query come from."""
