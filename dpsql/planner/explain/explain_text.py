"""EXPLAIN as text: the annotated tree, the measurements of every release, and the price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dpsql.accuracy.widths import linear_width
from dpsql.core.ir.periods import Span, canonical, words
from dpsql.core.ledger.losses import many_periods
from dpsql.core.measures.all_measures import rule
from dpsql.core.measures.largest import is_later_pick
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.policy.units import unit_named
from dpsql.core.privacy_loss import largest, show_spent
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.note import in_order
from dpsql.diagnostics.words import about
from dpsql.planner.costs.expected_error import scale
from dpsql.planner.costs.named_outputs import chosen_columns
from dpsql.planner.explain.components import (
    amount,
    chosen_from,
    component_name,
    groups_of_a_unit,
    key_source,
    together,
)
from dpsql.planner.explain.multiples import Multiples, limits_from, searched_by
from dpsql.planner.explain.rows import ComponentTable, Part, PlanTree, plan_rows
from dpsql.planner.explain.written import written
from dpsql.planner.plan import Charge, Plan
from dpsql.planner.postprocessing.planning.interval_notes import interval_lines


def as_text(plan: Plan, engine_sql: bool = False, charge: Charge | None = None, columns: int | None = None) -> str:
    """The annotated tree, the measurements of every release, and the price: `charge`, else that of new noise.

    Lines without control characters. columns: what they have on a screen, if that is narrow.
    """
    return written(_parts(plan, engine_sql, charge or Charge.of_new(plan)), columns)


def _parts(plan: Plan, engine_sql: bool, charge: Charge) -> list[Part]:
    keys = () if plan.keys_first is None else plan.keys_first.releases
    searches = () if plan.searches is None else plan.searches.asked
    lines: list[Part] = [*_goal(plan), PlanTree(tuple(plan_rows(plan)))]
    for i, release in enumerate(keys):
        lines += ["", *_release_lines(release, i, "shows the keys")]
    for i, release in enumerate(searches):
        lines += ["", *_release_lines(release, len(keys) + i, searched_by(plan, i))]
    consistent = _consistent_lines(plan)
    for i, release in enumerate(plan.releases):
        each = [Multiples.of(plan, i, at) for at in range(len(release.measured.measurements))]
        told = " · ".join(filter(None, (limits_from(plan, i), _limits_told(plan, i))))
        lines += ["", *_release_lines(release, len(keys) + len(searches) + i, told, each)]
        lines += [] if searches else _sum_lines(release.measured)
        lines += consistent.get(i, [])
    intervals = interval_lines(plan.columns, plan.post)
    lines += ["", *intervals] if intervals else []
    lines += ["", f"cost: {_cost(plan, charge)}", *_of_many_periods(plan)]
    lines += [f"note: {note}" for note in in_order((*charge.notes, *plan.notes))]
    lines += [line for warning in plan.warnings for line in _warning_lines(warning)]
    if engine_sql:
        named = [
            *((f"keys {r.label}", r) for r in keys),
            *((f"search {r.label}", r) for r in searches),
            *((r.label, r) for r in plan.releases),
        ]
        for name, release in named:
            for statement in release.statements:
                lines += ["", f"-- {name}: {statement.shape}", statement.shown]
        if plan.post.renamed is None and not plan.tree.fact.empty:
            for step in plan.post.steps[:-1]:
                lines += ["", f"-- post-processing: {step.table}", step.sql]
            lines += ["", "-- post-processing", plan.post.sql]
    return lines


def _consistent_lines(plan: Plan) -> dict[int, list[str]]:
    """Place of a release → how accurate its numbers are once every total is the sum of its parts."""
    if not plan.totals:
        return {}
    from dpsql.planner.postprocessing.intervals.expected_totals import expected_widths  # which loads numpy

    found: dict[int, list[str]] = {}
    for totals in plan.totals:
        for (place, at), width in expected_widths(totals, plan.releases, LEVEL).items():
            output = plan.releases[place].measured.node.outputs[at]
            found.setdefault(place, []).append(f"{output.label} ± {about(width)}")
    return {place: [f"  by least squares: {', '.join(each)}"] for place, each in found.items()}


def _warning_lines(warning: Diagnostic) -> list[str]:
    return [f"warning[{warning.code}]: {warning.message}", *(f"  = help: {text}" for text in warning.help)]


def _limits_told(plan: Plan, number: int) -> str:
    """What a release that no column shows is for; of others the group keys."""
    told = [f"coverage of release {c.of + 1}: {' / '.join(c.limits)}" for c in plan.coverage if c.place == number]
    return "; ".join(told) or f"keys: {key_source(plan.releases[number].measured.node)}"


def _release_lines(release: PlannedRelease, number: int, told: str, each: Sequence[Multiples] = ()) -> list[Part]:
    """A release with its noise. each: how the numbers of each component are shown; as they are where that is empty."""
    measured = release.measured
    head = f"release {number + 1} · {unit_named(measured.unit)} · {told}"
    if measured.threshold is not None and any(multiples.limit is not None for multiples in each):
        head += f", which follows from the limits (δ {float(measured.threshold.delta):.3g})"
    elif measured.threshold is not None:
        head += f", shown from a noisy count of {measured.shown_from} on (δ {float(measured.threshold.delta):.3g})"
    # All noise of a query is of one family; choices beside it may be priced otherwise.
    in_rho = any(m.loss.rho for m in measured.measurements)
    mixed = in_rho and any(m.loss.epsilon for m in measured.measurements)
    rows = [
        ("component", "l1", "l2", "l∞", "mechanism", "scale", "loss" if mixed else "ρ" if in_rho else "ε", "± 95 %")
    ]
    examples: list[str] = []
    each = each or [Multiples()] * len(measured.measurements)
    for place, (m, multiples) in enumerate(zip(measured.measurements, each, strict=True)):
        s, shown, name = m.sensitivity, multiples.text, component_name(m.component, measured, multiples.limit is None)
        rows.append(
            (
                name,
                shown(amount(s.l1 * m.unit)),
                shown(f"{float(s.l2_squared) ** 0.5 * float(m.unit):.6g}"),
                shown(amount(s.linf * m.unit)),
                m.mechanism.name,
                shown(f"{scale(m):.6g}"),
                str(m.loss) if mixed else f"{float(m.loss.rho if in_rho else m.loss.epsilon):.4g}",
                _error(measured, place, multiples),
            )
        )
        examples += multiples.examples(name, measured, place)
    lines: list[Part] = [head, ComponentTable(tuple(rows))]
    lines += [f"  {line}" for line in (*examples, *_reach_lines(measured, each), *_together_lines(measured))]
    if measured.conversion_delta:
        lines.append(f"  ρ of the whole query is converted to ε at δ {float(measured.conversion_delta):.3g}")
    return lines


def _error(measured: MeasuredRelease, place: int, multiples: Multiples) -> str:
    """Half the width of its interval, or rows; nothing of a choice among no rows, which is NULL."""
    error = multiples.error(measured, place)
    if error is None:
        return ""
    shown = multiples.text(about(error))
    own = measured.measurements[place].component
    return f"{'≤ ' * multiples.any_bounds}{shown} {own.counted}s" if rule(own).chosen else shown


def _reach_lines(measured: MeasuredRelease, each: Sequence[Multiples]) -> list[str]:
    """Why a unit changes less than its limits would let it: few groups are possible, or few values."""
    groups, shown = groups_of_a_unit(measured), measured.contribution.released_groups
    found = []
    if groups is not None:
        counted = "one group" if groups == 1 else f"at most {groups:,} groups"
        found.append(
            f"each {measured.unit} is in {counted if groups == shown else f'{counted} of the {shown:,}'}, by their keys"
        )
    for m, multiples in zip(measured.measurements, each, strict=True):
        if rule(m.component).chosen and not is_later_pick(m.component):
            among = chosen_from(m.component, multiples.any_bounds)
            found.append(f"{component_name(m.component, measured)}: {among}")
        if m.component.values is not None:
            found.append(f"{component_name(m.component, measured)}: at most {m.component.values:,} values counted")
    return found


def _together_lines(measured: MeasuredRelease) -> list[str]:
    """E.g. `components 1–3, 5: each row counts in the first that it satisfies, so together they cost ε 0.5`."""
    found = []
    for parallel in together(measured):
        loss = largest(measured.measurements[i].loss for i in parallel)
        parts: list[list[int]] = []
        for i in parallel:
            if parts and parts[-1][-1] == i - 1:
                parts[-1].append(i)
            else:
                parts.append([i])
        places = ", ".join(f"{p[0] + 1}" if len(p) == 1 else f"{p[0] + 1}–{p[-1] + 1}" for p in parts)
        found.append(
            f"components {places}: each row counts in the first that it satisfies, so together they cost {loss}"
        )
    return found


def _sum_lines(measured: MeasuredRelease) -> list[str]:
    """Columns that are no component as it is, e.g. `s = SUM(x - 50) + 50 · COUNT(*)`, `SUM(5) = 5 · COUNT(*)`."""
    found = []
    for output in measured.node.outputs:
        terms = output.recipe.terms(measured.node.components)
        if terms is None:
            continue
        first, *others = [
            (component_name(measured.node.components[i], measured), worth / measured.measurements[i].unit)
            for i, worth in terms
        ]
        times = first[1]
        if times == 1 and not others:
            continue
        text = first[0]
        for name, each in others:
            worth = abs(each / times)
            text += f" {'+' if each / times > 0 else '-'} {'' if worth == 1 else f'{amount(worth)} · '}{name}"
        if times != 1:
            text = f"{amount(times)} · {f'({text})' if others else text}"
        error = linear_width(output.recipe, measured.measurements, LEVEL)
        assert error is not None
        found.append(f"  {output.label} = {text}  ± {about(error)}")
    return found


def _cost(plan: Plan, charge: Charge) -> str:
    asked = Charge.of_new(plan).by_unit
    each = [", ".join(f"{loss} of each {unit}" for unit, loss in c.items()) for c in (asked, charge.by_unit)]
    if charge.by_unit == asked:
        only = f"nothing: {'no rows are asked for' if plan.unread else 'only public data'}"
        return f"{each[0]}{_of_days(plan, charge.days)}" if each[0] else only
    return f"{each[1] or 'nothing'} (asked: {each[0]}{_of_days(plan, {})})"


def _of_days(plan: Plan, charged: Mapping[str, Sequence[Span]]) -> str:
    """Of which days each row loses it, where units have accounts by period. charged: those that are not stored."""
    units = dict.fromkeys(u for r in plan.releases for u in r.measured.growing if u in r.measured.contributions)
    read = {unit: canonical(d for r in plan.releases for d in r.measured.days(unit) or ()) for unit in units}
    found = [charged.get(unit) or days for unit, days in read.items()]
    return "".join(f" of {words(days)}, nothing of other days" for days in found if days)


def _of_many_periods(plan: Plan) -> Iterator[str]:
    """Of units that are an id in one period, what that means for an id."""
    asked = Charge.of_new(plan).by_unit
    in_periods = {u: p for r in plan.releases for u, p in r.measured.in_periods.items() if u in asked}
    for unit, (id_, every) in in_periods.items():
        more = many_periods.words(asked[unit], every)
        yield f"{unit}: one {id_}'s {every}; over d {every}s of one {id_} the loss may be d times this: {more}"


def _goal(plan: Plan) -> list[str]:
    """What the ε was found for, e.g. `epsilon 0.0731034 for n ± 50, middle within 20 rows at 95 %`."""
    if not plan.bid.max_error:
        return []
    loss = plan.loss
    price = f"rho {show_spent(loss.rho)}" if loss.rho else f"epsilon {show_spent(loss.epsilon)}"
    chosen = chosen_columns(plan.tree, plan.columns)
    errors = ", ".join(
        f"{column} within {amount(error)} {chosen[name]}s"
        if (name := column.casefold()) in chosen
        else f"{column} ± {amount(error)}"
        for column, error in plan.bid.max_error.items()
    )
    return [f"{price} for {errors} at {amount(plan.bid.confidence * 100)} %"]
