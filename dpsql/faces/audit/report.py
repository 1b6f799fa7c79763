"""An audit as text or JSON. All rows in it are made up, so that they may be shown."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from dpsql.core.noise.sensitivity import Sensitivity
from dpsql.faces.audit.exact import ComponentChange, NeighbourPair, Violation
from dpsql.faces.audit.neighbouring_databases import Tables
from dpsql.faces.audit.run_audit import Audit, Tested
from dpsql.faces.audit.statistics import FALSE_ALARM
from dpsql.planner.explain.components import component_name
from dpsql.planner.plan import Plan

_MOST_ROWS = 12
_SYMBOL = {"epsilon": "ε", "rho": "ρ", "delta": "δ"}
_CAUSES = {
    "l0": "groups changed",
    "l1": "l1 norm of the change",
    "l2_squared": "squared l2 norm of the change",
    "linf": "largest change of one group",
    "new keys": "keys that one unit alone brings",
    "units of a new key": "units that one unit alone adds to a key",
    "public keys differ": "public keys that only one of the databases has",
}


def as_text(audit: Audit) -> str:
    """The verdict with its evidence."""
    found = audit.plan
    lines = [f"audit of: {' '.join(found.source.text.split())}", f"claimed: {_claimed(audit)}"]
    lines.append(
        f"databases: {audit.looked:,} neighbouring pairs made from policy {audit.policy.name}; no private row was read "
        "and nothing was charged"
    )
    lines += [f"note: {note}" for note in audit.notes]
    lines += ["", *_table(audit)]
    lines += [f"  not reached: no database that was tried changes {name}" for name in audit.unmoved]
    for violation in audit.violations:
        lines += ["", *_violation_lines(found, violation)]
    for unit in audit.mispriced:
        lines += ["", f"REFUTED: {unit} is charged less than what the mechanisms of the plan lose"]
    for tested in audit.tested:
        if tested.refuted:
            lines += ["", *_tested_lines(tested)]
    lines += ["", _verdict(audit)]
    return "\n".join(lines)


def as_json(audit: Audit) -> dict[str, Any]:
    """The same as data; stable."""
    return {
        "query": audit.plan.source.text,
        "refuted": audit.refuted,
        "claimed": {unit: _loss(loss.epsilon, loss.delta, loss.rho) for unit, loss in audit.plan.cost.items()},
        "runs": audit.runs,
        "false_alarm": FALSE_ALARM,
        "pairs": audit.looked,
        "shapes": list(audit.shapes),
        "notes": list(audit.notes),
        "not_reached": list(audit.unmoved),
        "mispriced": list(audit.mispriced),
        "violations": [
            {
                "release": v.release,
                "component": _component(audit.plan, v),
                "what": v.what,
                "seen": v.seen,
                "claimed": float(v.claimed),
                "databases": _pair(v.pair),
            }
            for v in audit.violations
        ],
        "tested": [
            {
                "what": t.what,
                "unit": t.unit,
                "quantity": t.quantity,
                "claimed": t.outcome.claimed,
                "certified": t.outcome.bound,
                "sensitivity_reached": t.reached,
                "moved": _norms(t.moved),
                "stated": _norms(t.stated),
                "often": t.outcome.often,
                "rarely": t.outcome.rarely,
                "event": _event(t),
                "noise_narrower": None if t.noise is None else t.noise.bound,
                "refuted": t.refuted,
                "databases": _pair(t.pair),
            }
            for t in audit.tested
        ],
    }


def _loss(epsilon: Fraction, delta: Fraction, rho: Fraction) -> dict[str, float]:
    return {"epsilon": float(epsilon), "delta": float(delta), "rho": float(rho)}


def _norms(found: ComponentChange | Sensitivity | None) -> dict[str, float] | None:
    if found is None:
        return None
    return {"l0": found.l0, "l1": found.l1, "l2_squared": float(found.l2_squared), "linf": found.linf}


def _claimed(audit: Audit) -> str:
    said = []
    for unit, loss in audit.plan.cost.items():
        how = "replaced" if audit.policy.units[unit].neighbours == "replace_one" else "added or removed"
        in_periods = {u: p for r in audit.plan.releases for u, p in r.measured.in_periods.items()}
        one = "" if unit not in in_periods else " (one {}'s {})".format(*in_periods[unit])
        said.append(f"{loss} of each {unit}{one}, {how}")
    return "; ".join(said) or "nothing: no private data"


def _table(audit: Audit) -> Iterator[str]:
    rows = [("what", "sensitivity", "claimed", "certified", "event", "noise narrower than stated")]
    for t in audit.tested:
        symbol, o = _SYMBOL[t.quantity], t.outcome
        rows.append(
            (
                t.what if len(audit.plan.cost) == 1 else f"{t.what} · {t.unit}",
                "" if t.reached is None else f"{min(t.reached, 9.99):.0%} reached",
                f"{symbol} {o.claimed:.4g}",
                f"{symbol} ≥ {max(0.0, o.bound or 0.0):.4g}",
                f"{o.often:,} : {o.rarely:,} of {o.runs:,}",
                "" if t.noise is None else f"≥ {t.noise.bound or 0.0:.3f} times",
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        yield "  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()


def _violation_lines(plan: Plan, v: Violation) -> Iterator[str]:
    of = "" if v.component is None else f" of {_component(plan, v)}"
    what = f"{_CAUSES.get(v.what, v.what)}{of} (release {v.release})"
    yield f"REFUTED: {what}: {v.seen:,} without noise, claimed at most {float(v.claimed):,.6g}"
    yield from _pair_lines(v.pair)


def _tested_lines(t: Tested) -> Iterator[str]:
    symbol, o = _SYMBOL[t.quantity], t.outcome
    if o.refuted:
        bound = "" if o.bound is None else f": {symbol} ≥ {o.bound:.4g}"
        yield f"REFUTED: {t.what}{bound}, claimed {symbol} {o.claimed:.4g}"
        yield f"  event: {_event(t)}"
        yield f"  it happened {o.often:,} times in {o.runs:,} on one database, {o.rarely:,} times on the other"
    if t.noise is not None and t.noise.refuted:
        n = t.noise
        yield f"REFUTED: the noise of {t.what} is at least {n.bound:.3f} times narrower than stated"
        yield f"  {n.often:,} times in {n.runs:,} on one database, {n.rarely:,} times on the other"
    yield from _pair_lines(t.pair)


def _event(t: Tested) -> str:
    if t.quantity == "delta":
        return "a key is shown that the other database does not have"
    e = t.outcome.event
    at = f" at ε = {e.epsilon:g}" if t.quantity == "rho" else ""
    return f"log-likelihood ratio of the released numbers {'≥' if e.above else '≤'} {e.at:.4g}{at}"


def _pair_lines(pair: NeighbourPair) -> Iterator[str]:
    c = pair.candidate
    beside = f"{c.others} other and {c.beside_them} in the same groups beside it"
    yield f"  the databases differ in one {c.unit}, with {beside}"
    yield from _rows("only in one of them", pair.databases.mine)
    yield from _rows("only in the other", pair.databases.instead)


def _rows(where: str, tables: Tables) -> Iterator[str]:
    for table, rows in tables.items():
        for row in rows[:_MOST_ROWS]:
            yield f"  {where}: {table} ({', '.join(row)})"
        if len(rows) > _MOST_ROWS:
            yield f"  {where}: {table}, {len(rows) - _MOST_ROWS} more rows"


def _pair(pair: NeighbourPair) -> dict[str, Any]:
    def rows(tables: Tables) -> dict[str, list[list[str]]]:
        return {name: [list(row) for row in rows[:_MOST_ROWS]] for name, rows in tables.items()}

    c = pair.candidate
    return {
        "others": c.others,
        "crowd": c.beside_them,
        "only_in_one": rows(pair.databases.mine),
        "only_in_the_other": rows(pair.databases.instead),
    }


def _component(plan: Plan, v: Violation) -> str | None:
    if v.component is None:
        return None
    measured = plan.releases[v.release].measured
    return component_name(measured.node.components[v.component], measured)


def _verdict(audit: Audit) -> str:
    if audit.refuted:
        return f"refuted; a correct plan is with probability below {FALSE_ALARM:g}. Do not use this build on real data."
    if not audit.tested:
        return "not refuted, but nothing was tested: no private number is released, or none could be changed"
    return f"not refuted with {audit.runs:,} runs of each database (probability of a false alarm below {FALSE_ALARM:g})"
