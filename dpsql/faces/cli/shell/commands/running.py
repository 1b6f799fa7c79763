"""What runs at a price in the shell: whether it may, what a stop costs, and where a refusal points to."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction
from typing import Final

from dpsql.answers.results.answer import Release
from dpsql.api.session_statements import in_full
from dpsql.core.privacy_loss import PrivacyLoss, show_left, show_spent
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import Error
from dpsql.faces.cli import exits
from dpsql.faces.cli.shell.commands import accounts
from dpsql.faces.cli.shell.input.items import InputPlace
from dpsql.faces.cli.shell.state import Shell
from dpsql.planner.plan import Plan

_HELP: Final = {
    "DP401": "in this shell:  \\epsilon 0.2",
    "DP013": "in this shell:  \\set name value,  and  :name,  :'name'  or  :\"name\"  in the query",
}
_TABLES: Final = re.compile(r"\s*(SHOW|DESCRIBE|DESC|SUMMARIZE)\b", re.IGNORECASE)


def left_for(shell: Shell, plan: Plan) -> PrivacyLoss | None:
    """The least that is left of any unit that a plan charges; None if nothing is limited. Raises CannotOpen."""
    policy, account = shell.connection.policy, shell.connection.analyst
    caps = policy.caps_for(None if account == "*" else account)
    budget = shell.connection.budget if shell.connection.has_ledger else {}
    found: list[PrivacyLoss] = []
    for unit, loss in plan.cost.items():
        if loss == PrivacyLoss():
            continue
        if unit in budget:
            found += [b for b in (budget[unit].remaining, budget[unit].total_remaining) if b is not None]
        else:
            found += [c for c in (caps.analyst.get(unit), caps.total.get(unit)) if c is not None]
    if not found:
        return None
    return PrivacyLoss(min(b.epsilon for b in found), min(b.delta for b in found), min(b.rho for b in found))


def left_words(price: PrivacyLoss, left: PrivacyLoss) -> str:
    """`ε 2.35`, in ρ where the price is; with δ where that is what the price takes most of. Never below what fits."""
    parts = [("ρ", price.rho, left.rho) if price.rho else ("ε", price.epsilon, left.epsilon)]
    if price.delta and left.delta and price.delta / left.delta >= accounts.share(price, left):
        parts.append(("δ", price.delta, left.delta))
    return " ".join(f"{sign} {_left(asked, rest, plain=sign != 'δ')}" for sign, asked, rest in parts)


def _left(asked: Fraction, rest: Fraction, *, plain: bool) -> str:
    for text in (accounts.short(rest) if plain else show_left(rest), show_left(rest, plain=plain)):
        if not rest >= asked > Fraction(text):
            return text
    return show_spent(asked, plain=plain)


def percent(share: Fraction) -> str:
    """A share in percent, rounded."""
    return f"{float(share) * 100:.0f} %"


def run(shell: Shell, plan: Plan) -> Release:
    """Run a plan. Raises dpsql.Error, Cancelled."""
    entries: list[str] = []
    try:
        return shell.connection.run(plan, fresh=shell.fresh, charging=entries.append)
    except KeyboardInterrupt:
        raise Cancelled(_cost_of(shell, entries)) from None


class Cancelled(KeyboardInterrupt):
    """A query that was stopped. Its text says what that cost."""


def _cost_of(shell: Shell, entries: Collection[str]) -> str:
    """What is said of a run that was stopped. entries: ids of what it may have charged."""
    try:
        charged = accounts.charged(shell, entries)
    except Error:
        return exits.interrupted()
    if charged == PrivacyLoss():
        return "cancelled; nothing was charged"
    return f"cancelled; {charged} was charged before the engine started, and is not given back"


def agreed(shell: Shell, plan: Plan, doubtful: bool) -> bool:
    """Whether a query may run: nobody has to be asked, or he agreed. doubtful: something was said against it."""
    limit = shell.looks.confirm
    if shell.confirm is None or shell.yes or limit is None:
        return True
    price = shell.connection.charge(plan, fresh=shell.fresh).loss
    left = left_for(shell, plan)
    if price == PrivacyLoss() or (left is not None and not price.within(left)):
        return True  # free, or about to be refused
    if left is None:
        return not doubtful or shell.confirm(f"This costs {price}. Run it all the same?")
    part = accounts.share(price, left)
    if part <= limit and not doubtful:
        return True
    return shell.confirm(f"This costs {price}, {percent(part)} of what is left ({left_words(price, left)}). Run it?")


def located(error: Error, sql: str, place: InputPlace) -> Error:
    """The error with its findings at the place of the input that they are about, and with what helps in the shell."""
    error.diagnostics = tuple(_located(_helped(d, sql), sql, place) for d in error.diagnostics)
    return error


def at(sql: str, place: InputPlace) -> Source:
    """A statement at its place in the input, behind empty lines and columns; at the prompt, as it was typed."""
    if place.name == "<sql>":
        return Source(sql)
    return Source("\n" * place.line + " " * place.column + sql, place.name)


def _located(d: Diagnostic, sql: str, place: InputPlace) -> Diagnostic:
    d = in_full(d, sql)
    if place.name == "<sql>" or d.source is None or d.source.text != sql:
        return d
    by, source = place.line + place.column, at(sql, place)
    fix = None if d.fix is None else d.fix.moved(by)
    return replace(d, source=source, span=None if d.span is None else d.span.moved(by), fix=fix)


def _helped(d: Diagnostic, sql: str) -> Diagnostic:
    if d.code == "DP012" and _TABLES.match(sql):
        return replace(d, help=("in this shell:  \\d  lists tables,  \\d TABLE  shows one",))
    if d.code in _HELP:
        return replace(d, help=(_HELP[d.code], *d.help))
    return d
