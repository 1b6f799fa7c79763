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
    from dpsql.answers.results.answer import Release
    from dpsql.api.connection import Connection, connect
    from dpsql.api.cursor import Cursor
    from dpsql.api.protect import protect
    from dpsql.api.type_objects import (
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
    from dpsql.service.batches.batch import Batch
    from dpsql.service.batches.batch_release import BatchAnswer, BatchRelease
    from dpsql.service.checks.check import check
    from dpsql.service.checks.verify import Verification, verify_policy
    from dpsql.service.counters.counter import CounterMade, CounterQuery, KnownCounter
    from dpsql.service.counters.counter_store import Ticked
    from dpsql.service.preparing.prepare import Preparation, prepare
    from dpsql.service.privacy_settings import Options
    from dpsql.service.query import Query
    from dpsql.service.summaries.summary import KnownSummary, SummaryMade, SummaryQuery

__version__ = "0.2.0"

apilevel = "2.0"
"""PEP 249."""
threadsafety = 2
"""Threads may share the module and connections, but not cursors."""
paramstyle = "qmark"
"""`?` with a sequence; `$name` with a mapping is understood, too."""

_HOMES = {
    "BINARY": "dpsql.api.type_objects",
    "Binary": "dpsql.api.type_objects",
    "BudgetExceeded": "dpsql.diagnostics.errors",
    "CannotOpen": "dpsql.diagnostics.errors",
    "Connection": "dpsql.api.connection",
    "Cursor": "dpsql.api.cursor",
    "DATETIME": "dpsql.api.type_objects",
    "DataError": "dpsql.diagnostics.errors",
    "DatabaseError": "dpsql.diagnostics.errors",
    "Date": "dpsql.api.type_objects",
    "DateFromTicks": "dpsql.api.type_objects",
    "Diagnostic": "dpsql.diagnostics.diagnostic",
    "EngineError": "dpsql.diagnostics.errors",
    "Error": "dpsql.diagnostics.errors",
    "IntegrityError": "dpsql.diagnostics.errors",
    "InterfaceError": "dpsql.diagnostics.errors",
    "InternalError": "dpsql.diagnostics.errors",
    "NUMBER": "dpsql.api.type_objects",
    "NothingFound": "dpsql.diagnostics.errors",
    "NotSupportedError": "dpsql.diagnostics.errors",
    "OperationalError": "dpsql.diagnostics.errors",
    "Options": "dpsql.service.privacy_settings",
    "Policy": "dpsql.policy.policy",
    "PrivacyLoss": "dpsql.core.privacy_loss",
    "ProgrammingError": "dpsql.diagnostics.errors",
    "Preparation": "dpsql.service.preparing.prepare",
    "Batch": "dpsql.service.batches.batch",
    "BatchAnswer": "dpsql.service.batches.batch_release",
    "BatchRelease": "dpsql.service.batches.batch_release",
    "CounterMade": "dpsql.service.counters.counter",
    "CounterQuery": "dpsql.service.counters.counter",
    "KnownCounter": "dpsql.service.counters.counter",
    "Ticked": "dpsql.service.counters.counter_store",
    "KnownSummary": "dpsql.service.summaries.summary",
    "SummaryMade": "dpsql.service.summaries.summary",
    "SummaryQuery": "dpsql.service.summaries.summary",
    "Query": "dpsql.service.query",
    "ROWID": "dpsql.api.type_objects",
    "Rejected": "dpsql.diagnostics.errors",
    "Release": "dpsql.answers.results.answer",
    "STRING": "dpsql.api.type_objects",
    "Time": "dpsql.api.type_objects",
    "TimeFromTicks": "dpsql.api.type_objects",
    "Timestamp": "dpsql.api.type_objects",
    "TimestampFromTicks": "dpsql.api.type_objects",
    "Verification": "dpsql.service.checks.verify",
    "UtilityWarning": "dpsql.diagnostics.errors",
    "Warning": "dpsql.diagnostics.errors",
    "check": "dpsql.service.checks.check",
    "connect": "dpsql.api.connection",
    "epsilon_to_rho": "dpsql.core.privacy_loss",
    "prepare": "dpsql.service.preparing.prepare",
    "protect": "dpsql.api.protect",
    "verify_policy": "dpsql.service.checks.verify",
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
    "CounterMade",
    "CounterQuery",
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
    "KnownCounter",
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
    "Ticked",
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
