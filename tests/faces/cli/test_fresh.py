"""`dpsql query` gives stored answers again, says so, and pays for new noise with `--fresh`."""

from __future__ import annotations

import json

from tests.support.command_line import Call, Clinic

COUNT = "SELECT COUNT(*) AS n FROM patients"


def test_the_second_answer_is_the_first_and_costs_nothing(dpsql: Call, clinic: Clinic) -> None:
    first = dpsql("query", clinic.policy, COUNT, "--epsilon", "0.1", "--analyst", "ana")
    second = dpsql("query", clinic.policy, "SELECT COUNT(*) m FROM patients", "--epsilon", "0.05", "--analyst", "ana")
    assert first.status == second.status == 0
    assert first.out.splitlines()[2] == second.out.splitlines()[2]  # the number and its ±
    footer, note = second.out.splitlines()[-2:]
    assert footer == "(1 row)  spent nothing; ± at 95 %"
    assert note.startswith("  m answered from 20") and "cost 0" not in note
    budget = json.loads(dpsql("budget", clinic.policy, "--format", "json").out)
    assert budget["queries"] == 1


def test_fresh_pays_again(dpsql: Call, clinic: Clinic) -> None:
    for _ in range(2):
        done = dpsql("query", clinic.policy, COUNT, "--epsilon", "0.1", "--analyst", "ana", "--fresh")
        assert done.status == 0 and "spent ε 0.1," in done.out and "answered from" not in done.out
    assert json.loads(dpsql("budget", clinic.policy, "--format", "json").out)["queries"] == 2


def test_json_says_so_in_its_notes(dpsql: Call, clinic: Clinic) -> None:
    arguments = ("query", clinic.policy, COUNT, "--epsilon", "0.1", "--format", "json")
    first, second = (json.loads(dpsql(*arguments).out) for _ in range(2))
    assert first["rows"] == second["rows"] and first["intervals"] == second["intervals"]
    assert first["spent"]["epsilon"] == 0.1 and second["spent"] == {"epsilon": 0.0, "delta": 0.0, "rho": 0.0}
    (note,) = [note for note in second["notes"] if note not in first["notes"]]
    assert note["rank"] == "source" and note["text"].startswith("n answered from 20") and "cost" not in note["text"]


def test_another_analyst_is_told_what_it_costs_his_account(dpsql: Call, clinic: Clinic) -> None:
    first = dpsql("query", clinic.policy, COUNT, "--epsilon", "0.1", "--analyst", "ana", "--format", "csv")
    second = dpsql("query", clinic.policy, COUNT, "--epsilon", "0.1", "--format", "csv")
    assert first.out == second.out
    assert "spent ε 0.1, left" in second.err
    assert "new to this account cost it ε 0.1, and the total budget nothing" in second.err
    accounts = json.loads(dpsql("budget", clinic.policy, "--format", "json").out)["accounts"]
    spent = {a["analyst"]: a["spent"]["epsilon"] for a in accounts if a["unit"] == "patient"}
    assert spent[None] == spent["ana"] == spent["*"] == 0.1


def test_by_default_new_noise_is_paid_as_asked(dpsql: Call, clinic: Clinic) -> None:
    dpsql("query", clinic.policy, COUNT, "--epsilon", "0.4", "--analyst", "ana")
    assert "cost: ε 0.1 of each patient\n" in dpsql("explain", clinic.policy, COUNT, "--epsilon", "0.1").out
    assert "spent ε 0.1, left" in dpsql("query", clinic.policy, COUNT, "--epsilon", "0.1").out
