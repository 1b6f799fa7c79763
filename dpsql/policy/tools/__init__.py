"""What is told about a policy: an overview, its promises, a first draft."""
