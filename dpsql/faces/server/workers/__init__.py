"""Processes that have the data and no network, and the pool that the front asks them through."""
