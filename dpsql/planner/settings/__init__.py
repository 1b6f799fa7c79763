"""What a query says of itself: its settings, in its text, in comments, from its caller."""
