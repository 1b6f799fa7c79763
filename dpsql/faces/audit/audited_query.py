"""An audit of a query under a policy file: what it is run at, and where public tables come from."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from os import PathLike

from dpsql.core.engine import Engine
from dpsql.core.ir.periods import Closed
from dpsql.core.ledger.closings import closed_periods, tables_that_grow
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.prepared import with_owners
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import CannotOpen
from dpsql.faces.audit.run_audit import RUNS, Audit, audit
from dpsql.planner.computed import understood
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import load_policy
from dpsql.policy.tools.decisions import decided
from dpsql.service.accounts.ledgers import look_at_ledger, place_of
from dpsql.service.checks.check import NOMINAL_DELTA
from dpsql.service.made_up.service import made_up_periods
from dpsql.service.open_data import open_data

EPSILON = Fraction(1)
"""Where nothing is said: at a small ε too little noise is much harder to see, and the noise is the same code."""
KEY_DELTA = Fraction(1, 20)
"""δ of private keys where nothing is said: one that real queries use could not be tested in any number of runs."""


def _closed(policy: Policy) -> Mapping[str, Closed]:
    """What the ledger says of growing tables; of those with no closed period, some that nobody has closed."""
    found, growing = dict(made_up_periods(policy)), tables_that_grow(policy)
    place = place_of(policy, None) if growing else None
    ledger = look_at_ledger(policy, place)
    if ledger is not None:
        with closing(ledger):
            told = {table.name: closed_periods(ledger.closings(), policy, table) for table in growing}
        found |= {name: closed for name, closed in told.items() if closed.through is not None}
    return found


def audit_query(
    policy: Policy | str | PathLike[str], source: Source, settings: QuerySettings | None = None, *, runs: int = RUNS
) -> Audit:
    """Audit a query at the ε and δ of `settings`, else at `EPSILON` and a δ that shows what it is for.

    Public tables are read from the policy's data if that can be opened, and are made up if not. Private tables are made
    up, always: of the custodian's data nothing but the schema is looked at.
    Raises CannotOpen (the policy; the data if it contradicts the policy), Rejected, EngineError.
    """
    loaded = decided(understood(policy if isinstance(policy, Policy) else load_policy(policy)))
    wanted = settings or QuerySettings()
    if wanted.epsilon is None:
        wanted = replace(wanted, epsilon=EPSILON)
    engine: Engine | None = None
    try:
        loaded, engine = open_data(loaded, None, None, None, None, prepared=False)
    except CannotOpen as error:
        if error.diagnostics[0].code == "DP004":
            raise
    loaded = understood(with_owners(loaded))
    try:
        key_delta = None
        if wanted.delta is None and loaded.privacy.accountant != "pure_dp":
            wanted, key_delta = replace(wanted, delta=loaded.defaults.delta or NOMINAL_DELTA), KEY_DELTA
        return audit(source, loaded, wanted, engine, key_delta=key_delta, runs=runs, closed=_closed(loaded))
    finally:
        if engine is not None:
            engine.close()
