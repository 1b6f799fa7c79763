"""What a statement or a meta-command does."""
