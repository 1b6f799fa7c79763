"""The made-up database that a plan is audited on: private tables of our own rows, public ones real or made up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from dpsql.core.engine import Engine
from dpsql.core.ir.types import INTEGER, INTERVAL, TIME, TIMESTAMPTZ, UUID, VARCHAR, Kind
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Column, Table, TableDomain
from dpsql.core.printing.computed import computed_columns
from dpsql.diagnostics.errors import reject
from dpsql.engines.literals import NULL, fresh
from dpsql.engines.synthetic import DIALECT, Row, SyntheticEngine
from dpsql.faces.audit.worst_values import pool

MOST_PUBLIC_ROWS = 50_000
"""More rows of a public table are not copied: a part of it is as good a public table."""
_KEYS, _REPEATED = 8, 50
_AS_TEXT = (TIMESTAMPTZ, TIME, UUID, INTERVAL)


class World(SyntheticEngine):
    """An engine whose tables are made when they are first asked for: private ones empty, public ones filled.

    source: where public tables are read; None: they are made up from the policy. Private tables are never read there.
    made_up: public tables that were.
    """

    def __init__(self, policy: Policy, source: Engine | None) -> None:
        super().__init__()
        self.computed = computed_columns(policy, self.dialect)
        self.policy = policy
        self._source = source
        self._public: dict[str, list[Row]] = {}
        self._shown: dict[str, tuple[Row, ...]] = {}
        self.made_up: list[str] = []

    def table_sql(self, name: str) -> str:
        """As `Engine.table_sql`, for every table of the policy. Raises EngineError, Rejected."""
        if not self.has(name):
            table = self.policy.tables[name]
            if not table.columns:
                raise reject(
                    "DP005", f"the columns of {name} are not known without the data",
                    help=[f"audit where the data can be opened; or, custodian: list them under tables.{name}.columns"],
                )  # fmt: skip
            self.create(name, [(c.name, (c.sql_type or INTEGER).name) for c in table.columns.values()])
            if table.public:
                self._public[name] = self._read(table) if self._source is not None else self._invented(table)
                self.fill(name, self._public[name])
        return super().table_sql(name)

    def show(self, tables: Mapping[str, tuple[Row, ...]]) -> None:
        """Let these private tables hold these rows."""
        for name, rows in tables.items():
            if self._shown.get(name, ()) != rows:
                self.fill(name, rows)
                self._shown[name] = rows

    def public_table(self, name: str) -> list[Row]:
        """All rows of a public table."""
        self.table_sql(name)
        return self._public[name]

    def public_values(self, table: str, column: str) -> list[str]:
        """The values of a column of a public table, the most frequent first."""
        return [value for (value,) in self.public_rows(table, [column])]

    def public_rows(self, table: str, columns: Sequence[str]) -> list[Row]:
        """The same for several columns together; without NULL."""
        self.table_sql(table)
        names = list(self.policy.tables[table].columns)
        at = [names.index(column) for column in columns]
        counted = Counter(tuple(row[i] for i in at) for row in self._public[table])
        return [values for values, _ in counted.most_common() if NULL not in values]

    def _read(self, table: Table) -> list[Row]:
        assert self._source is not None and table.public
        columns, d = list(table.columns.values()), self._source.dialect
        listed = ", ".join(
            d.cast(d.identifier(c.name), VARCHAR) if c.sql_type in _AS_TEXT else d.identifier(c.name) for c in columns
        )
        relation = self._source.table_sql(table.name)
        found = self._source.fetch(f"SELECT {listed} FROM {relation} LIMIT {MOST_PUBLIC_ROWS}")
        return [tuple(_literal(v, c) for v, c in zip(row, columns, strict=True)) for row in found.rows()]

    def _invented(self, table: Table) -> list[Row]:
        """Rows that keep what the policy declares: `_KEYS` keys, each as often as it may occur."""
        self.made_up.append(table.name)
        unique = {key.columns for key in table.keys}
        times = min(_REPEATED, max((f.rows for f in table.max_frequency), default=1))
        repeated = {c for f in table.max_frequency for c in f.columns}
        rows, seen = [], set[tuple[tuple[str, ...], tuple[str, ...]]]()
        pools = {c.name: self._pool(c) for c in table.columns.values()}
        for i in range(_KEYS * times):
            row = {}
            for c in table.columns.values():
                values = pools[c.name]
                if (c.name,) in unique:
                    row[c.name] = values[i] if i < len(values) else fresh(100 + i, c.sql_type or INTEGER)
                else:
                    row[c.name] = values[(i // times if c.name in repeated else i) % len(values)]
            keys = {(columns, tuple(row[c] for c in columns)) for columns in unique}
            if not keys & seen:
                seen |= keys
                rows.append(tuple(row.values()))
        return rows

    def _pool(self, column: Column) -> list[str]:
        listed: list[str] = []
        if isinstance(column.domain, TableDomain):
            listed = self.public_values(column.domain.table, column.domain.column)
        return [v for v in pool(column, listed) if v != NULL]


def _literal(value: object, column: Column) -> str:
    type_ = column.sql_type or INTEGER
    if value is None:
        return NULL
    if type_.kind is Kind.LIST:
        items = Column("", sql_type=type_.item)
        return f"[{', '.join(_literal(v, items) for v in _elements(value))}]"
    if type_ in _AS_TEXT:
        return DIALECT.cast(DIALECT.text(str(value)), type_)
    return DIALECT.constant(value, type_)  # type: ignore[arg-type]


def _elements(value: object) -> Iterator[object]:
    assert isinstance(value, list)
    yield from value
