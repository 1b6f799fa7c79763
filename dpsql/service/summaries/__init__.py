"""Summaries: made once, read by later queries."""
