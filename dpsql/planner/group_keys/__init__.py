"""Public lists of group keys, in the order in which they are found.

`rows` says what a row is made of and which conditions it meets; `public` looks for keys in each kind of row (padded by
an outer join or not) by `search`: equal columns are one of its `variables`, `tables` of public rows are joined, and
conditions `narrow` single columns to lists and `ranges`. `compute` tests conditions on single rows. `lone` tells
private groups that hold one unit each.

All of it is a guess: a list that is too short costs rows, and one that is too long empty groups.
"""
