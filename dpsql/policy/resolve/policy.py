"""Document → Policy: form, then meaning; every mistake of both is told at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from dpsql.core.policy import serving
from dpsql.core.policy.policy import IN_MEMORY, Privacy
from dpsql.core.policy.positions import Loc, Places
from dpsql.core.policy.serving import Serving
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import CannotOpen
from dpsql.functions.dates.zones import known_zone
from dpsql.policy.file.file_format import PolicyFile, ServeFile
from dpsql.policy.file.form import check_form, digest, normalised
from dpsql.policy.issues import Issue, Issues
from dpsql.policy.policy import Policy
from dpsql.policy.resolve.budgets import resolve_budgets, resolve_defaults, resolve_failures
from dpsql.policy.resolve.policy_names import PolicyScope
from dpsql.policy.resolve.servers import check_ledger, check_prepared_at, check_server
from dpsql.policy.resolve.tables import can_be_prepared, files_have_one_unit, resolve_table
from dpsql.policy.resolve.units import UnitResolver, check_former_units, collect_units


def build(
    data: object, places: Places, *, path: Path | None, directory: Path | None, problems: Sequence[Diagnostic] = ()
) -> Policy:
    """The policy that `data` describes; raises CannotOpen with every mistake in the order of the text.

    problems: findings from reading the text, told together with ours.
    """
    if directory is not None:
        places = replace(places, directory=directory)
    policy, issues = attempt(data, places, path)
    found = [*problems, *(issue.diagnostic(places) for issue in issues)]
    if policy is None or found:
        raise CannotOpen(
            sorted(dict.fromkeys(found), key=lambda d: (-1 if d.span is None else d.span.start, d.message))
        )
    return policy


def attempt(data: object, places: Places, path: Path | None) -> tuple[Policy | None, list[Issue]]:
    """The policy (None if even its form is beyond repair) and all mistakes. The policy is usable only without any."""
    form = check_form(data)
    if form.file is None:
        return None, list(form.issues)
    issues = Issues()
    policy = _resolve(form.file, issues, places, path)
    return policy, [*form.issues, *(issue for issue in issues.found if not form.hides(issue))]


def _resolve(file: PolicyFile, issues: Issues, places: Places, path: Path | None) -> Policy:
    scope = PolicyScope.of(file, issues)
    known = check_server(scope)
    check_prepared_at(scope)
    protections = UnitResolver(scope).resolve()
    units = collect_units(scope, protections)
    check_former_units(file, units, issues)
    tables = {name: resolve_table(scope, name, protections[name]) for name in file.tables}
    files_have_one_unit(scope, tables)
    can_be_prepared(scope, tables)
    if file.ledger == IN_MEMORY and file.ledger_head is not None:
        issues.add(("ledger_head",), f"is given, but the ledger is {IN_MEMORY}, of which nothing is remembered")
    check_ledger(scope)
    if file.search == "refuse":
        _nothing_searched(file, issues)
    document = normalised(file)
    return Policy(
        name=file.name,
        privacy=Privacy(file.privacy.neighbours, file.privacy.accountant),
        tables=tables,
        units=units,
        defaults=resolve_defaults(file, issues),
        budgets=resolve_budgets(file, units, tables, issues),
        hash=digest(_measured(document)),
        version=file.version,
        draft=file.draft or False,
        data_version=file.data_version or "",
        database=file.database if known else None,
        prepared_at=file.prepared_at,
        ledger=file.ledger,
        ledger_head=file.ledger_head,
        noise=file.noise,
        former_units=file.former_units or {},
        search=file.search or "allow",
        zone=_zone(file, issues),
        failures=resolve_failures(file, issues),
        serving=resolve_serving(file.serve, issues),
        path=path,
        document=document,
        places=places,
    )


def _measured(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document without what decides neither what is measured nor what that costs.

    Stored answers stand under the policy's hash: who may receive dearer ones must not make others of them.
    """
    defaults = {key: value for key, value in document["defaults"].items() if key != "allow_dearer"}
    rest = {
        key: value for key, value in document.items() if key not in ("draft", "failures", "search", "serve", "zone")
    }
    return {**rest, "defaults": defaults}


def _zone(file: PolicyFile, issues: Issues) -> str:
    known = known_zone(file.zone or "UTC")
    if known is None:
        issues.add(("zone",), f"{file.zone!r} is no zone that is known here", "zone: Europe/Berlin")
    return known or "UTC"


def _nothing_searched(file: PolicyFile, issues: Issues) -> None:
    """Notes where a policy that refuses every search asks for one itself."""
    for name, table in file.tables.items():
        places: list[Loc] = (
            [("max_rows_per_unit",)] if table.max_rows_per_unit and table.max_rows_per_unit.search else []
        )
        places += [("columns", c, "bounds") for c, spec in table.columns.items() if spec.bounds and spec.bounds.search]
        for place in places:
            issues.add(
                ("tables", name, *place), "is to be searched, but the policy says  search: refuse",
                "declare a number, or leave  search: refuse  out",
            )  # fmt: skip


def resolve_serving(spec: ServeFile | None, issues: Issues) -> Serving:
    """How a server answers under the policy."""
    if spec is None:
        return Serving()
    moments = serving.DEFAULT_MOMENTS if spec.answers_at is None else tuple(spec.answers_at)
    if any(later <= earlier for earlier, later in pairwise(moments)):
        issues.add(("serve", "answers_at"), "must ascend", "answers_at: [0.2s, 1s, 5s, 30s]")
    return Serving(
        moments,
        spec.workers or 1,
        spec.threads,
        spec.memory,
        spec.connections or serving.DEFAULT_CONNECTIONS,
        spec.connections_per_user or serving.DEFAULT_CONNECTIONS_PER_USER,
        spec.queue or serving.DEFAULT_QUEUE,
        spec.rows or serving.DEFAULT_ROWS,
    )
