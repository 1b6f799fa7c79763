"""`dpsql budget`."""
