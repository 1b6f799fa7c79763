"""Items 23, 47 and 56 of joins and several releases, over data."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.planner.test_joins_and_releases import LINES, OWNED, outcome, planned
from tests.support.checklist_clinic import DELTA, POLICY, Attack, Clinic

WITHOUT_BOB = ("DELETE FROM patients WHERE name = 'bob'", "DELETE FROM visits WHERE pid = 2")


@pytest.fixture
def hospital(make: Callable[..., Clinic]) -> Clinic:
    """The clinic with bills, and lines whose owners are found through them."""
    return make(*LINES, policy=POLICY + OWNED)


# --- what broke ------------------------------------------------------------------------------------------------------

GROWTH = {
    "doubled": "SELECT DISTINCT pid, n || n AS n FROM t{}",
    "doubled by a function": "SELECT DISTINCT pid, concat(n, n) AS n FROM t{}",
    "with a separator": "SELECT DISTINCT pid, concat_ws('-', n, n) AS n FROM t{}",
    "in a union": "SELECT pid, n || n AS n FROM t{} UNION SELECT pid, n || n AS n FROM t{}",
    "in a maximum": "SELECT pid, MAX(n || n) AS n FROM t{} GROUP BY pid",
    "padded": "SELECT DISTINCT pid, lpad(n || n, 1000, 'a') || n || n AS n FROM t{}",
    "replaced": "SELECT DISTINCT pid, replace(n, 'a', 'aaaaaaaaaaaaaaaaaaaa') AS n FROM t{}",
}


@pytest.mark.parametrize("step", GROWTH.values(), ids=list(GROWTH))
def test_item_23_no_text_of_one_row_uses_up_all_memory(make: Callable[..., Clinic], step: str) -> None:
    """Doubled thirty times, the text that only bob's row has took 17 GB: the engine's error said that he is there."""
    levels = 6 if "UNION" in step else 29  # a union reads the step below twice
    steps = [f"t{i} AS ({step.replace('{}', str(i - 1))})" for i in range(1, levels + 1)]
    start = "t0 AS (SELECT pid, CASE WHEN name = 'bob' THEN 'aaaaaaaaaaaaaaaa' ELSE '' END AS n FROM patients)"
    sql = f"WITH {', '.join([start, *steps])} SELECT SUM(CLIP(length(n), 0, 5)) FROM t{levels}"
    for statements in ((), WITHOUT_BOB):
        assert outcome(make(*statements), sql) != "EngineError"


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("SELECT COUNT(*) FROM lines", 4),
        ("SELECT COUNT(*) FROM lines l JOIN bills b ON l.bill = b.bill", 4),
        ("SELECT COUNT(*) FROM lines l JOIN (SELECT * FROM bills WHERE ward = 8) b ON l.bill = b.bill", 0),
        ("SELECT COUNT(*) FROM lines l LEFT JOIN (SELECT * FROM bills WHERE ward = 8) b ON l.bill = b.bill", 4),
        ("SELECT COUNT(*) FROM bills b LEFT JOIN lines l ON l.bill = b.bill", 5),
        ("SELECT COUNT(*) FROM lines WHERE bill IN (SELECT bill FROM bills WHERE ward = 7)", 4),
        ("SELECT COUNT(*) FROM lines l ANTI JOIN bills b ON l.bill = b.bill AND b.ward = 7", 0),
        ("SELECT COUNT(*) FROM lines a JOIN lines b ON a.bill = b.bill", 6),
    ],
)
def test_item_56_every_line_has_the_owner_of_its_bill(hospital: Clinic, sql: str, count: int) -> None:
    """Lines without a bill are nobody's; with limits above what anybody has, the answer is DuckDB's."""
    plan = planned(hospital, sql)
    assert [set(r.measured.contributions) for r in plan.releases] == [{"unit"}]
    answer = outcome(hospital, sql)
    most = plan.releases[0].measured.measurements[0].sensitivity.l1
    assert most >= 3 and (answer == f"[({count},)]" or sql.count("lines") == 2), answer


ALMOST = (
    "SELECT COUNT(*) FROM visits WHERE amt > 30",
    "SELECT COUNT(*) FROM visits WHERE amt > 31",
    "SELECT COUNT(*) FROM visits WHERE amt >= 30",
    "SELECT COUNT(amt) FROM visits WHERE pid > 30",
    "SELECT COUNT(pid) FROM visits WHERE pid > 30",
    "SELECT COUNT(DISTINCT amt) FROM visits WHERE amt > 30",
    "SELECT COUNT(DISTINCT pid) FROM visits WHERE amt > 30",
    "SELECT COUNT(*) FILTER (WHERE amt > 30) FROM visits",
    "SELECT SUM(amt) FROM visits WHERE amt > 30",
    "SELECT SUM(CLIP(amt, 0, 50)) FROM visits WHERE amt > 30",
    "SELECT AVG(amt) FROM visits WHERE amt > 30",
    "SELECT COUNT(*) FROM patients WHERE name = 'a'",
    "SELECT COUNT(*) FROM patients WHERE name = 'A'",
    "SELECT COUNT(*) FROM patients WHERE diag = 'a'",
    "SELECT COUNT(*) FROM patients p JOIN visits v ON p.pid = v.pid",
    "SELECT COUNT(*) FROM patients p LEFT JOIN visits v ON p.pid = v.pid",
    "SELECT COUNT(*) FROM patients p SEMI JOIN visits v ON p.pid = v.pid",
    "SELECT COUNT(*) FROM patients p ANTI JOIN visits v ON p.pid = v.pid",
    "SELECT COUNT(*) FROM (SELECT pid FROM visits UNION ALL SELECT pid FROM patients)",
    "SELECT COUNT(*) FROM (SELECT pid FROM visits UNION SELECT pid FROM patients)",
    "SELECT COUNT(*) FROM events WHERE day > DATE '2024-01-01'",
    "SELECT COUNT(*) FROM events WHERE seen > TIMESTAMP '2024-01-01'",
    "SELECT COUNT(CASE WHEN amt > 30 THEN 1 END) FROM visits",
)


def test_item_47_releases_that_are_almost_equal_are_two(attack: Attack) -> None:
    for at, one in enumerate(ALMOST):
        for other in ALMOST[at + 1 :]:
            plan = attack.con.sql(f"SELECT ({one}), ({other})").plan(epsilon=1, delta=DELTA)
            assert len(plan.releases) == 2, f"{one} / {other}"
        assert len(attack.con.sql(f"SELECT ({one}) - ({one})").plan(epsilon=1, delta=DELTA).releases) == 1, one
