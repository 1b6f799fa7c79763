"""Attacks on a plan's own claims: worst-case neighbouring databases, the real pipeline on both, and a verdict.

No row of the custodian's is read and nothing is charged: all private rows are made up here, from the policy alone.
"""
