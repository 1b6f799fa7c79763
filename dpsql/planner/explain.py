"""EXPLAIN: the plan with its facts at every node and its noise at every release, as text or stable JSON."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.releases_of_plan import releases_of
from dpsql.core.ir.by_identity import ByIdentity
from dpsql.core.ir.components import Component, Measure, Output, Recipe
from dpsql.core.ir.nodes import (
    Aggregate,
    BoundContributions,
    Filter,
    GroupKeys,
    Join,
    Limit,
    Node,
    Project,
    Release,
    Scan,
    SetOperation,
    Sort,
    Truncate,
    Unnest,
    Values,
    Window,
    key_sources,
    keyed_by,
)
from dpsql.core.ir.render import expression
from dpsql.core.ir.walk import Tagged
from dpsql.core.noise.measurement import MeasuredRelease, Measurement
from dpsql.core.noise.widths import linear_width
from dpsql.core.numbers.cap import Finite
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.policy.units import unit_named
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, largest, show_spent
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.layout import escaped, printable
from dpsql.planner.plan import Charge, Plan
from dpsql.postprocessing.planning.interval_notes import column_json, interval_lines


def as_text(plan: Plan, engine_sql: bool = False, charge: Charge | None = None) -> str:
    """The annotated tree, the measurements of every release, and the price: `charge`, else that of new noise.

    Lines without control characters.
    """
    charge = charge or Charge.of_new(plan)
    numbers = releases_of(plan.tree).index if len(plan.releases) > 1 else ByIdentity[Node, int]()
    lines = [*_goal(plan), *_tree(plan.tree, "", "", numbers, set())]
    for i, release in enumerate(plan.releases):
        lines += ["", *_release_lines(release, i, _limits_told(plan, i)), *_sum_lines(release.measured)]
    intervals = interval_lines(plan.columns, plan.post)
    lines += ["", *intervals] if intervals else []
    lines += ["", f"cost: {_cost(plan, charge)}"]
    lines += [f"note: {note}" for note in (*charge.notes, *plan.notes)]
    lines += [line for warning in plan.warnings for line in _warning_lines(warning)]
    if engine_sql:
        for release in plan.releases:
            for statement in release.statements:
                lines += ["", f"-- {release.label}: {statement.shape}", statement.shown]
        if plan.post.renamed is None and not plan.tree.fact.empty:
            for step in plan.post.steps[:-1]:
                lines += ["", f"-- post-processing: {step.table}", step.sql]
            lines += ["", "-- post-processing", plan.post.sql]
    return printable("\n".join(lines))


def as_json(plan: Plan, charge: Charge | None = None) -> dict[str, Any]:
    """The stable form: `releases[].components[]`, `columns[]`, `nodes[]`, `cost` (docs/reference/explain.md)."""
    charge = charge or Charge.of_new(plan)
    return {
        "releases": [
            {
                "name": r.label,
                "unit": r.measured.unit,
                "keys": [k.name for k in r.measured.node.keys],
                "key_source": _key_source(r.measured.node),
                "groups_of_a_unit": _groups_of_a_unit(r.measured),
                "threshold": None if r.measured.threshold is None else r.measured.threshold.threshold,
                "conversion_delta": float(r.measured.conversion_delta),
                "components": [_component_json(r.measured, i) for i in range(len(r.measured.measurements))],
                "together": together(r.measured),
                "outputs": [_output_json(r.measured, o) for o in r.measured.node.outputs],
                **_covers_json(plan, i),
            }
            for i, r in enumerate(plan.releases)
        ],
        "columns": [column_json(c, plan.post) for c in plan.columns],
        "nodes": [_node_json(t) for t in plan.tree.walk()],
        "cost": {unit: _loss_json(charge.by_unit.get(unit, NO_LOSS)) for unit in plan.cost},
        "asked": {unit: _loss_json(loss) for unit, loss in plan.cost.items()},
        "notes": [*charge.notes, *plan.notes],
        "warnings": [{"code": w.code, "message": w.message, "help": list(w.help)} for w in plan.warnings],
        "plan": plan.hash,
        **_goal_json(plan),
    }


def _covers_json(plan: Plan, number: int) -> dict[str, Any]:
    """Of a release that is no part of the answer: which one's limits it tells about."""
    found = [{"release": f"r{c.of}", "limits": list(c.limits)} for c in plan.coverage if c.place == number]
    return {"covers": found} if found else {}


def dumps(plan: Plan, charge: Charge | None = None) -> str:
    """`as_json` as text."""
    return escaped(json.dumps(as_json(plan, charge), indent=2, ensure_ascii=False))


def _warning_lines(warning: Diagnostic) -> list[str]:
    return [f"warning[{warning.code}]: {warning.message}", *(f"  = help: {text}" for text in warning.help)]


# --- nodes ---------------------------------------------------------------------------------------------------------


def _tree(tagged: Tagged[Facts], first: str, rest: str, numbers: ByIdentity[Node, int], shown: set[int]) -> list[str]:
    """The lines of a node and its inputs.

    numbers: every Release node → its number, if there are several. A release that is `shown` is not shown again.
    """
    name, facts = operator(tagged.node), facts_text(tagged.fact)
    number = numbers.get(tagged.node)
    if number is not None:
        name = name.replace("release", f"release {number}:", 1)
        if number in shown:
            return [f"{first + name:<58} as above, measured once"]
        shown.add(number)
    lines = [f"{first + name:<58} {facts}".rstrip()]
    for i, child in enumerate(tagged.inputs):
        last = i == len(tagged.inputs) - 1
        lines += _tree(child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "), numbers, shown)
    return lines


def operator(node: Node) -> str:
    """A node in a few words."""
    match node:
        case Scan(table=table):
            return f"scan {table}"
        case Values(rows=rows):
            return "values" if rows else "no rows"
        case Filter(predicate=predicate):
            return f"filter {_short(expression(predicate))}"
        case Project(items=items):
            return "project " + _short(", ".join(i.column.name for i in items))
        case Join(kind=kind, equalities=pairs):
            on = " and ".join(f"{expression(e.left)} = {expression(e.right)}" for e in pairs)
            return f"join {kind.value} {_short(on)}".rstrip()
        case SetOperation(kind=kind, all=every):
            return kind.value + (" all" if every else "")
        case Unnest(list=listed, most=most):
            return f"unnest the first {most} of {_short(expression(listed))}"
        case Truncate(columns=cut, rows=rows, drop=drop):
            what = f"drop keys above {rows} rows" if drop else f"keep {rows} rows"
            return f"{what} of each " + ", ".join(c.name for c in cut)
        case Window(calls=calls):
            return "window " + _short(", ".join(f"{w.function}(…)" for w in calls))
        case Aggregate(keys=keys, calls=(), inner=True):
            return "distinct " + ", ".join(k.column.name for k in keys)
        case Aggregate(keys=keys):
            return "aggregate by " + (", ".join(k.column.name for k in keys) or "nothing")
        case Sort(keys=keys):
            return "order by " + _short(", ".join(expression(k.expr) + (" desc" if k.descending else "") for k in keys))
        case Limit(count=count, offset=offset):
            return f"limit {'all' if count is None else count}" + (f" offset {offset}" if offset else "")
        case GroupKeys(items=items):
            return "group by " + (", ".join(i.column.name for i in items) or "nothing")
        case BoundContributions(id=id_column):
            return f"bound contributions of each {id_column.name}"
        case Release(outputs=outputs):
            return "release " + _short(", ".join(o.label for o in outputs) or "keys")


def facts_text(facts: Facts) -> str:
    """What is known of the rows at one node: stability, id, rule, in one line."""
    parts = []
    if facts.public:
        parts.append("public")
    for unit, cap in facts.stability.items() if facts.ids or not facts.hops else ():
        what = "id" if facts.ids else "row"
        parts.append(f"stability {unit}={cap} {what}{'' if str(cap) == '1' else 's'}")
        if facts.replaced_rows is not None and unit in facts.replaced_rows:
            parts[-1] += f" ({facts.replaced_rows[unit]} replaced)"
    if facts.size is not None and not facts.public:
        parts.append(f"always {facts.size:,} rows")
    if facts.ids:
        names = sorted({c.hint.column for uid in facts.ids if (c := facts.columns.get(uid)) and c.hint is not None})
        parts.append(f"id {'='.join(names)}" if names else "id kept")
    if facts.rule and facts.rule not in ("table", "filter", "project", "values"):
        parts.append(f"rule {facts.rule}")
    if facts.note and facts.note != "public":
        parts.append(facts.note)
    return " · ".join(parts)


def _node_json(tagged: Tagged[Facts]) -> dict[str, Any]:
    facts = tagged.fact
    return {
        "operator": operator(tagged.node),
        "stability": {u: _number(c.value) if isinstance(c, Finite) else None for u, c in facts.stability.items()},
        "rule": facts.rule,
        "note": facts.note,
        "unit": " and ".join(facts.units) or None,
        "public": facts.public,
        "bounds": {
            c.hint.column: [_end(c.hint.bounds.lo), _end(c.hint.bounds.hi)]
            for c in facts.columns.values()
            if c.hint is not None and c.hint.bounds is not None and isinstance(tagged.node, Scan)
        },
    }


# --- releases ------------------------------------------------------------------------------------------------------


def _limits_told(plan: Plan, number: int) -> str:
    """What a release that no column shows is for."""
    told = [f"coverage of release {c.of}: {' / '.join(c.limits)}" for c in plan.coverage if c.place == number]
    return "; ".join(told)


def _release_lines(release: PlannedRelease, number: int, told: str) -> list[str]:
    measured = release.measured
    keys = told or f"keys: {_key_source(measured.node)}"
    lines = [f"release {number} · {unit_named(measured.unit)} · {keys}"]
    if measured.threshold is not None:
        lines[0] += (
            f", shown from a noisy count of {measured.threshold.threshold} on (δ {float(measured.threshold.delta):.3g})"
        )
    # All noise of a query is of one family.
    in_rho = any(m.loss.rho for m in measured.measurements)
    rows = [("component", "l1", "l2", "l∞", "mechanism", "scale", "ρ" if in_rho else "ε", "± 95 %")]
    for m in measured.measurements:
        s = m.sensitivity
        rows.append(
            (
                component_name(m.component, measured),
                _amount(s.l1 * m.unit),
                f"{float(s.l2_squared) ** 0.5 * float(m.unit):.6g}",
                _amount(s.linf * m.unit),
                m.mechanism.name,
                f"{float(m.mechanism.scale * m.unit):.6g}",
                f"{float(m.loss.rho if in_rho else m.loss.epsilon):.4g}",
                f"{expected_error(m):.4g}",
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        lines.append("  " + "  ".join(cells).rstrip())
    lines += [f"  {line}" for line in (*_reach_lines(measured), *_together_lines(measured))]
    if measured.conversion_delta:
        lines.append(f"  ρ of the whole query is converted to ε at δ {float(measured.conversion_delta):.3g}")
    return lines


def _groups_of_a_unit(measured: MeasuredRelease) -> int | None:
    """Most of the shown groups that one unit can be in, by their keys; None where these are private, or rows units."""
    bounding, c = measured.node.input, measured.contribution
    cut = isinstance(bounding, BoundContributions) and not bounding.few_groups
    return None if cut or not measured.node.keys or c.released_groups is None else c.groups


def _reach_lines(measured: MeasuredRelease) -> list[str]:
    """Why a unit changes less than its limits would let it: few groups are possible, or few values."""
    groups, shown = _groups_of_a_unit(measured), measured.contribution.released_groups
    found = []
    if groups is not None:
        counted = "one group" if groups == 1 else f"at most {groups:,} groups"
        found.append(
            f"each {measured.unit} is in {counted if groups == shown else f'{counted} of the {shown:,}'}, by their keys"
        )
    for m in measured.measurements:
        if m.component.values is not None:
            found.append(f"{component_name(m.component, measured)}: {m.component.values:,} values are possible")
    return found


def together(measured: MeasuredRelease) -> list[list[int]]:
    """Numbers of the noisy components that cost the largest of their losses together, where they are several."""
    noisy = ([i for i in bundle if measured.measurements[i].sensitivity.l1] for bundle in measured.bundles)
    return [bundle for bundle in noisy if len(bundle) > 1]


def _together_lines(measured: MeasuredRelease) -> list[str]:
    """E.g. `components 1–3, 5: no row counts in two of them, so together they cost ε 0.5`."""
    found = []
    for bundle in together(measured):
        loss = largest(measured.measurements[i].loss for i in bundle)
        parts: list[list[int]] = []
        for i in bundle:
            if parts and parts[-1][-1] == i - 1:
                parts[-1].append(i)
            else:
                parts.append([i])
        places = ", ".join(f"{p[0] + 1}" if len(p) == 1 else f"{p[0] + 1}–{p[-1] + 1}" for p in parts)
        found.append(f"components {places}: no row counts in two of them, so together they cost {loss}")
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
            text += f" {'+' if each / times > 0 else '-'} {'' if worth == 1 else f'{_amount(worth)} · '}{name}"
        if times != 1:
            text = f"{_amount(times)} · {f'({text})' if others else text}"
        error = linear_width(output.recipe, measured.measurements, LEVEL)
        assert error is not None
        found.append(f"  {output.label} = {text}  ± {float(error):.4g}")
    return found


def component_name(c: Component, measured: MeasuredRelease) -> str:
    """What is measured, as a person would write it."""
    arg = "*" if c.arg is None else expression(c.arg)
    name = {
        Measure.COUNT: f"COUNT({arg})",
        Measure.SUM: f"SUM({_centred(arg, c)})",
        Measure.DISTINCT: f"COUNT(DISTINCT {arg})",
        Measure.UNITS: f"COUNT(DISTINCT {measured.unit})",
    }[c.measure]
    name = name if c.filter is None else f"{name} FILTER ({_short(expression(c.filter))})"
    return name if c.per_group is None else f"{name} in [{', '.join(map(_amount, c.per_group))}] per id and group"


def _centred(arg: str, c: Component) -> str:
    """What is added up: the argument less the middle of its bounds, or the square of that less the middle of these."""
    base = f"{arg} - {_amount(c.center * c.grid)}" if c.center else arg
    if not c.squared:
        return base
    square = f"({base})^2" if c.center else f"{base}^2"
    return f"{square} - {_amount(c.shift * c.worth)}" if c.shift else square


def _component_json(measured: MeasuredRelease, index: int) -> dict[str, Any]:
    """One measurement; sensitivities and scale in the unit of the released number."""
    m = measured.measurements[index]
    s, loss = m.sensitivity, m.loss
    return {
        "name": component_name(m.component, measured),
        "aggregate": m.component.measure.value,
        "columns": [o.column.name for o in measured.node.outputs if index in o.recipe.components],
        "values": m.component.values,
        "l0": s.l0,
        "l1": _number(s.l1 * m.unit),
        "l2": float(s.l2_squared) ** 0.5 * float(m.unit),
        "linf": _number(s.linf * m.unit),
        "mechanism": m.mechanism.name,
        "scale": float(m.mechanism.scale * m.unit),
        "grid": _number(m.component.worth),
        "epsilon": float(loss.epsilon),
        "delta": float(measured.threshold.delta) if measured.threshold and measured.node.threshold == index else 0.0,
        "rho": float(loss.rho),
        "expected_error": expected_error(m),
    }


def _output_json(measured: MeasuredRelease, output: Output) -> dict[str, Any]:
    """One column of the release. expected_error: None where it depends on the data."""
    return {
        "column": output.column.name,
        "components": list(output.recipe.components),
        "expected_error": output_error(measured, output.recipe),
    }


def output_error(measured: MeasuredRelease, recipe: Recipe) -> float | None:
    """Half the width of the 95 % interval of a count or a sum, in the released number's unit."""
    width = linear_width(recipe, measured.measurements, LEVEL)
    return None if width is None else float(width)


def expected_error(m: Measurement, level: Fraction = LEVEL) -> float:
    """Half the width of the interval at this confidence, in the released number's unit."""
    return float(m.mechanism.half_width(level) * m.unit)


def _key_source(node: Release) -> str:
    sources = key_sources(node)
    if not node.keys:
        return "none, one row"
    if sources is None:
        return "private, above a threshold" + (" (too many are listed)" if keyed_by(node).within else "")
    return " × ".join(f"{s.origin} ({len(s.keys)})" if len(s.keys) else s.origin for s in sources)


# --- numbers -------------------------------------------------------------------------------------------------------


def _cost(plan: Plan, charge: Charge) -> str:
    asked = Charge.of_new(plan).by_unit
    each = [", ".join(f"{loss} of each {unit}" for unit, loss in c.items()) for c in (asked, charge.by_unit)]
    if charge.by_unit == asked:
        return each[0] or f"nothing: {'no rows are asked for' if plan.unread else 'only public data'}"
    return f"{each[1] or 'nothing'} (asked: {each[0]})"


def _goal(plan: Plan) -> list[str]:
    """What the ε was found for, e.g. `epsilon 0.0731034 for n ± 50 at 95 %`."""
    if not plan.max_error:
        return []
    loss = plan.loss
    price = f"rho {show_spent(loss.rho)}" if loss.rho else f"epsilon {show_spent(loss.epsilon)}"
    errors = ", ".join(f"{column} ± {_amount(error)}" for column, error in plan.max_error.items())
    return [f"{price} for {errors} at {_amount(plan.confidence * 100)} %"]


def _goal_json(plan: Plan) -> dict[str, Any]:
    if not plan.max_error:
        return {}
    return {
        "max_error": {column: _number(error) for column, error in plan.max_error.items()},
        "confidence": float(plan.confidence),
    }


def _loss_json(loss: PrivacyLoss) -> dict[str, float]:
    return {"epsilon": float(loss.epsilon), "delta": float(loss.delta), "rho": float(loss.rho)}


def _number(x: Fraction | int) -> float | int:
    return int(x) if x == int(x) else float(x)


def _end(x: Fraction | None) -> float | int | None:
    return None if x is None else _number(x)


def _amount(x: Fraction | int) -> str:
    return f"{float(x):.6g}"


def _short(text: str, most: int = 44) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
