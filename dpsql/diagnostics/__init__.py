"""Refusals and warnings: codes, pages, words, carets."""
