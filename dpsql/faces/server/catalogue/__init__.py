"""Answers to what clients ask about the schema."""
