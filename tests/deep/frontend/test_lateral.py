"""LATERAL, and LIMIT or a window in a correlated IN: row by row what DuckDB says to the same text, over public tables.

A row finds no partner, or several; it compares NULL; groups, windows and LIMIT are those of the row alone. A LIMIT
below the subquery's own FROM is not the row's.
"""

from __future__ import annotations

import random

import pytest

from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.bind.subqueries import correlated
from tests.deep.frontend.test_subqueries import Queries, _compare, _world
from tests.support.random_databases import Store

TOTAL = "{t}.n {d}, {t}.k NULLS FIRST, {t}.x NULLS FIRST, {t}.s NULLS LAST"


class Laterals(Queries):
    """Random queries with a LATERAL item beside the rows of `o`."""

    def rows(self, outer: str) -> tuple[str, list[str], bool]:
        """(query, its columns, whether it has one row for each)."""
        t, rng = self.alias(), self.rng
        terms = [self.local(t)] if rng.random() < 0.4 else []
        terms += [self.correlated(t, outer) for _ in range(rng.choice((1, 1, 2)))]
        shape, source, x = rng.random(), self.source(t), self.number(t)
        if shape < 0.3:
            listed = f"COUNT(*) AS u, SUM({x}) AS v, COUNT({x}) * 2 + COALESCE(MAX({x}), 5) AS w, 3 AS z"
            return f"SELECT {listed} FROM {source}{self.where(terms)}", ["u", "v", "w", "z"], True
        if shape < 0.4:
            having = f" HAVING COUNT(*) > {rng.choice((0, 1))}"
            listed = f"{t}.n AS u, COUNT(*) AS v, MIN({x}) AS w"
            return f"SELECT {listed} FROM {source}{self.where(terms)} GROUP BY {t}.n{having}", ["u", "v", "w"], False
        if shape < 0.5:
            return f"SELECT DISTINCT {t}.n AS u, {t}.s AS v FROM {source}{self.where(terms)}", ["u", "v"], False
        if shape < 0.7:
            order = TOTAL.format(t=t, d=rng.choice(("", "DESC")))
            cut = f"ORDER BY {order} LIMIT {rng.choice((1, 2))} OFFSET {rng.choice((0, 0, 1))}"
            listed = rng.choice(("*", f"{t}.x, {t}.n, {t}.k", f"DISTINCT {t}.n, {t}.k, {t}.x, {t}.s"))
            columns = ["k", "x", "n"] if listed != "*" else ["n", "s"]
            return f"SELECT {listed} FROM {source}{self.where(terms)} {cut}", columns, False
        if shape < 0.8:
            window = f"OVER (ORDER BY {TOTAL.format(t=t, d='')} ROWS UNBOUNDED PRECEDING)"
            calls = f"ROW_NUMBER() {window} AS u, SUM({t}.n) {window} AS v, COUNT(*) OVER () AS w, {t}.x"
            return f"SELECT {calls} FROM {source}{self.where(terms)}", ["u", "v", "w", "x"], False
        if rng.random() < 0.4:
            terms.append(f"{self.number(t)} {rng.choice(('<', '<>', '>='))} {self.number(outer)}")
        if shape < 0.9:
            return f"SELECT {x} + {outer}.n AS u, {t}.s AS v FROM {source}{self.where(terms)}", ["u", "v"], False
        return f"SELECT {t}.k AS u, {t}.s AS v FROM {source}{self.where(terms)}", ["u", "v"], False

    def lateral(self) -> str:
        """A query over `o` and a LATERAL item."""
        rng, o = self.rng, "o"
        source = rng.choice(("a AS o", "b AS o", "c, a AS o", "(SELECT DISTINCT * FROM a) AS o"))
        query, columns, one = self.rows(o)
        listed = ", ".join(["o.k", "o.x", "o.n", *(f"l.{c}" for c in columns)])
        shape = rng.random()
        if shape < 0.3:
            return f"SELECT {listed} FROM {source}, LATERAL ({query}) AS l"
        kind = rng.choice(("CROSS JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN"))
        on = "" if kind == "CROSS JOIN" else " ON TRUE"
        first = columns[0]
        if on and rng.random() < 0.4 and not (one and kind == "LEFT JOIN"):
            on = f" ON l.{first} >= o.n" if first != "s" else f" ON l.{first} = 'p'"
        more = rng.choice(("", "", f" JOIN b AS z ON z.n = l.{first}")) if first != "s" else ""
        return f"SELECT {listed} FROM {source} {kind} LATERAL ({query}) AS l{on}{more}"

    def cut_in(self) -> str:
        """A correlated IN over the first rows, or the rows with a place, of each value."""
        t, rng = self.alias(), self.rng
        where, order = self.where([self.correlated(t, "o")]), TOTAL.format(t=t, d=rng.choice(("", "DESC")))
        inner = rng.choice(
            (
                f"SELECT {t}.n FROM {self.source(t)}{where} ORDER BY {order} LIMIT {rng.choice((1, 2))}",
                f"SELECT {t}.n FROM {self.source(t)}{where} QUALIFY ROW_NUMBER() OVER (ORDER BY {order}) = 2",
                f"SELECT COUNT(*) OVER () FROM {self.source(t)}{where}",
            )
        )
        return f"SELECT o.k, o.x, o.n FROM a AS o WHERE o.n {rng.choice(('IN', 'NOT IN'))} ({inner})"


@pytest.mark.parametrize("seed", range(4))
def test_random_laterals_mean_what_duckdb_says(seed: int) -> None:
    rng, store, compared, refused = random.Random(1000 + seed), Store(), 0, 0
    for _ in range(4):
        world = _world(rng)
        store.load(world)
        for i in range(24):
            made = Laterals(rng)
            sql = made.cut_in() if i % 6 == 0 else made.lateral()
            try:
                compared += _compare(store, world, sql) > 0
            except Rejected as refusal:
                assert {d.code for d in refusal.diagnostics} <= {"DP111"}, (sql, str(refusal))
                refused += 1
    store.close()
    assert compared > 25 and refused < 12, (compared, refused)


CASES = (
    "SELECT o.k, l.n FROM a AS o, LATERAL (SELECT * FROM (SELECT DISTINCT k, n FROM b ORDER BY n, k LIMIT 2) AS d"
    " WHERE d.k = o.k) AS l",
    "SELECT o.k, l.n FROM a AS o, LATERAL (SELECT d.k, d.n FROM (SELECT k, n FROM b UNION SELECT x, n FROM c"
    " ORDER BY 2, 1 NULLS FIRST LIMIT 3) AS d WHERE d.k = o.k ORDER BY d.n DESC LIMIT 1) AS l",
    "SELECT o.k, l.v FROM a AS o, LATERAL (SELECT o.k + o.n AS v) AS l",
    "SELECT o.k, l.v, m.w FROM a AS o, LATERAL (SELECT o.k + o.n AS v WHERE o.x > 0) AS l,"
    " LATERAL (SELECT COUNT(*) AS w FROM b WHERE b.n = l.v) AS m",
    "SELECT o.k, l.w, m.w FROM a AS o CROSS JOIN LATERAL (SELECT SUM(x) AS w FROM b WHERE b.k = o.k) AS l"
    " LEFT JOIN LATERAL (SELECT b.x AS w FROM b WHERE b.x = l.w) AS m ON TRUE",
    "SELECT o.k, l.c FROM a AS o, LATERAL (SELECT COUNT(*) AS c FROM b) AS l",
    "SELECT COUNT(*), SUM(l.c) FROM a AS o LEFT JOIN LATERAL (SELECT COUNT(*) AS c FROM b WHERE b.k = o.x) l ON TRUE",
    "SELECT o.k, l.p, l.q FROM a AS o, LATERAL (SELECT x, n FROM b WHERE b.k = o.k AND o.n > 1) AS l(p, q)",
)


@pytest.mark.parametrize("sql", CASES)
def test_null_nothing_and_whose_limit(sql: str) -> None:
    """Each over tables that are empty, of NULLs alone, and full."""
    store = Store()
    for seed in range(6):
        world = _world(random.Random(seed))
        store.load(world)
        _compare(store, world, sql)
    store.close()


def test_the_comparison_sees_the_limit_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A LIMIT below FROM, taken for one of each row, is found out, and so is one of the row that is left to all."""
    monkeypatch.setattr(correlated, "_sees_all_rows", lambda *_: False)
    with pytest.raises((AssertionError, Rejected)):
        for seed in range(4):
            test_random_laterals_mean_what_duckdb_says(seed)


def test_the_comparison_sees_a_count_that_is_null(monkeypatch: pytest.MonkeyPatch) -> None:
    """COUNT of no rows as NULL is found out."""
    monkeypatch.setattr("dpsql.frontend.bind.from_clause.lateral.transform_expr", lambda e, _: e)
    with pytest.raises(AssertionError, match="theirs"):
        test_null_nothing_and_whose_limit(CASES[6])
