"""Plans as SQL of the engine."""
