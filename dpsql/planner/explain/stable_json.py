"""EXPLAIN as JSON whose keys are stable (docs/reference/explain.md)."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import Component, QuantileChoice
from dpsql.core.ir.nodes import Scan
from dpsql.core.ir.recipes import Output
from dpsql.core.ir.walk import Tagged
from dpsql.core.measures.all_measures import rule
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.numbers.cap import Finite
from dpsql.core.numbers.interval import Exact
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss
from dpsql.diagnostics.layout import escaped
from dpsql.diagnostics.note import in_order, note_records
from dpsql.planner.costs.expected_error import output_error, scale
from dpsql.planner.explain.components import component_name, groups_of_a_unit, key_source, together
from dpsql.planner.explain.multiples import Multiples
from dpsql.planner.explain.nodes import operator
from dpsql.planner.explain.rows import plan_rows
from dpsql.planner.plan import Charge, Plan
from dpsql.planner.postprocessing.planning.interval_notes import column_json


def as_json(plan: Plan, charge: Charge | None = None) -> dict[str, Any]:
    """The stable form: `releases[].components[]`, `columns[]`, `nodes[]`, `cost` (docs/reference/explain.md)."""
    charge = charge or Charge.of_new(plan)
    return {
        "releases": [{**_release_json(plan, i), **_covers_json(plan, i)} for i in range(len(plan.releases))],
        **_keys_json(plan),
        **_searches_json(plan),
        "columns": [column_json(c, plan.post) for c in plan.columns],
        "tree": [{"depth": r.depth, "operator": r.operator, "facts": list(r.facts)} for r in plan_rows(plan)],
        "nodes": [_node_json(t) for t in plan.tree.walk()],
        "cost": {unit: _loss_json(charge.by_unit.get(unit, NO_LOSS)) for unit in plan.cost},
        "asked": {unit: _loss_json(loss) for unit, loss in plan.cost.items()},
        "notes": note_records(in_order((*charge.notes, *plan.notes))),
        "warnings": [{"code": w.code, "message": w.message, "help": list(w.help)} for w in plan.warnings],
        "plan": plan.hash,
        **_goal_json(plan),
    }


def dumps(plan: Plan, charge: Charge | None = None) -> str:
    """`as_json` as text."""
    return escaped(json.dumps(as_json(plan, charge), indent=2, ensure_ascii=False))


def _release_json(plan: Plan, number: int) -> dict[str, Any]:
    """One release of a plan."""
    release = plan.releases[number]
    measured = release.measured
    components = range(len(measured.measurements))
    return {
        "name": release.label,
        "unit": measured.unit,
        "keys": [k.name for k in measured.node.keys],
        "key_source": key_source(measured.node),
        "groups_of_a_unit": groups_of_a_unit(measured),
        "threshold": None if measured.threshold is None else measured.shown_from,
        "conversion_delta": float(measured.conversion_delta),
        "components": [_component_json(measured, i, Multiples.of(plan, number, i)) for i in components],
        "together": together(measured),
        "outputs": [_output_json(plan, number, o) for o in measured.node.outputs],
    }


def _keys_json(plan: Plan) -> dict[str, Any]:
    """The release that shows the keys first."""
    if plan.keys_first is None:
        return {}
    (keys,) = (_release_json(plan.keys_first.plan, i) for i in range(len(plan.keys_first.releases)))
    return {"keys_first": {**keys, "name": "k0"}}


def _searches_json(plan: Plan) -> dict[str, Any]:
    """The releases that find limits first, each with what it finds."""
    if plan.searches is None:
        return {}
    limits, places = plan.searches.every, plan.searches.places
    each = ((plan, at) for plan in plan.searches.plans for at in range(len(plan.releases)))
    return {
        "searches": [
            {
                **_release_json(octaves, at),
                "name": f"s{i}",
                "finds": [
                    {"limit": s.limit.what, "rule": s.limit.rule.value, "at_most": s.limit.at_most}
                    for s in limits
                    if places[s.limit.label] == i
                ],
            }
            for i, (octaves, at) in enumerate(each)
        ]
    }


def _covers_json(plan: Plan, number: int) -> dict[str, Any]:
    """Of a release that is no part of the answer: which one's limits it tells about."""
    found = [{"release": f"r{c.of}", "limits": list(c.limits)} for c in plan.coverage if c.place == number]
    return {"covers": found} if found else {}


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


def _component_json(measured: MeasuredRelease, index: int, multiples: Multiples) -> dict[str, Any]:
    """One measurement; sensitivities and scale in the unit of the released number, or multiples of a limit."""
    m, shown = measured.measurements[index], multiples.json
    s, loss = m.sensitivity, m.loss
    return {
        "name": component_name(m.component, measured, multiples.limit is None),
        "aggregate": m.component.kind,
        "columns": [o.column.name for o in measured.node.outputs if index in o.recipe.components],
        "values": m.component.values,
        "l0": s.l0 if multiples.limit is None else None,
        "l1": shown(_number(s.l1 * m.unit)),
        "l2": shown(float(s.l2_squared) ** 0.5 * float(m.unit)),
        "linf": shown(_number(s.linf * m.unit)),
        "mechanism": m.mechanism.name,
        "scale": shown(scale(m)),
        "grid": _number(m.component.grid if rule(m.component).chosen else m.component.worth),
        "epsilon": float(loss.epsilon),
        "delta": float(measured.threshold.delta) if measured.threshold and measured.node.threshold == index else 0.0,
        "rho": float(loss.rho),
        "expected_error": None if (error := multiples.error(measured, index)) is None else shown(error),
        **_cells_json(m.component, multiples),
    }


def _cells_json(c: Component, multiples: Multiples) -> dict[str, Any]:
    """Of what is chosen. cells: of a quantile the most, where bounds of the values are not found yet."""
    if not rule(c).chosen:
        return {}
    most = c.cells if isinstance(c, QuantileChoice) and multiples.any_bounds else rule(c).options(c)
    return {"error_in": f"{c.counted}s", "cells": most}


def _output_json(plan: Plan, number: int, output: Output) -> dict[str, Any]:
    """One column of the release. expected_error: None where it depends on the data, or on a limit that is not found."""
    measured, parts = plan.releases[number].measured, output.recipe.components
    unknown = any(Multiples.of(plan, number, i).limit is not None for i in parts)
    return {
        "column": output.column.name,
        "components": list(parts),
        "expected_error": None if unknown else output_error(measured, output.recipe),
    }


def _goal_json(plan: Plan) -> dict[str, Any]:
    if not plan.bid.max_error:
        return {}
    return {
        "max_error": {column: _number(error) for column, error in plan.bid.max_error.items()},
        "confidence": float(plan.bid.confidence),
    }


def _loss_json(loss: PrivacyLoss) -> dict[str, float]:
    return {"epsilon": float(loss.epsilon), "delta": float(loss.delta), "rho": float(loss.rho)}


def _end(x: Exact | None) -> float | int | None:
    return None if x is None else _number(x)


def _number(x: Fraction | int) -> float | int:
    return int(x) if x == int(x) else float(x)
