"""Files that keep what a ledger says."""
