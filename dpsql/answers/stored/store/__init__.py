"""Where released numbers are kept."""
