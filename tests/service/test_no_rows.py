"""A question about no rows in a session: no engine, no ledger, no stored answer, at every face."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import pytest

from dpsql.answers.stored.analyst_account import answers_beside
from dpsql.api.connection import Connection, connect
from dpsql.core.engine import RawTable
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import BudgetExceeded, Rejected
from dpsql.policy.load import parse_policy
from dpsql.service.checks.check import check
from tests.support.club import POLICY
from tests.support.fake_engine import FakeEngine

FREE = {
    "SELECT * FROM members WHERE 0 = 1": [],
    "SELECT * FROM members LIMIT 0": [],
    "SELECT * FROM members ORDER BY age LIMIT 0": [],
    "SELECT TRUE FROM members WHERE 1 <> 1 LIMIT 0": [],
    "SELECT fee, joined FROM members JOIN visits USING (id) WHERE FALSE": [],
    "SELECT * FROM (SELECT * FROM cities) AS q LIMIT 0": [],
    "SELECT COUNT(*) AS n FROM members LIMIT 0": [],
    "SELECT COUNT(*) AS n FROM members HAVING 1 <> 1": [],
    "SELECT n FROM (SELECT COUNT(*) AS n FROM members) WHERE NULL": [],
    "SELECT note, COUNT(*) AS n FROM members WHERE FALSE GROUP BY note": [],
    "SELECT COUNT(*) AS n, SUM(age) AS s, AVG(age) AS a FROM members WHERE 1 = 0": [(0, 0, 50.0)],
    "SELECT city, COUNT(*) AS n FROM members WHERE FALSE GROUP BY city": [("Bonn", 0), ("Lyon", 0), ("Oslo", 0)],
    "SELECT n + 1 AS m FROM (SELECT city, COUNT(*) AS n FROM members WHERE FALSE GROUP BY city)": [(1,), (1,), (1,)],
}  # fmt: skip


class Silent(FakeEngine):
    """An engine that must not be asked for anything."""

    def table_sql(self, name: str) -> NoReturn:
        raise AssertionError(name)

    def in_snapshot(self, action: object) -> NoReturn:
        raise AssertionError("in_snapshot")

    def fetch(self, sql: str) -> NoReturn:
        raise AssertionError(sql)


class Untouched(MemoryLedger):
    """A ledger that must not be looked at."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("reserve", "spent", "received", "salt", "history", "accounts"):
            raise AssertionError(name)
        return super().__getattribute__(name)


@pytest.fixture
def silent() -> Iterator[Connection]:
    policy = parse_policy(POLICY.replace("DEFAULTS\n", ""), "club.yaml")
    with Connection(policy, Silent(), ledger=Untouched("club")) as connection:
        yield connection


@pytest.mark.parametrize("sql", FREE)
def test_nothing_is_asked_of_anybody(sql: str, silent: Connection) -> None:
    """No ε is given anywhere either: what costs nothing needs none."""
    query = silent.sql(sql)
    assert query.cost() == PrivacyLoss() and "cost: nothing: no rows are asked for" in query.explain()
    assert json.loads(query.explain(format="json"))["cost"].keys() <= {"member"}
    answer = query.run()
    assert answer.fetchall() == FREE[sql] and answer.spent == PrivacyLoss()
    assert any("nothing is read or charged" in note for note in answer.notes)
    assert query.run(fresh=True).rows == answer.rows
    assert answer.df().shape == answer.arrow().shape == (len(FREE[sql]), len(answer.columns))
    assert len(answer.intervals()) == len(FREE[sql]) and len(answer.to_dict()) == len(answer.columns)
    assert check(sql, silent.policy) == []
    assert answers_beside(silent.service._ledger).find([""]) == {}  # type: ignore[arg-type]


@pytest.mark.parametrize("sql", FREE)
def test_the_cursor_describes_the_columns(sql: str, silent: Connection) -> None:
    cursor = silent.cursor()
    cursor.execute(sql)
    assert cursor.description is not None
    assert [d[0] for d in cursor.description] == [c.name for c in silent.sql(sql).plan().columns]
    assert cursor.fetchall() == FREE[sql] and cursor.rowcount == len(FREE[sql])
    cursor.execute(f"EXPLAIN {sql}")
    assert any("no rows are asked for" in str(row) for row in cursor.fetchall())


def test_types_come_from_the_policy(silent: Connection) -> None:
    answer = silent.sql("SELECT * FROM members WHERE 0 = 1").run()
    assert dict(zip(answer.columns, map(str, answer.types), strict=True)) == {
        "id": "BIGINT", "city": "VARCHAR", "age": "INTEGER", "fee": "DECIMAL(8,2)", "joined": "DATE", "note": "VARCHAR",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT * FROM members WHERE ? = 1", [0]),
        ("SELECT * FROM members LIMIT ?", [0]),
        ("SELECT * FROM members WHERE $on", {"on": False}),
        ("SELECT * FROM members WHERE age > 3 AND $1 < $2", [2, 1]),
    ],
)
def test_a_parameter_is_a_constant(sql: str, parameters: Any, silent: Connection) -> None:
    assert silent.sql(sql, parameters).run().rows == ()


def test_another_value_is_another_question(silent: Connection) -> None:
    for _ in range(2):
        assert silent.sql("SELECT * FROM members LIMIT ?", [0]).run().rows == ()
        with pytest.raises(Rejected, match="DP110"):
            silent.sql("SELECT * FROM members LIMIT ?", [1]).run()
        with pytest.raises(Rejected, match="DP110"):
            silent.sql("SELECT * FROM members WHERE ?", [True]).run()


def test_a_used_up_budget_is_no_reason_to_refuse(club_folder: Path, tmp_path: Path) -> None:
    text = POLICY.replace("DEFAULTS\n", "").replace("epsilon: 10000", "epsilon: 1")
    text = text.replace("club.duckdb", str(club_folder / "club.duckdb"))
    (tmp_path / "club.yaml").write_text(text, encoding="utf-8")
    with connect(tmp_path / "club.yaml", ledger=MemoryLedger("club")) as con:
        con.sql("SELECT COUNT(*) FROM members").run(epsilon=1)
        with pytest.raises(BudgetExceeded):
            con.sql("SELECT COUNT(*) FROM visits").run(epsilon=1)
        for sql, rows in FREE.items():
            assert con.sql(sql).run(epsilon=5).fetchall() == rows


def test_only_the_release_with_rows_is_charged_drawn_and_stored(con: Connection, ledger: MemoryLedger) -> None:
    real = "SELECT city, COUNT(*) AS n FROM members GROUP BY city"
    fetched: list[str] = []
    inner = con.service.engine.fetch

    def fetch(sql: str) -> RawTable:
        fetched.append(sql)
        return inner(sql)

    con.service.engine.fetch = fetch  # type: ignore[method-assign]
    both = con.sql(
        f"{real} UNION ALL SELECT city, COUNT(*) FROM visits JOIN members USING (id) WHERE FALSE GROUP BY city"
    )
    assert both.cost(epsilon=0.5) == PrivacyLoss(Fraction(1, 2))
    answer = both.run(epsilon=0.5)
    assert answer.spent == PrivacyLoss(Fraction(1, 2)) == ledger.spent("member")
    assert len(answer) == 6 and [n for _, n in answer.rows[3:]] == [0, 0, 0]
    assert len([sql for sql in fetched if "members" in sql]) == 1 and not any("visits" in sql for sql in fetched)
    (entry,) = ledger.history()
    assert len(entry.entry.answers) == 1
    # The stored answer is that of the question with rows, and serves it.
    again = con.sql(real).run(epsilon=0.5)
    assert again.spent == PrivacyLoss() and again.rows == answer.rows[:3]
    for more in (
        f"{real} UNION ALL ({real} LIMIT 0)",
        f"SELECT city, n FROM ({real}), (SELECT COUNT(*) AS m FROM tills WHERE FALSE)",
    ):
        assert con.sql(more).run(epsilon=0.5).spent == PrivacyLoss()
    assert ledger.spent("tills") == PrivacyLoss()


def test_a_release_may_read_the_number_of_one_without_rows(con: Connection) -> None:
    sql = "SELECT COUNT(*) AS n FROM members WHERE age > (SELECT COUNT(*) FROM visits WHERE FALSE) + 1000"
    answer = con.sql(sql).run(epsilon=1)
    assert answer.spent == PrivacyLoss(1) and len(answer.plan.releases) == 2
    assert abs(answer.rows[0][0]) < 1000  # none is that old
    assert con.sql(sql).run(epsilon=1).spent == PrivacyLoss()


def test_reflection_reads_no_private_row(club_folder: Path) -> None:
    sa = pytest.importorskip("sqlalchemy")
    engine = sa.create_engine(f"dpsql:///{club_folder / 'club.yaml'}", connect_args={"ledger": MemoryLedger("club")})
    with engine.connect() as connection:
        members = sa.Table("members", sa.MetaData(), autoload_with=connection)
        assert connection.execute(sa.select(members).where(sa.false())).fetchall() == []
        probe = connection.execute(sa.select(members.c.city, sa.func.count()).group_by(members.c.city).limit(0))
        assert list(probe.keys()) == ["city", "count_1"] and probe.fetchall() == []
        assert connection.execute(sa.select(sa.func.count(members.c.id)).where(sa.false())).fetchall() == [(0,)]
    engine.dispose()
