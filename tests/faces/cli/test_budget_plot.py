"""`dpsql budget --plot` and `--history`: what is drawn, in which forms, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.core.ledger.ledger import Entry, Receipt
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.faces.cli.commands.budgets.budget_plot import as_html, panels
from dpsql.faces.report.spending import Panel
from dpsql.policy.load import load_policy
from dpsql.service.accounts.ledgers import open_ledger, place_of
from dpsql.service.accounts.spending_story import SpendingStory
from tests.support.command_line import Call, Clinic
from tests.support.counted_trips import make_trips

COUNT = "SELECT COUNT(*) AS n FROM patients"
F = Fraction


@pytest.mark.parametrize(
    "name", ["budget.svg", "budget.png", "budget", "nowhere/budget.html", ".", "folder.html", "a" * 300 + ".html"]
)
def test_other_forms_and_places_are_refused(dpsql: Call, clinic: Clinic, tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.html").mkdir()
    done = dpsql("budget", clinic.policy, "--plot", tmp_path / name)
    assert done.status == 1 and done.codes == {"DP903"} and "Traceback" not in done.err


def test_history_tells_times_and_stored_answers(dpsql: Call, clinic: Clinic) -> None:
    for analyst in ("ana", "ben"):
        assert dpsql("query", clinic.policy, COUNT, "--analyst", analyst, "--epsilon", "0.5").status == 0
    first, second = json.loads(dpsql("budget", clinic.policy, "--history", "--format", "json").out)["history"]
    assert first["charges"]["patient"]["epsilon"] == second["received"]["patient"]["epsilon"] == 0.5
    assert first["received"] == second["charges"] == {}
    assert second["answers"] == first["answers"] and len(first["answers"]) == 1
    for entry in (first, second):
        assert abs(datetime.fromisoformat(entry["reserved_at"]) - datetime.now(UTC)) < timedelta(minutes=5)
    table = dpsql("budget", clinic.policy, "--history").out
    assert "ε 0.5 of patient (stored answers)" in table and first["reserved_at"][:10] in table


def test_a_long_statement_is_cut_in_the_table_and_whole_in_json(dpsql: Call, clinic: Clinic) -> None:
    long = f"SELECT COUNT(*) AS n{'n' * 50} FROM patients -- {'x' * 80}"
    assert dpsql("query", clinic.policy, long, "--epsilon", "0.1").status == 0
    table = dpsql("budget", clinic.policy, "--history").out
    assert f"{long[:119]}…" in table and long[:120] not in table
    assert (
        json.loads(dpsql("budget", clinic.policy, "--history", "--format", "json").out)["history"][0]["statement"]
        == long
    )


# What is drawn --------------------------------------------------------------------------------------------------------


def receipt(at: int, analyst: str, charges: PrivacyLoss, time: str, received: PrivacyLoss | None = None) -> Receipt:
    got = {} if received is None else {"patient": received}
    return Receipt(Entry(str(at), analyst, {"patient": charges}, "p", "q", "", got), at, "h", time)


def drawn(policy: Policy, entries: Sequence[Receipt]) -> list[Panel]:
    return panels(policy, SpendingStory.of(policy.unit_names, entries), None)


def test_lines_are_exact_and_time_never_runs_back(clinic: Clinic) -> None:
    policy = load_policy(clinic.policy)
    entries = [
        receipt(1, "ana", PrivacyLoss(F(1, 3)), "2026-01-02T00:00:00+00:00"),
        receipt(2, "ben", PrivacyLoss(F(1, 3), F(1, 10**9)), "2026-01-01T00:00:00+00:00", PrivacyLoss(F(1, 7))),
        receipt(3, "ana", PrivacyLoss(F(1, 3)), "no time at all"),
        receipt(4, "ana", PrivacyLoss(F(1)), "2026-01-03T00:00:00+02:00"),
    ]
    epsilon, delta = (p for p in drawn(policy, entries) if p.unit == "patient")
    assert (epsilon.title, delta.title) == ("patient: ε", "patient: δ")
    assert {line.account: line.spent for line in epsilon.lines} == {None: 2, "ana": F(5, 3), "ben": F(10, 21), "*": 0}
    assert {line.account: line.spent for line in delta.lines} == {
        None: F(1, 10**9), "ana": 0, "ben": F(1, 10**9), "*": 0,
    }  # fmt: skip
    for line in epsilon.lines:
        times = [time for time, _ in line.points]
        assert times == sorted(times)
        assert [spent for _, spent in line.points] == sorted(spent for _, spent in line.points)
    assert as_html(policy.name, [epsilon, delta]).count("<svg") == 2


def test_names_cannot_become_markup(clinic: Clinic) -> None:
    policy = load_policy(clinic.policy)
    entries = [receipt(1, "<script>alert(1)</script>&\"'", PrivacyLoss(F(1)), "2026-01-02T00:00:00+00:00")]
    page = as_html("<mark>", drawn(policy, entries))
    assert "<script" not in page and "<mark>" not in page and "&lt;script&gt;" in page


def test_each_limit_is_drawn_once_the_totals_too_and_a_moment_has_one_label(clinic: Clinic) -> None:
    clinic.change('"*": {epsilon: 0.5, delta: 1e-8}', '"*": {epsilon: 3, delta: 1e-8}')
    policy = load_policy(clinic.policy)
    entries = [receipt(i, name, PrivacyLoss(F(2)), "2026-01-02T00:00:00+00:00") for i, name in enumerate(("ana", "*"))]
    (panel,) = drawn(policy, entries)
    page = as_html(policy.name, [panel])
    assert page.count('<path class="limit') == 2 and "limit of total: 10" in page and "limit of *, ana: 3" in page
    assert page.count("2026-01-02 00:00:00 UTC") == 1
    later = receipt(3, "ana", PrivacyLoss(F(1, 4)), "2026-01-02T00:00:09+00:00")
    page = as_html(policy.name, drawn(policy, [*entries, later]))
    assert "2026-01-02 00:00:00 UTC" in page and "2026-01-02 00:00:09 UTC" in page


def test_what_days_have_lost_is_drawn(dpsql: Call, tmp_path: Path) -> None:
    """Up to the last day that lost anything; of units with one account nothing of days is drawn."""
    trips = make_trips(tmp_path, accountant="approx_dp", each="{epsilon: 1}")
    trips.close(6)
    for days, epsilon in (("BETWEEN DATE '2026-01-02' AND '2026-01-04'", "0.5"), (">= DATE '2026-01-04'", "0.25")):
        asked = f"SELECT COUNT(*) AS n FROM trips WHERE day {days}"
        assert dpsql("query", trips.policy, asked, "--analyst", "ana", "--epsilon", epsilon).status == 0
    html = tmp_path / "b.html"
    assert dpsql("budget", trips.policy, "--plot", html).status == 0
    assert "By day of the rows" in html.read_text()
    policy = load_policy(trips.policy)
    with open_ledger(policy, place_of(policy, None)) as ledger:  # type: ignore[arg-type,attr-defined]
        (panel,) = panels(policy, SpendingStory.of(policy.unit_names, ledger.history()), "ana")
    found = [(at.day, float(spent)) for at, spent in panel.lines[0].periods]
    assert found == [(1, 0), (2, 0.5), (4, 0.75), (5, 0.25), (7, 0), (8, 0)]
    report = tmp_path / "r.html"
    assert dpsql("policy", "report", trips.policy, "--output", report).status == 0
    page = report.read_text()
    assert "trips: ε, by day of the rows" in page and "what a dropped counter will never measure" in page
    for cell in ("<th scope=col colspan=1>365 days</th>", ">ε 28</td>", ">ε 365</td>", "with one row of trips in each"):
        assert cell in page
    assert (
        "Somebody with a row in each of many days is protected less: 7 days: ε 7" in dpsql("budget", trips.policy).out
    )
