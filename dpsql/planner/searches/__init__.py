"""Searches: which limits a part of ε finds, the releases that find them, and how a plan goes on from there."""
