"""What is found, and how it is shown."""
