"""`dpsql query`, `explain` and `budget` on real data: formats, accounts, caps, ledgers, exit codes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from dpsql.planner.notes.notes import BIAS
from tests.support.command_line import Call, Clinic

COUNT = "SELECT COUNT(*) AS n FROM patients"
REGIONS = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM patients GROUP BY region ORDER BY region"


def test_a_table_ends_with_price_rest_notes_and_level(dpsql: Call, clinic: Clinic) -> None:
    clinic.change("{rows: 12, nobody_has_more: true}", "12")
    sql = "SELECT region, COUNT(*) AS n FROM visits JOIN patients USING (patient_id) GROUP BY region ORDER BY region"
    done = dpsql("query", clinic.policy, sql, "--epsilon", "0.2", "--analyst", "ana")
    assert done.status == 0 and done.err == ""
    header, rule, *rows, footer, left_out, ends, limit = done.out.splitlines()
    assert header.split() == ["region", "|", "n"] and set(rule) == {"-", "+"}
    assert [row.split()[0] for row in rows] == ["east", "north", "south", "west"]
    assert all(" ≥ " in row and row.endswith(" (too low by an unknown amount)") for row in rows)
    assert footer == "(4 rows)  spent ε 0.2, left ε 2.8 δ 1e-7; ± at 95 %"
    assert left_out == "  rows with another region than these 4 are left out"
    assert ends == "  n: at least the lower end; how much limits cut is unknown: limits=search (ε 0.2) tells"
    assert limit == "  at most 12 rows per patient counted"
    assert "\x1b" not in done.out


def test_csv_is_data_and_nothing_else(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("query", clinic.policy, REGIONS, "--epsilon", "0.2", "--format", "csv")
    rows = list(csv.reader(io.StringIO(done.out)))
    assert rows[0] == ["region", "n", "age"] and [r[0] for r in rows[1:]] == ["east", "north", "south", "west"]
    assert all(int(r[1]) > 0 and 30 < float(r[2]) < 60 for r in rows[1:])
    assert done.err.startswith("(4 rows)  spent ε 0.2, left ε 0.3 δ 1e-8\n")


def test_json_has_the_six_documented_keys(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("query", clinic.policy, REGIONS, "--epsilon", "0.2", "--format", "json")
    answer = json.loads(done.out)
    assert list(answer) == ["columns", "rows", "intervals", "gaps", "spent", "notes"] and done.err == ""
    assert answer["columns"] == ["region", "n", "age"] and len(answer["rows"]) == len(answer["intervals"]) == 4
    assert answer["spent"] == {"epsilon": 0.2, "delta": 0.0, "rho": 0.0} and answer["gaps"] == [{}] * 4
    for row, around in zip(answer["rows"], answer["intervals"], strict=True):
        assert set(around) == {"n", "age"}
        assert around["n"][0] < row[1] < around["n"][1] and around["age"][0] <= row[2] <= around["age"][1]
    left_out = "rows with another region than these 4 are left out"
    assert answer["notes"] == [
        {"rank": "danger", "text": left_out},
        {"rank": "bias", "text": "age is clipped to [0, 110]"},
        {"rank": "bias", "text": BIAS},
    ]


def test_jsonl_and_markdown(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("query", clinic.policy, REGIONS, "--epsilon", "0.1", "--format", "jsonl")
    assert [set(json.loads(line)) for line in done.out.splitlines()] == [{"region", "n", "age"}] * 4
    done = dpsql("query", clinic.policy, REGIONS, "--epsilon", "0.1", "--format", "markdown")
    assert done.out.splitlines()[:2] == ["| region | n | age |", "| --- | ---: | ---: |"]
    assert done.out.count(" ± ") == 8


def test_dates_are_iso_and_repeated_names_get_a_number(dpsql: Call, clinic: Clinic) -> None:
    sql = "SELECT day AS d, COUNT(*) n, COUNT(*) n FROM visits WHERE day < DATE '2025-01-03' GROUP BY day ORDER BY 1"
    done = dpsql("query", clinic.policy, sql, "--epsilon", "0.2", "--format", "json")
    answer = json.loads(done.out)
    assert answer["columns"] == ["d", "n", "n_1"]
    assert [row[0] for row in answer["rows"]][:2] == ["2025-01-01", "2025-01-02"]
    assert set(answer["intervals"][0]) == {"n", "n_1"}


def test_weights_split_epsilon(dpsql: Call, clinic: Clinic) -> None:
    sql = "SELECT COUNT(*) AS n, COUNT(DISTINCT region) AS r FROM patients"
    done = dpsql("explain", clinic.policy, sql, "--epsilon", "0.4", "--weight", "n=3", "--format", "json")
    assert [c["epsilon"] for c in json.loads(done.out)["releases"][0]["components"]] == pytest.approx([0.3, 0.1])


def test_public_answers_cost_nothing_and_make_no_ledger(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("query", clinic.policy, "SELECT title FROM icd10 WHERE code = 'I10'", "--format", "csv")
    assert done.status == 0 and done.out == "title\nHigh blood pressure\n"
    assert done.err == "(1 row)  spent nothing\n"
    assert not clinic.ledger.exists()


def test_sql_comes_from_a_file_or_standard_input(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text(f"-- how many?\n{COUNT};\n", encoding="utf-8-sig")
    for done in (
        dpsql("query", clinic.policy, "-f", file, "--epsilon", "0.1"),
        dpsql("query", clinic.policy, "-", "--epsilon", "0.1", stdin=COUNT.encode()),
        dpsql("query", clinic.policy, "--file", "-", "--epsilon", "0.1", stdin=COUNT.encode()),
    ):
        assert done.status == 0 and " ± " in done.out
    file.write_text("SELECT COUNT(*)\nFROM nowhere", encoding="utf-8")
    done = dpsql("query", clinic.policy, "-f", file)
    assert done.status == 4 and f"  --> {file}:2:6\n   | FROM nowhere\n   |      ^^^^^^^" in done.err


def test_one_query_has_a_limit_of_its_own(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("query", clinic.policy, COUNT, "--analyst", "ana", "--epsilon", "1.01")
    assert done.status == 5 and done.codes == {"DP405"} and not history(dpsql, clinic)


def test_whom_the_policy_does_not_name_spends_the_shared_account(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("query", clinic.policy, COUNT, "--analyst", "bob", "--epsilon", "0.3")
    assert done.status == 0 and "charged to the shared account *" in done.out
    done = dpsql("query", clinic.policy, COUNT, "--analyst", "eve", "--epsilon", "0.3", "--fresh")
    assert done.status == 5 and "'*'" in done.err


def test_delta_is_spent_only_where_keys_are_private(dpsql: Call, clinic: Clinic) -> None:
    towns = "SELECT town, COUNT(*) AS n FROM patients GROUP BY town"
    for sql, delta in ((COUNT, False), (towns, True)):
        done = dpsql(
            "query", clinic.policy, sql, "--epsilon", "0.2", "--delta", "1e-12", "--analyst", "ana", "--format", "json"
        )
        spent = json.loads(done.out)["spent"]["delta"]
        assert 0 < spent <= 1e-12 if delta else spent == 0
    assert "Lonely Farm" not in done.out


def test_no_epsilon_anywhere_is_an_error(dpsql: Call, clinic: Clinic) -> None:
    clinic.change("defaults: {epsilon: 0.5, delta: 1e-8}", "defaults: {delta: 1e-8}")
    done = dpsql("query", clinic.policy, COUNT)
    assert done.status == 1 and done.codes == {"DP401"} and "--epsilon" in done.err
    assert dpsql("explain", clinic.policy, COUNT).status == 0


def test_a_removed_ledger_is_missed(dpsql: Call, clinic: Clinic) -> None:
    assert dpsql("query", clinic.policy, COUNT, "--epsilon", "0.1").status == 0
    for file in clinic.folder.glob("clinic.ledger.sqlite*"):
        file.unlink()
    assert dpsql("budget", clinic.policy).codes == {"DP407"}
    assert dpsql("query", clinic.policy, COUNT, "--epsilon", "0.1").status == 2


def test_looking_at_the_budget_makes_nothing(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("budget", clinic.policy)
    assert done.status == 0 and not list(clinic.folder.glob("clinic.ledger*"))
    lines = [[cell.strip() for cell in line.split("|")] for line in done.out.splitlines()]
    assert lines[2:5] == [
        ["patient", "total", "ε 0", "ε 10 δ 1e-6", "ε 10 δ 1e-6"],
        ["patient", "*", "ε 0", "ε 0.5 δ 1e-8", "ε 0.5 δ 1e-8"],
        ["patient", "ana", "ε 0", "ε 3 δ 1e-7", "ε 3 δ 1e-7"],
    ]
    assert done.out.splitlines()[5].startswith("(0 queries charged)  clinic, approx_dp, ")


def test_explain_spends_nothing(dpsql: Call, clinic: Clinic) -> None:
    text = dpsql("explain", clinic.policy, REGIONS, "--epsilon", "0.4").out
    assert "cost: ε 0.4 of each patient" in text and "scan patients" in text
    found = json.loads(dpsql("explain", clinic.policy, REGIONS, "--format", "json", "--engine-sql").out)
    component = found["releases"][0]["components"][0]
    assert {"l0", "l1", "l2", "linf", "mechanism", "scale", "epsilon", "expected_error"} <= set(component)
    assert all({"operator", "stability", "rule", "unit", "bounds"} <= set(node) for node in found["nodes"])
    assert found["cost"]["patient"]["epsilon"] == 0.5
    assert all("patients" in statement["sql"] for statement in found["engine_sql"])
    assert "engine_sql" not in json.loads(dpsql("explain", clinic.policy, REGIONS, "--format", "json").out)
    assert not clinic.ledger.exists()


def test_explain_and_query_agree_on_the_price(dpsql: Call, clinic: Clinic) -> None:
    towns = "SELECT town, COUNT(*) AS n, SUM(age) AS s FROM patients GROUP BY town"
    plan = json.loads(dpsql("explain", clinic.policy, towns, "--epsilon", "0.3", "--format", "json").out)
    done = dpsql("query", clinic.policy, towns, "--epsilon", "0.3", "--analyst", "ana", "--format", "json")
    assert json.loads(done.out)["spent"] == plan["cost"]["patient"]
    assert (
        plan["plan"]
        == json.loads(dpsql("budget", clinic.policy, "--history", "--format", "json").out)["history"][0]["plan"]
    )


def test_other_dialects(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql(
        "query", clinic.policy, "SELECT COUNT(*) AS `n` FROM `patients`", "--dialect", "bigquery", "--epsilon", "0.1"
    )
    assert done.status == 0 and done.out.split()[0] == "n"


def history(dpsql: Call, clinic: Clinic) -> list[object]:
    found: list[object] = json.loads(dpsql("budget", clinic.policy, "--history", "--format", "json").out)["history"]
    return found


def spent(dpsql: Call, clinic: Clinic, *options: str | Path) -> float:
    found = json.loads(dpsql("budget", clinic.policy, "--format", "json", *options).out)
    total: float = found["accounts"][0]["spent"]["epsilon"]
    return total


def test_a_batch_is_one_price(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    """Each statement of the file has its table; the second run is free; json has the intervals."""
    board = tmp_path / "board.sql"
    board.write_text(
        f"{COUNT} WHERE smoker;\nSELECT region, COUNT(*) AS n FROM patients GROUP BY region ORDER BY region;"
    )
    done = dpsql("query", clinic.policy, "--batch", str(board), "--epsilon", "0.2", "--analyst", "ana")
    assert done.status == 0
    assert done.out.count(" ± ") == 6  # with that of the footer
    assert "(2 answers)  spent ε 0." in done.out
    again = dpsql(
        "query", clinic.policy, "--batch", str(board), "--epsilon", "0.2", "--analyst", "ana", "--format", "json"
    )
    told = json.loads(again.out)
    assert told["spent"]["epsilon"] == 0
    low, high = told["answers"][1]["intervals"][0]["n"]
    assert low < told["answers"][1]["rows"][0][1] < high


def test_a_refused_column_of_a_batch_has_its_place_in_the_file(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    """Also where it is the batch, and not the query alone, that needs a list."""
    board = tmp_path / "board.sql"
    board.write_text(f"{COUNT};\n{COUNT} WHERE\n town = 'x'; SELECT SUM(age) AS s FROM patients;")
    asked = ("query", clinic.policy, "--batch", str(board), "--epsilon", "0.1", "--analyst", "ana")
    refused = dpsql(*asked)
    assert refused.status == 4 and "DP302" in refused.err and f"{board}:3:2" in refused.err
    done = dpsql(*asked, "--skip-refused", "--format", "json")
    told = json.loads(done.out)
    assert told["answers"][1] is None
    low, high = told["answers"][2]["intervals"][0]["s"]
    assert low <= float(told["answers"][2]["rows"][0][0]) <= high


def test_a_batch_names_what_it_leaves_out(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    board = tmp_path / "board.sql"
    board.write_text(f"{COUNT};\n\n  SELECT COUNT(*),\n  MAX(age) FROM patients")
    asked = ("query", clinic.policy, "--batch", str(board), "--epsilon", "0.1", "--analyst", "ana")
    refused = dpsql(*asked)
    assert refused.status == 4 and "DP101" in refused.err and "nothing was spent" in refused.err
    assert f"{board}:4:3" in refused.err and "\n   |   ^^^^^^^^" in refused.err
    done = dpsql(
        "query", clinic.policy, "--batch", str(board), "--epsilon", "0.1", "--analyst", "ana", "--skip-refused"
    )
    assert done.status == 0 and "MAX is none of COUNT, SUM and AVG" in done.err and "(1 answer)" in done.out
    csv_refused = dpsql("query", clinic.policy, "--batch", str(board), "--format", "csv")
    assert "DP903" in csv_refused.err


def test_a_batch_is_one_statement(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    """As an argument, in a file of queries, in a file of a batch; explained for nothing, as text alone."""
    sql = f"DP BATCH ({COUNT}; SELECT region, COUNT(*) AS n FROM patients GROUP BY region)"
    file = tmp_path / "board.sql"
    file.write_text(f"{sql};")
    shown = dpsql("explain", clinic.policy, sql)
    assert shown.status == 0 and "batch of 2 queries, 5 numbers" in shown.out
    assert dpsql("explain", clinic.policy, sql, "--format", "json").codes == {"DP903"}
    asked = ("--epsilon", "0.2", "--analyst", "ana")
    assert "(2 answers)  spent ε 0.2;" in dpsql("query", clinic.policy, sql, *asked).out
    for again in (("--file", str(file)), ("--batch", str(file))):
        assert "(2 answers)  spent ε 0;" in dpsql("query", clinic.policy, *again, *asked).out
    skipping = sql.replace("(", "SKIP REFUSED (SELECT MAX(age) FROM patients; ", 1)
    done = dpsql("query", clinic.policy, skipping, *asked)
    assert done.status == 0 and done.codes == {"DP101"} and "(2 answers)" in done.out
    anew = dpsql("query", clinic.policy, sql, *asked, "--fresh")
    assert "(2 answers)  spent ε 0.2;" in anew.out
    for other in (("--max-error", "n=50"), ("--weight", "n=2", "--epsilon", "0.2")):
        for command in ("query", "explain"):
            refused = dpsql(command, clinic.policy, sql, "--analyst", "ana", *other)
            assert refused.codes == {"DP411"} and "a batch divides its price itself" in refused.err
    assert dpsql("query", clinic.policy, sql.rstrip(")"), *asked).codes == {"DP010"}
    assert dpsql("query", clinic.policy, sql, "--batch", str(file)).codes == {"DP903"}


def test_the_environment_names_policy_ledger_analyst_and_spending(
    dpsql: Call, clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("POLICY", clinic.policy), ("LEDGER", ":memory:"), ("ANALYST", "ana"), ("EPSILON", "0.125")):
        monkeypatch.setenv(f"DPSQL_{name}", str(value))
    done = dpsql("query", COUNT)
    assert done.status == 0 and "spent ε 0.125, left ε 2.875" in done.out
    assert dpsql("query", COUNT).out.count("left ε 2.875") == 1  # the ledger was forgotten
    assert "ε 0.125" in dpsql("explain", COUNT).out
    assert dpsql("query", COUNT, "--max-error", "n=500").status == 0  # which says how much to spend
    assert "spent ε 0.25," in dpsql("query", clinic.policy, COUNT, "--epsilon", "0.25").out
    assert dpsql("budget", "--format", "json").status == 0
    monkeypatch.setenv("DPSQL_LEDGER", "")
    monkeypatch.setenv("DPSQL_LIMITS", "perhaps")
    assert dpsql("query", COUNT).status == 1


def test_a_query_that_looks_like_an_option_is_read_from_a_file(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("query", clinic.policy, f"-- dpsql: epsilon=0.5\n{COUNT}")
    assert done.status == 1 and "-f FILE" in done.err
