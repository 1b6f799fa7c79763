"""`CREATE DP SUMMARY name ON table (column, …) [WITH (k = 2, epsilon = 0.5)]` and `DROP DP SUMMARY name`, as values.

No parser of queries knows them; of what else begins so, every word is read here or refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.diagnostics.diagnostic import Source
from dpsql.frontend.text.quoted_names import quoted
from dpsql.frontend.text.statement_reader import StatementReader, parts_about

CREATE, DROP = "CREATE DP SUMMARY", "DROP DP SUMMARY"
_FORM = "CREATE DP SUMMARY name ON table (column, …) WITH (k = 2, epsilon = 0.5)"


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
    found = parts_about(sql, "SUMMARY", ("CREATE", "DROP"))
    if found is None:
        return None
    verb, parts = found
    reader = _Reader(Source(sql), parts, len(sql))
    return reader.create() if verb == "CREATE" else reader.drop()


class _Reader(StatementReader):
    about = "a summary"
    forms = (_FORM, f"{DROP} name")

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
