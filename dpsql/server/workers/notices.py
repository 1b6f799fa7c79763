"""What is told beside an answer: its price, what is left, its ± and its notes. Of released numbers and policy alone."""

from __future__ import annotations

from dpsql.core.privacy_loss import NO_LOSS, left_text
from dpsql.results.answer import Release, half_widths
from dpsql.service.session import Session


def told(session: Session, release: Release) -> tuple[str, ...]:
    """One sentence each; no price of what is public."""
    price = () if release.plan.known else (_price(session, release),)
    return (*price, *_errors(release), *release.notes)


def _price(session: Session, release: Release) -> str:
    if release.spent == NO_LOSS:
        return "nothing was charged"
    left = session.budget.remaining
    rest = "" if left is None else f"; left {left_text(left, in_rho=bool(left.rho) and not left.epsilon)}"
    return f"charged {release.spent}{rest}"


def _errors(release: Release) -> list[str]:
    """Column by column, the largest ± of all rows, at 95 %."""
    rows = half_widths(release)
    names = dict.fromkeys(name for row in rows for name in row)
    found = []
    for name in names:
        widths = [w for row in rows if (w := row.get(name)) is not None]
        if widths:
            upto = "" if len(set(widths)) == 1 else "up to "
            found.append(f"{name} ± {upto}{max(widths):.6g} (95 %)")
    return found
