"""One person, two budgets: the same rows under the name of a view."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import dpsql
from tests.attacks.conftest import POLICY, Clinic

EVENTS = "SELECT COUNT(*) FROM events"
CAPPED = POLICY.replace("epsilon: 1000000000", "epsilon: 3")

VIEWS = {
    "of the table": "CREATE VIEW recent AS SELECT * FROM events WHERE value < 9",
    "of a view": "CREATE VIEW first AS SELECT * FROM events; CREATE VIEW recent AS SELECT * FROM first",
    "of a macro": "CREATE MACRO rows_of() AS TABLE SELECT * FROM main.events; CREATE VIEW recent AS FROM rows_of()",
    "joined": "CREATE VIEW recent AS SELECT e.* FROM events AS e JOIN pub ON pub.diag = e.kind",
    "renamed": "CREATE VIEW recent AS WITH t AS (SELECT kind AS k, value AS v FROM events) "
    "SELECT k AS kind, v AS value FROM t",
}
RECENT = "  recent: {{{unit}, columns: {{kind: {{type: varchar}}, value: {{type: double, bounds: [0, 10]}}}}}}\n"


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
