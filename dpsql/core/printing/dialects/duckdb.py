"""DuckDB 2.0."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from types import MappingProxyType

from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.types import DOUBLE, HUGEINT, INTEGER, Kind, SqlType, integer_type_of
from dpsql.core.numbers.interval import Interval
from dpsql.core.printing.conversions import held, safe
from dpsql.core.printing.dialect import Dialect, Spelling, Typed
from dpsql.core.printing.dialects.duckdb_total import attempted, attempted_cast
from dpsql.core.printing.many_rows import listed
from dpsql.core.values.value import Args, Value
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.words import with_article

MOST_PLACES = 38
"""Decimal places of the longest DECIMAL."""
_HALF = re.compile("[\ud800-\udfff]")
"""Half of a character."""


def tried(sql: str, type_: SqlType) -> str:
    """The value as another type; NULL where it does not fit."""
    return f"TRY_CAST({sql} AS {type_.name})"


class DuckDB(Dialect):
    """DuckDB's SQL, for connections with the settings of engines/duckdb/locked/lockdown.py."""

    def __init__(self, spellings: Mapping[str, Spelling] = MappingProxyType({})) -> None:
        self.spellings = spellings

    @property
    def name(self) -> str:
        return "duckdb"

    @property
    def title(self) -> str:
        return "DuckDB"

    # --- names, constants and types --------------------------------------------------------------------------------

    def identifier(self, name: str) -> str:
        if "\0" in name:
            raise reject("DP106", "a name cannot contain a NUL character")
        return quoted(name)

    def text(self, value: str) -> str:
        if "\0" in value:
            raise reject("DP106", "a text literal cannot contain a NUL character")
        if _HALF.search(value):  # no engine takes it
            raise reject("DP106", "a text literal cannot contain half of a surrogate pair")
        return "'" + value.replace("'", "''") + "'"

    def text_with_nuls(self, value: str) -> str:
        return f"({' || chr(0) || '.join(self.text(part) for part in value.split(chr(0)))})"

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
                return self.cast(repr(number) if math.isfinite(number) else f"'{number}'", DOUBLE)
            case int() | Decimal():
                held = type_ if type_.kind is Kind.DECIMAL else HUGEINT
                # With its zero before the point, a number of 38 places is one digit too long and would be read as a
                # DOUBLE.
                quote = "'" if held.scale == MOST_PLACES else ""
                return self.cast(f"{quote}{Decimal(value):f}{quote}", held)
            case str():
                return self.text(value) if type_.kind is Kind.VARCHAR else self.cast(self.text(value), type_)
            case bytes():
                return f"from_hex('{value.hex()}')"
            case dt.datetime():
                return f"TIMESTAMP{'' if value.tzinfo is None else 'TZ'} '{value.isoformat(sep=' ')}'"
            case dt.date():
                return f"DATE '{value.isoformat()}'"
            case dt.time():
                return f"TIME '{value.isoformat()}'"
            case dt.timedelta():
                return f"to_microseconds({value // dt.timedelta(microseconds=1)})"
            case _:
                raise reject("DP106", f"no literal for {with_article(type_)}")

    def column(self, sql: str, type_: SqlType) -> str:
        return sql

    def cast(self, sql: str, type_: SqlType) -> str:
        return f"CAST({sql} AS {type_.name})"

    def try_cast(self, sql: str, known: Value, type_: SqlType) -> str:
        return tried(sql, type_)

    def convert(self, sql: str, known: Value, target: SqlType) -> str:
        if known.type == target:
            return sql
        if target.kind is Kind.TIME and known.type.kind is Kind.TIMESTAMP:
            # An infinite timestamp fails in DuckDB, and is NULL in PostgreSQL.
            sql = safe(self, sql, known)
        if known.type.kind is Kind.DOUBLE and target.kind in (Kind.INTEGER, Kind.DECIMAL):
            sql = held(self, sql, known)
        if known.type.kind is Kind.DOUBLE and target.kind is Kind.VARCHAR:
            # A NaN has a sign, and only its text shows it. Equal values that differ must not be told apart: which of
            # them stands for both in a DISTINCT is up to the engine.
            return f"CASE WHEN {self.is_nan(sql)} THEN 'nan' ELSE {tried(sql, target)} END"
        return attempted_cast(tried(sql, target), known.type, target)

    # --- whole numbers ---------------------------------------------------------------------------------------------

    def wide(self, sql: str) -> str:
        return f"CAST({sql} AS HUGEINT)"

    def end(self, value: int) -> str:
        return self.wide(str(value))

    def divide(self, a: str, b: str, type_: SqlType) -> str:
        return f"{a} // {b}"

    def total(self, sql: str, type_: SqlType, where: str = "", distinct: bool = False, most: int | None = None) -> str:
        return f"SUM({'DISTINCT ' * distinct}{sql}){where}"  # of integers a HUGEINT, of decimals a DECIMAL(38, …)

    def rising_total(self, sql: str, where: str = "") -> str | None:
        # Half the bytes of a sum in 128 bits, for each group (benchmarks/README.md). Below 2⁵³ all parts of a sum are
        # integers that a DOUBLE holds; no part is larger than the whole, and rounding takes none below 2⁵³ again.
        return f"SUM({self.cast(sql, DOUBLE)}){where}"

    @property
    def shifts_totals(self) -> bool:
        return True  # a subtraction that looks for overflow costs as much as the sum (benchmarks/README.md)

    def round_to_integer(self, sql: str, type_: SqlType) -> str:
        return tried(sql, type_)  # which rounds a DOUBLE half to even

    def near_root(self, sql: str) -> str:
        return self.wide(f"ceil(sqrt({self.cast(sql, DOUBLE)}))")

    # --- DOUBLE ----------------------------------------------------------------------------------------------------

    def is_finite(self, sql: str) -> str:
        return f"isfinite({sql})"

    def is_nan(self, sql: str) -> str:
        return f"isnan({sql})"

    def positive_zero(self, sql: str, type_: SqlType) -> str:
        return f"({sql} + {self.cast('0', type_)})"

    def near(self, sql: str, low: float, high: float) -> str:
        # One comparison in place of two: a twentieth of a query (benchmarks/README.md). The difference is rounded once,
        # and stays finite.
        middle, half = (Fraction(low) + Fraction(high)) / 2, (Fraction(high) - Fraction(low)) / 2
        if float(middle) != middle or float(half) != half or abs(middle) > 2**900:
            return super().near(sql, low, high)
        distance = f"{sql} - {self.constant(float(middle), DOUBLE)}" if middle else sql
        return f"abs({distance}) <= {self.constant(float(half), DOUBLE)}"

    def units_within(self, sql: str, factors: Sequence[float], center: int, type_: SqlType) -> str:
        scaled = " * ".join([sql, *map(partial(self.constant, type_=DOUBLE), factors)])
        return self.round_to_integer(f"{scaled} - {center}" if center else scaled, type_)

    # --- choice ----------------------------------------------------------------------------------------------------

    def greatest(self, a: str, b: str) -> str:
        return f"GREATEST({a}, {b})"

    def least(self, a: str, b: str) -> str:
        return f"LEAST({a}, {b})"

    def member(self, sql: str, constants: Sequence[str]) -> str:
        # Without IS TRUE, DuckDB turns the list into a chain of comparisons per row and loses the dictionary of the
        # column: measured at three times the whole query (benchmarks/README.md).
        return f"({sql} IN ({', '.join(constants)})) IS TRUE"

    def having_member(self, sql: str, constants: Sequence[str]) -> str | None:
        # Asking rows costs as much as a sum of them, where there is no dictionary much more (benchmarks/README.md).
        return f"{sql} IN ({', '.join(constants)})"

    def having(self, condition: str) -> str:
        # A condition on keys alone is moved back to the rows.
        return f"HAVING CASE WHEN COUNT(*) > 0 THEN {condition} END"

    def listed(self, sql: str, texts: Sequence[str]) -> str | None:
        # One byte in place of 16 in each row of a GROUP BY with many groups: measured at a quarter of the query.
        if not texts or any("\0" in text for text in texts):
            return None
        return f"TRY_CAST({sql} AS ENUM({', '.join(map(self.text, texts))}))"

    def order_hash(self, keys: Sequence[Typed], salt: str) -> str:
        # The salt comes last: DuckDB mixes what it has and folds the next argument in by XOR, so with a key as the last
        # one some keys are kept far more often than others.
        return f"hash({', '.join(sql for sql, _ in keys)}, {salt})"

    # --- relations -------------------------------------------------------------------------------------------------

    def sorted(self, sql: str, descending: bool, nulls_first: bool) -> str:
        return f"{sql}{' DESC' if descending else ' ASC'}{' NULLS FIRST' if nulls_first else ' NULLS LAST'}"

    @property
    def computes_apart(self) -> bool:
        return True

    def first_rows(self, select: str, source: str, condition: str) -> str:
        return f"{select}{source}QUALIFY {condition}"

    def half_join(self, left: str, right: str, on: str, anti: bool) -> tuple[str, tuple[str, ...]]:
        return f"{left}\n{'ANTI' if anti else 'SEMI'} JOIN {right} ON {on}", ()

    def full_join(self, left: str, right: str, on: str, equal: bool) -> str:
        return f"{left}\nFULL JOIN {right} ON {on}"

    def unnest(self, sql: str, most: int, alias: str) -> str:
        return f"CROSS JOIN UNNEST(list_slice({sql}, 1, {most})) AS {alias}(element)"

    def list_length(self, sql: str) -> str:
        return f"len({sql})"

    def values(self, rows: Sequence[str], names: Sequence[str], alias: str) -> str:
        return f"(VALUES {', '.join(f'({row})' for row in rows)}) AS {alias}({', '.join(names)})"

    def many_values(
        self, names: Sequence[str], types: Sequence[SqlType], rows: Sequence[tuple[LiteralValue, ...]], alias: str
    ) -> str | None:
        columns = listed(names, types, rows)
        if columns is None:
            return None
        apart = ", ".join(f"unnest(CAST('[{c.elements}]' AS {c.type.name}[])) AS {c.name}" for c in columns)
        shown = ", ".join(
            c.name if c.texts is None else f"list_extract([{', '.join(map(self.text, c.texts))}], {c.name}) AS {c.name}"
            for c in columns
        )
        return f"(SELECT {shown} FROM (SELECT {apart})) AS {alias}"

    # --- functions -------------------------------------------------------------------------------------------------

    def aggregate(self, function: str, sql: str, type_: SqlType, where: str = "", distinct: bool = False) -> str:
        return f"{function}({'DISTINCT ' * distinct}{sql}){where}"

    def window(self, function: str, args: Sequence[Typed], ignore_nulls: bool) -> str:
        listed = ", ".join(sql for sql, _ in args) or ("*" if function == "count" else "")
        return f"{function}({listed}{' IGNORE NULLS' if ignore_nulls else ''})"

    def attempt(
        self, sql: str, function: str, parts: Sequence[str], args: Args, held: Sequence[Interval], result: Value
    ) -> str:
        return attempted(sql, function, args, held, result)


@lru_cache(maxsize=1024)
def quoted(name: str) -> str:
    """An identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'
