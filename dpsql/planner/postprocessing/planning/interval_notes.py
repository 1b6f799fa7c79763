"""What a reader is told of the intervals of an answer's columns, before any number is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dpsql.core.ir.expressions import Column
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.note import Note, Rank, Topic
from dpsql.frontend.aggregates.weighted_sum import chose_itself
from dpsql.planner.postprocessing.planning.forms import (
    EXACT,
    NOTHING,
    OF_CUT,
    OF_OTHERS,
    Form,
    IntervalMethod,
    Lost,
    Sources,
    Taken,
)
from dpsql.planner.postprocessing.planning.steps import PostProcessing, Step

_WORDS = {
    IntervalMethod.LINEAR: "by the noise of all that it adds up",
    IntervalMethod.QUOTIENT: "of a quotient, by the noise above and below; none where the denominator may be 0",
    IntervalMethod.ENCLOSED: "by intervals of its parts that hold all at once",
}


def interval_notes(
    columns: Sequence[Column], post: PostProcessing, releases: Sequence[PlannedRelease], search: str
) -> Iterator[Note]:
    """Columns without an interval, and those whose rows noisy numbers chose; by the query and the policy alone.

    search: how a search is asked for that tells what limits cut, and its price; empty where there can be none.
    """
    if not post.steps:
        return
    forms = [(c.name, post.steps[-1].forms[c.uid]) for c in columns]
    without: dict[str, list[str]] = {}
    for name, form in forms:
        if form.gap:
            without.setdefault(form.gap, []).append(name)
    for why, names in without.items():
        told = f"{_listed(names)} {'have' if len(set(names)) > 1 else 'has'} no interval: {why}"
        yield Note(told, Rank.BIAS, Topic.GAP) if why in (OF_CUT, OF_OTHERS) else Note(told)
    for at, lost, end in (("at least", Lost(high=True), "lower"), ("at most", Lost(low=True), "upper")):
        if cut := _listed([name for name, form in forms if form.lost == lost and form.gap is None]):
            told = f"{cut}: {at} the {end} end; how much limits cut is unknown"
            yield Note(f"{told}: {search} tells" if search else told, Rank.BIAS, Topic.ENDS)
    selected = _selected(post.steps, len(post.steps) - 1)
    if told := _of(forms, selected):
        wider = f"the fewer are left, the wider is the ± of {told}, so that it holds as often"
        yield Note(f"noisy numbers chose the rows: {wider}")
    keys = ((i, r.measured.node.threshold) for i, r in enumerate(releases))
    thresholds = frozenset((i, place) for i, place in keys if place is not None)
    computed = [(name, form) for name, form in forms if not _chose_itself(form, post, releases)]
    if told := _of(computed, thresholds):
        yield Note(f"the ± of {told} leaves out that this very number chose which groups are shown", Rank.BIAS)


def _chose_itself(form: Form, post: PostProcessing, releases: Sequence[PlannedRelease]) -> bool:
    """Whether it is a number, unchanged, whose interval knows that it chose its group."""
    if (shown := _shown(form, post)) is None:
        return False
    node = releases[shown[0]].measured.node
    return chose_itself(node.outputs[shown[1]].recipe.terms(node.components) or (), node.threshold)


def column_json(column: Column, post: PostProcessing) -> dict[str, Any]:
    """A column of the answer.

    interval: what its intervals are made by: `released`, `linear`, `quotient`, `enclosed` or `none`; None without
    noise. because: why there are none.
    """
    form = post.steps[-1].forms[column.uid] if post.steps else EXACT
    made_by = "released" if _is_shown(form, post) else form.kind.value
    made_by = made_by if form.gap is None else "none"
    return {
        "name": column.name,
        "type": str(column.type),
        "interval": None if form.exact else made_by,
        "because": form.gap or None,
    }


def interval_lines(columns: Sequence[Column], post: PostProcessing) -> list[str]:
    """A line of EXPLAIN for each column that is computed from released numbers and has intervals."""
    found = []
    for column in columns if post.steps else ():
        form = post.steps[-1].forms[column.uid]
        if form.kind in _WORDS and form.gap is None and not _is_shown(form, post):
            found.append(f"± of {column.name}: {_WORDS[form.kind]}")
    return list(dict.fromkeys(found))


def _is_shown(form: Form, post: PostProcessing) -> bool:
    """Whether it is an output of a release, unchanged."""
    return _shown(form, post) is not None


def _shown(form: Form, post: PostProcessing) -> tuple[int, int] | None:
    """The output of a release, unchanged, that it is: (release, output)."""
    if not post.steps:
        return None
    step = post.steps[-1]
    while isinstance(form.maker, Taken):
        source = step.inputs[form.maker.input]
        if source.step is None:
            assert source.release is not None
            return source.release, source.outputs[form.maker.uid]
        step = post.steps[source.step]
        form = step.forms[form.maker.uid]
    return None


def _selected(steps: Sequence[Step], at: int) -> Sources:
    """The noisy numbers that chose among rows that single rows of a step show."""
    found = NOTHING.union(*(s.sources for s in steps[at].selections))
    below = (i.step for i in steps[at].inputs if i.step is not None and i.row is not None)
    return found.union(*(_selected(steps, step) for step in below))


def _of(forms: Sequence[tuple[str, Form]], sources: Sources) -> str:
    """Names of the columns that have intervals of these noisy numbers."""
    return _listed([name for name, form in forms if form.gap is None and form.sources & sources])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names))
