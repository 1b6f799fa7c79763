"""One person, two budgets: a unit under a new name, and the same rows under the name of a view."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import dpsql
from tests.support.checklist_clinic import POLICY, Call, Clinic

COUNT = "SELECT COUNT(*) FROM patients"
EVENTS = "SELECT COUNT(*) FROM events"
VISITS = "SELECT COUNT(*) FROM visits"
CAPPED = POLICY.replace("epsilon: 1000000000", "epsilon: 3")


def renamed(policy: str, more: str = "") -> str:
    """The policy with its id unit called `person`, and its row unit `happening`."""
    found = policy.replace("unit: {column: pid}", "unit: {column: pid, of: person}")
    return found.replace("unit: {rows: 1}", "unit: {rows: 1, of: happening}") + more


def spend(clinic: Clinic) -> None:
    """ε 2 of the patients, who are called `unit`, and 1 of the events."""
    with clinic.connect() as con:
        con.sql(COUNT).run(epsilon=2)
        con.sql(EVENTS).run(epsilon=1)


def test_probe_a_renamed_unit_has_no_second_budget(
    make: Callable[..., Clinic], dpsql_command: Callable[..., Call]
) -> None:
    clinic = make(policy=CAPPED)
    spend(clinic)
    clinic.policy.write_text(renamed(CAPPED))
    for ask in (COUNT, EVENTS):
        with (
            clinic.connect() as con,
            pytest.raises(dpsql.CannotOpen, match="has spent for unit 'events', 'unit'") as no,
        ):
            con.sql(ask).run(epsilon=3)
        assert "a second budget" in str(no.value) and "nothing was spent" in str(no.value)
    shown = dpsql_command("budget", clinic.policy)
    assert shown.status == 2 and "which this policy does not name" in shown.err

    # What the refusal says is put into the policy, with the new name.
    said = re.findall(r"former_units: \{(\w+): NAME, (\w+): NAME\}", str(no.value))
    assert said == [("events", "unit")]
    clinic.policy.write_text(renamed(CAPPED, "former_units: {events: happening, unit: person}\n"))
    with clinic.connect() as con:
        assert con.budget["person"].total_spent.epsilon == 2 and con.budget["happening"].total_spent.epsilon == 1
        with pytest.raises(dpsql.BudgetExceeded):
            con.sql(COUNT).run(epsilon=2)
        con.sql(COUNT).run(epsilon=1)
        with pytest.raises(dpsql.BudgetExceeded):
            con.sql(COUNT).run(epsilon=1, fresh=True)
        con.sql(EVENTS).run(epsilon=2)
    plot = clinic.folder / "budget.html"
    shown = dpsql_command("budget", clinic.policy, "--plot", plot, "--history")
    assert shown.status == 0 and re.search(r"person +\| total +\| ε 3 ", shown.out), shown.out
    assert "total: 3 of 3" in plot.read_text() and "(4 queries charged)" in shown.out


def test_probe_nor_has_one_that_takes_the_name_of_another(make: Callable[..., Clinic]) -> None:
    """Its new name is in the ledger already, with less spent."""
    both = CAPPED.replace("unit: {column: pid}", "unit: {column: pid, of: person}", 1)
    both = both.replace("unit: {column: pid}", "unit: {column: pid, of: other}", 1)
    clinic = make(policy=both)
    with clinic.connect() as con:
        con.sql(COUNT).run(epsilon=3)
        con.sql(VISITS).run(epsilon=1)
    merged = both.replace("of: person", "of: other")
    clinic.policy.write_text(merged)
    with clinic.connect() as con, pytest.raises(dpsql.CannotOpen, match="has spent for unit 'person'"):
        con.sql(COUNT).run(epsilon=1, fresh=True)
    clinic.policy.write_text(f"{merged}former_units: {{person: other}}\n")
    with clinic.connect() as con:
        assert con.budget["other"].total_spent.epsilon == 4
        with pytest.raises(dpsql.BudgetExceeded):
            con.sql(VISITS).run(epsilon=1, fresh=True)


def test_probe_a_unit_goes_with_its_tables_when_the_policy_says_so(make: Callable[..., Clinic]) -> None:
    clinic = make(policy=CAPPED)
    spend(clinic)
    without = re.sub(r"  events:\n(    .*\n)+", "", CAPPED)
    assert "events" not in without
    clinic.policy.write_text(without)
    with clinic.connect() as con, pytest.raises(dpsql.CannotOpen) as refused:
        con.sql(COUNT).run(epsilon=1, fresh=True)
    (line,) = re.findall(r"former_units: \{\w+: NAME\}", str(refused.value))
    assert "null in place of NAME says that one is gone with its tables" in str(refused.value)
    line = line.replace("NAME", "null")
    clinic.policy.write_text(f"{without}{line}\n")
    with clinic.connect() as con:
        con.sql(COUNT).run(epsilon=1, fresh=True)
        assert con.budget["unit"].total_spent.epsilon == 3 and list(con.budget) == ["unit"]


VIEWS = {
    "of the table": "CREATE VIEW recent AS SELECT * FROM events WHERE value < 9",
    "of a view": "CREATE VIEW first AS SELECT * FROM events; CREATE VIEW recent AS SELECT * FROM first",
    "of a macro": "CREATE MACRO rows_of() AS TABLE SELECT * FROM main.events; CREATE VIEW recent AS FROM rows_of()",
    "joined": "CREATE VIEW recent AS SELECT e.* FROM events AS e JOIN pub ON pub.diag = e.kind",
    "renamed": "CREATE VIEW recent AS WITH t AS (SELECT kind AS k, value AS v FROM events) "
    "SELECT k AS kind, v AS value FROM t",
}
RECENT = "  recent: {{{unit}, columns: {{kind: {{type: varchar}}, value: {{type: double, bounds: [0, 10]}}}}}}\n"


@pytest.mark.parametrize("unit", ["unit: {column: kind, of: kinds}", "public: true"])
def test_probe_nor_is_it_somebody_elses_or_public(make: Callable[..., Clinic], unit: str) -> None:
    policy = CAPPED.replace("unit: {column: pid}", "unit: {column: pid, of: person}") + RECENT.format(unit=unit)
    clinic = make(VIEWS["of the table"], policy=policy)
    with pytest.raises(dpsql.CannotOpen, match=r"tables.recent: reads `events`"):
        clinic.connect()


def test_probe_two_views_of_one_table_have_one_budget(make: Callable[..., Clinic]) -> None:
    """The policy lists the views only."""
    views = "CREATE VIEW recent AS SELECT * FROM events; CREATE VIEW early AS SELECT * FROM events"
    policy = re.sub(r"  events:\n(    .*\n)+", "", CAPPED) + RECENT.format(unit="unit: {rows: 1}")
    clinic = make(views, policy=policy + RECENT.format(unit="unit: {rows: 1}").replace("recent", "early"))
    with pytest.raises(dpsql.CannotOpen, match=r"tables.early: reads \S*events\S*, as `recent` does"):
        clinic.connect()


def test_probe_one_file_by_two_names_is_one_file(tmp_path: Path) -> None:
    """The policy's own comparison sees the texts of the paths only."""
    (tmp_path / "rows.csv").write_text("id\n1\n2\n")
    (tmp_path / "linked.csv").symlink_to("rows.csv")
    reader = "read_csv('{}', auto_detect = false, header = true, columns = {{'id': 'BIGINT'}})"
    text = "version: 1\nname: p\nledger: l.sqlite\nledger_head: l.head\nbudgets: {total: {epsilon: 1}}\ntables:\n"
    for name, path in (("a", "rows.csv"), ("b", "linked.csv")):
        text += f'  {name}:\n    source: "{reader.format(path)}"\n'
        text += "    unit: {rows: 1}\n    columns: {id: {type: bigint}}\n"
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(dpsql.CannotOpen, match=r"tables.b: reads `a`, which holds rows of unit `a`"):
        dpsql.connect(tmp_path / "p.yaml")


@pytest.mark.parametrize("view", VIEWS)
def test_probe_a_view_has_no_budget_of_its_own(make: Callable[..., Clinic], view: str) -> None:
    clinic = make(VIEWS[view], policy=CAPPED + RECENT.format(unit="unit: {rows: 1}"))
    with pytest.raises(dpsql.CannotOpen, match=r"\[DP004\]: tables.recent: reads `events`") as refused:
        clinic.connect()
    assert "the same rows would have two budgets" in str(refused.value)
    (unit,) = re.findall(r"unit: \{rows: 1, of: events\}", str(refused.value))
    clinic.policy.write_text(CAPPED + RECENT.format(unit=unit))
    with clinic.connect() as con:
        con.sql(EVENTS).run(epsilon=2)
        with pytest.raises(dpsql.BudgetExceeded):
            con.sql("SELECT COUNT(*) FROM recent").run(epsilon=2)
        con.sql("SELECT COUNT(*) FROM recent").run(epsilon=1)
