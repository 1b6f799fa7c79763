"""The ways in: each opens services and shows what they say; none decides anything about privacy."""
