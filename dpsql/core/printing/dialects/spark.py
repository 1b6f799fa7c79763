"""Apache Spark, from 4.3 on, in ANSI mode.

Whole numbers beyond 64 bits are DECIMAL(38, 0), which ends at 10³⁸: sums and products are exact up to there. Texts are
compared by their bytes (UTF8_BINARY). The meaning of what is printed rests on the settings that engines/spark holds:
ANSI, the time zone UTC, no loss of decimal places, literals with escapes.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType

from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.nodes import Frame
from dpsql.core.ir.types import BIGINT, DOUBLE, HUGEINT, INTEGER, VARCHAR, Kind, SqlType, decimal, integer_type_of
from dpsql.core.numbers.interval import Interval
from dpsql.core.printing.dialect import Attempts, Dialect, Spelling, Typed
from dpsql.core.printing.dialects.spark_aggregates import aggregate, over, window
from dpsql.core.printing.dialects.spark_casts import LARGEST, convert, fitting, once, rounded, type_name
from dpsql.core.values.value import Args, Value, type_range
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.words import with_article

MOST_ROWS = 2**40
"""That are added up in one sum."""
_PART = 22
"""Bits of a part of a term that is added up in parts: the sum of 2⁴⁰ rows has 62 then."""


class Spark(Dialect):
    """Spark's SQL, for sessions with the settings of engines/spark."""

    def __init__(
        self, spellings: Mapping[str, Spelling] = MappingProxyType({}), attempts: Attempts = lambda d, sql, *rest: sql
    ) -> None:
        self.spellings, self.attempts = spellings, attempts

    @property
    def name(self) -> str:
        return "spark"

    @property
    def title(self) -> str:
        return "Apache Spark"

    # --- names, constants and types --------------------------------------------------------------------------------

    def identifier(self, name: str) -> str:
        if "\0" in name:
            raise reject("DP106", "a name cannot contain a NUL character")
        if "${" in name:  # which is replaced before the text is read, wherever it stands
            raise reject("DP106", "a name cannot contain ${ on Apache Spark")
        return "`" + name.replace("`", "``") + "`"

    def text(self, value: str) -> str:
        if "\0" in value:
            raise reject("DP106", "a text literal cannot contain a NUL character")
        return self._literal(value)

    def text_with_nuls(self, value: str) -> str:
        return f"({self._literal(value)})"

    def _literal(self, value: str) -> str:
        if any("\ud800" <= c <= "\udfff" for c in value):
            raise reject("DP106", "a text literal cannot contain half of a surrogate pair")
        # ${…} would be replaced by a setting or a variable of the machine, before the text is read.
        for c, escaped in (("\\", "\\\\"), ("'", "\\'"), ("$", "\\u0024"), ("\0", "\\u0000")):
            value = value.replace(c, escaped)
        return f"'{value}'"

    def constant(self, value: LiteralValue, type_: SqlType) -> str:
        match value:
            case None:
                return "NULL" if type_.kind is Kind.NULL else self.cast("NULL", type_)
            case bool():
                return "TRUE" if value else "FALSE"
            case int() if type_.kind is Kind.INTEGER:
                held = integer_type_of(value) or HUGEINT
                if abs(value) > LARGEST:
                    raise reject("DP106", "a whole number has at most 38 digits on Apache Spark")
                return str(value) if held == INTEGER and value >= 0 else self.cast(str(value), held)
            case float() | int() if type_.kind is Kind.DOUBLE:
                return self.cast(f"'{float(value)!r}'", DOUBLE)
            case int() | Decimal():
                return self.cast(f"'{Decimal(value):f}'", type_ if type_.kind is Kind.DECIMAL else HUGEINT)
            case str():
                return self.text(value) if type_.kind is Kind.VARCHAR else self.cast(self.text(value), type_)
            case bytes():
                return f"X'{value.hex()}'"
            case dt.datetime():
                return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
            case dt.date():
                return f"DATE '{value.isoformat()}'"
            case dt.timedelta():
                return _interval(value)
            case _:
                raise reject("DP106", f"no literal for {with_article(type_)}")

    def column(self, sql: str, type_: SqlType) -> str:
        # A STRING may hold any bytes. What is no text would be an error where an answer holds it, and two of them would
        # look alike.
        if type_ == VARCHAR:
            return f"try_validate_utf8({sql})"
        return f"transform({sql}, e -> try_validate_utf8(e))" if type_.item == VARCHAR else sql

    def cast(self, sql: str, type_: SqlType) -> str:
        return f"CAST({sql} AS {type_name(type_)})"

    def try_cast(self, sql: str, known: Value, type_: SqlType) -> str:
        return fitting(self, sql, known, type_)

    def once(self, sql: str, body: Callable[[str], str]) -> str:
        return once(sql, body)

    def convert(self, sql: str, known: Value, target: SqlType) -> str:
        return sql if known.type == target else convert(self, sql, known, target)

    @property
    def believes(self) -> bool:
        return False

    # --- whole numbers ---------------------------------------------------------------------------------------------

    @property
    def largest(self) -> int:
        return LARGEST

    def wide(self, sql: str) -> str:
        return self.cast(sql, HUGEINT)

    def end(self, value: int) -> str:
        return str(value)  # of the narrowest type, so that 64 bits are compared with 64

    def divide(self, a: str, b: str, type_: SqlType) -> str:
        # Of any numbers a BIGINT, which wraps silently: hence the promise that the quotient fits.
        return self.wide(f"{a} div {b}") if type_ == HUGEINT else f"{a} div {b}"

    def total(self, sql: str, type_: SqlType, where: str = "", distinct: bool = False, most: int | None = None) -> str:
        # A sum of 64 bits raises an error beyond them, and one of a DECIMAL beyond ten digits more than its terms.
        if type_.kind is Kind.DECIMAL:
            held = decimal(38, type_.scale)
            return self.cast(f"SUM({'DISTINCT ' * distinct}{self.cast(sql, held)}){where}", held)
        largest = type_range(type_).magnitude if most is None else most
        if distinct or largest is None or largest > 2**63:
            return f"SUM({'DISTINCT ' * distinct}{self.wide(sql)}){where}"
        if largest * MOST_ROWS < 2**63:
            return f"SUM({self.cast(sql, BIGINT)}){where}"
        return self._in_parts(sql, where, (_PART, 0) if largest <= 2 ** (2 * _PART) else (2 * _PART, _PART, 0))

    def _in_parts(self, sql: str, where: str, shifts: Sequence[int]) -> str:
        """A sum of integers by their bits. Three sums of 64 bits take a third of the time of one of 128: measured."""
        sums = []
        for shift in shifts:
            part = f"shiftright({sql}, {shift})" if shift else f"({sql})"
            part = part if shift == shifts[0] else f"{part} & {2**_PART - 1}"
            added = f"SUM({self.cast(part, BIGINT)}){where}"
            sums.append(f"{self.wide(added)} * {2**shift}" if shift else added)
        return f"({' + '.join(sums)})"

    def round_to_integer(self, sql: str, type_: SqlType) -> str:
        return rounded(self, sql, type_)

    def near_root(self, sql: str) -> str:
        # By way of two halves: a DOUBLE becomes whole as a BIGINT only, and 2⁶³ is none.
        root, half = f"sqrt({self.cast(sql, DOUBLE)})", self.constant(2.0**32, DOUBLE)
        front = f"floor({root} / {half})"
        return f"({self.wide(front)} * {2**32} + {self.wide(f'ceil({root} - {front} * {half})')})"

    # --- DOUBLE ----------------------------------------------------------------------------------------------------

    def is_finite(self, sql: str) -> str:
        return f"(abs({sql}) < {self.constant(math.inf, DOUBLE)})"  # NaN is above every number

    def is_nan(self, sql: str) -> str:
        return f"({sql} = {self.constant(math.nan, DOUBLE)})"  # isnan would say FALSE of NULL

    def positive_zero(self, sql: str, type_: SqlType) -> str:
        return f"({sql} + {self.cast('0', type_)})"

    def units_within(self, sql: str, factors: Sequence[float], center: int, type_: SqlType) -> str:
        scaled = " * ".join([sql, *(self.constant(factor, DOUBLE) for factor in factors)])
        return self.round_to_integer(f"{scaled} - {center}" if center else scaled, type_)

    # --- choice ----------------------------------------------------------------------------------------------------

    def greatest(self, a: str, b: str) -> str:
        return f"GREATEST({a}, {b})"

    def least(self, a: str, b: str) -> str:
        return f"LEAST({a}, {b})"

    def member(self, sql: str, constants: Sequence[str]) -> str:
        return f"({sql} IN ({', '.join(constants)})) IS TRUE"

    def order_hash(self, keys: Sequence[Typed], salt: str) -> str:
        # Of the values' texts, so that it rests on no version of the engine; each with its length, so that no two lists
        # of keys have one text.
        parts = [f"COALESCE({_one_text(self, sql, type_)}, 'n')" for sql, type_ in keys]
        return f"md5({' || chr(44) || '.join([*parts, self.cast(salt, VARCHAR)])})"

    # --- relations -------------------------------------------------------------------------------------------------

    def sorted(self, sql: str, descending: bool, nulls_first: bool) -> str:
        return f"{sql}{' DESC' if descending else ' ASC'}{' NULLS FIRST' if nulls_first else ' NULLS LAST'}"

    @property
    def weighs_in_windows(self) -> bool:
        return True  # a WITH that is read twice is computed twice

    def first_rows(self, select: str, source: str, condition: str) -> str:
        return f"{select}{source}QUALIFY {condition}"

    def half_join(self, left: str, right: str, on: str, anti: bool) -> tuple[str, tuple[str, ...]]:
        return f"{left}\nLEFT {'ANTI' if anti else 'SEMI'} JOIN {right} ON {on}", ()

    def full_join(self, left: str, right: str, on: str, equal: bool) -> str:
        return f"{left}\nFULL JOIN {right} ON {on}"

    def unnest(self, sql: str, most: int, alias: str) -> str:
        return f"CROSS JOIN LATERAL explode(slice({sql}, 1, {most})) AS {alias}(element)"

    def list_length(self, sql: str) -> str:
        return self.cast(f"array_size({sql})", BIGINT)

    def values(self, rows: Sequence[str], names: Sequence[str], alias: str) -> str:
        return f"(VALUES {', '.join(f'({row})' for row in rows)}) AS {alias}({', '.join(names)})"

    # --- functions -------------------------------------------------------------------------------------------------

    def aggregate(self, function: str, sql: str, type_: SqlType, where: str = "", distinct: bool = False) -> str:
        return aggregate(self, function.lower(), sql, type_, where, distinct)

    def window(self, function: str, args: Sequence[Typed], ignore_nulls: bool) -> str:
        return window(self, function, args, ignore_nulls)

    def over(self, function: str, order: Sequence[str], frame: Frame | None) -> tuple[Sequence[str], Frame | None]:
        return over(function, order, frame)

    def attempt(
        self, sql: str, function: str, parts: Sequence[str], args: Args, held: Sequence[Interval], result: Value
    ) -> str:
        return self.attempts(self, sql, function, parts, args, held, result)


def _interval(value: dt.timedelta) -> str:
    micros = value // dt.timedelta(microseconds=1)
    if abs(micros) >= 2**63:
        raise reject("DP106", "no literal for so long an INTERVAL on Apache Spark")
    seconds, fraction = divmod(abs(micros), 10**6)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    day, hour = divmod(hours, 24)
    return f"INTERVAL '{'-' * (micros < 0)}{day} {hour:02}:{minute:02}:{second:02}.{fraction:06}' DAY TO SECOND"


def _one_text(d: Dialect, sql: str, type_: SqlType) -> str:
    """A text that is one for all forms of a value: of 1.0 and 1.00, of 0.0 and -0.0."""
    match type_.kind:
        case Kind.DOUBLE:
            # Another number for each DOUBLE: its text rests on the version of Java.
            text = f"CAST(xxhash64({d.cast(d.positive_zero(sql, type_), DOUBLE)}) AS STRING)"
        case Kind.DECIMAL if type_.scale:
            text = f"rtrim('.', rtrim('0', CAST({sql} AS STRING)))"
        case Kind.LIST:
            text = f"CAST(xxhash64({sql}) AS STRING)"
        case Kind.BLOB:
            text = f"hex({sql})"
        case Kind.NULL:
            return "NULL"
        case _:
            text = f"CAST({sql} AS STRING)"
    return f"CASE WHEN {sql} IS NOT NULL THEN length({text}) || ':' || {text} END"
