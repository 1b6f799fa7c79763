"""Files and frames that tables are read from."""
