"""What a run does: one file for each thing, each of which says what it asks, what it costs and what it hands on."""
