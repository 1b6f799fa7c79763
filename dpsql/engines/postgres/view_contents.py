"""What views rest on beside the tables that they name: whatever might read other rows, or decide otherwise, is refused.

*Claim.* The rows of a view that is not refused are a function of the tables that the catalogue lists below it. *Why.*
What somebody has made (a function, operator, cast, domain, type, collation, sequence, text search …) may read any
table; the server notes each on which a view's rule depends, and all are refused but tables, views, constraints and
enumerations. What came with the server is not noted: it is read in the rule itself. There, catalogues and statistics
are refused, and functions but the immutable ones, of which none reads a table, and some of time, format and text.
Values become text by functions of their type, which nothing notes: no type of anybody's is converted, and nothing
becomes JSON, which asks casts of any type. *When it would be false.* If a superuser has declared a function immutable
that is not, or given a type its operator class. *Tested by* tests/engines_elsewhere/postgres/test_view_contents.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dpsql.engines.postgres.catalogue_reader import CatalogueReader
from dpsql.engines.postgres.settings import FIRST_OF_USERS

_NOTED: Final = """
SELECT r.ev_class, i.type, i.identity
FROM pg_rewrite AS r JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
LEFT JOIN pg_class AS c ON d.refclassid = 'pg_class'::regclass AND c.oid = d.refobjid
LEFT JOIN pg_type AS t ON d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid
LEFT JOIN pg_type AS e ON e.oid = t.typelem
CROSS JOIN LATERAL pg_identify_object(d.refclassid, d.refobjid, 0) AS i
WHERE r.ev_class = ANY (CAST(%s AS oid[])) AND d.refobjid >= %s
  AND NOT coalesce(c.relkind IN ('r', 'p', 'v', 'm', 'f') OR t.typtype = 'e' OR (e.typtype = 'e' AND t.typlen = -1),
    d.refclassid = 'pg_constraint'::regclass)
ORDER BY r.ev_class, d.refclassid, i.identity"""
"""The last condition: what may be used. Another class of objects than those of the four lines is none of them."""
_RULES: Final = """
SELECT r.ev_class, CAST(r.ev_action AS text) FROM pg_rewrite AS r
WHERE r.ev_class = ANY (CAST(%s AS oid[])) ORDER BY r.ev_class"""
_FUNCTIONS: Final = """
SELECT p.oid, CAST(p.proname AS text), f.provolatile = 'i', CAST(f.proname AS text)
FROM pg_proc AS p LEFT JOIN pg_aggregate AS a ON a.aggfnoid = p.oid
JOIN pg_proc AS f ON f.oid IN (p.oid, a.aggtransfn, a.aggfinalfn)
WHERE p.oid = ANY (CAST(%s AS oid[])) OR p.oid IN
  (SELECT o.oprcode FROM pg_operator AS o WHERE o.oid = ANY (CAST(%s AS oid[])))
ORDER BY p.oid, f.oid"""
"""With those that an aggregate is made of."""
_MADE: Final = """
WITH RECURSIVE found(number) AS (
  SELECT unnest(CAST(%s AS oid[]))
  UNION SELECT x.number FROM found AS f JOIN pg_type AS t ON t.oid = f.number
  CROSS JOIN LATERAL (VALUES (t.typbasetype), (t.typelem)) AS x(number) WHERE x.number <> 0)
SELECT min(format_type(t.oid, NULL)) FROM pg_type AS t
WHERE t.oid IN (SELECT f.number FROM found AS f) AND t.oid >= %s AND t.typtype NOT IN ('e', 'd')
  AND NOT (t.typtype = 'b' AND t.typelem <> 0 AND t.typlen = -1)"""

_FIELD: Final = re.compile(r"(?<= ):(\w+) \(?(?:o )?(\d+(?: \d+)*)")
"""A field of a node and its numbers. Names of users have their blanks and colons escaped."""
_CALLED: Final = frozenset({
    "funcid", "opfuncid", "aggfnoid", "winfnoid", "hashfuncid", "negfuncid", "startInRangeFunc", "endInRangeFunc",
    "tsmhandler",
})  # fmt: skip
_OPERATORS: Final = frozenset({"opno", "opnos"})
_CONVERTS: Final = re.compile(r"\{(?:COERCEVIAIO|ARRAYCOERCEEXPR|XMLEXPR)\b")
_REFUSED_NODES: Final = {
    "COERCETODOMAIN": "a domain", "NEXTVALUEEXPR": "a sequence", "JSONCONSTRUCTOREXPR": "JSON", "JSONEXPR": "JSON",
}  # fmt: skip
"""Node of a rule → what it makes."""
_NODE: Final = re.compile(rf"\{{({'|'.join(_REFUSED_NODES)})\b")

_STABLE: Final = frozenset({
    "age", "anytextcat", "array_to_string", "concat", "concat_ws", "convert", "convert_from", "convert_to", "date",
    "date_part", "date_trunc", "enum_first", "enum_last", "enum_range", "extract", "format", "generate_series",
    "in_range", "interval", "interval_pl_timestamptz", "length", "make_timestamptz", "now", "numeric", "overlaps",
    "quote_literal", "quote_nullable", "statement_timestamp", "textanycat", "time", "timestamp", "timestamptz",
    "timestamptz_mi_interval", "timestamptz_pl_interval", "timetz", "timezone", "to_char", "to_date", "to_number",
    "to_timestamp", "transaction_timestamp",
    *(f"{a}_{how}_timestamptz" for a in ("date", "timestamp") for how in ("cmp", "eq", "ge", "gt", "le", "lt", "ne")),
    *(f"timestamptz_{how}_{b}" for b in ("date", "timestamp") for how in ("cmp", "eq", "ge", "gt", "le", "lt", "ne")),
})  # fmt: skip
"""Functions of the server that depend on settings and the clock, and read no table."""


def refused_contents(rows: CatalogueReader, views: Iterable[int]) -> dict[int, str]:
    """View → what it does that nobody can look into; of those that do."""
    numbers = sorted(set(views))
    if not numbers:
        return {}
    found: dict[int, str] = {}
    for view, kind, identity in rows(_NOTED, numbers, FIRST_OF_USERS):
        found.setdefault(view, f"uses the {kind} `{identity}`")
    rules: dict[int, str] = {}
    for view, text in rows(_RULES, numbers):
        rules[view] = rules.get(view, "") + " " + text
    for view, text in rules.items():
        if view not in found and (said := _in_rule(rows, text)):
            found[view] = said
    for view in numbers:
        if view not in rules:
            found.setdefault(view, "has no rule")
    return found


def _in_rule(rows: CatalogueReader, text: str) -> str:
    """What a rule does that nobody can look into; empty: nothing."""
    fields: dict[str, set[int]] = {}
    for name, values in _FIELD.findall(text):
        fields.setdefault(name, set()).update(int(value) for value in values.split())
    if any(0 < number < FIRST_OF_USERS for number in fields.get("relid", ())):
        return "reads the server's catalogue, or its statistics"
    if (node := _NODE.search(text)) is not None:
        return f"makes {_REFUSED_NODES[node[1]]}"
    called, free = _called(rows, fields)
    if called:
        return f"calls `{called}`"
    if free or _CONVERTS.search(text):
        types = {number for name, values in fields.items() if "type" in name.lower() for number in values}
        ((made,),) = rows(_MADE, sorted(n for n in types if n >= FIRST_OF_USERS), FIRST_OF_USERS)
        if made is not None:
            return f"converts a value, and has some of the type `{made}`"
    return ""


def _called(rows: CatalogueReader, fields: Mapping[str, set[int]]) -> tuple[str, bool]:
    """A function that may read what the rule does not name; and whether any is called that is not immutable."""

    def of(names: Sequence[str] | frozenset[str]) -> list[int]:
        return sorted({number for name in names for number in fields.get(name, ()) if number})

    known: set[int] = set()
    free = False
    found: list[tuple[Any, ...]] = rows(_FUNCTIONS, of(_CALLED), of(_OPERATORS))
    for number, name, immutable, part in found:
        known.add(number)
        if not (immutable or (part in _STABLE and part == name)):
            return name, True
        free = free or not immutable
    return ("what is not there" if set(of(_CALLED)) - known else ""), free
