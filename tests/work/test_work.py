"""How often tables are read, how many rows are aggregated and joined: a slower statement is seen without a clock.

`pytest tests/work --update` rewrites work.txt; a line that grows needs a measured reason (benchmarks/README.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.core.printing.shapes import choose, weighted
from dpsql.core.printing.shapes.statement import Statement
from tests.work.cases import CASES, Case, tables, work_of

SNAPSHOT = Path(__file__).with_name("work.txt")
HEAD = "# Rows out of each operator, largest first, and scans by table. Rewritten by `pytest tests/work --update`.\n"


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with tables() as found:
        yield found


def expected() -> dict[str, str]:
    """Title → lines."""
    blocks = SNAPSHOT.read_text(encoding="utf-8").split("\n## ")[1:]
    return {title: lines.strip("\n") for title, _, lines in (block.partition("\n") for block in blocks)}


def case(title: str) -> Case:
    (found,) = (c for c in CASES if c.title.startswith(title))
    return found


def test_the_work_is_what_it_was(connection: duckdb.DuckDBPyConnection, tmp_path: Path, update: bool) -> None:
    assert len({c.title for c in CASES}) == len(CASES)
    found = {c.title: work_of(c, connection, tmp_path) for c in CASES if not c.skipped}
    if update:
        assert len(found) == len(CASES), "update with the newest DuckDB"
        blocks = [f"\n## {title}\n{lines}\n" for title, lines in found.items()]
        SNAPSHOT.write_text(HEAD + "".join(blocks), encoding="utf-8")
        return
    known = expected()
    assert known.keys() == {c.title for c in CASES}
    for title, lines in found.items():
        assert lines == known[title], title


def test_every_shape_is_among_them() -> None:
    shapes = {line.split(": ")[1] for lines in expected().values() for line in lines.splitlines() if line[0] == "r"}
    assert shapes == {
        "direct",
        "two-level",
        "two-level, weights per id",
        "two-level, truncated groups",
        "aggregated before the join",
        "distinct, truncated per id",
    }


# --- the guard sees a needless pass --------------------------------------------------------------------------------


def later(m: pytest.MonkeyPatch) -> None:
    """Joined before it is aggregated."""
    m.setattr(weighted, "early", lambda *_: None)


def counted_groups(m: pytest.MonkeyPatch) -> None:
    """Groups per id are counted although there are few."""
    original = choose.weighted

    def spread(node: Any, below: Any, *rest: Any) -> tuple[Statement, ...]:
        return original(node, replace(below, node=replace(below.node, few_groups=False)), *rest)

    m.setattr(choose, "weighted", spread)


def computed_twice(m: pytest.MonkeyPatch) -> None:
    """The partial sums are computed for each of their readers."""
    original = weighted._statement
    m.setattr(weighted, "_statement", lambda *a: original(*a).replace("p AS (", "p AS NOT MATERIALIZED ("))


def scanned_twice(m: pytest.MonkeyPatch) -> None:
    """A table is read once more."""
    original = choose.direct

    def again(*given: Any) -> tuple[Statement, ...]:
        more = ", (SELECT MAX(hash(income)) FROM people) AS again\nFROM"
        return tuple(replace(s, sql=s.sql.replace("\nFROM", more, 1)) for s in original(*given))

    m.setattr(choose, "direct", again)


@pytest.mark.parametrize(
    ("broken", "title", "line"),
    [
        (later, "Q5", "  join: 14,990"),
        (counted_groups, "few possible groups", "  join: 2,792"),
        (computed_twice, "Q4", "  scan orders: 2 ×"),
        (scanned_twice, "Q1", "  scan people: 2 ×"),
    ],
)
def test_a_needless_pass_is_seen(
    broken: Any, title: str, line: str, connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    chosen = case(title)
    with pytest.MonkeyPatch.context() as m:
        broken(m)
        found = work_of(chosen, connection, tmp_path)
    assert found != expected()[chosen.title]
    assert line in found.splitlines()
