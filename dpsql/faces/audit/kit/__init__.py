"""A folder for strangers who want to see whether our tests would notice a fault: `dpsql audit kit DIR` writes it.

`corpus.py` has policies and queries; four harnesses look for what is wrong with the dpsql that they import
(`neighbours.py`, `replay.py`, `expressions.py`, `streams.py`); `faults.py` has the faults that are planted, and
`find_faults.py` plants them one by one. `write.py` writes it all, with the corpus as plain files for other systems.
"""
