"""The process that clients speak to. It has no data, and decides nothing about privacy."""
