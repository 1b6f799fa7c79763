"""`CREATE DP COUNTER name AS SELECT … FROM DATE '…' WITH (rho = …)` and the other statements about counters, as values.

No parser of queries knows them; the SELECT of one is read as a query once its day is put in (`counted_query.py`).
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from dpsql.diagnostics.diagnostic import Source
from dpsql.frontend.text.lexer import Token, tokens
from dpsql.frontend.text.quoted_names import quoted
from dpsql.frontend.text.statement_reader import StatementReader, parts_about

CREATE, DROP, RECEIVE, TICK = "CREATE DP COUNTER", "DROP DP COUNTER", "RECEIVE DP COUNTER", "TICK DP COUNTER"
_FORM = f"{CREATE} name AS SELECT key, COUNT(*) AS n FROM table GROUP BY key FROM DATE '2026-12-01' WITH (rho = 0.002)"


@dataclass(frozen=True, slots=True)
class CreateCounter:
    """A counter: a row for each period of a growing table, from a day on, and each group of a query.

    query: its SELECT, as it was written, without the day. amounts: epsilon, rho, delta → what was written.
    """

    name: str
    query: str
    first: dt.date
    amounts: tuple[tuple[str, str], ...] = ()

    @property
    def sql(self) -> str:
        """The statement, with the amounts that hold."""
        given = ", ".join(f"{name} = {value}" for name, value in self.amounts)
        amounts = f" WITH ({given})" if given else ""
        return f"{CREATE} {quoted(self.name)} AS {self.query} FROM DATE '{self.first}'{amounts}"


@dataclass(frozen=True, slots=True)
class DropCounter:
    """End a counter, and forget its name."""

    name: str

    @property
    def sql(self) -> str:
        """The statement, always written alike."""
        return f"{DROP} {quoted(self.name)}"


@dataclass(frozen=True, slots=True)
class ReceiveCounter:
    """Pay the price of a counter that another account has made, to read it from now on."""

    name: str

    @property
    def sql(self) -> str:
        """The statement, always written alike."""
        return f"{RECEIVE} {quoted(self.name)}"


@dataclass(frozen=True, slots=True)
class TickCounter:
    """Count the closed periods that a counter lacks, and pay for those whose numbers were lost."""

    name: str

    @property
    def sql(self) -> str:
        """The statement, always written alike."""
        return f"{TICK} {quoted(self.name)}"


CounterStatement = CreateCounter | DropCounter | ReceiveCounter | TickCounter
_VERBS = {"CREATE", "DROP", "RECEIVE", "TICK"}


def counter_statement(sql: str) -> CounterStatement | None:
    """The statement if a text is one of these; None for any other. Raises Rejected DP010: it cannot be read."""
    found = parts_about(sql, "COUNTER", _VERBS)
    if found is None:
        return None
    verb, parts = found
    reader = _Reader(Source(sql), parts, len(sql))
    if verb == "CREATE":
        return reader.create()
    name = reader.name()
    reader.over()
    match verb:
        case "DROP":
            return DropCounter(name)
        case "RECEIVE":
            return ReceiveCounter(name)
    return TickCounter(name)


class _Reader(StatementReader):
    about = "a counter"
    forms = (_FORM, f"{DROP} name", f"{RECEIVE} name", f"{TICK} name")

    def create(self) -> CreateCounter:
        name = self.name()
        self.word("AS")
        begins = self.here
        end = self._end_of_query()
        if begins is None or begins.upper != "SELECT" or end is None:
            what = (
                "SELECT is missing here" if end is not None else "FROM DATE '…' is missing: the first day that is read"
            )
            raise self.wrong(what, begins if end is not None else None)
        query = self.source.text[begins.start : self.parts[end].start].strip()
        self.at = end + 1
        first = self.day()
        amounts = dict[str, str]()
        if self.here is not None and self.here.upper == "WITH":
            self.at += 1
            self.sign("(")
            while True:
                at = self.here
                key = self.name().lower()
                if key not in ("epsilon", "rho", "delta") or key in amounts:
                    raise self.wrong("an option of a counter is rho, epsilon or delta, each once", at)
                self.sign("=")
                amounts[key] = self.number()
                if not self.accept(","):
                    break
            self.sign(")")
        self.over()
        if "epsilon" in amounts and "rho" in amounts:
            raise self.wrong("epsilon and rho each say how much to spend", None)
        return CreateCounter(name, query, first, tuple(amounts.items()))

    def _end_of_query(self) -> int | None:
        """Where the last FROM DATE '…' stands that is in no brackets."""
        depth, found = 0, None
        for at, part in enumerate(self.parts[:-2]):
            depth += (part.text == "(") - (part.text == ")")
            behind: list[Token] = list(self.parts[at + 1 : at + 3])
            if not depth and part.upper == "FROM" and behind[0].upper == "DATE" and behind[1].kind == "string":
                found = at
        return found


def relations_named(sql: str) -> tuple[str, ...]:
    """What a text names `dpsql.…`, in small letters, each once."""
    parts = [t for t in tokens(sql) if t.kind != "comment"]
    names = [
        parts[at + 2].name.casefold()
        for at, token in enumerate(parts[:-2])
        if token.is_name and token.name.lower() == "dpsql" and parts[at + 1].text == "." and parts[at + 2].is_name
    ]
    return tuple(dict.fromkeys(names))
