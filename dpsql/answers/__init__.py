"""Answers: those that were given before, and the forms that all are shown in."""
