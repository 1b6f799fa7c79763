"""`dpsql serve` and its users."""
