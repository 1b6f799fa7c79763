"""The policy file: YAML, its form, and where each word stands."""
