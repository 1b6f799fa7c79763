"""SQL as text: statements, spans, tokens, repairs."""
