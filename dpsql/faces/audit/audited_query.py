"""An audit of a query under a policy file: what it is run at, and where public tables come from."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from os import PathLike

from dpsql.core.engine import Engine
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.prepared import with_owners
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import CannotOpen
from dpsql.faces.audit.run_audit import RUNS, Audit, audit
from dpsql.planner.computed import understood
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import load_policy
from dpsql.policy.tools.decisions import decided
from dpsql.service.checks.check import NOMINAL_DELTA
from dpsql.service.open_data import open_data

EPSILON = Fraction(1)
"""Where nothing is said: at a small ε too little noise is much harder to see, and the noise is the same code."""
KEY_DELTA = Fraction(1, 20)
"""δ of private keys where nothing is said: one that real queries use could not be tested in any number of runs."""


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
        return audit(source, loaded, wanted, engine, key_delta=key_delta, runs=runs)
    finally:
        if engine is not None:
            engine.close()
