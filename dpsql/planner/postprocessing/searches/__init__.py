"""Limits and bounds from the noisy numbers of a search: public arithmetic, in integers and rationals."""
