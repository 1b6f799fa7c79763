"""The bounded truth of a query, from formulas written down here once more, in plain DuckDB and floating point.

Nothing is shared with the product: rows, clips and conditions come as SQL written by hand in the tests, and the
weights follow the definition. With n the rows of an id in a group, K its groups, N all its rows:

    limits M rows in each of G groups:   each row counts  M/max(n, M) · G/max(K, G)
    one limit of C rows, no groups:      each row counts  C/max(N, C)
    a SUM alone:                         the id's total there, clipped to [min(0, M·L), max(0, M·U)], · G/max(K, G)
    present or not:                      1 · G/max(K, G)
    private groups:                      only the id's first G groups in its own order; no factor for K
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb

import dpsql
from dpsql.core.ledger.memory import MemoryLedger


@dataclass(frozen=True)
class Count:
    """Rows where `of` is true."""

    of: str = "TRUE"


@dataclass(frozen=True)
class Total:
    """A SUM of `of` (clipped by hand) that lies in [low, high]; `whole`: its type is an integer."""

    of: str
    low: float
    high: float
    whole: bool = True


@dataclass(frozen=True)
class Mean:
    """An AVG of `of` (clipped by hand) in [low, high]; an empty group shows the middle."""

    of: str
    low: float
    high: float


@dataclass(frozen=True)
class Units:
    """Different ids."""


Part = Count | Total | Mean | Units


@dataclass(frozen=True)
class Limits:
    """C, and M rows in each of G groups."""

    total: int
    per_group: int
    groups: int


@dataclass(frozen=True)
class Truth:
    """What a query means.

    rows: SQL of the joined and filtered rows; `u` is the id. keys: group columns among them.
    all_keys: SQL of the public list of keys; empty for private ones.
    groups_of_one: an id has one group only, by what it is, so C holds in place of M and G.
    answer: SQL over `b`, the grouped table, for what stands above the release.
    """

    rows: str
    parts: dict[str, Part]
    keys: Sequence[str] = ()
    all_keys: str = ""
    groups_of_one: bool = False
    answer: str = "SELECT * FROM b"


def base(con: duckdb.DuckDBPyConnection, truth: Truth, limits: Limits | None, salt: int = 0) -> duckdb.DuckDBPyRelation:
    """The grouped table `b`: keys, then one column per part. limits: None for a row unit."""
    shown, keys = [], ", ".join(truth.keys)
    for name, part in truth.parts.items():
        match part:
            case Count() | Units():
                shown.append(f"round(coalesce(c_{name}, 0)) AS {name}")
            case Total(whole=whole):
                shown.append(f"{'round' if whole else ''}(coalesce(CAST(s_{name} AS DOUBLE), 0)) AS {name}")
            case Mean(low=low, high=high):
                mean = f"CAST(s_{name} AS DOUBLE) / nullif(c_{name}, 0)"
                shown.append(f"coalesce({mean}, CAST({(low + high) / 2} AS DOUBLE)) AS {name}")
    sums = _of_rows(truth) if limits is None else _of_ids(truth, limits, salt)
    if not truth.all_keys:
        return con.sql(f"SELECT {', '.join([*truth.keys, *shown])} FROM ({sums})")
    return con.sql(
        f"SELECT {keys}, {', '.join(shown)} FROM ({truth.all_keys}) AS l LEFT JOIN ({sums}) AS t USING ({keys})"
    )


def _of_rows(truth: Truth) -> str:
    """Row units: plain aggregates, of any number of rows."""
    found = list(truth.keys)
    for name, part in truth.parts.items():
        match part:
            case Count(of):
                found.append(f"COUNT(*) FILTER (WHERE {of}) AS c_{name}")
            case Units():
                found.append(f"COUNT(DISTINCT u) AS c_{name}")
            case Total(of):
                found.append(f"SUM({of}) AS s_{name}")
            case Mean(of):
                found += [f"SUM({of}) AS s_{name}", f"COUNT({of}) AS c_{name}"]
    return f"SELECT {', '.join(found)} FROM ({truth.rows}) {_group_by(truth.keys)}"


def _of_ids(truth: Truth, limits: Limits, salt: int) -> str:
    """Id units: partial aggregates per id and group, then weights."""
    keys, grouped = list(truth.keys), bool(truth.keys) and not truth.groups_of_one
    private = bool(keys) and not truth.all_keys
    most = limits.per_group if grouped else limits.total
    groups = f"{limits.groups} / greatest(kk, {limits.groups})" if grouped and not private else "1.0"
    row = f"{most} / greatest(n, {most}) * {groups}"
    partial, found = ["u", *keys, "COUNT(*) AS n"], list(keys)
    for name, part in truth.parts.items():
        match part:
            case Count(of):
                partial.append(f"COUNT(*) FILTER (WHERE {of}) AS c_{name}")
                found.append(f"SUM(c_{name} * {row}) AS c_{name}")
            case Units():
                found.append(f"SUM({groups}) AS c_{name}")
            case Total(of, low, high):
                partial.append(f"coalesce(SUM({of}), 0) AS s_{name}")
                clipped = f"greatest(least(s_{name}, {max(0, most * high)}), {min(0, most * low)})"
                found.append(f"SUM({clipped} * {groups}) AS s_{name}")
            case Mean(of):
                partial += [f"coalesce(SUM({of}), 0) AS s_{name}", f"COUNT({of}) AS c_{name}"]
                found += [f"SUM(s_{name} * {row}) AS s_{name}", f"SUM(c_{name} * {row}) AS c_{name}"]
    order = f"hash(u, {', '.join(keys)}, {salt}), {', '.join(keys)}"
    kept = f"QUALIFY row_number() OVER (PARTITION BY u ORDER BY {order}) <= {limits.groups}" if private else ""
    return f"""
        WITH p AS (SELECT {", ".join(partial)} FROM ({truth.rows}) WHERE u IS NOT NULL {_group_by(["u", *keys])}),
             f AS (SELECT * FROM p {kept}),
             g AS (SELECT u, COUNT(*) AS kk FROM f GROUP BY u)
        SELECT {", ".join(found)} FROM f JOIN g USING (u) {_group_by(keys)}"""


def _group_by(keys: Sequence[str]) -> str:
    return f"GROUP BY {', '.join(keys)}" if keys else ""


def answer(con: duckdb.DuckDBPyConnection, truth: Truth, limits: Limits | None, salt: int = 0) -> list[tuple[Any, ...]]:
    """All rows of the query's bounded truth, in order."""
    b = base(con, truth, limits, salt)
    return b.query("b", truth.answer).fetchall()


def agree(found: dpsql.Release, expected: list[tuple[Any, ...]]) -> bool:
    """Equal rows in equal order: numbers to 1e-4, or to one where they were rounded to whole ones; all else exactly."""
    if len(found) != len(expected) or not expected:
        return False
    for value, true in zip(chain(*found), chain(*expected), strict=True):
        if not isinstance(true, float):
            if value != true:
                return False
            continue
        tolerance = 1.01 if isinstance(value, int) else 0.01 if true == 0 else 1e-6  # the least noise is not none
        if not math.isclose(value, true, rel_tol=1e-4, abs_tol=tolerance):
            return False
    return True


def generous(policy: Path) -> Path:
    """A copy of a policy, beside it, with a total budget that tests cannot exhaust."""
    text = policy.read_text(encoding="utf-8")
    changed = re.sub(r"total: \{epsilon: \d+", "total: {epsilon: 1000000000000", text)
    assert changed != text
    copy = policy.with_name(f"generous-{policy.name}")
    copy.write_text(changed, encoding="utf-8")
    return copy


def connection(policy: Path) -> tuple[dpsql.Connection, MemoryLedger]:
    """A session with an example's policy, a generous budget, and a ledger in memory."""
    ledger = MemoryLedger()
    return dpsql.connect(generous(policy), ledger=ledger), ledger
