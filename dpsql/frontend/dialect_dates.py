"""Days of the week, weeks, formats and differences of dates as other dialects count and write them, in DuckDB's words.

None of what is not understood: it is refused by name. Days are counted from Sunday or Monday, 1 or 0; BigQuery's WEEK
begins on Sundays, and the days before the first one are in week 0.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping

from sqlglot import exp

_FROM_SUNDAY_1 = frozenset({"mysql", "spark", "bigquery"})
_FROM_MONDAY_0 = frozenset({"mysql", "spark"})
_ISO_WEEKS = frozenset({"mysql", "spark"})
_PARTS: Mapping[str, Mapping[str, str]] = {
    "bigquery": {"dayofyear": "doy", "isoweek": "week", "isoyear": "isoyear"},
    "spark": {"doy": "doy", "week": "week", "yearofweek": "isoyear", "dow_iso": "isodow", "dayofweek_iso": "isodow"},
    "tsql": {"dayofyear": "doy", "isoweek": "week", "iso_week": "week"},
    "snowflake": {"dayofyear": "doy", "doy": "doy", "weekiso": "week", "dayofweekiso": "isodow"},
}
"""Parts of the same number under another name."""
_SAME_DIRECTIVES = {f"%{c}": f"%{c}" for c in "YmdHSjy%"}
_WRITTEN: Mapping[str, Mapping[str, str]] = {
    "mysql": {**_SAME_DIRECTIVES, "%i": "%M", "%s": "%S", "%T": "%H:%M:%S"},
    "bigquery": {**_SAME_DIRECTIVES, **{f"%{c}": f"%{c}" for c in "MbBaA"}, "%F": "%Y-%m-%d", "%T": "%H:%M:%S"},
    "spark": {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "yy": "%y", "DDD": "%j"},
}
"""What stands in formats, as strftime has it."""
_DIRECTIVE = {
    "spark": re.compile(r"([A-Za-z]+)|([^A-Za-z'\[\]{}#%]+)"),
    **dict.fromkeys(("mysql", "bigquery"), re.compile(r"(%.)|([^%]+)", re.DOTALL)),
}
_STEPS = frozenset({"second", "minute", "hour", "day", "week"})
_WHOLE_UNITS = frozenset({"mysql", "bigquery", "spark"})
_ISO = re.compile(r"\d{4}-\d\d-\d\d")


def part(node: exp.Expr, dialect: str) -> exp.Expr | None:
    """A day or week by its function's name, or by EXTRACT; None of one that is not the same number or two."""
    if isinstance(node, exp.Extract):
        name, x = node.name.lower(), node.args["expression"]
        if name in _PARTS.get(dialect, {}):
            return _extract(_PARTS[dialect][name], x)
        if name in ("dayofweek", "dow") and dialect in _FROM_SUNDAY_1:
            return exp.Paren(this=exp.Add(this=_extract("dow", x), expression=exp.Literal.number(1)))
        if name == "week" and dialect == "bigquery":
            since = exp.Sub(
                this=exp.Add(this=_extract("doy", x), expression=exp.Literal.number(6)), expression=_extract("dow", x)
            )
            return exp.Paren(this=exp.IntDiv(this=exp.Paren(this=since), expression=exp.Literal.number(7)))
        return None
    if isinstance(node, exp.Anonymous):
        return _named(str(node.this).lower(), node.expressions, dialect)
    x, mode = node.this, node.args.get("mode")
    if isinstance(node, exp.DayOfWeek) and dialect in _FROM_SUNDAY_1:
        return exp.Paren(this=exp.Add(this=_extract("dow", x), expression=exp.Literal.number(1)))
    if isinstance(node, exp.DayOfYear):
        return _extract("doy", x)
    if dialect in _ISO_WEEKS and (isinstance(node, exp.WeekOfYear) or (mode is not None and mode.name == "3")):
        return _extract("week", x)
    return None


def _named(name: str, given: list[exp.Expr], dialect: str) -> exp.Expr | None:
    if name == "weekday" and dialect in _FROM_MONDAY_0 and len(given) == 1:
        return exp.Paren(this=exp.Sub(this=_extract("isodow", given[0]), expression=exp.Literal.number(1)))
    if name == "yearweek" and dialect == "mysql" and len(given) == 2 and given[1].name in ("1", "3"):
        year = exp.Mul(this=_extract("isoyear", given[0]), expression=exp.Literal.number(100))
        return exp.Paren(this=exp.Add(this=year, expression=_extract("week", given[0])))
    return None


def _extract(name: str, x: exp.Expr) -> exp.Expr:
    return exp.Extract(this=exp.Var(this=name.upper()), expression=x.copy())


def strftime(x: exp.Expr, written: str, dialect: str) -> exp.Expr | None:
    """A date as a text by the format that is written; None of one that is not read."""
    found = _format(written, dialect)
    return None if found is None else exp.TimeToStr(this=x.copy(), format=exp.Literal.string(found))


def read_day(text: exp.Expr | None, written: str, dialect: str) -> exp.Expr | None:
    """The DATE of a literal text by a format."""
    found = _format(written, dialect)
    if found is None or not isinstance(text, exp.Literal) or not text.is_string:
        return None
    if set(re.findall(r"%.", found)) != {"%Y", "%m", "%d"}:
        return None
    try:
        day = dt.datetime.strptime(text.name, found).date()
    except ValueError:
        return None
    return dated(exp.Literal.string(day.isoformat())) if day.strftime(found) == text.name else None


def _format(written: str, dialect: str) -> str | None:
    parts, known = [], _WRITTEN.get(dialect, {})
    pattern = _DIRECTIVE.get(dialect)
    end = 0
    for match in pattern.finditer(written) if pattern is not None else ():
        if match.start() != end or (match[1] and match[1] not in known):
            return None
        parts.append(known[match[1]] if match[1] else match[2])
        end = match.end()
    return "".join(parts) if parts and end == len(written) else None


def dated(x: exp.Expr) -> exp.Expr:
    """A literal text that is a date as ISO writes it, as a DATE; anything else as it is."""
    if isinstance(x, exp.Literal) and x.is_string and _ISO.fullmatch(x.name):
        return exp.Cast(this=x.copy(), to=exp.DataType(this=exp.DataType.Type.DATE))
    return x


def passed(node: exp.Expr, dialect: str) -> exp.Expr | None:
    """TIMESTAMPDIFF(DAY, a, b): how many whole units have passed, of those that are all of one length."""
    unit = node.args.get("unit")
    if dialect not in _WHOLE_UNITS or unit is None or unit.name.lower() not in _STEPS:
        return None
    ends = [dated(node.args["expression"]), dated(node.this)]
    name = exp.Literal.string(unit.name.lower())
    return exp.Anonymous(this="datesub", expressions=[name, *(e.copy() for e in ends)])
