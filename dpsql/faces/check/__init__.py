"""`dpsql check`: files of SQL against a policy, from texts alone. No data is opened and no engine is imported."""
