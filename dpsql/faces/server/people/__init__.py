"""Who may log in, and what each may ask."""
