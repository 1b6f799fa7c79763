"""Public lists of group-by keys.

`public` looks for the keys of each kind of row, padded by an outer join or not, with the help of

- `rows`: what a row is made of, and which conditions it meets;
- `search`: the keys of one kind of row. `variables` are columns that are equal. `tables` of public rows are filtered
  and joined. Conditions `narrow` a single column to lists and `ranges`; `compute` tests them on single rows.

All of it is a guess: a list that is too short costs rows, and one that is too long gives empty groups.
"""
