"""What a plan costs, and how exact it is."""
