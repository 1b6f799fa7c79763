"""What a new version of dpsql changes under a policy, each with what to do: for who installs one.

Said where the ledger has answers that another version stored and this one has not run yet, or where `--since` asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from dpsql.answers.stored.analyst_account import answers_beside
from dpsql.answers.stored.older_answers import to_come
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Table
from dpsql.diagnostics.errors import CannotOpen, reject
from dpsql.diagnostics.layout import printable
from dpsql.engines.open import require_usable
from dpsql.service.accounts.ledgers import look_at_ledger, place_of

_OLDEST: Final = "0.1"


def changes(policy: Policy, since: str | None) -> Iterator[str]:
    """Lines, none where nothing is new. since: the version that was used before; None: the ledger tells.

    Raises Rejected DP903: there was no such version.
    """
    if since is not None and since not in _SINCE:
        raise reject("DP903", f"no version {since!r} is known", help=[f"--since {version}" for version in _SINCE])
    older = _older(policy)
    if since is None and not older:
        return
    yield f"since {since or _OLDEST} has changed, for this policy:"
    for told in _SINCE[since or _OLDEST]:
        for what, to_do in told(policy):
            yield printable(f"  {what}")
            yield printable(f"    do: {to_do}")
    for what in older:
        yield printable(f"  {what}")
        yield "    do: leave room for them in the budget: dpsql budget POLICY"
    yield "  more: docs/upgrading.md"


def _older(policy: Policy) -> tuple[str, ...]:
    """What is to be said of stored answers; nothing where the ledger cannot be read, which its own commands tell."""
    found: Ledger | None = None
    try:
        found = look_at_ledger(policy, place_of(policy))
        return () if found is None else tuple(map(str, to_come(answers_beside(found))))
    except CannotOpen:
        return ()
    finally:
        if found is not None:
            found.close()


_Told = Callable[[Policy], Iterator[tuple[str, str]]]


def _limits(policy: Policy) -> Iterator[tuple[str, str]]:
    """Numbers that a limit cuts have had two ends, which did not hold what was cut."""
    limited = [name for name, table in policy.tables.items() if _cuts(table)]
    if limited:
        of = ", ".join(limited[:4]) + (" …" if len(limited) > 4 else "")
        yield (
            f"intervals: where a limit cuts {of}, counts and sums have a lower end alone; shares and averages none",
            "`nobody_has_more: true` where that is so; else limits=search, or intervals(bounded=True)",
        )
        if policy.search == "allow":
            yield (
                "limits: queries may have them found, by a part of their ε",
                "`search: auto`, or nothing; `search: refuse` forbids it",
            )


def _cuts(table: Table) -> bool:
    limit = table.max_rows_per_unit
    kept = limit is not None and (limit.assumed or limit.nobody_has_more)
    grouped = table.max_groups_per_unit is not None or table.max_rows_per_group is not None
    return not kept and (limit is not None or grouped)


def _failures(policy: Policy) -> Iterator[tuple[str, str]]:
    if any(not table.public for table in policy.tables.values()):
        yield (
            f"failures: {policy.failures.most} statements that fail in the engine stop an account's queries (DP416)",
            "look, then: dpsql budget POLICY --failures --clear WHY",
        )


def _engine(policy: Policy) -> Iterator[tuple[str, str]]:
    try:
        require_usable(policy)
    except CannotOpen as refused:
        for found in refused.diagnostics:
            yield f"engine: {found.message}", "; ".join(found.help)


_SINCE: Final[Mapping[str, tuple[_Told, ...]]] = {_OLDEST: (_limits, _failures, _engine)}
"""Version → what has changed since, oldest first: a new version adds to each."""
