"""The imperative shell: opens data, policy and ledger, measures public facts, plans, and runs.

Nothing is imported here: `dpsql check` needs `session.check` alone, and neither an engine nor arrays.
"""
