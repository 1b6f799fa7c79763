"""What a dialect of SQL answers to the printer: all that engines spell differently, and nothing else.

The rest of the printed text is SQL that every engine reads alike (SELECT, CASE, BETWEEN, COALESCE, COUNT … FILTER,
WITH, UNION …). Each question states what its answer must compute; the tests of tests/engines/test_dialect_contract.py
run the answers on every engine. What an engine cannot compute exactly is refused by name (`CannotSpell`), and never
approximated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.nodes import Frame
from dpsql.core.ir.types import DOUBLE, SqlType
from dpsql.core.numbers.interval import Interval
from dpsql.core.values.value import Args, Value

Typed = tuple[str, SqlType]
"""A printed value and its type."""


class CannotSpell(Exception):
    """The dialect has no exact text for this. The message says why; it may be empty."""


class Dialect(Protocol):
    """The SQL of one engine. Arguments named `sql`, `a`, `b` are printed expressions that need no brackets.

    spellings: how it prints functions, by their first names: handed in, of dpsql/spelling. What they print passes the
    gate (core/gate) before it enters a statement.
    """

    spellings: Mapping[str, Spelling]

    @property
    def name(self) -> str:
        """A word for it, part of the addresses of stored answers: never changed once published."""
        ...

    @property
    def title(self) -> str:
        """The engine's name as people write it."""
        ...

    # --- names, constants and types --------------------------------------------------------------------------------

    def identifier(self, name: str) -> str:
        """A name of any characters, in quotes. Raises Rejected DP106 for a NUL."""
        ...

    def text(self, value: str) -> str:
        """A literal of exactly this text, and no expression but it: quotes, backslashes and line ends are characters.

        Raises Rejected DP106 for a NUL, on which placeholders in statements rest, and for half a surrogate pair.
        """
        ...

    def text_with_nuls(self, value: str) -> str:
        """An expression of exactly this text, in brackets; NULs are characters, too: keys of the data may hold them."""
        ...

    def constant(self, value: LiteralValue, type_: SqlType) -> str:
        """A literal of exactly this value (of −0.0 perhaps 0.0), typed where the bare one would mean another type.

        Of an INTEGER it has the narrowest type that holds the value. Raises Rejected DP106 where there is none.
        """
        ...

    def column(self, sql: str, type_: SqlType) -> str:
        """A column of a table as it is read: a value of the type, or NULL. Texts are compared by their bytes."""
        ...

    def cast(self, sql: str, type_: SqlType) -> str:
        """The value as another type that holds it exactly; what does not fit may be an error."""
        ...

    def try_cast(self, sql: str, known: Value, type_: SqlType) -> str:
        """The value as another type; NULL, and never an error, where it does not fit.

        known: what is known of the value. Not every pair of types can be asked for: a number becomes another one, a
        date a timestamp.
        """
        ...

    def once(self, sql: str, body: Callable[[str], str]) -> str:
        """An expression of a value that is written, and computed, once however often it is read.

        The body must read no other expression: a scope within it may hide the names of those around.
        """
        return body(sql)

    def convert(self, sql: str, known: Value, target: SqlType) -> str:
        """A user's CAST, for every value of the type: NULL where it does not convert, as `functions/cast.py` claims.

        Raises CannotSpell if the dialect has no exact spelling.
        """
        ...

    @property
    def believes(self) -> bool:
        """Whether guards may rest on what is known of values: where that is false, there is TRY, or a second asking."""
        return True

    # --- whole numbers ---------------------------------------------------------------------------------------------

    @property
    def largest(self) -> int:
        """No whole number beyond it, nor below its negative, is computed with: at least 2¹²⁶, at most 2¹²⁷ - 1."""
        return 2**127 - 1

    def wide(self, sql: str) -> str:
        """A whole number of which sums and products are exact up to 2¹²⁰ at least."""
        ...

    def end(self, value: int) -> str:
        """A whole constant that a number of any width is compared with."""
        ...

    def divide(self, a: str, b: str, type_: SqlType) -> str:
        """The quotient of two integers of a type, truncated towards zero; b ≠ 0 and |a / b| < 2⁶³."""
        ...

    def total(self, sql: str, type_: SqlType, where: str = "", distinct: bool = False, most: int | None = None) -> str:
        """SUM of integers or decimals of a type: exact, whatever the order of rows, for 2⁴⁰ rows of up to 2⁸⁰ each.

        NULL where there is nothing to add. where: a FILTER or an OVER clause, with a blank before it. distinct: each
        value once. most: the largest |value|, where one is known; the total may have 64 bits then, if they hold it.
        """
        ...

    def rising_total(self, sql: str, where: str = "") -> str | None:
        """SUM of integers of 0 … 2³¹ as a DOUBLE: exact below 2⁵³, at least 2⁵³ from there on, in any order of rows.

        None where `total` is as fast. NULL where there is nothing to add. where: as of `total`.
        """
        return None

    @property
    def shifts_totals(self) -> bool:
        """Whether a constant is better subtracted from a total, as often as there are terms, than from each term."""
        return False

    def round_to_integer(self, sql: str, type_: SqlType) -> str:
        """A DOUBLE rounded to an INTEGER or BIGINT, halves to even; NULL for NaN and for what does not fit."""
        ...

    def near_root(self, sql: str) -> str:
        """A whole number of which sums and products are exact, near √x and usually not below it; 0 ≤ x ≤ 2¹²⁶, whole.

        The same on every engine: the DOUBLE nearest to x has a root, which is rounded up.
        """
        ...

    # --- DOUBLE ----------------------------------------------------------------------------------------------------

    def is_finite(self, sql: str) -> str:
        """Whether a DOUBLE is neither NaN nor infinite. Elsewhere NaN equals NaN and is above every number."""
        ...

    def is_nan(self, sql: str) -> str:
        """Whether a DOUBLE is NaN."""
        ...

    def positive_zero(self, sql: str, type_: SqlType) -> str:
        """A DOUBLE or FLOAT as it is, but −0.0 as 0.0."""
        ...

    def near(self, sql: str, low: float, high: float) -> str:
        """Whether a DOUBLE lies in [low, high], or beyond by at most (high - low) · 2⁻⁵³. Not for NaN, ±∞ and NULL."""
        return f"{sql} BETWEEN {self.constant(low, DOUBLE)} AND {self.constant(high, DOUBLE)}"

    def units_within(self, sql: str, factors: Sequence[float], center: int, type_: SqlType) -> str:
        """x · factors − center of a DOUBLE x, rounded to an INTEGER or BIGINT, halves to even. factors: powers of two.

        Stands behind a WHEN that has found x between two ends whose results the type holds. Elsewhere it may be any
        value, but no error of an engine that looks at branches which it does not take.
        """
        ...

    # --- choice ----------------------------------------------------------------------------------------------------

    def greatest(self, a: str, b: str) -> str:
        """The greater of two numbers of one type."""
        ...

    def least(self, a: str, b: str) -> str:
        """The lesser of two numbers of one type."""
        ...

    def clip_once(self, sql: str, low: str, high: str, type_: SqlType) -> str | None:
        """A whole number within two ends, NULL for NULL, that names it once; None where there is nothing of that kind.

        type_: what the engine has for it, not what is believed. For engines that may compute columns at each place.
        """
        return None

    def member(self, sql: str, constants: Sequence[str]) -> str:
        """Whether a value equals one of at least one constants other than NULL: true or false, false for NULL."""
        ...

    def having_member(self, sql: str, constants: Sequence[str]) -> str | None:
        """The same of a key, once for each group, or NULL for false; None, whatever is asked, if rows are better asked
        before they are grouped. Stands in what `having` is given."""
        return None

    def having(self, condition: str) -> str:
        """The clause after GROUP BY that keeps the groups whose keys fulfil a condition."""
        return f"HAVING {condition}"

    def listed(self, sql: str, texts: Sequence[str]) -> str | None:
        """A text that is one of these, as what groups faster and casts back to it; NULL for NULL and any other text.

        texts: different ones. None if there is nothing of that kind.
        """
        return None

    def order_hash(self, keys: Sequence[Typed], salt: str) -> str:
        """A number that looks like chance and is a function of the keys' values and the salt alone.

        Equal values have one hash whatever their form (0.0 and −0.0, 30 days and 1 month); the same text has the same
        hash in every session of one version of the engine. salt: a literal of an integer of 63 bits.
        """
        ...

    # --- relations -------------------------------------------------------------------------------------------------

    def sorted(self, sql: str, descending: bool, nulls_first: bool) -> str:
        """A term of ORDER BY: text by its UTF-8 bytes, NaN above every number, NULLs where they are said to be."""
        ...

    @property
    def computes_apart(self) -> bool:
        """Whether a column of a subquery has one value, wherever and however often the SELECT above reads it.

        Not of an engine that may merge the two, and then computes the column at each place.
        """
        return False

    @property
    def holds_digits(self) -> bool:
        """Whether what is computed of DECIMALs has the digits of its type, so that no number of a type has more."""
        return True

    @property
    def barrier(self) -> str:
        """What ends a subquery of which nothing above computes a column again; nothing where that is never done."""
        return ""

    @property
    def weighs_in_windows(self) -> bool:
        """Whether limits of an id are compared with window aggregates over its partial sums, which are read once.

        Else the few ids above a limit are joined to their partial sums: these are read twice, which suits an engine
        that keeps the rows of a WITH. The integers are the same.
        """
        return False

    def first_rows(self, select: str, source: str, condition: str) -> str:
        """The rows of a SELECT for which a condition on its windows holds.

        select: the word, and the list of columns. source: from FROM on, with the blanks around it. condition: reads the
        sources; may hold window functions. May give further columns behind the others.
        """
        ...

    def half_join(self, left: str, right: str, on: str, anti: bool) -> tuple[str, tuple[str, ...]]:
        """A FROM clause with the left rows that have a match on the right, or none; each once, whatever matches.

        Returns the clause, and conditions for WHERE.
        """
        ...

    def full_join(self, left: str, right: str, on: str, equal: bool) -> str:
        """A FROM clause with the pairs of rows for which a condition holds, and the rows of both sides without a match.

        equal: whether the condition begins with an equality of a value of each side, of one type. Raises CannotSpell.
        """
        ...

    def unnest(self, sql: str, most: int, alias: str) -> str:
        """What makes, behind a FROM clause, a row of each of the first `most` elements: `alias`.element."""
        ...

    def list_length(self, sql: str) -> str:
        """How many elements a list has, NULLs among them counted."""
        ...

    def values(self, rows: Sequence[str], names: Sequence[str], alias: str) -> str:
        """Rows as a relation of FROM. rows: at least one, each the printed cells with commas between them."""
        ...

    def many_values(
        self, names: Sequence[str], types: Sequence[SqlType], rows: Sequence[tuple[LiteralValue, ...]], alias: str
    ) -> str | None:
        """As `values`, in the same order, of the rows themselves; None where that would be no quicker."""
        return None

    # --- functions -------------------------------------------------------------------------------------------------

    def aggregate(self, function: str, sql: str, type_: SqlType, where: str = "", distinct: bool = False) -> str:
        """An aggregate of public or released rows, or MIN or MAX: of exact numbers the value rests on no order of rows.

        type_: that of the argument. where: a FILTER clause, with a blank before it. distinct: each value once.
        Raises CannotSpell if the dialect has no exact spelling.
        """
        ...

    def window(self, function: str, args: Sequence[Typed], ignore_nulls: bool) -> str:
        """The call of a window function or aggregate, before its OVER; without arguments a COUNT is of rows.

        Raises CannotSpell if the dialect has no exact spelling.
        """
        ...

    def over(self, function: str, order: Sequence[str], frame: Frame | None) -> tuple[Sequence[str], Frame | None]:
        """The ORDER BY and the frame of a window, as they are to be printed. order: printed terms; may be none.

        Raises CannotSpell if the dialect has no such window of this function, or an error for some values.
        """
        return order, frame

    def spells(self, function: str) -> bool:
        """Whether the dialect has a spelling of a function of the registry, by its first name."""
        return function in self.spellings

    def call(self, function: str, sql: Sequence[str], args: Args, result: Value) -> str:
        """A call as its function says: total, NULL where its rule says, equal to its Python twin.

        sql, args: the printed arguments and what is known of them. result: what is known of the call.
        Raises CannotSpell if the dialect has no exact spelling, or not for such arguments.
        """
        spelling = self.spellings.get(function)
        if spelling is None:
            raise CannotSpell
        return spelling(self, sql, args, result)

    def attempt(
        self, sql: str, function: str, parts: Sequence[str], args: Args, held: Sequence[Interval], result: Value
    ) -> str:
        """A printed call, with NULL in place of a failure: of this call, its arguments have had their own.

        As it is where the types alone say that no value can make it fail, or where the spellings see to that. parts:
        the printed arguments. held: where integer arguments lie by the types of columns, constants and exact operators:
        no other fact is believed.
        """
        return sql

    def again(self) -> Again | None:
        """A dialect of the same engine in which a statement that failed is asked again; None: it is not."""
        return None


class Again(Dialect, Protocol):
    """Gives NULL in place of what a row makes fail, by functions that are made before a snapshot begins.

    functions: name → the statement that makes it, of all that was printed.
    """

    functions: dict[str, str]


Spelling = Callable[[Dialect, Sequence[str], Args, Value], str]
"""How one dialect prints one function; see `Dialect.call`. No row may make the printed expression raise an error."""

Attempts = Callable[[Dialect, str, str, Sequence[str], Args, Sequence[Interval], Value], str]
"""How one dialect answers `Dialect.attempt`."""
