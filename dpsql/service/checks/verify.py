"""Whether the data keeps what the policy promises: for the custodian, who may see exact numbers.

A promise is a claim about every neighbouring database and about next year's data, too. The data at hand can refute it
and never prove it; what it cannot even refute (whose rows these are, what is public) is listed as untestable.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Literal

from dpsql.core.engine import Engine
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.prepared import owner_column, prepared_tables
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import CannotOpen, EngineError, Error
from dpsql.engines.open import copies_of, csv_fault
from dpsql.policy.issues import Issue, dotted
from dpsql.policy.tools.assumptions import Promise, promises
from dpsql.service.checks.declared import Check, checks
from dpsql.service.open_data import open_data
from dpsql.service.preparing.manifest import Manifest, TableCopy
from dpsql.service.preparing.prepare import counted_in

if TYPE_CHECKING:
    import duckdb

Status = Literal["ok", "broken", "doubtful", "enforced", "untestable", "info"]
"""ok, broken: a promise and what the data says. doubtful: no data could refute it, and this data speaks against it.
enforced: the plan itself makes it true. untestable: no data could refute it. info: no promise, but rows or elements
that answers leave out."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One line of a verification.

    where: the dotted path in the policy. file, line, column: the same in its text (1-based), if it has one.
    unit: the privacy unit of the table; None for public tables.
    measures: what `measured` counts; None, like `measured`, where nothing is counted. of: what it is a part of.
    promised: the number that `measured` may not exceed (`at_most`) or must be (`exactly`); None if none is promised.
    when_false, repair: what follows from a broken promise, and what to do about it.
    """

    kind: str
    where: str
    status: Status
    claim: str
    unit: str | None
    measures: str | None = None
    measured: int | None = None
    of: int | None = None
    comparison: Literal["at_most", "exactly"] | None = None
    promised: int | None = None
    when_false: str | None = None
    repair: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """What became of each promise of a policy, in the policy's order. It holds exact numbers about private data.

    policy, hash: the policy's name, and the hash of its content with the types filled in.
    checks: a `Checked` for each promise, each enforced limit and each declaration that leaves rows out of answers.
    """

    policy: str
    hash: str
    checks: tuple[Checked, ...]

    @property
    def broken(self) -> tuple[Checked, ...]:
        """The promises that the data refutes."""
        return tuple(c for c in self.checks if c.status == "broken")

    @property
    def doubtful(self) -> tuple[Checked, ...]:
        """What the data speaks against, without refuting it."""
        return tuple(c for c in self.checks if c.status == "doubtful")

    @property
    def holds(self) -> bool:
        """True if the data refutes no promise, and speaks against none."""
        return not self.broken and not self.doubtful


def verify_policy(
    source: str | PathLike[str] | Policy | duckdb.DuckDBPyConnection,
    *,
    policy: str | PathLike[str] | Policy | None = None,
    frames: Mapping[str, object] | None = None,
    threads: int | None = None,
    memory_limit: str | None = None,
    progress: bool = False,
    optimizers: str | None = None,
) -> Verification:
    """Measure every promise of a policy in the data. For the custodian: the numbers are exact, not private.

    The data is opened as by `connect`, from the same arguments; the ledger is not touched.
    Raises CannotOpen: policy or data cannot be opened, or they disagree; or a line of a CSV file cannot be read, which
    is named without its values. Raises EngineError.
    """
    with contextlib.ExitStack() as opened:

        def opening(prepared: bool) -> tuple[Policy, Engine]:
            found, engine = open_data(
                source, policy, frames, threads, memory_limit, progress, prepared=prepared, optimizers=optimizers,
                drafted=True,
            )  # fmt: skip
            opened.callback(engine.close)
            return found, engine

        completed, engine = opening(False)
        found = verify(completed, engine)
        return replace(found, checks=(*found.checks, *_copies(completed, lambda: opening(True))))


def _copies(policy: Policy, opening: Callable[[], tuple[Policy, Engine]]) -> Iterator[Checked]:
    """What the prepared copies leave out, as it was counted when they were made; and whether they are as they were.

    opening: opens the data with its copies.
    """
    if not prepared_tables(policy):
        return
    with copies_of(policy) as store:
        text, changed = store.manifest(), store.changed()
    known = None if text is None else Manifest.read(text)
    if known is None:
        return
    read: tuple[Policy, Engine] | None = None
    if not changed:
        try:
            read = opening()
        except CannotOpen as problem:
            changed = "" if problem.diagnostics[0].code == "DP008" else "it cannot be opened"  # DP008: it is not read
    for name, copy in known.tables.items():
        place = policy.place("tables", name, "prepared")
        if place is None:
            continue
        line, column = place[0].position(place[1].start)
        left_out = Checked(
            "prepared", f"tables.{name}.prepared", "info", "its copy has as many rows of a unit as the limit allows",
            policy.tables[name].unit, "rows that its copy leaves out", copy.rows - copy.kept, copy.rows,
            file=place[0].name, line=line, column=column,
        )  # fmt: skip
        yield left_out
        if not changed and (read is None or read[0].tables[name].copied is None):
            continue
        most = _most(policy, name, copy, read)
        yield replace(
            left_out, status="ok" if most == copy.most else "broken", claim="its copy is as it was made",
            measures="rows of one unit in its copy", measured=most, of=None, comparison="exactly", promised=copy.most,
            when_false="noise is for other rows than those that are read",
            repair=None if most == copy.most else f"dpsql prepare {policy.file}",
        )  # fmt: skip


def _most(policy: Policy, name: str, copy: TableCopy, read: tuple[Policy, Engine] | None) -> int | None:
    """The most rows of one unit in a copy; None: it cannot be read, or has other rows or units than were counted."""
    with contextlib.suppress(EngineError):
        if read is not None:
            owner = owner_column(policy.tables[name], policy.tables).name
            kept, units, most = counted_in(read[1], read[1].table_sql(name), owner)
            return most if (kept, units) == (copy.kept, copy.units) else None
    return None


def verify(policy: Policy, engine: Engine) -> Verification:
    """The same on an open engine, all in one snapshot. policy: completed with the data's types."""
    return engine.in_snapshot(lambda: Verification(policy.name, policy.hash, tuple(_run(policy, engine))))


def _run(policy: Policy, engine: Engine) -> Iterator[Checked]:
    listed: dict[tuple[str, str], Promise] = {(p.kind, p.where): p for p in promises(policy)}
    for check in checks(policy):
        promise = listed.get((check.kind, dotted(check.loc)))
        measured, of = _counted(policy, check, engine)
        if check.doubted is not None and not check.doubted(measured or 0, of or 0):
            continue
        status = _status(check, measured)
        place = policy.place(*check.loc)
        line, column = (None, None) if place is None else place[0].position(place[1].start)
        yield Checked(
            check.kind,
            dotted(check.loc),
            status,
            check.claim if promise is None else promise.claim,
            policy.tables[check.table].unit,
            check.measures or None,
            measured,
            of,
            None if check.promised is None else "exactly" if check.exact else "at_most",
            check.promised,
            check.when_false or None if promise is None else promise.when_false,
            check.repair if status in ("broken", "doubtful") else None,
            None if place is None else place[0].name,
            line,
            column,
        )


def _counted(policy: Policy, check: Check, engine: Engine) -> tuple[int | None, int | None]:
    with contextlib.suppress(EngineError):
        return tuple(None if count is None else count(engine) for count in (check.measure, check.of))  # type: ignore[return-value]
    raise _failed(policy, check)


def _failed(policy: Policy, check: Check) -> Error:
    """What the custodian is told of a failure: where, and no value. Verifying charges nobody."""
    for name in sorted(policy.tables, key=lambda name: name != check.table):
        if (fault := csv_fault(policy, name)) is None:
            continue
        at = f"line {fault.line} of {fault.file}" + (f", column `{fault.column}`" if fault.column else "")
        help = _FOR_TYPES if fault.type is not None else ("correct the options of the source, or that line",)
        what = f"is no {fault.type}" if fault.type is not None else f"does not fit ({fault.what})"
        said = f"the source of table `{name}` cannot be read: {at}, {what}"
        issue = Issue(("tables", name, "source"), said, about=False, help=help, code="DP006")
        return CannotOpen([replace(issue.diagnostic(policy.places), message=said, notes=(NOTHING_CHARGED,))])
    said = f"the engine failed at {dotted(check.loc)}, counting {check.measures}"
    again = ("see whether memory or disk ran out, or a data file is damaged",)
    return EngineError([Diagnostic("DP901", said, help=again, notes=(NOTHING_CHARGED,))])


NOTHING_CHARGED = "nothing was charged: verifying never is"
_FOR_TYPES = (
    "if a word stands for a missing value there, name it in the source:  nullstr = ['', 'NA']",
    "or read the column as texts: VARCHAR in the source, and  type: varchar  under columns",
)


def _status(check: Check, measured: int | None) -> Status:
    if measured is None:
        return "enforced" if check.enforced else "untestable"
    if check.doubted is not None:
        return "doubtful"
    if check.promised is None:
        return "info"
    kept = measured == check.promised if check.exact else measured <= check.promised
    return "ok" if kept else "broken"
