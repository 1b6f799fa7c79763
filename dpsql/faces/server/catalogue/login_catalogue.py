"""Questions about the schema, answered from the policy alone. The front has this, and no data."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dpsql.core.policy.policy import Policy
from dpsql.engines.policy_catalogue import CatalogueDatabase, CatalogueRelation, open_catalogue
from dpsql.faces.server.catalogue import information_schema
from dpsql.faces.server.catalogue.catalogue_rows import PG_CATALOG, PUBLIC, ClientSchema
from dpsql.faces.server.catalogue.functions import listed, python_functions
from dpsql.faces.server.catalogue.postgres_types import Row, postgres, regtype_oid
from dpsql.frontend.catalogue.known import CatalogueQuestion, KnownNames, NotListed, duckdb_type
from dpsql.frontend.catalogue.question import asks_catalogue, read_question

VERSION: Final = "PostgreSQL 15.0 (dpsql)"
VERSION_OF_MADE_UP: Final = "PostgreSQL 15.0 (dpsql; made-up data)"
_KEPT = 500
_MOST_KEPT = 1_000_000
"""Characters and values of all answers that are kept; none of them has more than a tenth of that."""
_ZERO_BASED = frozenset({"indkey", "indcollation", "indclass", "indoption", "proargtypes"})
_ASKED_ALONE = (
    "version", "current_schema", "current_schemas", "current_database", "current_catalog", "current_user",
    "session_user", "current_setting", "set_config",
)  # fmt: skip
_KEYWORDS = {"word": "text", "catcode": '"char"', "catdesc": "text"}
_EMPTY: dict[str, Any] = {"boolean": False, '"char"': "", "real": 0.0} | dict.fromkeys(
    ("oid", "integer", "smallint", "bigint"), 0
)
"""What a column of pg_catalog holds where nothing is said of it."""


@dataclass(frozen=True, slots=True)
class SchemaAnswer:
    """An answer. columns: names and PostgreSQL's types. rows: texts as PostgreSQL has them, bools, numbers, lists.

    missing: what was asked that says nothing here.
    """

    columns: tuple[tuple[str, str], ...]
    rows: Sequence[tuple[Any, ...]]
    missing: tuple[str, ...] = ()


class LoginCatalogue:
    """What one login sees. What is asked is made when the first question comes. databases: all that he may ask."""

    def __init__(self, policy: Policy, login: str, databases: Sequence[str] = (), *, made_up: bool = False) -> None:
        self._schema = ClientSchema(policy, login, tuple(name for name in databases if name != policy.name), made_up)
        self._lock = threading.Lock()
        self._open: CatalogueDatabase | None = None
        self._answers: OrderedDict[str, SchemaAnswer] = OrderedDict()
        self._size = 0
        self._functions = listed(self._schema)
        self._rows: dict[tuple[str, str], list[Row]] = {
            ("pg_catalog", name): rows for name, rows in self._schema.rows().items()
        } | {("information_schema", name): rows for name, rows in information_schema.rows(self._schema).items()}
        relations = self.relations()
        names = {"current_database": self._schema.database, "current_catalog": self._schema.database}
        names |= dict.fromkeys(("current_user", "session_user", "user", "current_role"), login)
        self._known = KnownNames(
            relations=relations,
            empty=frozenset(relations) - frozenset(place for place, rows in self._rows.items() if rows),
            functions={n: {c: form[:2] for c, form in forms.items()} for n, forms in self._functions.items()},
            constants={
                "version": ("text", VERSION_OF_MADE_UP if made_up else VERSION),
                "current_schema": ("name", "public"),
            }
            | {name: ("name", value) for name, value in names.items()},
            oid_of=self._oid_of,
            zero_based=_ZERO_BASED,
            table_functions=frozenset({"pg_get_keywords"}),
        )

    @staticmethod
    def relations() -> dict[tuple[str, str], dict[str, str]]:
        """Those of both schemas: columns and PostgreSQL's types."""
        found = {("pg_catalog", name): columns for name, columns in postgres()["relations"].items()}
        found |= {("information_schema", name): c for name, c in postgres()["information_schema"].items()}
        return found | {("pg_catalog", "pg_get_keywords"): _KEYWORDS}

    @staticmethod
    def concerns(sql: str) -> bool:
        """Whether a statement asks the catalogue. One that also reads a table of the policy does not."""
        return asks_catalogue(sql, _ASKED_ALONE)

    def read(self, sql: str, values: Sequence[str | None] | None = None) -> CatalogueQuestion:
        """Columns and types of parameters. Raises NotListed."""
        try:
            return read_question(sql, self._known, values)
        except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError):  # a tree of an odd shape
            raise NotListed("this spelling") from None

    def answer(self, sql: str, values: Sequence[str | None] = ()) -> SchemaAnswer:
        """The answer. values: one text for each of `$1`, …; None is NULL. Raises NotListed, TooMuch, DoesNotFit."""
        question = self.read(sql, values)
        if question.sql is None:
            return SchemaAnswer(question.columns, (), question.missing)
        with self._lock:
            found = self._answers.get(question.sql)
            if found is None:
                if self._open is None:
                    self._open = open_catalogue(list(self._relations()), python_functions(self._functions))
                found = SchemaAnswer(question.columns, self._open.fetch(question.sql))
                self._keep(question.sql, found)
        return SchemaAnswer(question.columns, found.rows, question.missing)

    def _keep(self, sql: str, found: SchemaAnswer) -> None:
        """For who asks the same again, if it is not large."""
        size = _size(found)
        if size > _MOST_KEPT // 10:
            return
        self._answers[sql] = found
        self._size += size
        while self._size > _MOST_KEPT or len(self._answers) > _KEPT:
            _, gone = self._answers.popitem(last=False)
            self._size -= _size(gone)

    def close(self) -> None:
        """Forget everything. Closing twice is allowed."""
        with self._lock:
            if self._open is not None:
                self._open.close()

    def _oid_of(self, kind: str, name: str) -> int | None:
        match kind:
            case "regtype":
                return regtype_oid(name)
            case "regnamespace":
                return {"pg_catalog": PG_CATALOG, "public": PUBLIC}.get(name)
            case "regclass":
                own = {table.name: oid for oid, table in self._schema.tables}
                system: dict[str, int] = postgres()["oids"]
                return own.get(name.removeprefix("public."), system.get(name))
        return None

    def _relations(self) -> Iterator[CatalogueRelation]:
        for place, columns in self._known.relations.items():
            empty = _EMPTY if place[0] == "pg_catalog" else {}
            itself = postgres()["oids"].get(place[1])
            yield CatalogueRelation(
                ".".join(place),
                {name: duckdb_type(kind) for name, kind in columns.items()} | {"tableoid": "UINTEGER"},
                [
                    [*(row[name] if name in row else empty.get(kind) for name, kind in columns.items()), itself]
                    for row in self._rows.get(place, ())
                ],
            )


def _size(table: SchemaAnswer) -> int:
    return sum(len(value) + 1 if isinstance(value, str | list) else 1 for row in table.rows for value in row)
