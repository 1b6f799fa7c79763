"""EXPLAIN: the plan with its facts at every node and its noise at every release, as text or stable JSON."""
