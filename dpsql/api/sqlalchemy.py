"""The SQLAlchemy dialect `dpsql:///clinic.yaml?analyst=ana&epsilon=0.2`: queries, and reflection of the policy.

In the URL stands the path of the policy (three slashes: relative to the current folder) and behind `?` the keywords of
`dpsql.connect`: analyst, epsilon, delta, allow_dearer, limits, ledger, threads, memory_limit. An engine holds one
connection, which its threads share, for opening reads the policy, the data's schema and the ledger. What `SET epsilon`
said holds until the connection goes back to the pool: whoever takes it out next pays what the URL says.

A connection that is open already, of a policy built in code, say: `create_engine("dpsql://", creator=lambda: con)`.

One statement's settings are its execution options: `select(…).execution_options(dpsql_epsilon=0.1)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from sqlalchemy import event, exc, pool
from sqlalchemy import types as sa
from sqlalchemy.engine import URL, Connection, Engine, default, reflection
from sqlalchemy.sql import compiler
from sqlalchemy.sql.elements import BindParameter

from dpsql.api.pool import OneConnection, PoolUsers
from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Table
from dpsql.core.policy.units import PathUnit

_KEYWORDS: dict[str, Callable[[str], object]] = {
    "analyst": str,
    "epsilon": str,
    "delta": str,
    "allow_dearer": str,
    "limits": str,
    "ledger": str,
    "threads": int,
    "memory_limit": str,
}
_FORM = "a dpsql URL names a policy file:  dpsql:///clinic.yaml?analyst=ana&epsilon=0.2"
_OPTION = "dpsql_"
_OPTIONS = (
    "epsilon",
    "delta",
    "rho",
    "max_error",
    "confidence",
    "weights",
    "allow_dearer",
    "coverage",
    "consistent_totals",
    "limits",
    "anyway",
    "fresh",
)
_TYPES: dict[Kind, type[sa.TypeEngine[Any]]] = {
    Kind.BOOLEAN: sa.BOOLEAN,
    Kind.DOUBLE: sa.DOUBLE,
    Kind.VARCHAR: sa.VARCHAR,
    Kind.UUID: sa.VARCHAR,
    Kind.DATE: sa.DATE,
    Kind.TIME: sa.TIME,
    Kind.INTERVAL: sa.Interval,
    Kind.BLOB: sa.BLOB,
}
_SMALL = ("TINYINT", "SMALLINT", "UTINYINT")
_MIDDLE = ("INTEGER", "USMALLINT")


class Pattern(sa.TypeDecorator[str]):
    """A parameter that is sent with `%` before or behind it, as one pattern; what it holds itself stays as it is."""

    impl = sa.String
    cache_ok = True

    def __init__(self, inner: sa.TypeEngine[Any], before: str, behind: str) -> None:
        super().__init__()
        self.inner, self.before, self.behind = inner, before, behind

    def process_bind_param(self, value: Any, dialect: Any) -> str | None:
        """The pattern of a text; None stays None."""
        processor = self.inner.dialect_impl(dialect).bind_processor(dialect)
        text = value if processor is None else processor(value)
        return None if text is None else f"{self.before}{text}{self.behind}"


def _like(name: str, before: str, behind: str) -> Callable[..., str]:
    """`x LIKE ?` for a method of texts such as `contains`, whose pattern SQLAlchemy would put together in SQL.

    The planner wants patterns that are known before the query runs. Where the text is not a parameter, but a column,
    say, it is left to SQLAlchemy, and to the planner to refuse.
    """
    method, no, plain = f"visit_{name}_op_binary", name.startswith("not_"), name.removeprefix("not_")
    like = f"visit_{'not_' if no else ''}{'ilike' if plain.startswith('i') else 'like'}_op_binary"

    def visit(self: DpsqlCompiler, binary: Any, operator: Any, **kw: Any) -> str:
        if isinstance(binary.right, BindParameter):
            binary = binary._clone()
            binary.right = self.pattern(binary.right, before, behind)
            method_of_self: Callable[..., str] = getattr(self, like)
            return method_of_self(binary, operator, **kw)
        usual: Callable[..., str] = getattr(super(DpsqlCompiler, self), method)
        return usual(binary, operator, **kw)

    return visit


class DpsqlCompiler(compiler.SQLCompiler):
    """SQLAlchemy's own but for patterns, in whose place it writes some that are computed, and for schemas, which stand
    before tables and not before columns.
    """

    visit_contains_op_binary = _like("contains", "%", "%")
    visit_not_contains_op_binary = _like("not_contains", "%", "%")
    visit_icontains_op_binary = _like("icontains", "%", "%")
    visit_not_icontains_op_binary = _like("not_icontains", "%", "%")
    visit_startswith_op_binary = _like("startswith", "", "%")
    visit_not_startswith_op_binary = _like("not_startswith", "", "%")
    visit_istartswith_op_binary = _like("istartswith", "", "%")
    visit_not_istartswith_op_binary = _like("not_istartswith", "", "%")
    visit_endswith_op_binary = _like("endswith", "%", "")
    visit_not_endswith_op_binary = _like("not_endswith", "%", "")
    visit_iendswith_op_binary = _like("iendswith", "%", "")
    visit_not_iendswith_op_binary = _like("not_iendswith", "%", "")

    def pattern(self, given: BindParameter[Any], before: str, behind: str) -> BindParameter[Any]:
        """The parameter as part of a pattern: the same value under a name of its own, for it may stand elsewhere, too.

        A clone with its key, as SQLAlchemy's own compilers make them: so values find it in a cached statement.
        """
        clone = given._clone(maintain_key=True)
        clone.type = Pattern(given.type, before, behind)
        self.bind_names[clone] = f"{self._truncate_bindparam(clone)}@{bool(before)}@{bool(behind)}"  # type: ignore[no-untyped-call]
        return clone

    def visit_column(self, column: Any, *args: Any, **keywords: Any) -> str:
        """table.column"""
        wanted = keywords.pop("include_table", True)
        short = wanted and getattr(column.table, "schema", None) is not None
        keywords["include_table"] = wanted and not short
        name = super().visit_column(column, *args, **keywords)
        return f"{self.preparer.quote(column.table.name)}.{name}" if short else name

    def visit_ilike_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """x ILIKE pattern"""
        return self._ilike(binary, "ILIKE", kw)

    def visit_not_ilike_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """x NOT ILIKE pattern"""
        return self._ilike(binary, "NOT ILIKE", kw)

    def _ilike(self, binary: Any, word: str, kw: dict[str, Any]) -> str:
        escape = binary.modifiers.get("escape")
        behind = "" if escape is None else f" ESCAPE {self.render_literal_value(escape, sa.STRINGTYPE)}"
        return f"{self.process(binary.left, **kw)} {word} {self.process(binary.right, **kw)}{behind}"


class DpsqlDialect(default.DefaultDialect):
    """SQL as DuckDB reads it. What dpsql does not accept (DDL, INSERT …) it refuses with a code when it is run."""

    name = "dpsql"
    driver = "dpsql"
    statement_compiler = DpsqlCompiler
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = False
    supports_alter = False
    supports_comments = True
    supports_schemas = True
    div_is_floordiv = False
    postfetch_lastrowid = False
    default_schema_name = None

    # --- connecting ------------------------------------------------------------------------------------------------

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """The driver: dpsql itself."""
        import dpsql

        return dpsql

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """One connection for all: see the module."""
        return OneConnection

    @classmethod
    def engine_created(cls, engine: Engine) -> None:
        """Watch the pool, whose next user must not pay what the last one set."""
        users = PoolUsers()
        event.listen(engine.pool, "checkout", users.take)
        event.listen(engine.pool, "reset", users.give_back)

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of `dpsql.connect`. Raises ArgumentError for a URL that is not of the form above."""
        unknown = sorted(set(url.query) - set(_KEYWORDS))
        if url.host or url.username:
            raise exc.ArgumentError(_FORM)
        if unknown:
            raise exc.ArgumentError(f"a dpsql URL takes {', '.join(_KEYWORDS)}, not {', '.join(unknown)}")
        keywords: dict[str, Any] = {}
        for name, value in url.query.items():
            try:
                keywords[name] = _KEYWORDS[name](value if isinstance(value, str) else value[-1])
            except ValueError:
                raise exc.ArgumentError(f"{name} in a dpsql URL is a whole number") from None
        return [url.database] if url.database else [], keywords

    def connect(self, *arguments: Any, **keywords: Any) -> Any:
        """Open the policy of the URL. Raises ArgumentError if it names none."""
        if not arguments:
            raise exc.ArgumentError(_FORM)
        return super().connect(*arguments, **keywords)

    def initialize(self, connection: Connection) -> None:
        """Nothing is asked of the database."""

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Whether the connection is open."""
        dbapi_connection.require_open()
        return True

    # --- running ---------------------------------------------------------------------------------------------------

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        """Run a statement with the settings of its execution options."""
        cursor.execute(statement, parameters, **_settings(context))

    def do_execute_no_params(self, cursor: Any, statement: str, context: Any = None) -> None:
        """Run a statement without parameters."""
        cursor.execute(statement, **_settings(context))

    # --- reflection ------------------------------------------------------------------------------------------------

    def get_schema_names(self, connection: Connection, **kw: Any) -> list[str]:
        """The schemas that table names of the policy stand in; tables without one are in none."""
        return sorted({schema for schema, _ in map(_split, _policy(connection).tables) if schema})

    def get_table_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """The tables of the policy, private and public."""
        return [table for found, table in map(_split, _policy(connection).tables) if found == schema]

    def get_view_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """None: a policy does not tell views from tables."""
        return []

    def has_table(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        """Whether the policy has a table of this name."""
        return _policy(connection).called(*_joined(table_name, schema).split(".")) is not None

    def get_columns(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """The declared columns."""
        return [
            {"name": c.name, "type": _type(c.sql_type), "nullable": c.is_nullable, "default": None}
            for c in _table(connection, table_name, schema).columns.values()
        ]

    def get_pk_constraint(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """The declared primary key."""
        key = _table(connection, table_name, schema).primary_key
        return {"name": None, "constrained_columns": [] if key is None else list(key.columns)}

    def get_unique_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """The declared unique keys."""
        return [
            {"name": None, "column_names": list(key.columns)} for key in _table(connection, table_name, schema).unique
        ]

    def get_foreign_keys(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """The declared foreign keys, and the one that leads to whose rows these are (`unit: {path: …}`)."""
        table = _table(connection, table_name, schema)
        links = [(key.columns, key.table, key.references) for key in table.foreign_keys]
        if isinstance(table.protection, PathUnit):
            first = table.protection.path[0]
            links.append((first.columns, first.table, first.references))
        found: list[dict[str, Any]] = []
        for columns, referred, references in dict.fromkeys(links):
            there, name = _split(referred)
            found.append(
                {
                    "name": None,
                    "constrained_columns": list(columns),
                    "referred_schema": there,
                    "referred_table": name,
                    "referred_columns": list(references),
                    "options": {},
                }
            )
        return found

    def get_indexes(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """None: they are the database's own business."""
        _table(connection, table_name, schema)
        return []

    def get_check_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """None. Bounds are no constraints: values outside of them are clipped."""
        _table(connection, table_name, schema)
        return []

    def get_table_comment(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """Whose rows they are."""
        table = _table(connection, table_name, schema)
        return {"text": "public" if table.public else f"private: unit {table.unit}"}

    def get_table_options(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """None."""
        return reflection.ReflectionDefaults.table_options()


def _settings(context: Any) -> Mapping[str, Any]:
    """What a statement's execution options say to `Cursor.execute`. Raises ArgumentError for one that is not known."""
    if context is None:
        return {}
    given = {k.removeprefix(_OPTION): v for k, v in context.execution_options.items() if k.startswith(_OPTION)}
    unknown = sorted(set(given) - set(_OPTIONS))
    if unknown:
        known = ", ".join(_OPTION + name for name in _OPTIONS)
        raise exc.ArgumentError(f"dpsql's execution options are {known}, not {_OPTION}{unknown[0]}")
    return given


def _policy(connection: Connection) -> Policy:
    policy: Policy = connection.connection.dbapi_connection.policy  # type: ignore[union-attr]
    return policy


def _table(connection: Connection, name: str, schema: str | None) -> Table:
    table = _policy(connection).called(*_joined(name, schema).split("."))
    if table is None:
        raise exc.NoSuchTableError(_joined(name, schema))
    return table


def _split(name: str) -> tuple[str | None, str]:
    schema, dot, table = name.rpartition(".")
    return (schema, table) if dot else (None, name)


def _joined(table: str, schema: str | None) -> str:
    return table if schema is None else f"{schema}.{table}"


def _type(type_: SqlType | None) -> sa.TypeEngine[Any]:
    if type_ is None:
        return sa.NullType()
    match type_.kind:
        case Kind.INTEGER:
            small, middle = type_.name in _SMALL, type_.name in _MIDDLE
            return sa.SMALLINT() if small else sa.INTEGER() if middle else sa.BIGINT()
        case Kind.DECIMAL:
            return sa.DECIMAL(type_.precision, type_.scale)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return sa.TIMESTAMP(timezone=type_.kind is Kind.TIMESTAMPTZ)
        case Kind.LIST if type_.item is not None:
            return sa.ARRAY(_type(type_.item))
    return _TYPES.get(type_.kind, sa.NullType)()
