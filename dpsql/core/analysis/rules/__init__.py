"""The rule of each operator, one file each: from the facts of its inputs to those of its rows.

[tight] at a claim: some pair of neighbours reaches it.
"""
