"""The policy as the planner reads it: everything resolved, exact and checked. A value; it holds no data.

Built from YAML by `load.load_policy`, from a mapping by `Policy.model_validate`. `policy/file/file_format.py` describes
the text.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from dpsql.core.policy.budgets import SHARED_ACCOUNT, BudgetCaps, Budgets, Defaults, Failures
from dpsql.core.policy.growing_units import why_not_by_period
from dpsql.core.policy.positions import Places
from dpsql.core.policy.server_address import Server, names_server, parse_server
from dpsql.core.policy.serving import Serving
from dpsql.core.policy.tables import Table
from dpsql.core.policy.units import Accountant, Neighbours, Unit, UnitNames
from dpsql.core.privacy_loss import NO_LOSS
from dpsql.diagnostics.diagnostic import Source, Span

IN_MEMORY: Final = ":memory:"
"""In place of a ledger's file: a ledger that is forgotten with its session. A file of that name is `./:memory:`."""


@dataclass(frozen=True, slots=True)
class Privacy:
    """neighbours: the default of every table that does not say otherwise. accountant: how losses add up."""

    neighbours: Neighbours = "add_remove"
    accountant: Accountant = "approx_dp"


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """What the custodian declares about the data, the privacy units and the budgets.

    tables: declared name → Table, in the file's order; closed world: what is not here does not exist.
    units: unit name → Unit, row units included.
    draft: whether decisions are open, as it says itself; see policy/tools/decisions.py.
    former_units: a unit's name in the ledger → what it is called now; None: it is gone with its tables.
    failures: how many of statements stop private queries. search: whether a query may have a part of its ε find limits
        and bounds, or has without asking. serving: how a server answers.
    hash: sha256 (hex) of the content: equal whatever the comments, the order of keys or the way numbers are written,
        and whatever `defaults.allow_dearer`, `draft`, `failures`, `search`, `serve` and `zone` say, which change no
        answer and no price.
    path: the file it was loaded from, None if it was built in code; not part of the hash, nor is anything else about
        where it lies. Two policies are equal if their hashes are.
    document: the normalised content with defaults filled in, as plain JSON-like data.
    worked_out: kept with this very policy: what follows from a declaration alone, whatever is asked (one entry for each
        column, core/analysis/declared_columns.py). scanned: likewise, of tables at some place of a query, as many as
        core/analysis/rules/scan.py wants. Another policy made of this one begins with none.
    """

    name: str
    privacy: Privacy
    tables: Mapping[str, Table]
    units: Mapping[str, Unit]
    defaults: Defaults
    budgets: Budgets
    hash: str
    version: int = 1
    draft: bool = False
    data_version: str = ""
    database: str | None = None
    prepared_at: str | None = None
    ledger: str | None = None
    ledger_head: str | None = None
    noise: Literal["exact", "opendp"] = "exact"
    former_units: Mapping[str, str | None] = field(default_factory=dict)
    search: Literal["auto", "allow", "refuse"] = "allow"
    zone: str = "UTC"
    failures: Failures = field(default_factory=Failures)
    serving: Serving = field(default_factory=Serving)
    path: Path | None = None
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)
    places: Places = field(default_factory=Places, repr=False)
    worked_out: dict[object, Any] = field(default_factory=dict, init=False, repr=False)
    scanned: dict[object, Any] = field(default_factory=dict, init=False, repr=False)

    def __eq__(self, other: object) -> bool:
        return self.hash == other.hash if isinstance(other, Policy) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.hash)

    def table(self, name: str) -> Table | None:
        """The table of this name, whatever its case; None if it is not declared."""
        found = self.tables.get(name)
        if found is not None:
            return found
        wanted = name.casefold()
        return next((t for t in self.tables.values() if t.name.casefold() == wanted), None)

    @property
    def unit_names(self) -> UnitNames:
        """What its units are called, and what they were called in the ledger."""
        return UnitNames(frozenset(self.units), self.former_units)

    def called(self, *parts: str) -> Table | None:
        """The table that a query means by `catalogue.schema.table`, `schema.table` or `table`; None if there is none.

        As it is declared; besides, `main.` is the schema of tables that are declared without one, and so is `public.`,
        as PostgreSQL has it. The name of the policy, or of its database's file, may stand before it, or in its place.
        What the policy itself calls so, a table or a schema of tables, goes first.
        """
        found = self.table(".".join(parts))
        *schema, table = (part.casefold() for part in parts)
        match schema:
            case _ if found is not None:
                return found
            case [] | ["main"]:
                return self.table(table) or self.table(f"main.{table}")
            case _ if self._declares(".".join(schema)):
                return None
            case ["public"]:
                return self.called(table)
            case [catalogue, *rest] if catalogue in self._catalogues and rest in ([], ["main"], ["public"]):
                return self.called(*rest, table)
        return None

    @property
    def _catalogues(self) -> tuple[str, ...]:
        """How its database is called, in lower case."""
        path, server = self.database_path, self.server
        own = server.database if server is not None else None if path is None else path.stem
        return (self.name.casefold(), *(() if own is None else (own.casefold(),)))

    def _declares(self, schema: str) -> bool:
        """Whether a table is called so, or stands in a schema or catalogue of this name."""
        return any(f"{t.name.casefold()}.".startswith(f"{schema}.") for t in self.tables.values())

    def schemas_of(self, table: Table) -> frozenset[str]:
        """What may stand before the last part of a table's name, in lower case."""
        declared, _, last = table.name.casefold().rpartition(".")
        inner = ((), ("main",), ("public",))
        names = ((declared,), *inner, *((c, *schema) for c in self._catalogues for schema in inner))
        return frozenset(".".join(n) for n in names if any(n) and self.called(*n, last) is table)

    def account(self, analyst: str | None) -> str:
        """Whose budget this analyst spends: his own if `budgets.analysts` names him or there is no such section."""
        named = self.budgets.analysts
        if analyst is None or (named and analyst not in named):
            return SHARED_ACCOUNT
        return analyst

    def has_account(self, analyst: str | None) -> bool:
        """Whether `budgets.analysts` gives this analyst an account, his own or the shared one, or limits nobody."""
        named = self.budgets.analysts
        return not named or self.account(analyst) in named

    def caps_for(self, analyst: str | None = None) -> BudgetCaps:
        """The limits in force for an analyst (None: whoever gives no name), for every unit of the policy."""
        said, periods = self.budgets, frozenset(self.by_period)
        caps = {u: said.units.get(u, said.each_period if u in periods else said.total) for u in self.units}
        totals = {unit: cap for unit, cap in caps.items() if cap is not None}
        if not said.analysts:
            return BudgetCaps(totals, by_period=periods)
        own = said.analysts.get(self.account(analyst))
        if own is None:
            return BudgetCaps(totals, dict.fromkeys(self.units, NO_LOSS), by_period=periods)
        return BudgetCaps(totals, dict.fromkeys(self.units, own.cap), own.per_query, periods)

    @property
    def by_period(self) -> Mapping[str, tuple[Table, ...]]:
        """Units with an account for each period, with the tables that have their rows: a row unit has one.

        *Claim.* The rows in which neighbours differ are in one period. *Why.* They are one row, or those of one id in
        one period; `why_not_by_period`. *When it would be false.* If a row changes its date, which is the custodian's
        promise; if another table of the policy reads the same rows as another unit (policy/resolve/one_unit.py), or by
        another date (policy/resolve/period_units.py). *Tested by* tests/service/test_budgets_by_period.py,
        tests/deep/service/test_growing_streams.py, tests/deep/service/test_rider_days.py.
        """
        if self.budgets.each_period is None:
            return {}
        units = [u for u in self.units.values() if u.tables and why_not_by_period(u, self.tables) is None]
        return {u.name: tuple(self.tables[name] for name in u.tables) for u in units}

    @property
    def file(self) -> str:
        """The policy file as messages name it."""
        if self.places.source is not None:
            return self.places.source.name
        return str(self.path) if self.path is not None else "<policy>"

    def place(self, *loc: str | int) -> tuple[Source, Span] | None:
        """Where `loc` stands in the policy's text: `policy.place("tables", "visits", "columns", "cost")`.

        Falls back to the nearest parent that is there; None if the policy was not read from text.
        """
        return self.places.find(loc)

    @property
    def directory(self) -> Path:
        """What relative paths in the policy are relative to: the policy file's folder, or the given one."""
        return self.places.directory

    @property
    def database_path(self) -> Path | None:
        """Absolute path of `database`; None if there is none, or if it is a server."""
        return None if self.database is None or names_server(self.database) else self._absolute(self.database)

    @property
    def server(self) -> Server | None:
        """The server that `database` is; None if it is a file, or if there is none."""
        return parse_server(self.database) if self.database is not None and names_server(self.database) else None

    @property
    def ledger_url(self) -> str | None:
        """The URL of the ledger's database; None for one in a file, or in memory."""
        return self.ledger.strip() if self.ledger is not None and names_server(self.ledger) else None

    @property
    def ledger_path(self) -> Path | None:
        """Absolute path of the ledger; by default `<name>.ledger.sqlite` beside the policy. None: it is no file."""
        if self.ledger == IN_MEMORY or self.ledger_url is not None:
            return None
        return self._absolute(self.ledger or f"{self.name}.ledger.sqlite")

    @property
    def ledger_head_path(self) -> Path | None:
        """Absolute path of the file that keeps the ledger's last hash; None for a ledger in memory.

        By default in the user's state directory, under a name that depends on the ledger's path.
        """
        if self.ledger_head is not None:
            return self._absolute(self.ledger_head)
        ledger = self.ledger_url or self.ledger_path
        return None if ledger is None else default_head_path(ledger, self.name)

    def _absolute(self, text: str) -> Path:
        return Path(os.path.abspath(self.directory / Path(text).expanduser()))


def default_head_path(ledger: Path | str, name: str) -> Path:
    """Where the last hash of this ledger is kept if nothing else is said (XDG base directories).

    ledger: its file, or the URL of its database.
    """
    import hashlib

    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    named = ledger if isinstance(ledger, str) else os.path.abspath(ledger)
    tag = hashlib.sha256(os.fsencode(named)).hexdigest()[:16]
    return base / "dpsql" / f"{name}-{tag}.head"
