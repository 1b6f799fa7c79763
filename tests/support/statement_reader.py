"""Reads an emitted statement back, as DuckDB's own parser gives it: whose rows it reads, and what bounds its numbers.

It knows nothing of plans and facts. A statement is *local* if every relation below its outermost aggregates is public,
or holds rows of one id each, seen from GROUP BY, PARTITION BY and equalities of id columns. It is *bounded* if each
number that is added up outermost lies between two ends, seen from CASE, BETWEEN, LEAST, GREATEST and whole-number
arithmetic over columns. What it cannot follow it names (`Lacks`), so that a list says which rules it lacks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import duckdb

Tree = Any
End = int | float | None
Span = tuple[End, End]
"""Least and largest value, None: no end. NULL is outside of it: a sum adds nothing for it."""

ANYTHING: Span = (None, None)
SIGNS = {
    "COMPARE_LESSTHAN": "<", "COMPARE_LESSTHANOREQUALTO": "<", "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">", "COMPARE_EQUAL": "=",
}  # fmt: skip
INFINITE = float("inf")


class LacksError(Exception):
    """What the reader has no rule for; the statement may be right."""


class RefusedError(Exception):
    """The statement is not local: rows of several ids meet, or something reads what it may not."""


@dataclass(frozen=True, slots=True)
class Held:
    """A column: whether it holds the id, bare, and between which ends its values lie."""

    ids: bool = False
    span: Span = ANYTHING


@dataclass(frozen=True, slots=True)
class Rows:
    """A relation. private: whether rows of persons are in it; each row of one id, if a column holds it.

    single: whether an id has one row at most. by_rows: rows of a row unit, each of which is one of the table's.
    """

    columns: Mapping[str, Held]
    private: bool = False
    single: bool = False
    by_rows: bool = False

    @property
    def by_id(self) -> bool:
        return any(held.ids for held in self.columns.values())


@dataclass(frozen=True, slots=True)
class Source:
    """A table of the policy. id: the column that holds the unit's id; None for a public table. by_rows: a row unit."""

    columns: tuple[str, ...]
    id: str | None = None
    by_rows: bool = False


def tree_of(sql: str) -> Tree:
    """A statement as DuckDB reads it. Raises LacksError where its serializer cannot."""
    ((text,),) = duckdb.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
    found = json.loads(text)
    if found["error"]:
        raise LacksError("a statement that DuckDB does not serialize")
    return found["statements"][0]["node"]


def nodes(tree: Tree) -> Iterator[dict[str, Any]]:
    """Every dictionary of a tree, parents first."""
    if isinstance(tree, dict):
        yield tree
        for below in tree.values():
            yield from nodes(below)
    elif isinstance(tree, list):
        for below in tree:
            yield from nodes(below)


def conjuncts(tree: Tree) -> list[Tree]:
    """The terms of AND."""
    if tree is None:
        return []
    if tree["type"] == "CONJUNCTION_AND":
        return [term for child in tree["children"] for term in conjuncts(child)]
    return [tree]


@dataclass(slots=True)
class Reader:
    """Reads one statement over the tables of a policy."""

    tables: Mapping[str, Source]
    views: dict[str, Rows] = field(default_factory=dict)

    # --- relations ---------------------------------------------------------------------------------------------------

    def relation(self, tree: Tree) -> Rows:
        """A query below: its rows."""
        saved = dict(self.views)
        for each in tree["cte_map"]["map"]:
            self.views[each["key"]] = self.relation(each["value"]["query_node"])
        try:
            if tree["type"] == "SET_OPERATION_NODE":
                return self.set_operation(tree)
            if tree["type"] != "SELECT_NODE":
                raise LacksError(tree["type"])
            return self.select(tree)
        finally:
            self.views = saved

    def set_operation(self, tree: Tree) -> Rows:
        """Rows of several queries, by position."""
        sides = [self.relation(child) for child in tree.get("children") or [tree["left"], tree["right"]]]
        first = sides[0]
        if any(len(side.columns) != len(first.columns) for side in sides):
            raise LacksError("set operation of other widths")
        private = [side for side in sides if side.private]
        columns = {}
        for name, *held in zip(first.columns, *(side.columns.values() for side in sides), strict=True):
            own = [h.ids for h, side in zip(held, sides, strict=True) if side.private]
            columns[name] = Held(bool(own) and all(own), _hull([h.span for h in held]))
        union = tree["setop_type"] == "UNION"
        if any(side.by_rows for side in private):
            raise LacksError("row units: set operations")
        if private and union and len(private) < len(sides):
            raise RefusedError("public rows beside an id's own")
        kept = union and tree["setop_all"]  # each row stays whose it was
        if private and not kept and not any(held.ids for held in columns.values()):
            raise RefusedError("a set operation that loses the id")
        return Rows(columns, bool(private))

    def source(self, tree: Tree) -> tuple[dict[tuple[str, str], Held], Rows]:
        """FROM: columns by (alias, name), and what rows they are of."""
        match tree["type"]:
            case "EMPTY":
                return {}, Rows({})
            case "BASE_TABLE":
                name, alias = tree["table_name"], tree["alias"] or tree["table_name"]
                rows = self.views[name] if name in self.views else self.table(name)
                return {(alias, column): held for column, held in rows.columns.items()}, rows
            case "SUBQUERY":
                rows = self.relation(tree["subquery"]["node"])
                named = tree["column_name_alias"]
                names = [*named, *list(rows.columns)[len(named) :]]
                held = zip(names, rows.columns.values(), strict=True)
                return {(tree["alias"], column): one for column, one in held}, rows
            case "JOIN":
                return self.join(tree)
            case "EXPRESSION_LIST":
                given = tree.get("column_name_alias") or tree.get("expected_names") or []
                names = [*given, *(f"col{i}" for i in range(len(given), len(tree["values"][0])))]
                return {(tree["alias"], name): Held() for name in names}, Rows({})
        raise LacksError(f"FROM {tree['type']}")

    def table(self, name: str) -> Rows:
        found = self.tables.get(name)
        if found is None:
            raise RefusedError(f"a table that the policy does not have: {name}")
        private = found.by_rows or found.id is not None
        return Rows({column: Held(column == found.id) for column in found.columns}, private, by_rows=found.by_rows)

    def join(self, tree: Tree) -> tuple[dict[tuple[str, str], Held], Rows]:
        """Of two private sides an equality of their ids has to decide."""
        (left, one), (right, other) = self.source(tree["left"]), self.source(tree["right"])
        left_private, right_private = one.private, other.private
        kind, filters = tree["join_type"], tree["join_type"] in ("SEMI", "ANTI")
        if (one.by_rows or other.by_rows) and not (filters and not right_private):
            raise LacksError("row units: how often keys of a join repeat")
        both = {**left, **right}
        pairs = []
        for term in conjuncts(tree["condition"]):
            self.no_subquery(term)
            if term["type"] in ("COMPARE_EQUAL", "COMPARE_NOT_DISTINCT_FROM"):
                pairs.append((term["left"], term["right"]))
        ends = [(_column(a, both), _column(b, both)) for a, b in pairs]
        for name in tree["using_columns"]:
            ends.append((_named(name, left), _named(name, right)))
        met = any(
            a is not None and b is not None and both[a].ids and both[b].ids and (a in left) != (b in left)
            for a, b in ends
        )
        if left_private and right_private and not met:
            raise RefusedError("rows of two ids meet: no equality of ids")
        if right_private and not left_private and kind != "INNER":
            raise RefusedError("public rows that are kept depend on private ones")
        if kind == "FULL" and (left_private or right_private):
            raise RefusedError("a FULL join of private rows")
        if kind == "LEFT":
            right = {name: Held(False, held.span) for name, held in right.items()}
        if filters:
            return left, one
        shared = set(tree["using_columns"])
        merged = {**{key: held for key, held in right.items() if key[1] not in shared}, **left}
        return merged, Rows({}, left_private or right_private)

    def no_subquery(self, tree: Tree) -> None:
        if any(node.get("class") == "SUBQUERY" for node in nodes(tree)):
            raise RefusedError("an expression that reads other rows")

    def select(self, tree: Tree) -> Rows:
        """A SELECT that stays private, or is public."""
        scope, rows = self.source(tree["from_table"])
        private, single = rows.private, rows.single
        for part in (tree["where_clause"], *tree["select_list"], tree["having"], tree["qualify"]):
            self.no_subquery(part)
        items = list(self.items(tree, scope))
        aggregated = any(_aggregate(node) for _, item in items for node in nodes(item))
        groups = [items[int(g["literal"]["text"]) - 1][1] if _place(g) else g for g in tree["group_expressions"]]
        if rows.by_rows and (aggregated or groups or tree["modifiers"]):
            raise LacksError("row units: groups that stay private")
        if private and (aggregated or groups):
            own = [key for g in groups if (key := _column(g, scope)) is not None and scope[key].ids]
            if not own:
                raise RefusedError("rows of several ids are added up below")
            single = len(own) == len(groups)
        if private and any(each["type"] != "DISTINCT_MODIFIER" for each in tree["modifiers"]):
            raise RefusedError("ORDER BY or LIMIT of private rows")
        spans = Spans(scope, conjuncts(tree["where_clause"]))
        columns = {}
        for name, item in items:
            for window in (node for node in nodes(item) if node.get("class") == "WINDOW"):
                if private and not any(_is_id(e, scope) for e in window["partitions"]):
                    raise RefusedError("a window over rows of several ids")
            key = _column(item, scope)
            ids = key is not None and scope[key].ids
            columns[name] = Held(ids, spans.of(item))
        for term in (*conjuncts(tree["qualify"]), *conjuncts(tree["having"])):
            for window in (node for node in nodes(term) if node.get("class") == "WINDOW"):
                if private and not any(_is_id(e, scope) for e in window["partitions"]):
                    raise RefusedError("a window over rows of several ids")
        found = Rows(columns, private, single, rows.by_rows)
        if private and tree["modifiers"] and not found.by_id:
            raise RefusedError("equal rows of several ids become one")
        return found

    def items(self, tree: Tree, scope: Mapping[tuple[str, str], Held]) -> Iterator[tuple[str, Tree]]:
        """(name, expression) of SELECT, stars written out."""
        for number, item in enumerate(tree["select_list"]):
            if item["class"] == "STAR":
                wanted = item["relation_name"]
                for alias, name in scope:
                    if wanted in ("", alias):
                        yield name, {"class": "COLUMN_REF", "type": "COLUMN_REF", "column_names": [alias, name]}
            else:
                yield (
                    item["alias"] or (item["column_names"][-1] if item["class"] == "COLUMN_REF" else f"#{number}"),
                    item,
                )

    # --- the whole ---------------------------------------------------------------------------------------------------

    def released(self, tree: Tree) -> list[str]:
        """What is added up outermost over private rows, and the reason for each number that nothing seems to bound.

        Raises RefusedError, LacksError.
        """
        for each in tree["cte_map"]["map"]:
            self.views[each["key"]] = self.relation(each["value"]["query_node"])
        if tree["type"] != "SELECT_NODE":
            raise LacksError(f"an outermost {tree['type']}")
        inner, items = tree["from_table"], tree["select_list"]
        for part in (tree["where_clause"], *items, tree["having"], tree["qualify"]):
            self.no_subquery(part)
        plain = inner["type"] == "SUBQUERY" and tree["where_clause"] is None and tree["qualify"] is None
        if plain and not any(_aggregate(n) for item in items for n in nodes(item)):
            return self.released(inner["subquery"]["node"])  # names and types of keys alone
        if plain and _adds_sums(inner["subquery"]["node"], items):
            return [*self.released(inner["subquery"]["node"]), "slices"]
        scope, rows = self.source(inner)
        private, single = rows.private, rows.single
        if not private:
            raise LacksError("a statement of public rows")
        if any(node.get("class") == "WINDOW" for item in items for node in nodes(item)):
            raise RefusedError("a window over rows of several ids")
        spans, problems = Spans(scope, conjuncts(tree["where_clause"])), []
        groups = [items[int(g["literal"]["text"]) - 1] if _place(g) else g for g in tree["group_expressions"]]
        for item in items:
            calls = [node for node in nodes(item) if _aggregate(node)]
            if not calls:
                if not any(item is g or _same(item, g) for g in groups) and item["class"] != "CONSTANT":
                    raise RefusedError("a column of a person's row is shown")
                continue
            for call in calls:
                problems += spans.added(call)
        if not single and not rows.by_rows:
            problems.append("several rows of an id")
        return problems


# --- expressions -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Spans:
    """Between which ends expressions lie, over columns of a scope and under conditions that hold of its rows."""

    scope: Mapping[tuple[str, str], Held]
    conditions: Sequence[Tree]
    known: dict[tuple[str, str], Span] = field(init=False)

    def __post_init__(self) -> None:
        self.known = {key: held.span for key, held in self.scope.items()}
        for condition in self.conditions:
            self.known = self.where(condition, True, self.known)

    def added(self, call: Tree) -> list[str]:
        """Why what one row adds to an aggregate may have no end; empty if it has two."""
        name = call["function_name"]
        if name == "count_star" or (name == "count" and not call["distinct"]):
            return []
        if name == "count":
            return ["different values"]
        if name != "sum" or call["distinct"]:
            return [f"{name.upper()}{' DISTINCT' if call['distinct'] else ''}"]
        known = self.known
        for term in conjuncts(call["filter"]):
            known = self.where(term, True, known)
        lo, hi = self.of(call["arguments"][0]["expression"], known)
        return [] if lo is not None and hi is not None else ["no ends of what is added"]

    def where(self, condition: Tree, holds: bool, known: dict[tuple[str, str], Span]) -> dict[tuple[str, str], Span]:
        """What is known besides where a condition is true (`holds`), or is not."""
        kind = condition["type"]
        if kind == "CONJUNCTION_AND" and holds:
            for child in condition["children"]:
                known = self.where(child, True, known)
            return known
        if kind == "COMPARE_BETWEEN" and condition["class"] == "BETWEEN":
            key = _column(condition["input"], self.scope)
            if key is None or not holds:
                return known
            lo, hi = self.of(condition["lower"], known)[0], self.of(condition["upper"], known)[1]
            return {**known, key: _meet(known[key], (lo, hi))}
        sign = SIGNS.get(kind)
        if sign is None or "left" not in condition:
            return known
        key, span = _column(condition["left"], self.scope), self.of(condition["right"], known)
        if key is None:
            key, span = _column(condition["right"], self.scope), self.of(condition["left"], known)
            sign = {"<": ">", ">": "<", "=": "="}[sign]
        if key is None or (sign == "=" and not holds):
            return known
        if not holds:
            sign = {"<": ">", ">": "<"}[sign]
        limit: Span = span if sign == "=" else (None, span[1]) if sign == "<" else (span[0], None)
        return {**known, key: _meet(known[key], limit)}

    def of(self, tree: Tree, known: dict[tuple[str, str], Span] | None = None) -> Span:
        """The ends of an expression."""
        known = self.known if known is None else known
        match tree["class"]:
            case "CONSTANT":
                return _constant(tree)
            case "COLUMN_REF":
                key = _column(tree, self.scope)
                return ANYTHING if key is None else known[key]
            case "CAST":
                return self.of(tree["child"], known)
            case "CASE":
                spans = []
                for check in tree["case_checks"]:
                    spans.append(self.of(check["then_expr"], self.where(check["when_expr"], True, known)))
                    known = self.where(check["when_expr"], False, known)
                return _hull([*spans, self.of(tree["else_expr"], known)])
            case "OPERATOR" if tree["type"] in ("OPERATOR_COALESCE", "OPERATOR_TRY"):
                return _hull([self.of(child, known) for child in tree["children"]])
            case "FUNCTION":
                return self.call(tree, known)
        return ANYTHING

    def call(self, tree: Tree, known: dict[tuple[str, str], Span]) -> Span:
        """Whole-number arithmetic."""
        name, given = tree["function_name"], [self.of(a["expression"], known) for a in tree["arguments"]]
        if name in ("count_star", "count"):
            return 0, None
        if name == "-" and len(given) == 1:
            return _times(given[0], (-1, -1))
        if name == "+" and len(given) == 2:
            return _plus(*given)
        if name == "-" and len(given) == 2:
            return _plus(given[0], _times(given[1], (-1, -1)))
        if name == "*":
            return _times(*given)
        if name == "//" and len(given) == 2:
            return _over(*given)
        if name == "least":
            tops = [hi for _, hi in given if hi is not None]
            lows = [lo for lo, _ in given]
            return (None if None in lows else min(lows)), (min(tops) if tops else None)  # type: ignore[type-var]
        if name == "greatest":
            lows = [lo for lo, _ in given if lo is not None]
            tops = [hi for _, hi in given]
            return (max(lows) if lows else None), (None if None in tops else max(tops))  # type: ignore[type-var]
        if name == "abs":
            lo, hi = given[0]
            return 0, None if lo is None or hi is None else max(abs(lo), abs(hi))
        return ANYTHING


def _constant(tree: Tree) -> Span:
    held = tree.get("literal") or tree.get("value") or {}
    if held.get("kind") == "NULL" or held.get("is_null"):
        return INFINITE, -INFINITE  # no value
    try:
        number = float(held.get("text", held.get("value")))
    except (TypeError, ValueError):
        return ANYTHING
    if number != number or number in (INFINITE, -INFINITE):
        return ANYTHING
    value = int(number) if number == int(number) else number
    return value, value


def _hull(spans: Sequence[Span]) -> Span:
    lows, tops = [lo for lo, _ in spans], [hi for _, hi in spans]
    return (None if None in lows else min(lows)), (None if None in tops else max(tops))  # type: ignore[type-var]


def _meet(a: Span, b: Span) -> Span:
    lows, tops = [x for x in (a[0], b[0]) if x is not None], [x for x in (a[1], b[1]) if x is not None]
    return (max(lows) if lows else None), (min(tops) if tops else None)


def _plus(a: Span, b: Span) -> Span:
    return tuple(None if x is None or y is None else x + y for x, y in zip(a, b, strict=True))  # type: ignore[return-value]


def _times(a: Span, b: Span) -> Span:
    ends = [(x, y) for x, y in product(a, b)]
    if any(x is None or y is None for x, y in ends):
        if a == (0, 0) or b == (0, 0):
            return 0, 0
        one, other = (a, b) if None in a else (b, a)
        if (
            None not in other and other[0] is not None and other[0] >= 0
        ):  # a factor that is not negative keeps the open end
            return tuple(
                None if x is None else x * (other[1] if (x < 0) == (i == 0) else other[0]) for i, x in enumerate(one)
            )  # type: ignore[return-value, operator]
        return ANYTHING
    found = [x * y for x, y in ends]  # type: ignore[operator]
    return min(found), max(found)


def _over(a: Span, b: Span) -> Span:
    """Division that truncates, by at least 1: never further from 0."""
    if b[0] is None or b[0] < 1:
        return ANYTHING
    least = b[0]
    lo, hi = a
    return (None if lo is None else min(0, -(-lo // least) if lo < 0 else lo // least) if lo < 0 else 0), (
        None if hi is None else max(0, hi // least)
    )


def _adds_sums(below: Tree, items: Sequence[Tree]) -> bool:
    """Whether sums of groups, by slices, are added up once more: a row is in one of these groups."""
    if below["type"] != "SELECT_NODE" or not below["group_expressions"]:
        return False
    sums = {item["alias"] for item in below["select_list"] if any(_aggregate(node) for node in nodes(item))}
    calls = [node for item in items for node in nodes(item) if _aggregate(node)]
    added = [
        call["arguments"][0]["expression"] for call in calls if call["function_name"] == "sum" and not call["distinct"]
    ]
    return len(added) == len(calls) and all(e["class"] == "COLUMN_REF" and e["column_names"][-1] in sums for e in added)


def _place(tree: Tree) -> bool:
    return bool(tree["class"] == "CONSTANT")


def _aggregate(node: Tree) -> bool:
    return node.get("class") == "FUNCTION" and node["function_name"] in (
        "sum",
        "count",
        "count_star",
        "min",
        "max",
        "avg",
    )


def _named(name: str, scope: Mapping[tuple[str, str], Held]) -> tuple[str, str] | None:
    return next((key for key in scope if key[1].lower() == name.lower()), None)


def _column(tree: Tree, scope: Mapping[tuple[str, str], Held]) -> tuple[str, str] | None:
    """The column that an expression is, bare; None for anything else."""
    if tree["class"] != "COLUMN_REF":
        return None
    *alias, name = tree["column_names"]
    if alias:
        return next((k for k in scope if k[0].lower() == alias[-1].lower() and k[1].lower() == name.lower()), None)
    return _named(name, scope)


def _is_id(tree: Tree, scope: Mapping[tuple[str, str], Held]) -> bool:
    key = _column(tree, scope)
    return key is not None and scope[key].ids


def _same(a: Tree, b: Tree) -> bool:
    """Whether two expressions are written alike."""
    left_out = ("query_location", "query_location_length", "alias")

    def bare(tree: Tree) -> Tree:
        if isinstance(tree, dict):
            return {key: bare(value) for key, value in tree.items() if key not in left_out}
        return [bare(each) for each in tree] if isinstance(tree, list) else tree

    return bool(bare(a) == bare(b))
