"""Few rows of an id: of DISTINCT by slices of its values and by declared domains, and of FULL joins of one row each."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest

from dpsql.core.release.noisy import exact_totals
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.planner.plan import Plan
from tests.support.planning import planned, policy

POLICY = policy("""
visits:
  unit: {of: person, column: id}
  max_rows_per_unit: 10
  columns: &events
    id: {type: bigint, nullable: false}
    word: {type: varchar, nullable: false}
    kind: {type: varchar, domain: [a, b, c], nullable: false}
    day: {type: date, bounds: [2024-01-01, 2024-12-31], nullable: false}
    y: {type: integer, bounds: [0, 9]}
grouped:
  unit: {of: person, column: id}
  max_groups_per_unit: 5
  max_rows_per_group: 2
  columns: *events
told:
  unit: {of: person, column: id}
  max_rows_per_unit: {rows: 7, enforce: assume}
  columns: *events
daily:
  unit: {of: person, column: id}
  unique: [[id, day]]
  columns: *events
people:
  unit: {of: person, column: id}
  primary_key: [id]
  columns: {id: {type: bigint, nullable: false}, region: {type: varchar, domain: [n, s], nullable: false}}
""")
DISTINCT = "(SELECT DISTINCT id, word FROM visits)"
BY_WORD = "(SELECT id, word, COUNT(*) AS c FROM visits GROUP BY id, word)"
TOTALS = "(SELECT id, COUNT(*) AS c FROM visits GROUP BY id)"


def rows(plan: Plan) -> list[Fraction]:
    """The l1 of each number, in rows."""
    (release,) = plan.releases
    return [Fraction(m.sensitivity.l1, m.component.weight) for m in release.measured.measurements]


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        (f"SELECT COUNT(*) FILTER (WHERE word = 'a'), COUNT(*) FILTER (WHERE word = 'b') FROM {DISTINCT}", [2, 2]),
        (f"SELECT COUNT(*) FILTER (WHERE word IN ('a', 'b')) FROM {DISTINCT}", [2]),
        (
            "SELECT SUM(CASE WHEN word = 'a' THEN 1 ELSE 0 END), COUNT(CASE WHEN word = 'b' THEN 1 END) "
            f"FROM {DISTINCT}", [2, 2],
        ),
        (f"SELECT SUM(CASE WHEN word = 'a' THEN c END) FROM {BY_WORD}", [10]),  # one row of at most 10
        ("SELECT COUNT(*) FILTER (WHERE day < DATE '2024-02-01' AND day = DATE '2024-01-01') FROM daily", [1]),
        # all rows count, or any number of them may
        (f"SELECT COUNT(*) FILTER (WHERE word = 'a'), COUNT(*) FROM {DISTINCT}", [10, 10]),
        (f"SELECT COUNT(*) FILTER (WHERE word = 'a'), COUNT(*) FILTER (WHERE word <> 'a') FROM {DISTINCT}", [10, 10]),
        ("SELECT COUNT(*) FILTER (WHERE word = 'a') FROM visits", [10]),
        # more values than rows that count
        (f"SELECT COUNT(*) FILTER (WHERE word IN ({', '.join(map(repr, 'abcdefghijk'))})) FROM {DISTINCT}", [10]),
        # which private groups are shown is told by all of their rows
        (
            "SELECT word, COUNT(*) FILTER (WHERE kind = 'a') "
            "FROM (SELECT id, kind, MAX(word) AS word FROM visits GROUP BY id, kind) GROUP BY word", [3, 3],
        ),
    ],
)  # fmt: skip
def test_rows_of_slices(sql: str, found: list[int]) -> None:
    assert rows(planned(sql, POLICY)) == found


@pytest.mark.parametrize(
    ("sql", "found", "told"),
    [
        ("SELECT COUNT(*) FROM (SELECT DISTINCT id, kind FROM visits)", 3, True),
        ("SELECT COUNT(*) FROM (SELECT id, kind, MAX(y) FROM visits GROUP BY id, kind)", 3, True),
        ("SELECT COUNT(*) FROM (SELECT DISTINCT id, kind FROM visits WHERE kind IN ('a', 'z'))", 2, False),
        # M holds in the one group that there is
        ("SELECT COUNT(*) FROM (SELECT DISTINCT id, kind FROM grouped)", 2, True),
        ("SELECT COUNT(*) FROM (SELECT DISTINCT id, kind FROM grouped WHERE kind IN ('a', 'b', 'c'))", 2, True),
        # what the policy promises of rows is believed for intervals, a domain is not
        ("SELECT COUNT(*) FROM (SELECT DISTINCT id, kind FROM told)", 7, False),
    ],
)
def test_rows_of_a_domain(sql: str, found: int, told: bool) -> None:
    plan = planned(sql, POLICY)
    assert rows(plan) == [found]
    assert any(f"at most {found} rows per person counted" in str(note) for note in plan.notes) == told


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        (f"SELECT COUNT(*) FROM people p FULL JOIN {TOTALS} t ON p.id = t.id", 1),
        (f"SELECT p.region, COUNT(*) FROM people p FULL JOIN {TOTALS} t ON p.id = t.id GROUP BY 1", 1),
        (f"SELECT COUNT(*) FROM people p FULL JOIN {TOTALS} t ON p.id = t.id WHERE c > 1 OR region = 'n'", 1),
        (
            f"SELECT COUNT(*) FROM people p FULL JOIN {TOTALS} t ON p.id = t.id "
            f"FULL JOIN {TOTALS} u ON COALESCE(p.id, t.id) = u.id", 1,
        ),
        # an id may have a row that meets no other, and one that no other meets
        (f"SELECT COUNT(*) FROM {TOTALS} s FULL JOIN {TOTALS} t ON s.id = t.id AND s.c = t.c", 2),
        (f"SELECT COUNT(*) FROM {TOTALS} s FULL JOIN {TOTALS} t ON s.id = t.id AND s.c < t.c", 2),
        (f"SELECT COUNT(*) FROM {TOTALS} s FULL JOIN visits t ON s.id = t.id", 20),
        (f"SELECT COUNT(*) FROM (SELECT id FROM people UNION ALL SELECT id FROM {TOTALS})", 2),
    ],
)  # fmt: skip
def test_rows_of_full_joins(sql: str, found: int) -> None:
    plan = planned(sql, POLICY)
    assert rows(plan)[0] == found
    assert found > 1 or not any("rows per person counted" in str(note) for note in plan.notes)


ASKED = (
    f"SELECT COUNT(*) FILTER (WHERE word = 'a'), COUNT(*) FILTER (WHERE word = 'b') FROM {DISTINCT}",
    "SELECT kind, SUM(CASE WHEN word = 'a' THEN c ELSE 0 END), COUNT(*) FILTER (WHERE word = 'b') "
    "FROM (SELECT id, word, kind, COUNT(*) AS c FROM visits GROUP BY 1, 2, 3) GROUP BY kind ORDER BY kind",
    f"SELECT COUNT(*) FROM people p FULL JOIN {TOTALS} t ON p.id = t.id",
    "SELECT COUNT(*) FROM (SELECT DISTINCT id, kind FROM visits)",
)


@pytest.mark.parametrize("sql", ASKED)
def test_all_rows_that_count_are_counted(sql: str) -> None:
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE people AS SELECT i AS id, CASE WHEN i % 2 = 0 THEN 'n' ELSE 's' END AS region FROM range(40) t(i)"
    )
    con.execute(
        "CREATE TABLE visits AS SELECT i % 37 + 20 AS id, chr(CAST(97 + (i * 7) % 5 AS INTEGER)) AS word, "
        "chr(CAST(97 + (i * 5) % 3 AS INTEGER)) AS kind, DATE '2024-01-01' AS day, i % 9 AS y FROM range(300) t(i)"
    )  # fmt: skip
    (release,) = planned(sql, POLICY).releases
    exact = exact_totals(release, DuckDBEngine.wrap(con, optimizers="ours"), 0)
    weights = [c.weight for c in release.measured.node.components]
    found = [(*key, *(Fraction(n, f) for n, f in zip(own, weights, strict=True))) for key, own in exact.items()]  # type: ignore[arg-type]
    assert found == con.execute(sql).fetchall()
