"""`dpsql.budget`, `dpsql.history`, …: public relations of a server, to be selected from like tables.

A query that names one is asked with a WITH query in front of it, whose rows are parameters: so it is planned, refused
and computed as any other text. The name is replaced by one of the same length, so that places only move. Of one that
is asked for whole, as SHOW and the consoles do, the rows are given as they are: a plan of so many values takes longer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from dpsql.answers.results import counter_rows
from dpsql.answers.results.summary_rows import LISTED
from dpsql.core.ir.types import BIGINT, BOOLEAN, DATE, DOUBLE, TIMESTAMP, VARCHAR, SqlType
from dpsql.diagnostics.errors import reject
from dpsql.faces.server.statements import Value
from dpsql.frontend.text.lexer import Token, tokens

Row = tuple[Value, ...]

RELATIONS: Final[Mapping[str, Mapping[str, SqlType]]] = {
    "budget": {
        "unit": VARCHAR,
        **{f"{part}_{what}": DOUBLE for part in ("epsilon", "delta", "rho") for what in ("spent", "left")},
    },
    "history": {
        "number": BIGINT,
        "reserved_at": TIMESTAMP,
        "statement": VARCHAR,
        **dict.fromkeys(("epsilon", "delta", "rho"), DOUBLE),
        "plan": VARCHAR,
        "entry": VARCHAR,
    },
    "tables": {
        "table_name": VARCHAR,
        "rows_of": VARCHAR,
        "column_name": VARCHAR,
        "type": VARCHAR,
        "nullable": BOOLEAN,
        "declared": VARCHAR,
    },
    "summaries": dict(LISTED),
    "counters": dict(counter_rows.LISTED),
    "closed_periods": {
        "table_name": VARCHAR,
        "told_by": VARCHAR,
        "every": VARCHAR,
        "first_day": DATE,
        "last_day": DATE,
    },
    "periods": {
        "unit": VARCHAR,
        "first_day": DATE,
        "last_day": DATE,
        **{f"{part}_{what}": DOUBLE for part in ("epsilon", "delta", "rho") for what in ("spent", "left")},
    },
    "spending": {"unit": VARCHAR, "reserved_at": TIMESTAMP, **dict.fromkeys(("epsilon", "delta", "rho"), DOUBLE)},
    "periods_of_all": {
        "unit": VARCHAR,
        "account": VARCHAR,
        "first_day": DATE,
        "last_day": DATE,
        **{f"{part}_{what}": DOUBLE for part in ("epsilon", "delta", "rho") for what in ("spent", "left")},
    },
    "accounts": {
        "unit": VARCHAR,
        "account": VARCHAR,
        **{f"{part}_{what}": DOUBLE for part in ("epsilon", "delta", "rho") for what in ("spent", "left")},
    },
    "spending_of_all": {
        "unit": VARCHAR,
        "account": VARCHAR,
        "reserved_at": TIMESTAMP,
        **dict.fromkeys(("epsilon", "delta", "rho"), DOUBLE),
    },
    "ledger": {"name": VARCHAR, "value": VARCHAR},
    "failures": {"account": VARCHAR, "at": TIMESTAMP, "how": VARCHAR, "statement": VARCHAR, "entry": VARCHAR},
    "report": {"page": VARCHAR},
}
"""Relation → its columns. budget: of the own account; what is left is NULL where nothing limits it. history: numbered
by itself, for the ledger's own numbers count what others ask. closed_periods: of growing tables, what queries read; no
day where nothing is closed. periods: of rows with a budget for each period, the own
account in each stretch of days; the last has no end. spending: what was spent of a unit after each charge.
periods_of_all, accounts, spending_of_all: of every account, and of all together, whose account is NULL. ledger: its
state, in words. failures: what failed in the engine since a custodian looked last, as far as it counts.
report: on the policy, a page of HTML in one row."""

OF_CUSTODIANS: Final = frozenset({"periods_of_all", "accounts", "spending_of_all", "ledger", "failures", "report"})
"""Relations that tell of others than who asks."""


def require_own(names: Collection[str], role: str) -> None:
    """Raises Rejected DP102 for a relation that a login of this role may not read."""
    closed = [name for name in names if name in OF_CUSTODIANS and role != "custodian"]
    if closed:
        raise reject(
            "DP102", f"dpsql.{closed[0]} is for logins of the role custodian", help=["SELECT * FROM dpsql.budget"]
        )


_WHOLE: Final = re.compile(r"SELECT \* FROM dpsql\.([a-z_]+)")


def whole(sql: str) -> str | None:
    """The relation of which a text asks everything; None for any other text."""
    found = _WHOLE.fullmatch(sql)
    return found[1] if found is not None and found[1] in RELATIONS else None


def named_in(sql: str) -> tuple[str, ...]:
    """The relations that a text names, each once."""
    if "dpsql" not in sql.lower():
        return ()
    return tuple(dict.fromkeys(name for name, _, _ in _places(sql)))


def with_rows(
    sql: str, values: Sequence[Value], rows: Mapping[str, Sequence[Row]]
) -> tuple[str, dict[str, Value], int]:
    """A text in which these relations are WITH queries, its parameters, and by how many characters its places move."""
    parameters: dict[str, Value] = {str(i): value for i, value in enumerate(values, 1)}
    made = [_query(name, found, parameters) for name, found in rows.items()]
    for name, start, end in _places(sql):
        sql = sql[:start] + f"dpsql_{name}".ljust(end - start) + sql[end:]
    first = next((token for token in tokens(sql) if token.kind != "comment"), None)
    begins = 0 if first is None else first.start
    if first is not None and first.upper == "WITH":
        begins, head = first.end, f" {', '.join(made)},"
    else:
        head = f"WITH {', '.join(made)} "
    return sql[:begins] + head + sql[begins:], parameters, len(head)


def _query(name: str, rows: Sequence[Row], parameters: dict[str, Value]) -> str:
    columns = RELATIONS[name]
    nothing = ", ".join(f"CAST(NULL AS {type_})" for type_ in columns.values())
    listed = [f"({nothing})"]
    for row in rows:
        keys = [f"dpsql_{len(parameters) + i}" for i in range(len(row))]
        parameters.update(zip(keys, row, strict=True))
        listed.append(f"({', '.join('$' + key for key in keys)})")
    first = next(iter(columns))
    names = ", ".join(f'"{column}"' for column in columns)
    shown = ", ".join(f'CAST("{column}" AS {type_}) AS "{column}"' for column, type_ in columns.items())
    given = f"(VALUES {', '.join(listed)}) AS v({names})"
    return f'dpsql_{name} AS (SELECT {shown} FROM {given} WHERE "{first}" IS NOT NULL)'


def _places(sql: str) -> list[tuple[str, int, int]]:
    """(relation, start, end) of each `dpsql.name`."""
    found: list[tuple[str, int, int]] = []
    parts: Sequence[Token] = [t for t in tokens(sql) if t.kind != "comment"]
    for at, token in enumerate(parts[:-2]):
        name = parts[at + 2]
        is_ours = token.is_name and token.name.lower() == "dpsql" and parts[at + 1].text == "."
        if is_ours and name.is_name and name.name.lower() in RELATIONS:
            found.append((name.name.lower(), token.start, name.end))
    return found


def with_no_rows(sql: str, values: Sequence[Value], names: Collection[str]) -> tuple[str, dict[str, Value], int]:
    """As `with_rows`, for who only wants to know the columns."""
    return with_rows(sql, values, dict.fromkeys(names, ()))
