"""What the front asks of those who hold the data, and what comes back: plain values, no bytes of any protocol.

The front (`front/`) speaks with clients and has no data. Whoever implements `Answering` has the data, or processes that
have it. Of these values each may cross a Unix socket as JSON: there are texts, numbers, tuples of them, and the values
of SQL in `Value`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from dpsql.core.ir.types import SqlType
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.note import Note

if TYPE_CHECKING:
    import asyncio

Value: TypeAlias = (
    bool | int | float | Decimal | str | bytes | dt.date | dt.time | dt.timedelta | UUID | list["Value"] | None
)
"""A value of SQL, as a Release has it: None is NULL, a TIMESTAMP has no zone, a TIMESTAMPTZ has UTC's."""


@dataclass(frozen=True, slots=True)
class StatementSettings:
    """What a statement is asked with. Amounts are texts as they were written, already read once as amounts.

    epsilon, delta, rho: None for what the login's defaults say, else the policy's. At most one of ε and ρ is given.
    allow_dearer: None as the policy says. limits: "auto", "declared" or "search". notices: whether the price and the
    notes of an answer are told. intervals: whether `n_low` and `n_high` of each noisy `n` stand behind all columns.
    anyway: also where no group could be shown.
    """

    epsilon: str | None = None
    delta: str | None = None
    rho: str | None = None
    allow_dearer: bool | None = None
    coverage: bool = False
    consistent_totals: bool = False
    limits: str = "auto"
    notices: bool = True
    intervals: bool = False
    anyway: bool = False


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What a login may spend, besides the budgets of the policy. None: no ceiling. Amounts are texts.

    per_query, per_hour, per_day: ε of one statement, and of all in the last hour and day. statements: that are charged
    in an hour. least_epsilon: of one that is: small ones cost a seat as much as others.
    """

    per_query: str | None = None
    per_hour: str | None = None
    per_day: str | None = None
    statements: int | None = None
    least_epsilon: str | None = None


@dataclass(frozen=True, slots=True)
class Login:
    """Somebody who has shown that he knows the secret of a name. Nothing that a client sends later changes it.

    account: whose budget is charged, by users.yaml. role: "analyst" or "custodian". kind: "person", or "bi" for a tool
    that can say nothing of ε. address: from where he came, for the audit log. may: what is allowed besides queries:
    "summaries" and "counters" for making and dropping them, "periods" for closing them. databases: those of the server
    that he may ask, the first one first.
    database: the one of them that he asks now.
    """

    name: str
    account: str
    role: str = "analyst"
    kind: str = "person"
    defaults: StatementSettings = field(default_factory=StatementSettings)
    ceilings: Ceilings = field(default_factory=Ceilings)
    address: str = ""
    may: tuple[str, ...] = ()
    databases: tuple[str, ...] = ()
    database: str = ""

    def at(self, database: str) -> Login:
        """The same login in one of its databases. Raises KeyError for any other name."""
        if database not in self.databases:
            raise KeyError(database)
        return replace(self, database=database)


@dataclass(frozen=True, slots=True)
class DescribedStatement:
    """One statement that will be answered: its text, its columns, and the types of `$1`, `$2`, … in order.

    columns: of what gives no rows, empty. command: the first word of its tag; that of rows is followed by their number.
    names: what PostgreSQL would call the columns, where that is something else.
    """

    sql: str
    columns: tuple[tuple[str, SqlType], ...] = ()
    parameters: tuple[SqlType, ...] = ()
    command: str = "SELECT"
    names: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[tuple[str, SqlType], ...]:
        """The columns by PostgreSQL's names, for those who speak its protocol."""
        if len(self.names) != len(self.columns):
            return self.columns
        return tuple((name, type_) for name, (_, type_) in zip(self.names, self.columns, strict=True))


@dataclass(frozen=True, slots=True)
class Answer:
    """Released rows, each of plain values, and what is told with them.

    notices: of price, ± and limits, dangers first; empty if the settings want none. warnings: what spoke against the
    run (DP5xx). spent: in words, "" for nothing. plan, entry: for the audit log, hash of the plan and id of the
    ledger's entry, of several one after the other; "" if there is none. more: of a batch the answers of its queries, in
    place of rows of its own. ends: the places of columns whose intervals' two ends stand behind all others, in this
    order. charged: what it cost, or what a run would cost now. left: of the account; None for no limit.
    """

    columns: tuple[tuple[str, SqlType], ...]
    rows: Sequence[tuple[Value, ...]]
    notices: tuple[Note, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    spent: str = ""
    plan: str = ""
    entry: str = ""
    command: str = "SELECT"
    more: tuple[Answer, ...] = ()
    ends: tuple[int, ...] = ()
    charged: PrivacyLoss = NO_LOSS
    left: PrivacyLoss | None = None


class ChargedRun(NamedTuple):
    """What a run that is not answered was charged: in words, and the ledger's entry, "" for nothing.

    has_failed: whether the ledger counts it as a failure.
    """

    price: str = ""
    entry: str = ""
    has_failed: bool = False


class Refused(Exception):
    """A statement that is not answered, and why. `diagnostics` is never empty.

    sqlstate: PostgreSQL's code, where it does not follow from the first diagnostic's: "57014" stopped, "XX000" a worker
    died, "53300" too many at once. Places are counted in characters of the text that was handed over.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], sqlstate: str = "") -> None:
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        self.sqlstate = sqlstate
        super().__init__("; ".join(f"[{d.code}] {d.message}" for d in self.diagnostics))
        self.at: int | None = 0
        """Where the text that was handed over begins in the statement that a client sent; None: it is not in it."""
        self.charge: asyncio.Future[ChargedRun] | None = None
        """What was charged all the same: known once the run is over. None: it never began."""

    def moved(self, by: int | None) -> Refused:
        """This very refusal, of a text that begins further on; None: it is written nowhere."""
        self.at = None if by is None or self.at is None else self.at + by
        return self


STOPPED: Final = "57014"
FAILED: Final = "XX000"
TOO_MANY: Final = "53300"
ENDING: Final = "57P01"
UNWRITTEN: Final = "58030"


class Answering(Protocol):
    """What the front asks. Each call may be made while others run."""

    async def describe(self, login: Login, sql: str, settings: StatementSettings) -> DescribedStatement:
        """Columns and types of parameters of one statement. It needs no data and spends nothing. Raises Refused."""
        ...

    async def run(
        self,
        login: Login,
        described: DescribedStatement,
        values: tuple[Value, ...],
        settings: StatementSettings,
        run_id: str,
    ) -> Answer:
        """Charge, run, and give what may leave, at the moment when it may. Raises Refused.

        values: one for each of the statement's parameters. run_id: a name that the caller chose, for `stop`.
        """
        ...

    async def stop(self, run_id: str) -> None:
        """End a run if it is not over: it raises Refused with STOPPED. What it charged stays charged."""
        ...


class CatalogueAnswering(Answering, Protocol):
    """Who answers questions about the schema, from names of the policy alone."""

    def concerns(self, sql: str) -> bool:
        """Whether a statement asks the catalogue. If so, nobody else is asked: unknown ones are refused."""
        ...


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """A line of the audit log. It holds nothing of private data: no duration, no number of rows, no value.

    what: "login", "refused login", "statement", "charged", "failure", "stop", "end" or "log". "charged" is told when
    the run of a statement that was stopped is over, "failure" beside either where the ledger counts one, "log" when the
    log can be written again. statement: where a custodian stops
    somebody, whom. outcome: "ok" or the code of a refusal. price: in words; of a refusal, too, if it was charged; or
    "unknown", where the ledger cannot say. kind: of a statement that was answered: "query", "explain", "show" or
    "catalogue". database: which he asks; "" before it is known.
    """

    what: str
    name: str
    address: str
    statement: str = ""
    outcome: str = "ok"
    plan: str = ""
    price: str = ""
    entry: str = ""
    kind: str = ""
    database: str = ""


class Recording(Protocol):
    """Who keeps the audit log."""

    def record(self, event: AuditEvent) -> None:
        """Append one line. Raises OSError."""
        ...

    def require(self) -> None:
        """Raises OSError if no line can be written now: then nothing may be charged."""
        ...
