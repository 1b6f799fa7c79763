"""Coverage in a session: told with the answer, paid for with it, stored with it."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from dpsql.api.connection import Connection
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import Rejected

HOURS = "SELECT COUNT(*) AS n, AVG(hours) AS h FROM visits"
"""1,000 members with five visits each, of which four count."""


def test_it_is_told_in_notes_and_as_numbers(con: Connection, ledger: MemoryLedger) -> None:
    """At a huge ε the numbers are exact."""
    answer = con.sql(HOURS).run(epsilon=1000, coverage=True)
    (found,) = answer.coverage
    assert (found.unit, found.limits) == ("member", ("more than 4 rows",))
    assert [(c.above, c.number) for c in found.cells] == [((True,), 1000), ((False,), 0)]
    assert all(low <= c.number <= high for c in found.cells for low, high in (c.interval,))
    assert answer.rows[0][0] == 4000, "never corrected by it"
    assert (
        "units of member: about 1,000 ± 0 with more than 4 rows; about 0 ± 0 not. "
        "What is above a limit is missing from the numbers" in answer.notes
    )
    assert answer.spent == ledger.spent("member") == PrivacyLoss(Fraction(1000))
    assert con.sql(HOURS).run(epsilon=1000, fresh=True).coverage == ()


def test_it_is_stored_like_every_number(con: Connection, ledger: MemoryLedger) -> None:
    first = con.sql(HOURS).run(epsilon=1, coverage=True)
    assert con.sql(HOURS).cost(epsilon=1, coverage=True) == PrivacyLoss()
    again = con.sql(HOURS).run(epsilon=1, coverage=True)
    assert (again.coverage, again.rows, again.spent) == (first.coverage, first.rows, PrivacyLoss())
    assert ledger.spent("member") == PrivacyLoss(Fraction(1))
    # Of another query with the same rows under the same limits it is the very same number.
    other = con.sql("SELECT SUM(hours) AS s FROM visits")
    assert other.run(epsilon="0.5", coverage=True).coverage == first.coverage


def test_it_is_asked_for_in_each_way(con: Connection) -> None:
    assert con.execute("SHOW coverage").fetchall() == [("coverage", "off")]
    assert con.execute("SET coverage = on").fetchall() == [("coverage", "on")]
    assert con.sql(HOURS).run(epsilon=1).coverage and con.execute(HOURS, epsilon=1).fetchall()
    assert con.sql(HOURS).run(epsilon=1, coverage=False).coverage == ()
    assert con.execute("RESET coverage").fetchall() == [("coverage", "off")]
    assert con.sql(HOURS).run(epsilon=1).coverage == ()
    with pytest.raises(Rejected, match="DP406"):
        con.set("coverage", "perhaps")


def test_explain_shows_what_it_is_and_costs(con: Connection) -> None:
    query = con.sql(HOURS)
    text = query.explain(epsilon=1, coverage=True)
    assert "release 2 · unit member · coverage of release 1: more than 4 rows" in text
    assert "note: coverage: about a tenth of the price tells how many units are above the limits" in text
    releases = json.loads(query.explain(epsilon=1, coverage=True, format="json"))["releases"]
    assert [r.get("covers") for r in releases] == [None, [{"release": "r0", "limits": ["more than 4 rows"]}]]
    (component,) = releases[1]["components"]
    assert component["l1"] == 1 and component["epsilon"] == pytest.approx(0.1)
    assert query.cost(epsilon=1, coverage=True) == query.cost(epsilon=1)


@pytest.mark.parametrize(
    "sql, asked, said",
    [
        ("SELECT COUNT(*) FROM tills", {"epsilon": 1}, "rows are the privacy unit here"),
        ("SELECT COUNT(*) AS n FROM visits", {"max_error": {"n": 50}}, "beside max_error"),
    ],
)
def test_where_it_cannot_be_told(
    con: Connection, ledger: MemoryLedger, sql: str, asked: dict[str, object], said: str
) -> None:
    with pytest.raises(Rejected) as refused:
        con.sql(sql).run(coverage=True, **asked)  # type: ignore[arg-type]
    (found,) = refused.value.diagnostics
    assert found.code == "DP406" and said in found.message and found.help
    assert ledger.spent("till") == PrivacyLoss()


def test_public_answers_have_none(con: Connection) -> None:
    answer = con.sql("SELECT COUNT(*) FROM cities").run(coverage=True)
    assert answer.rows == ((3,),) and answer.coverage == ()
