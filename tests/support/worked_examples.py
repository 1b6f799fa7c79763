"""What the examples in the heads of rules and rewrites are written with: a small clinic, and plans as text.

`tests/planner/test_worked_examples.py` runs them.
"""

from __future__ import annotations

import datetime as dt
import doctest
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from itertools import takewhile
from types import ModuleType
from typing import Any, TypeVar

from dpsql.core.analysis.context import Context, Derivation
from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import (
    Comoment,
    Component,
    DistinctCount,
    LargestChoice,
    ModeChoice,
    OnGrid,
    ProductSum,
    UnitCount,
    ValueSum,
)
from dpsql.core.ir.expressions import Call, Expr, transform
from dpsql.core.ir.nodes import (
    Aggregate,
    BoundContributions,
    GroupKeys,
    Node,
    Project,
    Release,
    inputs,
)
from dpsql.core.ir.periods import Closed
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.short_text import constant, expression
from dpsql.core.ir.walk import Tagged, walk
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.prepared import as_prepared
from dpsql.core.policy.tables import Carry, ForeignKey, RowLimit
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.parse import parse
from dpsql.planner.costs.expected_error import total_error
from dpsql.planner.explain.nodes import facts_text, operator
from dpsql.planner.rewrites.releases.choose_components import choose_components
from dpsql.planner.rewrites.rewrite_context import RewriteContext
from dpsql.planner.rewrites.rules import RULES, Rewrite
from dpsql.planner.searches.limits_to_search import Searching
from tests.support.planning import named, policy

CLINIC = policy(
    """
patients:
  unit: {column: patient}
  primary_key: [patient]
  columns:
    patient: {type: bigint, nullable: false}
    age: {type: integer, bounds: [0, 110], nullable: false}
    region: {type: varchar, domain: [north, south], nullable: false}
    town: {type: varchar, nullable: false}
visits:
  unit: {column: patient}
  max_rows_per_unit: 12
  unique: [[visit]]
  columns:
    visit: {type: bigint, nullable: false}
    patient: {type: bigint, nullable: false}
    code: {type: varchar, nullable: false}
    cost: {type: double, bounds: [0, 1000], nullable: false}
drugs:
  unit: {path: [{column: visit, references: visits(visit)}]}
  columns: {visit: {type: bigint, nullable: false}, dose: {type: integer, bounds: [0, 9], nullable: false}}
icd10:
  public: true
  unique: [[code]]
  columns: {code: {type: varchar, nullable: false}, chapter: {type: varchar, nullable: false}}
calls:
  unit: {rows: 2}
  max_frequency: [{columns: [phone], rows: 5, enforce: assume}]
  columns:
    phone: {type: bigint, nullable: false}
    minutes: {type: integer, bounds: [0, 60], nullable: false}
    tags: {type: "varchar[]", max_length: 3}
phonebook:
  public: true
  unique: [[phone]]
  columns: {phone: {type: bigint, nullable: false}, city: {type: varchar, nullable: false}}
alarms:
  unit: {rows: 1}
  max_frequency: [{columns: [phone], rows: 3, enforce: truncate}]
  columns: {phone: {type: bigint, nullable: false}}
trips:
  unit: {rows: 1}
  grows: {by: day, every: day, from: 2026-01-01}
  columns: {day: {type: date, nullable: false}, minutes: {type: integer, bounds: [0, 60], nullable: false}}
sensors:
  unit: {rows: 1, neighbours: replace_one}
  size: {exact: 1000}
  columns:
    reading: {type: integer, bounds: [0, 99], nullable: false}
    load: {type: integer, bounds: [0, 9], nullable: false}
""",
    "units: {patient: {table: patients, key: patient}}\n",
)
"""patients and visits are protected by patient, drugs through their visit; of calls two rows are, of alarms one."""
_OF_DAYS = """
{}:
  unit: {{column: rider, per: period}}
  grows: {{by: day, every: day, from: 2026-01-01}}
  columns: {{rider: {{type: bigint, nullable: false}}, day: {{type: date, nullable: false}}}}"""
RIDERS = policy(_OF_DAYS.format("rides") + _OF_DAYS.format("walks"), "")
"""Protected by rider and day."""
_LIMITED = {
    **CLINIC.tables,
    "visits": replace(
        CLINIC.tables["visits"],
        foreign_keys=(ForeignKey(("code",), "icd10", ("code",)),),
        prepared="true",
        carries=(Carry("icd10"),),
    ),
    "drugs": replace(CLINIC.tables["drugs"], max_rows_per_unit=RowLimit(24)),
}
PREPARED = as_prepared(
    replace(CLINIC, tables=_LIMITED), "copy", {name: _LIMITED[name] for name in ("patients", "visits", "drugs")},
    {"visits": ["cost"]},
)  # fmt: skip


# --- what examples call ---------------------------------------------------------------------------------------------


def facts(sql: str, *more: str, rewritten: bool = False) -> None:
    """Print a query's operators with what is derived of each, or why it is refused.

    more: `keys`, `frequency`, `by_id` or `values` as well. rewritten: after the rewrites, up to its release.
    """
    root = _before(None, sql) if rewritten else _bound(sql)
    try:
        found = derive_once(root, _context().analysis)
    except Rejected as refusal:
        return _refused(refusal)
    if rewritten:
        found = next(t for t in found.walk() if isinstance(t.node, Release))
    rows = _drawn(found, lambda tagged: operator(tagged.node))
    width = max(len(text) for text, _ in rows) + 2
    for text, tagged in rows:
        print(f"{text:<{width}} {' · '.join(_known(tagged, root, more))}".rstrip())


def before_after(
    rule: Rewrite, sql: str, *, prepared: bool = False, consistent: bool = False, of_days: bool = False
) -> None:
    """Print the part of a query's plan that a rewrite changes, before and after it, or why it refuses.

    prepared: whether patients, visits and drugs are read from copies. consistent: whether consistent totals are asked.
    of_days: whether the unit is one rider's day.
    """
    of = RIDERS if of_days else PREPARED if prepared else CLINIC
    before = _before(rule, sql, of)
    try:
        after = rule(before, replace(_context(of), consistent=consistent))
    except Rejected as refusal:
        return _refused(refusal)
    _side_by_side(*_differing(before, after))


def release_before_after(change: Callable[[Release, Facts], Node], sql: str) -> None:
    """As `before_after`, of what makes another release of one."""
    ctx = _context()
    release = next(n for n in walk(_before(choose_components, sql)) if isinstance(n, Release))
    _side_by_side(release, change(release, derive_once(release.input, ctx.analysis).fact))


HELPERS: dict[str, Any] = {
    "facts": facts, "before_after": before_after, "release_before_after": release_before_after,
}  # fmt: skip


def examples(module: str) -> list[doctest.DocTest]:
    """The examples of a module's head."""
    found: ModuleType = import_module(module)
    test = doctest.DocTestParser().get_doctest(found.__doc__ or "", {**vars(found), **HELPERS}, module, None, 0)
    return [test] if test.examples else []


def failures(test: doctest.DocTest) -> str:
    """What an example printed that it does not say; empty if it is right."""
    told: list[str] = []
    doctest.DocTestRunner().run(test, out=told.append)
    return "".join(told)


# --- plans as text --------------------------------------------------------------------------------------------------


def _context(of: Policy = CLINIC) -> RewriteContext:
    public = PublicFacts(periods=dict.fromkeys(("trips", "rides", "walks"), Closed(dt.date(2026, 1, 10))))
    analysis = Derivation.begin(Context(of, public), drafting=True)
    return RewriteContext(analysis, error=total_error, searching=Searching(everywhere=False))


def _bound(sql: str, of: Policy = CLINIC) -> Node:
    """The query as it is bound; SELECT * without its projection."""
    root = bind(parse(Source(sql)), of).root
    bare = isinstance(root, Project) and all(item.expr == item.column for item in root.items)
    return root.input if isinstance(root, Project) and (bare or "SELECT * FROM" in sql) else root


def _before(rule: Rewrite | None, sql: str, of: Policy = CLINIC) -> Node:
    """The plan when its turn comes; None: after all rewrites."""
    root, ctx = _bound(sql, of), _context(of)
    for earlier, _ in takewhile(lambda each: each[0] is not rule, RULES):
        root = earlier(root, ctx)
    return root


def _refused(refusal: Rejected) -> None:
    print(f"refused, {refusal.diagnostics[0].code}: {refusal.diagnostics[0].message}")


def _differing(a: Node, b: Node) -> tuple[Node, Node]:
    """The smallest part of two plans outside of which they look the same."""
    while _line(a) == _line(b) and len(_below(a)) == len(_below(b)):
        different = [(x, y) for x, y in zip(_below(a), _below(b), strict=True) if _tree(x) != _tree(y)]
        if len(different) != 1:
            break
        ((a, b),) = different
    return a, b


def _side_by_side(before: Node, after: Node) -> None:
    left, right = _tree(before), _tree(after)
    width = max(map(len, left))
    if width + max(map(len, right)) > 100:  # one above the other, without what is the same below
        while len(left) > 1 and len(right) > 1 and left[-1] == right[-1]:
            del left[-1], right[-1]
        print("\n→ ".join("\n".join(lines) for lines in (left, right)))
        return
    height = max(len(left), len(right))
    left, right = ([*lines, *[""] * (height - len(lines))] for lines in (left, right))
    for at, (x, y) in enumerate(zip(left, right, strict=True)):
        print(f"{x:<{width}}  {'→' if at == 0 else ' '}  {y}".rstrip())


T = TypeVar("T", Node, Tagged[Facts])


def _drawn(top: T, line: Callable[[T], str]) -> list[tuple[str, T]]:
    """A line for each node, parents first; a node that groups by nothing is left out."""
    found = [(line(top), top)]
    below = _below(top)
    for i, child in enumerate(below):
        last = i == len(below) - 1
        (first, node), *others = _drawn(child, line)
        found.append((("└─ " if last else "├─ ") + first, node))
        found += [(("   " if last else "│  ") + text, other) for text, other in others]
    return found


def _below(top: T) -> tuple[T, ...]:
    children: tuple[T, ...] = top.inputs if isinstance(top, Tagged) else inputs(top)
    nodes = (child.node if isinstance(child, Tagged) else child for child in children)
    return tuple(
        _below(child)[0] if isinstance(node, GroupKeys) and not node.items else child
        for child, node in zip(children, nodes, strict=True)
    )


def _tree(node: Node) -> list[str]:
    return [text for text, _ in _drawn(node, _line)]


def _known(tagged: Tagged[Facts], root: Node, more: tuple[str, ...]) -> list[str]:
    """What EXPLAIN says of a node, without its id and its rule, and what is asked for beside it."""
    hidden = ("id ", "rule ", "unit: patient", "unit: 1 ", "unit: 2 ")
    found = [part for part in facts_text(tagged.fact).split(" · ") if part and not part.startswith(hidden)]

    def names(columns: frozenset[int]) -> str:
        return ", ".join(sorted(named(columns, root)))

    fact = tagged.fact
    if "keys" in more:
        least = [key for key in fact.keys if not any(other < key for other in fact.keys)]
        found += sorted(f"key ({names(key)})" if key else "one row" for key in least)
    if "frequency" in more and fact.frequency:
        limits = sorted(f"{cap} of each {names(columns)}" for columns, cap in fact.frequency.items())
        found.append("at most " + ", ".join(limits))
    if "by_id" in more and fact.by_id:
        found.append(f"by id: {names(fact.by_id)}")
    if "values" in more:
        found += sorted(f"{names(frozenset({u}))}: {c.values} values" for u, c in fact.columns.items() if c.values)
    return found


def _line(node: Node) -> str:
    """A node as EXPLAIN shows it, and what rewrites change that EXPLAIN shows elsewhere."""
    match node:
        case Aggregate(keys=keys, calls=calls) if calls:
            by = f" by {', '.join(k.column.name for k in keys)}" if keys else ""
            called = ", ".join(
                _called(c.function, "*" if c.arg is None else _written(c.arg), c.filter, c.distinct) for c in calls
            )
            return f"{'keep private' if node.inner else 'aggregate'} {called}{by}"
        case GroupKeys(sources=sources) if sources:
            lists = " × ".join("(" + ", ".join(" ".join(map(constant, k)) for k in s.keys) + ")" for s in sources)
            return f"{operator(node)} ∈ {lists}"
        case BoundContributions(rows=rows, per_group=per_group, groups=groups):
            several = "" if groups == 1 else f" in each of {groups} groups"
            limit = f"{rows} rows" if rows is not None else f"{per_group} rows{several}"
            return f"{operator(node)}: {limit}"
        case Release(components=components, threshold=threshold):
            shown = "" if threshold is None else f", where {_component(components[threshold])} is large enough"
            numbers = (" | ".join("+".join(str(i + 1) for i in own) for own in each.slices) for each in node.slices)
            cut = "".join(f", in slices {each}" for each in numbers)
            return f"release {', '.join(map(_component, components))}{shown}{cut}"
        case _:
            return operator(node)


def _component(c: Component) -> str:
    if isinstance(c, ModeChoice):
        among = "" if c.choices is None else f" of {', '.join(repr(value) for (value,) in c.choices.keys)}"
        return f"MODE({_written(c.arg)}){among}"
    if isinstance(c, LargestChoice):
        return f"{_written(c.arg)} of the most ids, pick {c.pick.place + 1} of {c.pick.of}"
    if isinstance(c, UnitCount):
        return "number of units"
    text = "*" if c.arg is None else _written(c.arg)
    if c.paired:
        text = f"({text} - middle)²" if isinstance(c, ProductSum) else f"{text} - middle"
        if isinstance(c, ProductSum) and c.times is not None:
            text = f"({_written(c.arg)} - middle) · ({_written(c.times.arg)} - middle)"
    if isinstance(c, Comoment):
        return f"{c.rows}² · COVAR_POP({', '.join(map(expression, c.arguments))})"
    text = _called(
        "sum" if isinstance(c, ValueSum | ProductSum) else "count", text, c.filter, isinstance(c, DistinctCount)
    )
    if isinstance(c, OnGrid) and (c.lo, c.hi) != (0, 1):
        text += f" of integers {c.lo} … {c.hi}, each worth {c.worth}"
    if isinstance(c, OnGrid) and c.units is not None:
        text += f", read from {c.units.name!r}"
    return text if c.weight == 1 else f"{text}, weights in {c.weight}ths"


def _called(function: str, inner: str, where: Expr | None, distinct: bool) -> str:
    text = f"{function.upper()}({'DISTINCT ' if distinct else ''}{inner})"
    return text if where is None else f"{text} FILTER ({_written(where)})"


def _written(expr: Expr) -> str:
    """With the clips, which EXPLAIN leaves out."""
    return expression(
        transform(expr, lambda e: replace(e, function="CLIP") if isinstance(e, Call) and e.function == "clip" else e)
    )
