"""What the reader of an answer is told about numbers that were stored before."""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.answers.stored.choosing import ChosenAnswers
from dpsql.core.ir.recipes import Output
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, largest
from dpsql.core.release.noisy import wanted
from dpsql.diagnostics.note import Note, Rank
from dpsql.planner.explain.components import component_name
from dpsql.planner.plan import Plan


def notes_of_given(plan: Plan, choice: ChosenAnswers, cost: Mapping[str, PrivacyLoss]) -> tuple[Note, ...]:
    """`n, mean answered from 2026-11-20`: one note for each day that answers are from.

    Where other numbers of the query are drawn or paid for, the last of these notes says that they cost nothing; else
    the price of the answer says so. cost: what the analyst pays for those that he gets for the first time, in all.
    """
    new = {a.id for a in choice.received}
    old: dict[str, list[str]] = {}
    first: dict[str, list[str]] = {}
    for place, given in enumerate(choice.given):
        for i, name in _names(plan, place, choice):
            answer = given.answers[i]
            days = first if answer.id in new else old
            names = days.setdefault(answer.made_at.date().isoformat(), [])
            if name not in names:
                names.append(name)
    notes = [f"{', '.join(names)} answered from {day}" for day, names in sorted(old.items())]
    drawn = any(wanted(plan.releases[at].measured, given) for at, given in enumerate(choice.given))
    if notes and (first or drawn):
        notes[-1] += ", cost 0" if len(notes) == 1 else ", all of these cost 0"
    price = largest(cost.values()) if cost else NO_LOSS
    for day, names in sorted(first.items()):
        notes.append(f"{', '.join(names)} answered from {day}, new to this account")
    if first:
        notes.append(f"stored answers that are new to this account cost it {price}, and the total budget nothing")
    return tuple(Note(told, Rank.SOURCE) for told in notes)


def _names(plan: Plan, place: int, choice: ChosenAnswers) -> list[tuple[int, str]]:
    """(component, what to call it) of what is given: the columns that are given whole, else the component."""
    measured, given = plan.releases[place].measured, choice.given[place]
    found: list[tuple[int, str]] = []
    shown: set[int] = set()
    for at, output in enumerate(measured.node.outputs):
        parts = [i for i in output.recipe.components if i in given.answers]
        if parts and _whole(plan, place, at, choice):
            found += [(i, _column(plan, place, at, output, choice)) for i in parts]
            shown.update(parts)
    for i in given.answers:
        if i not in shown:
            is_key = i == measured.node.threshold and not any(i in o.recipe.components for o in measured.node.outputs)
            found.append((i, "group keys" if is_key else component_name(measured.node.components[i], measured)))
    return found


def _whole(plan: Plan, place: int, at: int, choice: ChosenAnswers) -> bool:
    """Whether an output of a release needs no new noise."""
    measured = plan.releases[place].measured
    needed = measured.node.outputs[at].recipe.components
    return not set(wanted(measured, choice.given[place])) & set(needed)


def _column(plan: Plan, place: int, at: int, output: Output, choice: ChosenAnswers) -> str:
    """The name of the column that shows an output, or the output's own.

    Of numbers one below the other (UNION ALL, ROLLUP) some may be given, others not: then it is a part of the column.
    """
    for branch in plan.post.branches:
        for number, (column, source) in enumerate(zip(plan.columns, branch, strict=True)):
            if source == (place, at):
                others = [b[number] for b in plan.post.branches]
                whole = all(source is None or _whole(plan, *source, choice) for source in others)
                return column.name if whole else f"part of {column.name}"
    return output.label or output.column.name
