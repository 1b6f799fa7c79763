"""`dpsql check` and `dpsql diff`: queries in files, without data."""
