"""The databases of one server, each with a policy of its own: a login asks one of them at a time.

*Claim.* A statement is planned by the policy, run by the workers and charged to the ledger of the database that its
login is in. *Why.* `Login.database` is one of those that the file of users gives the login, and nothing of a statement
comes near it; each database has a gateway, workers and a ledger of its own, and the name alone chooses among them.
*When it would be false.* If something were kept here by a text, for all databases. *Tested by*
tests/faces/server/test_databases.py, tests/deep/faces/server/test_databases.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import CannotOpen
from dpsql.faces.server.statements import Answer, Answering, DescribedStatement, Login, StatementSettings, Value


@dataclass(frozen=True, slots=True)
class Database:
    """A policy, completed with the data's types, and who answers for it. made_up: whether its rows are invented."""

    policy: Policy
    answering: Answering
    made_up: bool = False

    @property
    def name(self) -> str:
        """What clients connect to."""
        return self.policy.name


class NoDatabase(Exception):
    """A login asks for a database that is not one of his, or does not say which. known: those that are."""

    def __init__(self, database: str, known: Sequence[str]) -> None:
        super().__init__()
        self.database, self.known = database, known


class Databases:
    """Implements `Answering`: by the database of each login."""

    def __init__(self, databases: Sequence[Database]) -> None:
        self.by_name: Mapping[str, Database] = {database.name: database for database in databases}

    def of(self, login: Login) -> Database:
        """The one that a login is in."""
        return self.by_name[login.database]

    def entered(self, login: Login, database: str, *, first: bool = False) -> Login:
        """The login in a database. Raises NoDatabase: it is not one of his.

        database: "" for his only one, beside what is made up of it; where he has several, for the `first` one.
        """
        if not database:
            true = [name for name in login.databases if not self.by_name[name].made_up] or login.databases
            database = true[0] if len(true) == 1 or (first and true) else ""
        try:
            return login.at(database)
        except KeyError:
            raise NoDatabase(database, login.databases) from None

    async def describe(self, login: Login, sql: str, settings: StatementSettings) -> DescribedStatement:
        """As `Answering.describe`."""
        return await self.of(login).answering.describe(login, sql, settings)

    async def run(
        self,
        login: Login,
        described: DescribedStatement,
        values: tuple[Value, ...],
        settings: StatementSettings,
        run_id: str,
    ) -> Answer:
        """As `Answering.run`."""
        return await self.of(login).answering.run(login, described, values, settings, run_id)

    async def stop(self, run_id: str) -> None:
        """As `Answering.stop`. No two runs of a server have one name."""
        for database in self.by_name.values():
            await database.answering.stop(run_id)


def name_of_made_up(database: str) -> str:
    """What the database is called that is made up of another's policy."""
    return f"{database}_made_up"


def require_distinct(names: Sequence[str], repair: str) -> None:
    """Raises CannotOpen DP009: two databases would have one name."""
    twice = [name for at, name in enumerate(names) if name in names[:at]]
    if twice:
        message = f"two databases of the server would be called {twice[0]!r}"
        raise CannotOpen([Diagnostic("DP009", message, help=(repair,))])
