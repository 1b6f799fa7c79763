"""What a policy leaves open or may not mean, and users of it will wonder about: told by its check, and no mistake."""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.core.policy.policy import Policy
from dpsql.core.policy.positions import Loc
from dpsql.core.policy.units import IdUnit
from dpsql.core.privacy_loss import NO_LOSS
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.policy.issues import Issue, listed
from dpsql.policy.tools.decisions import undecided


def unsaid(policy: Policy) -> tuple[Diagnostic, ...]:
    """What is told of a valid policy: DP016 of a draft, DP007, once, and DP015 for each
    thing that it may not mean."""
    doubts = [i.diagnostic(policy.places, "warning") for i in (*_other_ids(policy), *_without_delta(policy))]
    return (*_nulls(policy), *undecided(policy, "warning"), *doubts)


def home_column(policy: Policy, table: str) -> str | None:
    """The column of a table that is called like the key of its unit's own table, where another one is its unit."""
    protection = policy.tables[table].protection
    if not isinstance(protection, IdUnit):
        return None
    unit = policy.units[protection.name]
    if unit.table in (None, table) or unit.key is None or protection.column.casefold() == unit.key.casefold():
        return None
    column = policy.tables[table].column(unit.key)
    return None if column is None else column.name


def _other_ids(policy: Policy) -> Iterator[Issue]:
    for table in policy.tables.values():
        if (named := home_column(policy, table.name)) is not None and isinstance(table.protection, IdUnit):
            own, unit = table.protection.column, policy.units[table.protection.name]
            yield Issue(
                ("tables", table.name, "unit"),
                f"`{own}` is said to be the {unit.name} whose rows these are, but the table also has `{named}`, which "
                f"is what {unit.table} calls a {unit.name}: if `{own}` is something else, no {unit.name} is protected",
                about=False,
                help=(
                    f"unit: {{column: {named}}}",
                    f"if `{own}` does hold the ids of {unit.table}, leave it; `dpsql policy verify` tests that",
                ),
                code="DP015",
            )


def _without_delta(policy: Policy) -> Iterator[Issue]:
    """Caps without a δ where queries are to have one: what needs a δ is refused for ever."""
    total = policy.budgets.total
    if total is None or policy.privacy.accountant == "pure_dp":
        return
    written = policy.document["budgets"]
    if not total.delta:
        if policy.defaults.delta and "delta" not in written["total"]:
            yield _no_delta(("budgets", "total"), "queries have one by `defaults`")
        return
    for name, own in policy.budgets.analysts.items():
        if own.cap != NO_LOSS and not own.cap.delta and "delta" not in written["analysts"][name]:
            yield _no_delta(("budgets", "analysts", name), "the total has one")


def _no_delta(loc: Loc, why: str) -> Issue:
    return Issue(
        loc,
        f"a δ that is left out is 0, and {why}: every query that needs a δ is refused for ever here, groups without a "
        "public list among them",
        about=False,
        help=("give it a part of the total:  delta: 1e-7", "or say that this is meant:  delta: 0"),
        code="DP015",
    )


def _nulls(policy: Policy) -> tuple[Diagnostic, ...]:
    """DP007, once for a policy: columns whose list of groups does not say whether NULL is one of them."""
    found = list(_open_lists(policy))
    if not found:
        return ()
    names = listed(f"{loc[1]}.{loc[3]}" for loc in found)
    issue = Issue(
        (*found[0], "domain"),
        f"the list of groups of {names} does not say whether NULL is one, so that each answer has a group of NULL",
        about=False,
        help=("if it is never NULL:  nullable: false  (a promise); if it may be:  nullable: true",),
        code="DP007",
    )
    return (issue.diagnostic(policy.places, severity="warning"),)


def _open_lists(policy: Policy) -> Iterator[Loc]:
    """Columns of private tables with a list, and no word about NULL."""
    for table in policy.tables.values():
        for column in () if table.public else table.columns.values():
            if column.domain is None or column.nullable is not None or not column.is_nullable:
                continue
            written = policy.document["tables"][table.name]["columns"][column.name]["domain"]
            if "null" not in written:
                yield ("tables", table.name, "columns", column.name)
