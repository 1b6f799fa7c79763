"""Rewrites of a plan. Each is a guess: the analysis derives every fact again from its result."""
