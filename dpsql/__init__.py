"""dpsql: SQL over personal data, answered with differential privacy.

    with dpsql.connect("clinic.yaml", analyst="ana") as con:
        q = con.sql("SELECT region, COUNT(*) AS n FROM patients GROUP BY region")
        print(q.explain())
        print(q.run(epsilon=0.5))

A driver in the sense of PEP 249, too. Names are loaded when first used: `import dpsql` and `dpsql.check` import no
database engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpsql.api.connection import Connection, connect
    from dpsql.api.cursor import Cursor
    from dpsql.api.protect import protect
    from dpsql.api.types import (
        BINARY,
        DATETIME,
        NUMBER,
        ROWID,
        STRING,
        Binary,
        Date,
        DateFromTicks,
        Time,
        TimeFromTicks,
        Timestamp,
        TimestampFromTicks,
    )
    from dpsql.core.privacy_loss import PrivacyLoss, epsilon_to_rho
    from dpsql.diagnostics.diagnostic import Diagnostic
    from dpsql.diagnostics.errors import (
        BudgetExceeded,
        CannotOpen,
        DatabaseError,
        DataError,
        EngineError,
        Error,
        IntegrityError,
        InterfaceError,
        InternalError,
        NothingFound,
        NotSupportedError,
        OperationalError,
        ProgrammingError,
        Rejected,
        UtilityWarning,
        Warning,
    )
    from dpsql.policy.policy import Policy
    from dpsql.results.answer import Release
    from dpsql.service.batch import Batch
    from dpsql.service.batch_release import BatchAnswer, BatchRelease
    from dpsql.service.check import check
    from dpsql.service.preparing.prepare import Preparation, prepare
    from dpsql.service.query import Query
    from dpsql.service.settings import Options
    from dpsql.service.summary import KnownSummary, SummaryMade, SummaryQuery
    from dpsql.service.verify import Verification, verify_policy

__version__ = "0.1.0"

apilevel = "2.0"
"""PEP 249."""
threadsafety = 2
"""Threads may share the module and connections, but not cursors."""
paramstyle = "qmark"
"""`?` with a sequence; `$name` with a mapping is understood, too."""

_HOMES = {
    "BINARY": "dpsql.api.types",
    "Binary": "dpsql.api.types",
    "BudgetExceeded": "dpsql.diagnostics.errors",
    "CannotOpen": "dpsql.diagnostics.errors",
    "Connection": "dpsql.api.connection",
    "Cursor": "dpsql.api.cursor",
    "DATETIME": "dpsql.api.types",
    "DataError": "dpsql.diagnostics.errors",
    "DatabaseError": "dpsql.diagnostics.errors",
    "Date": "dpsql.api.types",
    "DateFromTicks": "dpsql.api.types",
    "Diagnostic": "dpsql.diagnostics.diagnostic",
    "EngineError": "dpsql.diagnostics.errors",
    "Error": "dpsql.diagnostics.errors",
    "IntegrityError": "dpsql.diagnostics.errors",
    "InterfaceError": "dpsql.diagnostics.errors",
    "InternalError": "dpsql.diagnostics.errors",
    "NUMBER": "dpsql.api.types",
    "NothingFound": "dpsql.diagnostics.errors",
    "NotSupportedError": "dpsql.diagnostics.errors",
    "OperationalError": "dpsql.diagnostics.errors",
    "Options": "dpsql.service.settings",
    "Policy": "dpsql.policy.policy",
    "PrivacyLoss": "dpsql.core.privacy_loss",
    "ProgrammingError": "dpsql.diagnostics.errors",
    "Preparation": "dpsql.service.preparing.prepare",
    "Batch": "dpsql.service.batch",
    "BatchAnswer": "dpsql.service.batch_release",
    "BatchRelease": "dpsql.service.batch_release",
    "KnownSummary": "dpsql.service.summary",
    "SummaryMade": "dpsql.service.summary",
    "SummaryQuery": "dpsql.service.summary",
    "Query": "dpsql.service.query",
    "ROWID": "dpsql.api.types",
    "Rejected": "dpsql.diagnostics.errors",
    "Release": "dpsql.results.answer",
    "STRING": "dpsql.api.types",
    "Time": "dpsql.api.types",
    "TimeFromTicks": "dpsql.api.types",
    "Timestamp": "dpsql.api.types",
    "TimestampFromTicks": "dpsql.api.types",
    "Verification": "dpsql.service.verify",
    "UtilityWarning": "dpsql.diagnostics.errors",
    "Warning": "dpsql.diagnostics.errors",
    "check": "dpsql.service.check",
    "connect": "dpsql.api.connection",
    "epsilon_to_rho": "dpsql.core.privacy_loss",
    "prepare": "dpsql.service.preparing.prepare",
    "protect": "dpsql.api.protect",
    "verify_policy": "dpsql.service.verify",
}

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Batch",
    "BatchAnswer",
    "BatchRelease",
    "Binary",
    "BudgetExceeded",
    "CannotOpen",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Diagnostic",
    "EngineError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "KnownSummary",
    "NotSupportedError",
    "NothingFound",
    "OperationalError",
    "Options",
    "Policy",
    "Preparation",
    "PrivacyLoss",
    "ProgrammingError",
    "Query",
    "Rejected",
    "Release",
    "SummaryMade",
    "SummaryQuery",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "UtilityWarning",
    "Verification",
    "Warning",
    "__version__",
    "apilevel",
    "check",
    "connect",
    "epsilon_to_rho",
    "paramstyle",
    "prepare",
    "protect",
    "threadsafety",
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
