"""The accepted SQL as a lark grammar, the near misses that must be refused, and how both are read."""
