"""The connection that users hold: a session with PEP 249's methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, Unpack

from dpsql.api.cursor import Cursor
from dpsql.core.engine import Engine
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics import errors
from dpsql.diagnostics.errors import reject
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import load_policy
from dpsql.service.given_arguments import Parameters
from dpsql.service.made_up.service import made_up
from dpsql.service.open_data import open_data
from dpsql.service.privacy_settings import Amount, Asked, settled
from dpsql.service.service import Service
from dpsql.service.session import Session

if TYPE_CHECKING:
    import duckdb


def connect(
    source: str | PathLike[str] | Policy | duckdb.DuckDBPyConnection,
    *,
    policy: str | PathLike[str] | Policy | None = None,
    frames: Mapping[str, object] | None = None,
    analyst: str | None = None,
    ledger: str | PathLike[str] | Ledger | None = None,
    epsilon: Amount | None = None,
    delta: Amount | None = None,
    allow_dearer: bool | None = None,
    limits: str | None = None,
    threads: int | None = None,
    memory_limit: str | None = None,
    progress: bool = False,
    optimizers: str | None = None,
    draft: bool = False,
) -> Connection:
    """Open a session.

    source: a policy (file or object), whose data is opened read-only and locked; or a DuckDB connection that is already
        open, together with `policy=` (nothing is locked then; results say so).
    frames: table name of the policy → pandas, polars or Arrow table that holds its rows, private or public as the
        policy says; no table that has a `source:` or lies in the policy's `database:`. They are copied; on a connection
        of yours they are registered.
    analyst: whose budget is spent; None is the shared account `*`. The name is trusted from the caller.
    ledger: path of the ledger, instead of the policy's; `"postgresql://…"` for one on a server; `":memory:"` for one
        that is forgotten with the session, its answers too; or a Ledger object.
    epsilon, delta, allow_dearer, limits: defaults of this session's queries.
    threads, memory_limit: how much DuckDB may take, e.g. 4 and `"8GB"`, of a policy's data. What needs more memory is
        spilled to a private temporary folder.
    progress: for the custodian: a bar, on a terminal or in a notebook, for queries that take longer than a second. How
        it moves depends on private rows and is not covered by ε.
    optimizers: `"ours"`: on a connection of yours, you agree that all but a few of DuckDB's optimizers are off while a
        query of dpsql's runs. The setting is the whole database's, so your own queries run slower meanwhile; then it is
        what it was. Without it, a connection that has others on is refused.
    draft: ask rows that are made up from the policy alone, for nothing: neither data nor ledger is opened. The only way
        to ask under a policy that is a draft.
    Raises CannotOpen: policy, data or ledger cannot be opened, or the policy and the data disagree. Rejected DP903.

    >>> with dpsql.connect("clinic.yaml", analyst="ana") as con:
    ...     con.sql("SELECT COUNT(*) AS n FROM patients").cost(epsilon=0.5)
    PrivacyLoss(epsilon=0.5)
    """
    name: object = analyst
    if name == "" or not isinstance(name, str | None):
        raise reject("DP903", "an analyst is a name", help=["leave it out to spend the shared budget"])
    keeper: object = ledger
    if not isinstance(keeper, str | PathLike | None) and not hasattr(keeper, "reserve"):
        raise reject("DP903", "a ledger is the path of its file, or a Ledger object", help=["ledger='clinic.sqlite'"])
    asked: Asked = {"epsilon": epsilon, "delta": delta, "allow_dearer": allow_dearer, "limits": limits}
    settings = settled(asked, QuerySettings())
    if draft:
        named = source if policy is None else policy
        if not isinstance(named, Policy | str | PathLike):
            raise reject("DP903", "a connection needs a policy", help=["dpsql.connect('policy.yaml', draft=True)"])
        found = Connection.__new__(Connection)  # over a service that makes its rows itself
        Session.__init__(
            found, made_up(named if isinstance(named, Policy) else load_policy(named))[0], analyst, settings
        )
        return found
    completed, engine = open_data(source, policy, frames, threads, memory_limit, progress, optimizers=optimizers)
    return Connection(completed, engine, analyst, ledger, settings)


class Connection(Session):
    """An open session with a service of its own: `sql` for a query to look at first; `execute`, `cursor` as in PEP 249.

    A context manager; closing twice is allowed. Threads may share it: their queries run one after the other, and while
    one runs, others are planned, explained and priced. In async code run it in a thread:
    `await asyncio.to_thread(con.execute, sql)`.

    Every query is charged durably before it runs, so there is nothing to commit and nothing that could be rolled back:
    `commit` and `rollback` do nothing, and in particular give nothing back.

    >>> con = dpsql.connect("clinic.yaml", epsilon=0.5)
    >>> con.execute("SELECT COUNT(*) AS n FROM patients").spent
    PrivacyLoss(epsilon=0.5)
    >>> con.budget.spent
    PrivacyLoss(epsilon=0.5)
    """

    Warning: ClassVar = errors.Warning
    Error: ClassVar = errors.Error
    InterfaceError: ClassVar = errors.InterfaceError
    DatabaseError: ClassVar = errors.DatabaseError
    DataError: ClassVar = errors.DataError
    OperationalError: ClassVar = errors.OperationalError
    IntegrityError: ClassVar = errors.IntegrityError
    InternalError: ClassVar = errors.InternalError
    ProgrammingError: ClassVar = errors.ProgrammingError
    NotSupportedError: ClassVar = errors.NotSupportedError

    def __init__(
        self,
        policy: Policy,
        engine: Engine,
        analyst: str | None = None,
        ledger: str | PathLike[str] | Ledger | None = None,
        settings: QuerySettings | None = None,
    ) -> None:
        """policy: completed with the data's types. engine, ledger: closed with the connection."""
        super().__init__(Service(policy, engine, ledger), analyst, settings)

    def __reduce__(self) -> NoReturn:
        """Copies and pickles would be second holders of one ledger and one engine. Raises Rejected DP903."""
        raise reject(
            "DP903", "a connection is neither copied nor pickled",
            help=["threads may share it; another process opens its own with dpsql.connect(…)"],
        )  # fmt: skip

    def close(self) -> None:
        """Let go of data and ledger."""
        self.service.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def cursor(self) -> Cursor:
        """A new cursor. Raises Rejected DP903 once the connection is closed."""
        self.require_open()
        return Cursor(self)

    def execute(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        fresh: bool = False,
        **asked: Unpack[Asked],
    ) -> Cursor:
        """`Cursor.execute` on a new cursor, which also has the columns, intervals, notes and frames of the answer.

        Raises Rejected, BudgetExceeded, EngineError.
        """
        return self.cursor().execute(sql, parameters, fresh=fresh, **asked)

    def executemany(
        self, sql: str, parameters: Iterable[Sequence[Any] | Mapping[str, Any]], *, epsilon: Amount | None = None
    ) -> Cursor:
        """`Cursor.executemany` on a new cursor."""
        return self.cursor().executemany(sql, parameters, epsilon=epsilon)

    def commit(self) -> None:
        """Nothing: what was charged is charged durably already. Raises Rejected DP903 once the connection is closed."""
        self.require_open()

    def rollback(self) -> None:
        """Nothing: an answer that was seen cannot be given back, and nothing is refunded. Raises Rejected DP903."""
        self.require_open()
