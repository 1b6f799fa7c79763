"""A comparison of two versions as text for a terminal, as JSON, and as Markdown for a comment on a pull request."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any, Final, Literal

from dpsql.core.privacy_loss import PrivacyLoss, show_spent
from dpsql.diagnostics.layout import escaped, inert, one_line
from dpsql.faces.check.examine.measures import ColumnMeasure, Measures
from dpsql.faces.check.report.diff import Comparison, QueryPair, columns_of, lower_limits, narrower_clips
from dpsql.faces.check.report.formats.texts import code_span, no_command, whole

PolicyState = Literal["there", "missing", "invalid"]
"""Whether the older version has the policy file, and it is a policy."""

_ORDER: Final = ("newly refused", "changed", "added", "newly accepted", "removed")
_MOST_ROWS: Final = 400
_MOST_CHARACTERS: Final = 60_000
"""Of a Markdown table: comments are limited to 65,536 characters."""


@dataclass(frozen=True, slots=True)
class _Row:
    """What has changed of a query. what, text: our own words and numbers. name, quoted: what the branch, whose author
    nobody knows, has put behind them, as it is."""

    what: str = ""
    name: str = ""
    text: str = ""
    quoted: str = ""


@dataclass(frozen=True, slots=True)
class About:
    """What is compared. against: the name of the older version, as given. commit: its hash. policy: the policy file.
    old_policy: whether that version has it; if not, the older queries are checked against the one of now."""

    against: str
    commit: str
    policy: str
    old_policy: PolicyState


def as_text(comparison: Comparison, about: About) -> str:
    """For a terminal."""
    lines = [_headline(comparison, about, one_line)]
    for pair in comparison.shown:
        worse = "  WORSE" if pair.worse else ""
        lines += ["", no_command(f"{_place(pair)}  {pair.status}{worse}")]
        rows = [(one_line(f"{row.what} {row.name}"), one_line(f"{row.text} {row.quoted}")) for row in _rows(pair)]
        width = max((len(name) for name, _ in rows), default=0)
        lines += [f"    {name:<{width}}  {text}" for name, text in rows]
    return inert("\n".join([*lines, "", _summary(comparison)]))


def as_markdown(comparison: Comparison, about: About) -> str:
    """For a comment on a pull request, which a browser shows to people who trust it.

    All that comes from the branch (names, paths, messages, which quote the query) stands in code spans: only there
    GitHub makes no links, images, mentions and references; a backslash or an entity does not keep it from the last two.
    """
    lines = ["### Privacy of the queries", "", _headline(comparison, about, code_span), ""]
    shown = comparison.shown
    if shown:
        lines += ["| query | | what | before → now |", "|---|---|---|---|"]
        rows = [row for pair in shown for row in _markdown_rows(pair)]
        lengths = accumulate(len(row) + 1 for row in rows)
        fitting = min(_MOST_ROWS, sum(length <= _MOST_CHARACTERS for length in lengths))
        lines += rows[:fitting]
        if len(rows) > fitting:
            lines += ["", f"… and {len(rows) - fitting} more rows."]
        lines += [""]
    return inert("\n".join([*lines, _summary(comparison)]))


def as_json(comparison: Comparison, about: About) -> str:
    """The stable form (docs/howto/review-changes.md). Unchanged queries are left out."""
    counts = {status: sum(pair.status == status for pair in comparison.pairs) for status in (*_ORDER, "unchanged")}
    report = {
        "against": about.against,
        "commit": about.commit,
        "policy": {
            "path": about.policy,
            "changed": comparison.policy_changed,
            "in_commit": about.old_policy == "there",
        },
        "queries": [_record(pair) for pair in comparison.shown],
        "summary": {**counts, "worse": len(comparison.worse)},
    }
    return escaped(json.dumps(whole(report), indent=2, ensure_ascii=False))


FORMATS: Final[dict[str, Callable[[Comparison, About], str]]] = {
    "text": as_text,
    "json": as_json,
    "markdown": as_markdown,
}


_FOUND: Final = "found at run time"

# --- what is said of one query ---------------------------------------------------------------------------------------


def _rows(pair: QueryPair) -> Iterator[_Row]:
    """What has changed of a query, and how it was and is."""
    before, after = pair.before or Measures(), pair.after or Measures()
    if pair.old is not None and pair.moved:
        yield _Row("moved from", quoted=f"{pair.old.path}:{pair.old.line}")
    if pair.before is None or pair.after is None or before.refused or after.refused:
        for code, message in after.refusals:
            yield _Row("refused", text=code, quoted=message)
        if not after.refused and pair.after is not None:
            yield from (_Row("rows per", unit, f"{rows:,}") for unit, rows in after.rows.items())
            yield from (_Row("cost of each", unit, str(loss)) for unit, loss in after.cost.items())
        return
    for unit in dict.fromkeys([*after.rows, *before.rows]):
        yield from _changed("rows per", unit, before.rows.get(unit), after.rows.get(unit), lambda x: f"{x:,}")
    for what in lower_limits(before, after):
        yield from _changed("bias: at most", what, before.limits.get(what), after.limits[what], lambda x: f"{x:,}")
    for what in narrower_clips(before, after):
        yield from _changed("bias: bounds of", what, before.clips[what], after.clips[what], _ends)
    for what in dict.fromkeys([*after.searched, *before.searched]):
        was_found, is_found = (_FOUND if what in m.searched else None for m in (before, after))
        yield from _changed("limit of", what, was_found, is_found, str)
    for name, (was, now) in columns_of(before, after).items():
        if was is None or now is None:
            yield _Row("column", name, "new" if was is None else "gone")
            continue
        yield from _changed("sensitivity of", name, was.sensitivity, now.sensitivity, _amount)
        yield from _changed("expected error of", name, was.error, now.error, lambda x: f"± {_amount(x)}")
    for unit in dict.fromkeys([*after.cost, *before.cost]):
        nothing = PrivacyLoss()
        yield from _changed("cost of each", unit, before.cost.get(unit, nothing), after.cost.get(unit, nothing), str)


def _changed(what: str, name: str, was: Any, now: Any, shown: Callable[[Any], str]) -> Iterator[_Row]:
    if was != now:
        yield _Row(what, name, f"{'—' if was is None else shown(was)} → {'—' if now is None else shown(now)}")


def _markdown_rows(pair: QueryPair) -> Iterator[str]:
    mark = "⚠ " if pair.worse else ""
    head, status = code_span(_place(pair)), f"{mark}{pair.status}"
    for row in list(_rows(pair)) or [_Row()]:
        what, text = f"{row.what} {code_span(row.name)}".strip(), f"{row.text} {code_span(row.quoted)}".strip()
        yield f"| {head} | {status} | {what} | {text} |"
        head = status = ""


def _record(pair: QueryPair) -> dict[str, Any]:
    old, before, after = pair.old, pair.before, pair.after
    units = dict.fromkeys([*(after.cost if after else ()), *(before.cost if before else ())])
    counted = dict.fromkeys([*(after.rows if after else ()), *(before.rows if before else ())])
    columns = columns_of(before or Measures(), after or Measures())
    limited = dict.fromkeys([*(after.limits if after else ()), *(before.limits if before else ())])
    clipped = dict.fromkeys([*(after.clips if after else ()), *(before.clips if before else ())])
    return {
        "path": pair.query.path,
        "line": pair.query.line,
        "old_path": None if old is None else old.path,
        "old_line": None if old is None else old.line,
        "name": pair.query.name or None,
        "status": pair.status,
        "worse": list(pair.worse),
        "refused": {"old": _codes(before), "new": _codes(after)},
        "rows": {u: {"old": _of(before, "rows", u), "new": _of(after, "rows", u)} for u in counted},
        "columns": {
            name: {
                "sensitivity": {"old": _sensitivity(was), "new": _sensitivity(now)},
                "expected_error": {"old": was.error if was else None, "new": now.error if now else None},
            }
            for name, (was, now) in columns.items()
        },
        "limits": {w: {"old": _of(before, "limits", w), "new": _of(after, "limits", w)} for w in limited},
        "clips": {w: {"old": _clip(before, w), "new": _clip(after, w)} for w in clipped},
        "searched": {"old": list(before.searched if before else ()), "new": list(after.searched if after else ())},
        "cost": {u: {"old": _loss(before, u), "new": _loss(after, u)} for u in units},
    }


def _codes(measures: Measures | None) -> list[str]:
    return [] if measures is None else [code for code, _ in measures.refusals]


def _of(measures: Measures | None, what: str, name: str) -> Any:
    found: Mapping[str, Any] = {} if measures is None else getattr(measures, what)
    return found.get(name)


def _clip(measures: Measures | None, what: str) -> list[float] | None:
    found = _of(measures, "clips", what)
    return None if found is None else [float(end) for end in found]


def _ends(ends: tuple[Fraction, Fraction]) -> str:
    return f"[{_amount(ends[0])}, {_amount(ends[1])}]"


def _sensitivity(column: ColumnMeasure | None) -> float | None:
    return None if column is None or column.sensitivity is None else float(column.sensitivity)


def _loss(measures: Measures | None, unit: str) -> dict[str, float] | None:
    loss = _of(measures, "cost", unit)
    return None if loss is None else {n: float(getattr(loss, n)) for n in ("epsilon", "delta", "rho")}


# --- words -----------------------------------------------------------------------------------------------------------


def _headline(comparison: Comparison, about: About, shown: Callable[[str], str]) -> str:
    policy = "the same policy"
    if about.old_policy != "there":
        why = "not in that commit" if about.old_policy == "missing" else "not valid in that commit"
        policy = f"{shown(about.policy)} is {why}, so both are checked against it as it is now"
    elif comparison.policy_changed:
        policy = f"the policy {shown(about.policy)} has changed, too"
    return f"compared with {shown(about.against)} ({shown(about.commit[:10])}): {policy}"


def _place(pair: QueryPair) -> str:
    """Without line ends or control characters: on a line of its own a name could be a command to what runs CI."""
    name = f" ({pair.query.name})" if pair.query.name else ""
    return one_line(f"{pair.query.path}:{pair.query.line}{name}")


def _summary(comparison: Comparison) -> str:
    counts = [(sum(pair.status == status for pair in comparison.pairs), status) for status in (*_ORDER, "unchanged")]
    said = ", ".join(f"{count} {status}" for count, status in counts if count) or "no queries"
    worse = len(comparison.worse)
    return f"{said}; {f'{worse} worse' if worse else 'none worse'}"


def _amount(x: float | Fraction) -> str:
    return show_spent(x) if isinstance(x, Fraction) and x >= 0 and x < 1 else f"{float(x):,.6g}"
