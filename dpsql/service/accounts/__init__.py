"""Who may spend what, and in which ledger."""
