"""PostgreSQL, from 15 on.

Every text has the collation "C": columns, literals and casts carry it, and what is made of them inherits it. So texts
are compared by their UTF-8 bytes wherever they meet, whatever the database's own collation is. Whole numbers beyond 64
bits are `numeric`, in which sums and products are exact without a limit.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType

from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.types import BIGINT, DOUBLE, HUGEINT, INTEGER, TIMESTAMP, VARCHAR, Kind, SqlType, integer_type_of
from dpsql.core.printing.dialect import Again, CannotSpell, Dialect, Spelling, Typed
from dpsql.core.printing.dialects.postgres_aggregates import aggregate, window
from dpsql.core.printing.dialects.postgres_casts import convert, fitting, once, rounded, type_name
from dpsql.core.printing.dialects.postgres_doubles import times_constant
from dpsql.core.printing.many_rows import ListedColumn, listed
from dpsql.core.values.value import Args, Value
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.words import with_article

MOST_ROWS = 2**40
"""That are added up in one sum."""


class Postgres(Dialect):
    """PostgreSQL's SQL, for connections with the settings of engines/postgres."""

    def __init__(self, spellings: Mapping[str, Spelling] = MappingProxyType({})) -> None:
        self.spellings = spellings

    @property
    def name(self) -> str:
        return "postgresql"

    @property
    def title(self) -> str:
        return "PostgreSQL"

    # --- names, constants and types --------------------------------------------------------------------------------

    def identifier(self, name: str) -> str:
        if "\0" in name:
            raise reject("DP106", "a name cannot contain a NUL character")
        return '"' + name.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        if "\0" in value:
            raise reject("DP106", "a text literal cannot contain a NUL character")
        if any("\ud800" <= c <= "\udfff" for c in value):
            raise reject("DP106", "a text literal cannot contain half of a surrogate pair")
        return "'" + value.replace("'", "''") + "'"  # backslashes are themselves: standard_conforming_strings is on

    def text_with_nuls(self, value: str) -> str:
        return f"({self.constant(value, VARCHAR)})"  # no text of this engine holds a NUL

    def constant(self, value: LiteralValue, type_: SqlType) -> str:
        match value:
            case None:
                return "NULL" if type_.kind is Kind.NULL else self.cast("NULL", type_)
            case bool():
                return "TRUE" if value else "FALSE"
            case int() if type_.kind is Kind.INTEGER:
                held = integer_type_of(value) or HUGEINT
                return str(value) if held == INTEGER and value >= 0 else self.cast(str(value), held)
            case float() | int() if type_.kind is Kind.DOUBLE:
                number = float(value)
                return self.cast(f"'{number!r}'" if math.isfinite(number) else f"'{number}'", DOUBLE)
            case int() | Decimal():
                return self.cast(f"{Decimal(value):f}", type_ if type_.kind is Kind.DECIMAL else HUGEINT)
            case str():
                return (
                    self.cast(self.text(value), type_)
                    if type_.kind is not Kind.VARCHAR
                    else _bytewise(self.text(value))
                )
            case bytes():
                return f"decode('{value.hex()}', 'hex')"
            case dt.datetime():
                return f"TIMESTAMP{'' if value.tzinfo is None else 'TZ'} '{value.isoformat(sep=' ')}'"
            case dt.date():
                return f"DATE '{value.isoformat()}'"
            case dt.time():
                return f"TIME '{value.isoformat()}'"
            case dt.timedelta():
                return f"CAST('{value // dt.timedelta(microseconds=1)} microseconds' AS interval)"
            case _:
                raise reject("DP106", f"no literal for {with_article(type_)}")

    def column(self, sql: str, type_: SqlType) -> str:
        return _bytewise(sql) if VARCHAR in (type_, type_.item) else sql

    def cast(self, sql: str, type_: SqlType) -> str:
        held = f"CAST({sql} AS {type_name(type_)})"
        return _bytewise(held) if type_.kind is Kind.VARCHAR else held

    def try_cast(self, sql: str, known: Value, type_: SqlType) -> str:
        return fitting(self, sql, known, type_)

    def once(self, sql: str, body: Callable[[str], str]) -> str:
        return once(sql, body)

    def convert(self, sql: str, known: Value, target: SqlType) -> str:
        return sql if known.type == target else convert(self, sql, known, target)

    # --- whole numbers ---------------------------------------------------------------------------------------------

    def wide(self, sql: str) -> str:
        return f"CAST({sql} AS numeric)"

    def end(self, value: int) -> str:
        return str(value)  # of the narrowest type, so that 64 bits are compared with 64

    def divide(self, a: str, b: str, type_: SqlType) -> str:
        if type_ == HUGEINT:
            return f"div({a}, {b})"
        # The casts cost nothing, and `/` would not truncate if a side were numeric.
        return f"{self.cast(a, BIGINT)} / {self.cast(b, BIGINT)}"

    def total(self, sql: str, type_: SqlType, where: str = "", distinct: bool = False, most: int | None = None) -> str:
        if type_ == INTEGER and most is not None and most * MOST_ROWS < 2**63:
            # Of 32 bits the sum has 64, which it is kept in; that of 64 bits is numeric, and slower.
            return f"SUM({'DISTINCT ' * distinct}{self.cast(sql, INTEGER)}){where}"
        exact = sql if type_.kind is Kind.DECIMAL else self.cast(sql, BIGINT) if type_ != HUGEINT else self.wide(sql)
        added = f"SUM({'DISTINCT ' * distinct}{exact}){where}"  # of 64 bits it is numeric, of 32 it would be of 64
        return f"CAST({added} AS numeric(38, {type_.scale}))" if type_.kind is Kind.DECIMAL else added

    def round_to_integer(self, sql: str, type_: SqlType) -> str:
        return rounded(self, sql, type_)

    def near_root(self, sql: str) -> str:
        # A DOUBLE becomes numeric with 15 digits only: by way of two halves it keeps all of them.
        root, half = f"ceil(sqrt({self.cast(sql, DOUBLE)}))", self.constant(2.0**32, DOUBLE)
        front = f"floor({root} / {half})"
        whole = [self.wide(self.cast(part, BIGINT)) for part in (front, f"{root} - {front} * {half}")]
        return f"({whole[0]} * {2**32} + {whole[1]})"

    # --- DOUBLE ----------------------------------------------------------------------------------------------------

    def is_finite(self, sql: str) -> str:
        return f"(abs({sql}) < {self.constant(math.inf, DOUBLE)})"  # NaN is above every number

    def is_nan(self, sql: str) -> str:
        return f"({sql} = {self.constant(math.nan, DOUBLE)})"

    def positive_zero(self, sql: str, type_: SqlType) -> str:
        return f"({sql} + {self.cast('0', type_)})"

    def units_within(self, sql: str, factors: Sequence[float], center: int, type_: SqlType) -> str:
        # A CASE looks at no branch that it does not take, so that only what is too small needs a guard.
        for factor in factors:
            larger = factor >= 1
            sql = f"{sql} * {self.constant(factor, DOUBLE)}" if larger else times_constant(self, sql, factor)
        return self.cast(f"{sql} - {center}" if center else sql, type_)

    @property
    def barrier(self) -> str:
        return "\nOFFSET 0"  # a subquery with one is planned by itself, and costs nothing more

    # --- choice ----------------------------------------------------------------------------------------------------

    def greatest(self, a: str, b: str) -> str:
        return f"GREATEST({a}, {b})"

    def least(self, a: str, b: str) -> str:
        return f"LEAST({a}, {b})"

    def clip_once(self, sql: str, low: str, high: str, type_: SqlType) -> str | None:
        # What MIN and MAX compare by, NULL for NULL: GREATEST is slower, and ignores NULL.
        bytes_ = {INTEGER: 4, BIGINT: 8}.get(type_)
        return None if bytes_ is None else f"int{bytes_}larger(int{bytes_}smaller({sql}, {high}), {low})"

    def member(self, sql: str, constants: Sequence[str]) -> str:
        return f"({sql} IN ({', '.join(constants)})) IS TRUE"

    def order_hash(self, keys: Sequence[Typed], salt: str) -> str:
        # Of the values' texts, so that it rests on no version of the engine; each with its length, so that no two lists
        # of keys have one text.
        parts = [f"COALESCE({_one_text(self, sql, type_)}, 'n')" for sql, type_ in keys]
        listed = " || ',' || ".join([*parts, f"CAST({salt} AS text)"])
        return _bytewise(f"md5({listed})")

    # --- relations -------------------------------------------------------------------------------------------------

    def sorted(self, sql: str, descending: bool, nulls_first: bool) -> str:
        return f"{sql}{' DESC' if descending else ' ASC'}{' NULLS FIRST' if nulls_first else ' NULLS LAST'}"

    @property
    def holds_digits(self) -> bool:
        return False  # a numeric of two columns has as many as it needs

    @property
    def weighs_in_windows(self) -> bool:
        return (
            True  # one worker alone writes and reads a WITH that is read twice; a join besides costs more than a sort
        )

    def first_rows(self, select: str, source: str, condition: str) -> str:
        return f"SELECT * FROM ({select}, ({condition}) AS is_kept{source}) AS q WHERE is_kept"

    def half_join(self, left: str, right: str, on: str, anti: bool) -> tuple[str, tuple[str, ...]]:
        return left, (f"{'NOT ' * anti}EXISTS (SELECT 1 FROM {right} WHERE {on})",)

    def full_join(self, left: str, right: str, on: str, equal: bool) -> str:
        if not equal:
            raise CannotSpell("it needs an equality of both sides")
        return f"{left}\nFULL JOIN {right} ON {on}"

    def unnest(self, sql: str, most: int, alias: str) -> str:
        # Numbered, and not sliced: an array may begin at any index, and have more than one dimension.
        numbered = f"UNNEST({sql}) WITH ORDINALITY AS e(element, i)"
        return f"CROSS JOIN LATERAL (SELECT e.element FROM {numbered} WHERE e.i <= {most}) AS {alias}"

    def list_length(self, sql: str) -> str:
        return self.cast(f"cardinality({sql})", BIGINT)

    def values(self, rows: Sequence[str], names: Sequence[str], alias: str) -> str:
        return f"(VALUES {', '.join(f'({row})' for row in rows)}) AS {alias}({', '.join(names)})"

    def many_values(
        self, names: Sequence[str], types: Sequence[SqlType], rows: Sequence[tuple[LiteralValue, ...]], alias: str
    ) -> str | None:
        columns = listed(names, types, rows)
        if columns is None:
            return None
        apart = ", ".join(f"CAST('{{{c.elements}}}' AS {type_name(c.type)}[])" for c in columns)

        def shown(c: ListedColumn) -> str:
            if c.texts is None:
                return c.name
            texts = ", ".join(map(self.text, c.texts))
            return f"{_bytewise(f'(ARRAY[{texts}])[{c.name}]')} AS {c.name}"

        source = f"unnest({apart}) AS {alias}({', '.join(names)})"
        return f"(SELECT {', '.join(map(shown, columns))} FROM {source}) AS {alias}"

    # --- functions -------------------------------------------------------------------------------------------------

    def aggregate(self, function: str, sql: str, type_: SqlType, where: str = "", distinct: bool = False) -> str:
        return aggregate(self, function.lower(), sql, type_, where, distinct)

    def window(self, function: str, args: Sequence[Typed], ignore_nulls: bool) -> str:
        return window(self, function, args, ignore_nulls)

    def call(self, function: str, sql: Sequence[str], args: Args, result: Value) -> str:
        printed = super().call(function, sql, args, result)
        # Without a precision, whole numbers would be read as integers.
        whole = result.type.kind is Kind.DECIMAL and not result.type.scale
        return self.cast(printed, result.type) if whole else printed

    def again(self) -> Again | None:
        from dpsql.core.printing.dialects.postgres_again import PostgresAgain  # which is one of these

        return PostgresAgain(self)


def _bytewise(sql: str) -> str:
    """A text, compared by its bytes."""
    return f'{sql} COLLATE "C"'


def _one_text(d: Dialect, sql: str, type_: SqlType) -> str:
    """A text that is one for all forms of a value: of 1.0 and 1.00, of 0.0 and -0.0, of 30 days and 1 month."""
    match type_.kind:
        case Kind.DOUBLE:
            text = f"CAST({d.positive_zero(sql, type_)} AS text)"
        case Kind.DECIMAL | Kind.INTEGER:
            text = f"CAST(trim_scale({d.wide(sql)}) AS text)"
        case Kind.INTERVAL:
            text = f"CAST(interval_hash({sql}) AS text)"
        case Kind.LIST:
            text = f"CAST(hash_array({sql}) AS text)"
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            text = f"CAST({d.cast(sql, TIMESTAMP)} AS text)"
        case Kind.NULL:
            return "NULL"
        case _:
            text = f"CAST({sql} AS text)"
    return f"length({text}) || ':' || {text}"
