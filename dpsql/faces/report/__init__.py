"""The report on a policy for lawyers and boards: one page that loads nothing, of the policy, its ledger and constants.

`page.py` puts it together of `sections/`; `charts.py` draws, `odds.py` counts, `markup.py` escapes.
"""
