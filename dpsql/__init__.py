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
    from dpsql.dbapi.connection import Connection, connect
    from dpsql.dbapi.cursor import Cursor
    from dpsql.dbapi.types import (
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
        NotSupportedError,
        OperationalError,
        ProgrammingError,
        Rejected,
        UtilityWarning,
        Warning,
    )
    from dpsql.loss import PrivacyLoss
    from dpsql.policy.models import Policy
    from dpsql.release.result import Release
    from dpsql.session.check import check
    from dpsql.session.query import Query
    from dpsql.session.verify import Verification, verify_policy

__version__ = "0.1.0"

apilevel = "2.0"
"""PEP 249."""
threadsafety = 2
"""Threads may share the module and connections, but not cursors."""
paramstyle = "qmark"
"""`?` with a sequence; `$name` with a mapping is understood, too."""

_HOMES = {
    "BINARY": "dpsql.dbapi.types",
    "Binary": "dpsql.dbapi.types",
    "BudgetExceeded": "dpsql.diagnostics.errors",
    "CannotOpen": "dpsql.diagnostics.errors",
    "Connection": "dpsql.dbapi.connection",
    "Cursor": "dpsql.dbapi.cursor",
    "DATETIME": "dpsql.dbapi.types",
    "DataError": "dpsql.diagnostics.errors",
    "DatabaseError": "dpsql.diagnostics.errors",
    "Date": "dpsql.dbapi.types",
    "DateFromTicks": "dpsql.dbapi.types",
    "Diagnostic": "dpsql.diagnostics.diagnostic",
    "EngineError": "dpsql.diagnostics.errors",
    "Error": "dpsql.diagnostics.errors",
    "IntegrityError": "dpsql.diagnostics.errors",
    "InterfaceError": "dpsql.diagnostics.errors",
    "InternalError": "dpsql.diagnostics.errors",
    "NUMBER": "dpsql.dbapi.types",
    "NotSupportedError": "dpsql.diagnostics.errors",
    "OperationalError": "dpsql.diagnostics.errors",
    "Policy": "dpsql.policy.models",
    "PrivacyLoss": "dpsql.loss",
    "ProgrammingError": "dpsql.diagnostics.errors",
    "Query": "dpsql.session.query",
    "ROWID": "dpsql.dbapi.types",
    "Rejected": "dpsql.diagnostics.errors",
    "Release": "dpsql.release.result",
    "STRING": "dpsql.dbapi.types",
    "Time": "dpsql.dbapi.types",
    "TimeFromTicks": "dpsql.dbapi.types",
    "Timestamp": "dpsql.dbapi.types",
    "TimestampFromTicks": "dpsql.dbapi.types",
    "Verification": "dpsql.session.verify",
    "UtilityWarning": "dpsql.diagnostics.errors",
    "Warning": "dpsql.diagnostics.errors",
    "check": "dpsql.session.check",
    "connect": "dpsql.dbapi.connection",
    "verify_policy": "dpsql.session.verify",
}

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
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
    "NotSupportedError",
    "OperationalError",
    "Policy",
    "PrivacyLoss",
    "ProgrammingError",
    "Query",
    "Rejected",
    "Release",
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
    "paramstyle",
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
