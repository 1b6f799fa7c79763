"""From SQL text to a bound plan. Nothing here is trusted."""
