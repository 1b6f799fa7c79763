"""`CREATE DP SUMMARY name ON table (column, …) [WITH (k = 2, epsilon = 0.5)]` and `DROP DP SUMMARY name`, as values.

No parser of queries knows them; of what else begins so, every word is read here or refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.diagnostics.note import NOTHING_RAN
from dpsql.frontend.text.lexer import RESERVED, Token, tokens
from dpsql.frontend.text.quoted_names import quoted

CREATE, DROP = "CREATE DP SUMMARY", "DROP DP SUMMARY"
_FORM = "CREATE DP SUMMARY name ON table (column, …) WITH (k = 2, epsilon = 0.5)"
_LONGEST = 63
"""Characters of a summary's name."""


@dataclass(frozen=True, slots=True)
class CreateSummary:
    """A summary: all marginals of at most k of some columns of a table. Names are as they are called, without quotes.

    amounts: epsilon or rho → what was written: a number, or one in quotes.
    """

    name: str
    table: tuple[str, ...]
    columns: tuple[str, ...]
    k: int = 2
    amounts: tuple[tuple[str, str], ...] = ()

    @property
    def sql(self) -> str:
        """The statement, always written alike."""
        given = ", ".join(f"{name} = {value}" for name, value in (("k", str(self.k)), *self.amounts))
        columns = ", ".join(map(quoted, self.columns))
        return f"{CREATE} {quoted(self.name)} ON {self.table_sql} ({columns}) WITH ({given})"

    @property
    def table_sql(self) -> str:
        """The table as a query names it."""
        return ".".join(map(quoted, self.table))


@dataclass(frozen=True, slots=True)
class DropSummary:
    """Forget a summary's name."""

    name: str

    @property
    def sql(self) -> str:
        """The statement, always written alike."""
        return f"{DROP} {quoted(self.name)}"


SummaryStatement = CreateSummary | DropSummary


def summary_statement(sql: str) -> SummaryStatement | None:
    """The statement if a text is one of these; None for any other. Raises Rejected DP010: it cannot be read."""
    if "summary" not in sql[:1_000].lower():
        return None
    parts = [t for t in tokens(sql) if t.kind != "comment"]
    while parts and parts[-1].text == ";":
        parts.pop()
    if len(parts) < 3 or [p.upper for p in parts[1:3]] != ["DP", "SUMMARY"]:
        return None
    if parts[0].upper not in ("CREATE", "DROP"):
        return None
    reader = _Reader(Source(sql), parts[3:], len(sql))
    return reader.create() if parts[0].upper == "CREATE" else reader.drop()


class _Reader:
    def __init__(self, source: Source, parts: Sequence[Token], end: int) -> None:
        self.source, self.parts, self.at, self.end = source, parts, 0, end

    def create(self) -> CreateSummary:
        name = self.name()
        self.word("ON")
        table = [self.name()]
        while self.accept("."):
            table.append(self.name())
        self.sign("(")
        columns = [self.name()]
        while self.accept(","):
            columns.append(self.name())
        self.sign(")")
        k, amounts, given = 2, dict[str, str](), set[str]()
        if self.here is not None and self.here.upper == "WITH":
            self.at += 1
            self.sign("(")
            while True:
                at = self.here
                key = self.name().lower()
                if key not in ("k", "epsilon", "rho") or key in given:
                    raise self.wrong("an option of a summary is k, epsilon or rho, each once", at)
                given.add(key)
                self.sign("=")
                value = self.number()
                if key == "k" and not (value.isdecimal() and 0 < int(value) <= 8):
                    raise self.wrong("k is a whole number from 1 to 8", self.parts[self.at - 1])
                if key == "k":
                    k = int(value)
                else:
                    amounts[key] = value
                if not self.accept(","):
                    break
            self.sign(")")
        self.over()
        if len(amounts) > 1:
            raise self.wrong("epsilon and rho each say how much to spend", None)
        folded = [c.casefold() for c in columns]
        if len(set(folded)) < len(folded):
            raise self.wrong("a column is named twice", None)
        return CreateSummary(name, tuple(table), tuple(columns), k, tuple(amounts.items()))

    def drop(self) -> DropSummary:
        name = self.name()
        self.over()
        return DropSummary(name)

    # --- parts -----------------------------------------------------------------------------------------------------

    @property
    def here(self) -> Token | None:
        return self.parts[self.at] if self.at < len(self.parts) else None

    def name(self) -> str:
        here = self.here
        if here is None or not here.is_name or not here.name or not here.closed or here.upper in RESERVED:
            raise self.wrong("a name is missing here", here)
        if len(here.name) > _LONGEST or not here.name.isprintable():
            raise self.wrong(f"a name has at most {_LONGEST} characters, and none that cannot be printed", here)
        self.at += 1
        return here.name

    def number(self) -> str:
        here = self.here
        if here is None or here.kind not in ("number", "string") or not here.closed:
            raise self.wrong("a number is missing here", here)
        self.at += 1
        return here.text.replace("_", "")

    def accept(self, sign: str) -> bool:
        found = self.here is not None and self.here.text == sign
        self.at += found
        return found

    def sign(self, sign: str) -> None:
        if not self.accept(sign):
            raise self.wrong(f"{sign} is missing here", self.here)

    def word(self, word: str) -> None:
        if self.here is None or self.here.upper != word:
            raise self.wrong(f"{word} is missing here", self.here)
        self.at += 1

    def over(self) -> None:
        if self.here is not None:
            raise self.wrong("the statement ends before this", self.here)

    def wrong(self, what: str, at: Token | None) -> Rejected:
        span = Span(self.end, self.end) if at is None else Span(at.start, at.end)
        return reject(
            "DP010", f"a statement about a summary cannot be read: {what}", span=span, source=self.source,
            help=[f"write  {_FORM}", f"or  {DROP} name"], notes=[NOTHING_RAN],
        )  # fmt: skip
