"""`dpsql query`, `explain` and `budget` on real data: formats, accounts, caps, ledgers, exit codes."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from dpsql.planner.notes import BIAS
from tests.support.command_line import Call, Clinic

COUNT = "SELECT COUNT(*) AS n FROM patients"
REGIONS = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM patients GROUP BY region ORDER BY region"


def test_a_table_ends_with_price_rest_notes_and_level(dpsql: Call, clinic: Clinic) -> None:
    sql = "SELECT region, COUNT(*) AS n FROM visits JOIN patients USING (patient_id) GROUP BY region ORDER BY region"
    done = dpsql("query", clinic.policy, sql, "--epsilon", "0.2", "--analyst", "ana")
    assert done.status == 0 and done.err == ""
    header, rule, *rows, footer = done.out.splitlines()
    assert header.split() == ["region", "|", "n"] and set(rule) == {"-", "+"}
    assert [row.split()[0] for row in rows] == ["east", "north", "south", "west"]
    assert all(" ± " in row for row in rows)
    notes = f"at most 12 rows per patient counted; rows with another region than the 4 listed are left out; {BIAS}"
    assert footer == f"(4 rows)  spent ε 0.2, left ε 2.8 δ 1e-7; {notes}; ± at 95 %"
    assert "\x1b" not in done.out


def test_csv_is_data_and_nothing_else(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("query", clinic.policy, REGIONS, "--epsilon", "0.2", "--format", "csv")
    rows = list(csv.reader(io.StringIO(done.out)))
    assert rows[0] == ["region", "n", "age"] and [r[0] for r in rows[1:]] == ["east", "north", "south", "west"]
    assert all(int(r[1]) > 0 and 30 < float(r[2]) < 60 for r in rows[1:])
    assert done.err.startswith("(4 rows)  spent ε 0.2, left ε 0.3 δ 1e-8;")


def test_json_has_the_six_documented_keys(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("query", clinic.policy, REGIONS, "--epsilon", "0.2", "--format", "json")
    answer = json.loads(done.out)
    assert list(answer) == ["columns", "rows", "intervals", "gaps", "spent", "notes"] and done.err == ""
    assert answer["columns"] == ["region", "n", "age"] and len(answer["rows"]) == len(answer["intervals"]) == 4
    assert answer["spent"] == {"epsilon": 0.2, "delta": 0.0, "rho": 0.0} and answer["gaps"] == [{}] * 4
    for row, around in zip(answer["rows"], answer["intervals"], strict=True):
        assert set(around) == {"n", "age"}
        assert around["n"][0] < row[1] < around["n"][1] and around["age"][0] <= row[2] <= around["age"][1]
    left_out = "rows with another region than the 4 listed are left out"
    assert answer["notes"] == ["age is clipped to [0, 110]", left_out, BIAS]


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


def test_a_largest_error_in_place_of_an_epsilon(dpsql: Call, clinic: Clinic) -> None:
    wish = ("--max-error", "n=30", "--confidence", "0.9")
    told = dpsql("explain", clinic.policy, REGIONS, *wish)
    first = told.out.splitlines()[0]
    assert told.status == 0 and first.startswith("epsilon 0.") and first.endswith(" for n ± 30 at 90 %")
    done = dpsql("query", clinic.policy, REGIONS, *wish, "--format", "json")
    spent = json.loads(done.out)["spent"]["epsilon"]
    assert done.status == 0 and 0 < spent <= float(first.split()[1]) < spent * 1.001
    intervals = json.loads(done.out)["intervals"]
    assert all(high - low <= 60 for row in intervals for low, high in [row["n"]])
    table = dpsql("query", clinic.policy, REGIONS, *wish)
    assert table.out.count("± 30 ") == 4 and "; ± at 90 %" in table.out
    usual = json.loads(dpsql("query", clinic.policy, REGIONS, "--epsilon", "0.01", "--format", "json").out)["intervals"]
    assert all(high - low > 60 for row in usual for low, high in [row["n"]])
    as_json = json.loads(dpsql("explain", clinic.policy, REGIONS, *wish, "--format", "json").out)
    assert as_json["max_error"] == {"n": 30} and as_json["confidence"] == 0.9
    errors = {c["name"]: c["expected_error"] for c in as_json["releases"][0]["components"]}
    assert 30 < errors["COUNT(*)"] <= 40  # EXPLAIN's own ± is at 95 %


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


def test_the_budget_runs_out(dpsql: Call, clinic: Clinic) -> None:
    """Three times 0.9 of 3 fit, a fourth does not; what is left can be spent to the last."""
    ask = ("query", clinic.policy, COUNT, "--analyst", "ana", "--fresh", "--epsilon")
    assert [dpsql(*ask, "0.9").status for _ in range(3)] == [0, 0, 0]
    refused = dpsql(*ask, "0.9")
    assert refused.status == 5 and refused.codes == {"DP404"} and refused.out == ""
    assert "ε 0.9 asked, 0.3 left" in refused.err and "use epsilon = 0.3 or less" in refused.err
    assert "nothing was run and nothing was spent" in refused.err
    assert "max_error" not in refused.err
    assert dpsql(*ask, "0.30000000000000000001").status == 5
    planned = dpsql(*ask[:-1], "--max-error", "n=1")
    assert planned.status == 5 and "= help: allow a larger max_error, or give in its place" in planned.err
    done = dpsql(*ask, "0.3")
    assert done.status == 0 and "left ε 0 δ 1e-7" in done.out
    assert dpsql(*ask, "1e-9").status == 5
    assert dpsql("query", clinic.policy, COUNT, "--epsilon", "0.1").status == 0  # the shared account has its own


def test_one_query_has_a_limit_of_its_own(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("query", clinic.policy, COUNT, "--analyst", "ana", "--epsilon", "1.01")
    assert done.status == 5 and done.codes == {"DP405"} and not history(dpsql, clinic)


def test_the_total_holds_for_all_analysts_together(dpsql: Call, clinic: Clinic) -> None:
    clinic.change("total: {epsilon: 10, delta: 1e-6}", "total: {epsilon: 3.2, delta: 1e-6}")
    for _ in range(3):
        assert dpsql("query", clinic.policy, COUNT, "--analyst", "ana", "--epsilon", "0.95", "--fresh").status == 0
    done = dpsql("query", clinic.policy, COUNT, "--epsilon", "0.4", "--fresh")
    assert done.status == 5 and done.codes == {"DP403"}
    assert "left ε 0.05" in dpsql("query", clinic.policy, COUNT, "--epsilon", "0.3", "--fresh").out


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


def test_another_ledger_is_another_budget(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    assert dpsql("query", clinic.policy, COUNT, "--ledger", other, "--epsilon", "0.4").status == 0
    assert not clinic.ledger.exists() and other.exists()
    assert dpsql("query", clinic.policy, COUNT, "--ledger", other, "--epsilon", "0.4", "--fresh").status == 5
    assert spent(dpsql, clinic, "--ledger", other) == 0.4
    assert spent(dpsql, clinic) == 0
    # The policy's own ledger by its name is the policy's own ledger, with the same head.
    assert dpsql("query", clinic.policy, COUNT, "--ledger", clinic.ledger, "--epsilon", "0.1").status == 0
    assert dpsql("query", clinic.policy, COUNT, "--epsilon", "0.1", "--fresh").status == 0
    assert spent(dpsql, clinic) == 0.2


def test_an_older_ledger_is_refused_until_it_is_accepted(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    def ask() -> int:
        return dpsql("query", clinic.policy, COUNT, "--analyst", "ana", "--epsilon", "0.1", "--fresh").status

    assert ask() == 0
    old = tmp_path / "old.sqlite"
    shutil.copy(clinic.ledger, old)
    assert ask() == 0
    for leftover in clinic.folder.glob("*.sqlite-*"):
        leftover.unlink()
    shutil.copy(old, clinic.ledger)
    done = dpsql("query", clinic.policy, COUNT, "--analyst", "ana", "--epsilon", "0.1")
    assert done.status == 2 and done.codes == {"DP407"} and "older copy" in done.err
    assert dpsql("budget", clinic.policy).status == 2
    assert "dpsql budget POLICY --accept-head" in done.err
    assert dpsql("budget", clinic.policy, "--accept-head").status == 0
    assert ask() == 0 and spent(dpsql, clinic) == 0.2


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


def test_the_budget_tells_accounts_apart(dpsql: Call, clinic: Clinic) -> None:
    dpsql("query", clinic.policy, COUNT, "--analyst", "ana", "--epsilon", "0.7")
    dpsql("query", clinic.policy, "SELECT COUNT(*)\n FROM visits", "--epsilon", "0.2")
    found = json.loads(dpsql("budget", clinic.policy, "--format", "json", "--history").out)
    assert {(a["analyst"], a["spent"]["epsilon"], a["left"]["epsilon"]) for a in found["accounts"]} == {
        (None, 0.9, 9.1), ("ana", 0.7, 2.3), ("*", 0.2, 0.3),
    }  # fmt: skip
    assert [(h["sequence"], h["analyst"], h["statement"]) for h in found["history"]] == [
        (1, "ana", COUNT), (2, "*", "SELECT COUNT(*)\n FROM visits"),
    ]  # fmt: skip
    mine = json.loads(dpsql("budget", clinic.policy, "--format", "json", "--analyst", "ana").out)
    assert [a["analyst"] for a in mine["accounts"]] == [None, "ana"] and mine["queries"] == 1
    table = dpsql("budget", clinic.policy, "--history").out
    assert "SELECT COUNT(*) FROM visits" in table and "(2 queries charged)" in table


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
