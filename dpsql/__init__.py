"""dpsql: SQL over personal data, answered with differential privacy.

    with dpsql.connect("clinic.yaml", analyst="ana") as con:
        q = con.sql("SELECT region, COUNT(*) AS n FROM patients GROUP BY region")
        print(q.explain())
        print(q.run(epsilon=0.5))

Names are loaded when first used: `import dpsql` and `dpsql.check` import no database engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpsql.diagnostics.diagnostic import Diagnostic
    from dpsql.diagnostics.errors import BudgetExceeded, CannotOpen, EngineError, Error, Rejected
    from dpsql.loss import PrivacyLoss
    from dpsql.policy.models import Policy
    from dpsql.release.result import Release
    from dpsql.session.check import check
    from dpsql.session.connection import Connection, connect
    from dpsql.session.query import Query
    from dpsql.session.verify import Verification, verify_policy

__version__ = "0.1.0"

_HOMES = {
    "BudgetExceeded": "dpsql.diagnostics.errors",
    "CannotOpen": "dpsql.diagnostics.errors",
    "Connection": "dpsql.session.connection",
    "Diagnostic": "dpsql.diagnostics.diagnostic",
    "EngineError": "dpsql.diagnostics.errors",
    "Error": "dpsql.diagnostics.errors",
    "Policy": "dpsql.policy.models",
    "PrivacyLoss": "dpsql.loss",
    "Query": "dpsql.session.query",
    "Rejected": "dpsql.diagnostics.errors",
    "Release": "dpsql.release.result",
    "Verification": "dpsql.session.verify",
    "check": "dpsql.session.check",
    "connect": "dpsql.session.connection",
    "verify_policy": "dpsql.session.verify",
}

__all__ = [
    "BudgetExceeded",
    "CannotOpen",
    "Connection",
    "Diagnostic",
    "EngineError",
    "Error",
    "Policy",
    "PrivacyLoss",
    "Query",
    "Rejected",
    "Release",
    "Verification",
    "__version__",
    "check",
    "connect",
    "verify_policy",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dpsql' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
