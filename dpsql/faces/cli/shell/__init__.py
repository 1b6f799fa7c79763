"""`dpsql shell`: questions typed at a prompt, in files or in pipes, with psql's letters and habits."""
