"""The trusted core: the only folder to review. If it is right, and the policy is true, the privacy guarantee holds.

From below: `numbers` and `privacy_loss` (exact arithmetic), `ir` (plans and their types), `policy` (what the custodian
declares, as values), `functions` (what a value of an expression can be), `analysis` (stability and bounds of each
operator), `noise` (sensitivity, mechanisms, their price), `printing` (plans as SQL of a dialect), `ledger` (charge
first), `engine` (what a database must keep to), `release` (ask, add noise, hand over).

It imports nothing of dpsql but `diagnostics`, the words of its refusals; import-linter holds that. Whoever binds,
rewrites or explains queries is outside: their plans are analysed and priced here, from nothing. What else the guarantee
rests on is listed in SECURITY.md.
"""
