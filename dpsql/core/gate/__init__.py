"""What a scalar text must be before it enters a statement."""
