"""A node of the plan, and what is known of its rows, in a line each."""

from __future__ import annotations

from dpsql.core.analysis.facts import Facts
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
)
from dpsql.core.ir.periods import words
from dpsql.core.ir.short_text import expression


def operator(node: Node, number: int | None = None) -> str:
    """A node in a few words. number: of a release, where there are several."""
    match node:
        case Scan(table=table, periods=periods):
            return f"scan {table}" + ("" if periods is None else f" {short(words(periods.days))}")
        case Values(rows=rows):
            return "values" if rows else "no rows"
        case Filter(predicate=predicate):
            return f"filter {short(expression(predicate))}"
        case Project(items=items):
            return "project " + short(", ".join(i.column.name for i in items))
        case Join(kind=kind, equalities=pairs):
            on = " and ".join(f"{expression(e.left)} = {expression(e.right)}" for e in pairs)
            return f"join {kind.value} {short(on)}".rstrip()
        case SetOperation(kind=kind, all=every):
            return kind.value + (" all" if every else "")
        case Unnest(list=listed, most=most):
            return f"unnest the first {most} of {short(expression(listed))}"
        case Truncate(columns=cut, rows=rows, drop=drop):
            what = f"drop keys above {rows} rows" if drop else f"keep {rows} rows"
            return f"{what} of each " + ", ".join(c.name for c in cut)
        case Window(calls=calls):
            return "window " + short(", ".join(f"{w.function}(…)" for w in calls))
        case Aggregate(keys=keys, calls=(), inner=True):
            return "distinct " + ", ".join(k.column.name for k in keys)
        case Aggregate(keys=keys):
            return "aggregate by " + (", ".join(k.column.name for k in keys) or "nothing")
        case Sort(keys=keys):
            return "order by " + short(", ".join(expression(k.expr) + (" desc" if k.descending else "") for k in keys))
        case Limit(count=count, offset=offset):
            return f"limit {'all' if count is None else count}" + (f" offset {offset}" if offset else "")
        case GroupKeys(items=items):
            return "group by " + (", ".join(i.column.name for i in items) or "nothing")
        case BoundContributions(id=id_column):
            return f"bound contributions of each {id_column.name}"
        case Release(outputs=outputs):
            which = "release" if number is None else f"release {number + 1}:"
            return f"{which} {short(', '.join(o.label for o in outputs) or 'keys')}"


def facts_text(facts: Facts) -> str:
    """What is known of the rows at one node: stability, id, rule, in one line."""
    return " · ".join(facts_of(facts))


def facts_of(facts: Facts, note: str | None = None) -> list[str]:
    """The same, each by itself. note: in place of the rule's own."""
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
        parts.append(facts.note if note is None else note)
    return parts


def short(text: str, most: int = 44) -> str:
    """Its first characters, where it is too long for a line."""
    return text if len(text) <= most else text[: most - 1] + "…"
