"""`dpsql policy suggest`: limits and bounds for a policy, found by searches whose noise is paid for."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from dpsql.api.connection import Connection, connect
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, exact_epsilon
from dpsql.diagnostics.errors import BudgetExceeded, reject
from dpsql.diagnostics.layout import one_line, printable
from dpsql.faces.cli.commands.queries.query import account_remark
from dpsql.planner.postprocessing.searches.octaves import SearchResult
from dpsql.planner.postprocessing.searches.told import beyond, in_sql
from dpsql.service.accounts.ledgers import open_ledger
from dpsql.service.accounts.remaining_budgets import Budgets, budgets_of, limits_of, require_left, total
from dpsql.service.checks.suggest import LimitSearch, Target, found, searches, targets


def run(
    file: str,
    tables: Sequence[str],
    epsilon: str,
    analyst: str,
    ledger: str | None,
    everything: bool,
    dry_run: bool,
    quiet: bool,
    threads: int | None,
    memory_limit: str | None,
) -> int:
    """Raises dpsql.Error; what was found before an error is charged and kept, and found again for nothing."""
    try:
        amount = exact_epsilon(epsilon)
    except ValueError as error:
        raise reject("DP406", str(error)) from None
    with connect(file, analyst=analyst, ledger=ledger, threads=threads, memory_limit=memory_limit) as connection:
        wanted = targets(connection.policy, tables, everything)
        asked = searches(connection, wanted, amount)
        for line in _before(connection, asked, analyst):
            print(printable(line), file=sys.stderr)
        charges = [search.charge for search in asked]
        try:
            left = _left(connection, looking=dry_run)
            known = connection.ledger if connection.has_ledger else None
            caps = limits_of(connection.policy, known, connection.analyst)
            require_left(f"{len(asked)} searches", charges, caps, left, connection.analyst)
        except BudgetExceeded as refusal:
            if not dry_run:
                raise
            for d in refusal.diagnostics:
                print(printable(f"the run would be refused: {d.message} ({d.code}); {d.help[0]}"), file=sys.stderr)
        if dry_run:
            return 0
        with _bar(sum(s.plan is not None for s in asked), quiet) as step:
            results: dict[Target, SearchResult | str] = {}
            for search in asked:
                if search.plan is None:
                    results[search.target] = search.why
                else:
                    results[search.target] = found(connection, search)
                    step()
        print(printable("\n".join(_yaml(connection.policy.name, results))))
    return 0


def _left(connection: Connection, *, looking: bool) -> Budgets:
    """What the account has left. looking: no ledger is made for it."""
    if connection.has_ledger or not looking:
        return connection.budget
    return budgets_of(connection.policy, open_ledger(connection.policy, None), connection.analyst)


def _before(connection: Connection, asked: Sequence[LimitSearch], analyst: str) -> Iterator[str]:
    """What will be searched, and its exact price."""
    possible = [s for s in asked if s.plan is not None]
    if not possible:
        yield "nothing to search: the policy declares limits and bounds; --all searches those, too"
    for search in possible:
        yield f"search: {search.target.sql}" + ("" if search.charge.by_unit else "  (held, for nothing)")
    charges = ", ".join(f"{loss} of {unit}" for unit, loss in total(s.charge for s in possible).items())
    if possible:
        has_account = connection.policy.has_account(connection.analyst)
        yield f"{f'charged to {connection.analyst}' if has_account else 'price'}: {charges or 'nothing'}"
    if remark := account_remark(connection, analyst):
        yield remark


@contextmanager
def _bar(number: int, quiet: bool) -> Iterator[Callable[[], None]]:
    """How many searches are done, on a terminal."""
    plain = not sys.stderr.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if quiet or plain or not number:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("searches", total=number)
        yield lambda: progress.advance(task)


def _yaml(policy: str, results: Mapping[Target, SearchResult | str]) -> Iterator[str]:
    """Lines for the policy; what has no place there is a comment."""
    paid: dict[str, PrivacyLoss] = {}
    for result in results.values():
        if isinstance(result, SearchResult):
            unit = result.octaves.unit
            paid[unit] = paid.get(unit, NO_LOSS) + result.loss
    price = ", ".join(f"{loss} of {one_line(unit)}" for unit, loss in paid.items())
    found = f", found with {price}: noisy, so that they may be published" if paid else ": nothing was searched"
    yield f"# limits of {one_line(policy)}{found}"
    yield "tables:"
    for table in dict.fromkeys(target.table for target in results):
        own = {t: r for t, r in results.items() if t.table == table}
        rows = [_line("", r) for t, r in own.items() if t.column is None]
        columns = [_line(t.column, r) for t, r in own.items() if t.column is not None]
        bounds = [line for line in columns if not line.startswith("#")]
        yield f"  {_name(table)}:{'' if bounds or any(not line.startswith('#') for line in rows) else ' {}'}"
        yield from (f"    {line}" for line in rows)
        yield from (f"    {line}" for line in columns if line not in bounds)
        yield from (
            f"{'      ' if i else '    '}{line}" for i, line in enumerate(["columns:", *bounds] if bounds else [])
        )


def _line(column: str, result: SearchResult | str) -> str:
    """One limit, or the bounds of a column."""
    what = f"bounds of {one_line(column)}" if column else "max_rows_per_unit"
    if isinstance(result, str):
        return f"# {what}: not searched: {one_line(result)}"
    o = result.octaves
    if result.limit is None:
        least = -(-o.threshold // o.weight)
        return f"# {what}: not found: no octave holds the {least:,} {one_line(o.unit)} units that can be seen"
    around = _beyond(result)
    if not isinstance(result.limit, int):
        low, high = (in_sql(end, o) for end in result.limit)
        return f"{_name(column)}: {{bounds: [{low}, {high}]}}  # {around}"
    return f"{what}: {in_sql(result.limit, o)}  # {around}"


def _beyond(result: SearchResult) -> str:
    unit = one_line(result.octaves.unit)
    assert result.limit is not None
    number = beyond(result.octaves, result.limit)
    if number is None:
        return f"how many {unit} units lie above is not known"
    where = "above" if isinstance(result.limit, int) else "outside"
    return f"about {number[0]:,} ± {number[1]:,} {unit} units lie {where}"


def _name(name: str) -> str:
    """A key of YAML."""
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", name) else json.dumps(name, ensure_ascii=False)
