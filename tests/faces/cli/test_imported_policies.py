"""`dpsql policy import`: set-ups of five systems, as their documentation writes them, become policies that answer."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import dpsql
from dpsql.diagnostics.errors import CannotOpen
from dpsql.faces.cli.main import main
from dpsql.policy.load import load_policy

ROWS = 4000
SMARTNOISE = """
engine: pandas
PUMS:
  PUMS:
    people:
      rows: 1000
      max_ids: 3
      clamp_counts: True
      pid: {type: int, private_id: True}
      age: {type: int, lower: 0, upper: 120}
      region: {type: string, cardinality: 2, nullable: false}
      income: {type: float, lower: 0, upper: 500000, missing_value: 0}
      photo: {type: unknown}
"""
OPENDP = """
import opendp.prelude as dp
import polars as pl
df = pl.scan_csv("people.csv", ignore_errors=True)
context = dp.Context.compositor(
    data=df,
    privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("pid")),
    privacy_loss=dp.loss_of(epsilon=2.0, delta=1e-7),
    split_evenly_over=4,
    margins=[dp.polars.Margin(by=["region"], invariant="keys")],
)
context.query().truncate_per_group(3).group_by("region").agg(
    dp.len(), pl.col("age").cast(int).fill_null(0).dp.sum((0, 120))
).release()
raise SystemExit("nobody runs this")
"""
TUMULT = """
from tmlt.analytics import *
people_df = spark.read.option("header", True).csv("people.csv")
session = (
    Session.Builder()
    .with_privacy_budget(PureDPBudget(epsilon=2.5))
    .with_id_space("person")
    .with_private_dataframe("people", people_df, protected_change=AddRowsWithID("pid", "person"))
    .build()
)
keys = KeySet.from_dict({"region": ["north", "south"]})
session.evaluate(
    QueryBuilder("people").enforce(MaxRowsPerID(3)).groupby(keys).sum("age", low=0, high=120), PureDPBudget(1)
)
"""
SNOWFLAKE = """
CREATE TABLE db.sc.people (pid NUMBER(38,0) NOT NULL, region VARCHAR(10), age INT, income NUMBER(10, 2));
CREATE OR REPLACE PRIVACY POLICY pol.person AS () RETURNS PRIVACY_BUDGET ->
  CASE WHEN CURRENT_USER() = 'ADMIN' THEN NO_PRIVACY_POLICY()
       WHEN CURRENT_ROLE() = 'analyst' THEN PRIVACY_BUDGET(budget_name => 'all', budget_limit => 10,
            max_budget_per_aggregate => 0.5, budget_window => 'Monthly')
       ELSE PRIVACY_BUDGET(budget_name => 'others') END;
ALTER TABLE db.sc.people ADD PRIVACY POLICY pol.person ENTITY KEY (pid);
ALTER TABLE db.sc.people ALTER (
  COLUMN region SET PRIVACY DOMAIN IN ('north', 'south'),
  COLUMN age SET PRIVACY DOMAIN BETWEEN (0, 120));
"""
BIGQUERY = """
CREATE TABLE `p.ds.people_all` (pid INT64 NOT NULL, region STRING, age INT64, income FLOAT64);
CREATE OR REPLACE VIEW `p.ds.people` OPTIONS (privacy_policy = '{"differential_privacy_policy": {
  "privacy_unit_column": "pid", "max_epsilon_per_query": 2.0, "epsilon_budget": 50.0, "delta_per_query": 1e-6,
  "delta_budget": 1e-5, "max_groups_contributed": 2}}') AS SELECT * FROM `p.ds.people_all`;
"""
SET_UPS = {
    "smartnoise": ("meta.yaml", SMARTNOISE),
    "opendp": ("opendp_set_up.py", OPENDP),
    "tumult": ("tmlt_set_up.py", TUMULT),
    "snowflake": ("snowflake.sql", SNOWFLAKE),
    "bigquery": ("bigquery.sql", BIGQUERY),
}
Imports = Callable[..., str]


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Imports:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i},{('north', 'south')[i % 2]},{20 + i % 60},{i}.5\n" for i in range(ROWS))
    Path("people.csv").write_text(f"pid,region,age,income\n{rows}", encoding="utf-8")

    def run(system: str, *more: str, text: str = "") -> str:
        name, written = SET_UPS[system]
        Path(name).write_text(text or written, encoding="utf-8")
        Path("policy.yaml").unlink(missing_ok=True)
        assert main(["policy", "import", name, *more, "-o", "policy.yaml"]) == 0
        return Path("policy.yaml").read_text(encoding="utf-8")

    return run


def settled(text: str) -> str:
    """As a person leaves it who has decided everything as it stands."""
    kept = [line for line in text.splitlines() if not re.match(r"\s*#", line) and not line.startswith("draft:")]
    return "\n".join(re.sub(r"\s+# DECIDE.*", "", line) for line in kept) + "\nledger: ':memory:'\n"


@pytest.mark.parametrize("system", SET_UPS)
def test_each_kind_answers_when_it_is_decided(system: str, imported: Imports) -> None:
    text = imported(system, "people.csv", "--from", system)
    assert imported(system, "people.csv").splitlines()[1:] == text.splitlines()[1:]  # it is seen whose it is
    with pytest.raises(CannotOpen) as refusal:
        dpsql.connect("policy.yaml")
    assert refusal.value.diagnostics[0].code == "DP016"
    Path("policy.yaml").write_text(settled(text), encoding="utf-8")
    policy = load_policy("policy.yaml")
    assert policy.tables["people"].unit and "DECIDE" in text and "# Imported from a set-up of" in text
    with dpsql.connect("policy.yaml") as con:
        question = "SELECT COUNT(*) AS n, AVG(age) AS a FROM people WHERE region = 'north'"
        ((n, mean),) = con.sql(question).run(epsilon=0.5).rows
        assert abs(n - ROWS / 2) < 1000 and abs(mean - 49) < 30


def test_what_is_said_there_stands_here(imported: Imports) -> None:
    text = imported("smartnoise", "people.csv")
    assert (
        "max_rows_per_unit: 3" in text
        and "bounds: [0, 120]" in text
        and "region: {type: varchar, nullable: false}" in text
    )
    assert "GREATEST(COUNT(*), 0)" in text and "COALESCE(income, 0)" in text and "photo" not in text
    text = imported("opendp")  # the file that it reads is beside it
    assert "defaults: {epsilon: 0.5, delta: 2.5e-08}" in text and "unit: {of: pid, column: pid}" in text
    assert "bounds: [0, 120]" in text and "source:" in text and "columns = {'pid': 'BIGINT'" in text
    text = imported("tumult")
    assert (
        "accountant: pure_dp" in text and "domain: [north, south]" in text and "unit: {of: person, column: pid}" in text
    )
    text = imported("snowflake")
    assert "analyst: {epsilon: 10, delta: 1e-7, per_query: {max_epsilon: 0.5}}" in text and "(weekly) for *" in text
    assert "ADMIN was answered without noise" in text and 'income: {type: "decimal(10,2)"}' in text
    text = imported("bigquery")
    assert "max_groups_per_unit: 2" in text and "total: {epsilon: 50, delta: 1e-05}" in text
    assert "a view of people_all" in text and "age: {type: bigint}" in text


@pytest.mark.parametrize(
    ("system", "old", "new", "said"),
    [
        ("smartnoise", "private_id: True", "nullable: true", "0 columns with private_id"),
        ("smartnoise", "type: int, lower", "type: money, lower", "the type money"),
        ("opendp", 'dp.unit_of(contributions=1, identifier=pl.col("pid"))', "units()", "no call of unit_of"),
        ("opendp", "contributions=1, identifier=pl.col(\"pid\")", "contributions=most()", "neither contributions"),
        ("tumult", "PureDPBudget(epsilon=2.5)", "budget()", "no PureDPBudget"),
        ("tumult", 'AddRowsWithID("pid", "person")', "AddOther()", "AddOther is not known"),
        ("tumult", "session = (", "session = ((", "no Python"),
        ("snowflake", "ADD PRIVACY POLICY", "ADD MASKING POLICY", "no table has a privacy policy"),
        ("bigquery", "privacy_unit_column", "unit", "no privacy_unit_column"),
        ("bigquery", '{"differential', '{differential', "no JSON"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said(
    system: str, old: str, new: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    name, text = SET_UPS[system]
    assert old in text
    Path(name).write_text(text.replace(old, new), encoding="utf-8")
    assert main(["policy", "import", name, "--from", system, "-o", "policy.yaml"]) == 1
    assert said in capsys.readouterr().err and not Path("policy.yaml").exists()


@pytest.mark.parametrize("system", SET_UPS)
def test_a_damaged_set_up_is_read_or_refused(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name, text = SET_UPS[system]
    chance = random.Random(system)
    for _ in range(150):
        start = chance.randrange(len(text))
        damaged = (
            text[:start]
            + chance.choice(["", "(", ")", "'", "0", "\x00", "[[", "x\n"])
            + text[start + chance.randrange(9) :]
        )
        Path(name).write_text(damaged, encoding="utf-8")
        Path("policy.yaml").unlink(missing_ok=True)
        status = main(["policy", "import", name, "--from", system, "-o", "policy.yaml"])
        assert status == 0 if Path("policy.yaml").exists() else re.search(r"error\[DP\d+\]", capsys.readouterr().err)


def test_no_name_of_a_set_up_adds_lines(imported: Imports) -> None:
    """Names and values are quoted, and remarks stay in their line: nobody who wrote a set-up decides here."""
    hostile = '"x\\nbudgets: {total: {epsilon: 9}}"'
    text = imported(
        "smartnoise", text=SMARTNOISE.replace("income:", f"{hostile}:").replace("upper: 500000", f"upper: {hostile}")
    )
    assert not [line for line in text.splitlines() if line.startswith("budgets: ")]
    text = imported(
        "snowflake", text=SNOWFLAKE.replace("(0, 120)", "('1\nx: 1', 2)").replace("'ADMIN'", "'A\nname: y'")
    )
    assert not [line for line in text.splitlines() if line.startswith(("x:", "name: y"))]


def test_rows_are_protected_as_they_were(imported: Imports) -> None:
    other = OPENDP.replace('contributions=1, identifier=pl.col("pid")', "contributions=5")
    text = imported("opendp", text=other)
    assert "unit: {rows: 5}" in text and "does nobody have more than 5 rows?" in text
    swapped = imported("opendp", text=other.replace("contributions=5", "changes=2"))
    assert "unit: {rows: 2, neighbours: replace_one}" in swapped
    cut = TUMULT.replace('AddRowsWithID("pid", "person")', 'AddMaxRowsInMaxGroups("region", 2, 3)')
    assert "unit: {rows: 6}" in imported("tumult", text=cut)
    alone = SMARTNOISE.replace("rows: 1000", "row_privacy: True").replace(", private_id: True", "")
    assert "unit: {rows: 1}" in imported("smartnoise", text=alone)
