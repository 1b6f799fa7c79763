"""What a policy leaves open, and users of it will wonder about: told when it is loaded, and no mistake."""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.core.policy.policy import Policy
from dpsql.core.policy.positions import Loc
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.policy.issues import Issue, listed


def unsaid(policy: Policy) -> tuple[Diagnostic, ...]:
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
