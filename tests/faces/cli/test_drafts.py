"""Repairs that whoever has a fresh draft needs: each is pasted as it is printed, and works."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpsql
from dpsql.api.connection import connect
from dpsql.diagnostics.errors import Rejected
from tests.support.command_line import Call
from tests.support.drafts import as_decided, decide


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dpsql: Call) -> Path:
    """A database whose names have blanks, with a STRUCT and a time with a zone, and its draft."""
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("d.duckdb") as con:
        con.execute("""
            CREATE TABLE persons("person id" INTEGER, "first name" VARCHAR, home STRUCT(city VARCHAR, zip INTEGER));
            CREATE TABLE calls(call_id INTEGER, "person id" INTEGER, seen TIMESTAMPTZ, "net amount" DOUBLE);
            INSERT INTO persons SELECT i, 'n' || i % 7, {city: 'c' || i % 5, zip: i} FROM range(50) t(i);
            INSERT INTO calls SELECT i, i % 50, TIMESTAMPTZ '2025-01-01 00:00:00+00' + INTERVAL 1 HOUR * i, i
            FROM range(90) t(i);
        """)
    assert dpsql("policy", "init", "d.duckdb", "-o", "draft.yaml").status == 0
    text = re.sub(r"unit: \{column.*?\}", "unit: {rows: 1}", decide("draft.yaml").read_text(encoding="utf-8"))
    text = re.sub(r"    max_rows_per_unit.*\n|(?<=rows: 1\}).*", "", text)
    Path("draft.yaml").write_text(text.replace("units: {person: {}}\n", ""), encoding="utf-8")
    return tmp_path


def refused(sql: str, policy: str = "draft.yaml") -> Any:
    with connect(policy, ledger=":memory:") as con, pytest.raises(Rejected) as refusal:
        con.plan(sql, epsilon=1)
    return refusal.value.diagnostics[0]


def test_a_join_of_rows_proposes_the_unit_and_it_works(folder: Path) -> None:
    sql = 'SELECT COUNT(*) AS n FROM persons JOIN calls USING ("person id")'
    d = refused(sql)
    assert d.code == "DP230"
    found = re.search(r"in tables\.(\w+) and tables\.(\w+)  (unit: \{.*?\})  with  (max_rows_per_unit: \d+)", d.help[0])
    assert found is not None and {found[1], found[2]} == {"persons", "calls"}, d.help[0]
    text = Path("draft.yaml").read_text(encoding="utf-8")
    assert text.count("    unit: {rows: 1}\n") == 2
    Path("fixed.yaml").write_text(text.replace("    unit: {rows: 1}\n", f"    {found[3]}\n    {found[4]}\n"), "utf-8")
    with connect("fixed.yaml", ledger=":memory:") as con:
        assert con.sql(sql).run(epsilon=1).rows


def test_a_join_of_a_table_with_itself_says_it_once(folder: Path) -> None:
    d = refused('SELECT COUNT(*) AS n FROM calls a JOIN calls b USING ("person id")')
    assert "in tables.calls  unit:" in d.help[0] and len(set(d.help)) == len(d.help)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_a_moment_against_a_clock_proposes_the_clock(folder: Path, zone: str) -> None:
    written = "TIMESTAMPTZ '2025-01-02 00:00:00+01'"
    text = Path("draft.yaml").read_text(encoding="utf-8").replace("'UTC'", f"'{zone}'")
    Path("zone.yaml").write_text(text, encoding="utf-8")
    d = refused(f"SELECT COUNT(*) AS n FROM calls WHERE seen >= {written}", "zone.yaml")
    assert d.code == "DP106" and zone in d.help[0]
    (clock,) = re.findall(r"TIMESTAMP '[^']+'", d.help[0])
    with connect("zone.yaml", ledger=":memory:") as con:
        con.plan(f"SELECT COUNT(*) AS n FROM calls WHERE seen >= {clock}", epsilon=1)
    with duckdb.connect("d.duckdb", read_only=True) as rows:
        of_clock = f"SELECT COUNT(*) FROM calls WHERE seen AT TIME ZONE '{zone}' >= {clock}"
        of_moment = "SELECT COUNT(*) FROM calls WHERE seen >= TIMESTAMPTZ '2025-01-02 00:00:00+01'"
        found = rows.execute(of_clock).fetchone()
        assert found == rows.execute(of_moment).fetchone() and found is not None and 0 < found[0] < 90


def test_a_field_that_is_misspelled_or_missing(folder: Path) -> None:
    d = refused("SELECT COUNT(*) AS n FROM persons WHERE home.zipp = 3")
    assert d.code == "DP102" and "did you mean home.zip?" in d.help
    with connect("draft.yaml", ledger=":memory:") as con:
        con.plan("SELECT COUNT(*) AS n FROM persons WHERE home.zip = 3", epsilon=1)
    assert (
        "its declared fields are home.city or home.zip" in refused("SELECT COUNT(*) FROM persons WHERE home.x = 3").help
    )


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ('SELECT COUNT("frist name") FROM persons', 'column "frist name" does not exist'),
        ('SELECT COUNT("frist name") FROM persons', 'did you mean "first name"?'),
        ('/* dpsql: limits=declared */ SELECT SUM("net amount") FROM calls', 'tables.calls.columns."net amount"'),
        ('SELECT COUNT(*) FROM "no such"', 'table "no such" does not exist'),
        ('SELECT COUNT(nosuch) FROM persons', 'declared columns: "person id", "first name", home_city'),
    ],
)  # fmt: skip
def test_names_with_blanks_are_shown_in_quotes(folder: Path, sql: str, said: str) -> None:
    d = refused(sql)
    assert any(said in text for text in (d.message, d.label or "", *d.help))


def test_a_threshold_that_groups_may_not_reach_is_told_before_it_is_paid(folder: Path) -> None:
    sql = 'SELECT "first name", COUNT(*) AS n FROM persons GROUP BY 1'
    with connect("draft.yaml", ledger=":memory:") as con:
        (warning,) = con.plan(sql, epsilon="0.1", delta="1e-8").warnings
        assert warning.code == "DP503" and 'groups of "first name" are shown from' in warning.message
        (epsilon,) = re.findall(r"use an ε of (\S+) or more", warning.help[0])
        assert con.plan(sql, epsilon=epsilon, delta="1e-8").warnings == ()
        assert con.plan("SELECT COUNT(*) AS n FROM persons", epsilon="0.1").warnings == ()


def test_a_threshold_above_half_of_a_public_size_is_told(folder: Path) -> None:
    policy = dpsql.Policy.from_dict(
        {
            "version": 1, "name": "p", "database": "d.duckdb", "privacy": {"neighbours": "replace_one"},
            "tables": {
                "persons": {"unit": {"rows": 1}, "size": {"exact": 50}, "columns": {"first name": {"type": "varchar"}}}
            },
            "budgets": {"total": {"epsilon": 9, "delta": 1e-6}},
        }
    )  # fmt: skip
    sql = 'SELECT "first name", COUNT(*) AS n FROM persons GROUP BY 1'
    with connect(policy, ledger=":memory:") as con:
        found = {float(e): [w.code for w in con.plan(sql, epsilon=e, delta="1e-6").warnings] for e in ("1", "2", "9")}
        with pytest.raises(dpsql.Rejected, match="none can have over 50") as refusal:
            con.plan(sql, epsilon="0.1", delta="1e-6")
    assert refusal.value.code == "DP305" and found[9.0] == [] and "DP503" in found[1.0] + found[2.0]


def test_a_column_that_no_two_rows_share_is_no_id_of_persons(dpsql: Call, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{1000 + i},{i % 7}\n" for i in range(40))
    Path("visits.csv").write_text(f"visit_id,patient_id\n{rows}", encoding="utf-8")
    draft = dpsql("policy", "init", "visits.csv").out
    assert "unit: {column: patient_id}   # DECIDE" in draft and "#   or  {rows: 1},  {column: visit_id}," in draft
    assert "dpsql policy schema > dpsql-policy.schema.json" in draft


@pytest.mark.parametrize("word", ["NA", "k.A.", "refused", "it's secret"])
def test_a_word_for_a_missing_value_leaves_its_column_a_number(
    word: str, dpsql: Call, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"N{i % 9},{word if i % 11 == 3 else i},{word if i % 5 else 'a'}\n" for i in range(60))
    Path("flights.csv").write_text(f"tailnum,delay,note\n{rows}", encoding="utf-8")
    draft = dpsql("policy", "init", "flights.csv").out
    assert "delay: {type: bigint}" in draft and "note: {type: varchar}" in draft
    assert f"'{word}' is read as no value:  delay BIGINT" in draft
    Path("policy.yaml").write_text(as_decided(draft), encoding="utf-8")
    assert dpsql("policy", "verify", "policy.yaml").status == 0
    assert dpsql("query", "policy.yaml", "SELECT AVG(CLIP(delay, 0, 60)) FROM flights", "--epsilon", "1").status == 0


def test_rare_words_and_many_words_stay_texts(dpsql: Call, tmp_path: Path, monkeypatch: Any) -> None:
    """Neither stands in a draft: a rare word may be somebody's."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{'Meier' if i == 7 else i},{f'{i}{chr(97 + i % 9)}' if i % 3 else i}\n" for i in range(60))
    Path("t.csv").write_text(f"a,b\n{rows}", encoding="utf-8")
    draft = dpsql("policy", "init", "t.csv").out
    assert "a: {type: varchar}" in draft and "b: {type: varchar}" in draft
    assert "Meier" not in draft and "nullstr" not in draft


def test_a_type_that_a_line_does_not_have_is_told_with_its_line(dpsql: Call, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"N{i % 9},{'NA' if i % 11 == 3 else i}\n" for i in range(60))
    Path("flights.csv").write_text(f"tailnum,delay\n{rows}", encoding="utf-8")
    draft = as_decided(dpsql("policy", "init", "flights.csv").out)
    draft = draft.replace("delay: {type: bigint}", "delay: {type: bigint, bounds: [0, 9]}")
    Path("wrong.yaml").write_text(draft.replace(", nullstr = ['', 'NA']", ""), encoding="utf-8")
    done = dpsql("policy", "verify", "wrong.yaml")
    assert done.status == 2 and done.codes == {"DP006"} and "NA" not in done.err.partition("= help")[0]
    assert "line 5 of " in done.err and "column `delay`, is no BIGINT" in done.err and "nothing was charged" in done.err


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_two_thousand_columns_are_drafted_and_asked(ending: str, dpsql: Call, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    mark = "," if ending == "csv" else "\t"
    lines = [mark.join(f"column_{n}" for n in range(2000)), *(mark.join([str(i)] * 2000) for i in range(9))]
    Path(f"wide.{ending}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert dpsql("policy", "init", f"wide.{ending}", "-o", "draft.yaml").status == 0
    policy = str(decide("draft.yaml"))
    assert dpsql("query", policy, "SELECT SUM(CLIP(column_1999, 0, 9)) AS s FROM wide").status == 0


def test_a_workbook_is_refused_with_what_can_be_read(dpsql: Call, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.xlsx").write_bytes(b"PK")
    done = dpsql("policy", "init", "people.xlsx")
    assert done.codes == {"DP006"} and "save each sheet as CSV" in done.err


def test_several_files_are_named_after_their_folder(dpsql: Call, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shop").mkdir()
    for name in ("orders", "people"):
        Path(f"shop/{name}.csv").write_text("customer_id\n1\n1\n", encoding="utf-8")
    for data in (("shop/orders.csv", "shop/people.csv"), ("shop",), ("shop/*.csv",)):
        assert "\nname: shop\n" in dpsql("policy", "init", *data).out
    assert "\nname: orders\n" in dpsql("policy", "init", "shop/orders.csv").out


def test_the_average_basket_is_answered_under_a_draft(dpsql: Call, tmp_path: Path, monkeypatch: Any) -> None:
    """A basket is one household's, as the first rows show; a store and a product are not."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{b // 4},{b},{b % 3},{line}" for b in range(80) for line in range(3)]
    Path("sales.csv").write_text("\n".join(["household_id,basket_id,store_id,line_id", *rows]), encoding="utf-8")
    assert dpsql("policy", "init", "sales.csv", "-o", "draft.yaml").status == 0
    assert "belongs_to_unit: [basket_id]   #" in decide("draft.yaml").read_text(encoding="utf-8")
    sql = "SELECT AVG(n) FROM (SELECT basket_id, COUNT(*) AS n FROM sales GROUP BY basket_id)"
    found = dpsql("query", "draft.yaml", "--epsilon", "1", "--ledger", ":memory:", sql)
    assert found.status == 0 and "NULL" not in found.out, found
