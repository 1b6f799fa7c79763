"""Counters: made once, ticked for each closed period, read as relations."""
