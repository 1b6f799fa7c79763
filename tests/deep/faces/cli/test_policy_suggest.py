"""`dpsql policy suggest`: limits that searches found, as lines of a policy; charged once, told again for nothing.

ε is so large that a noisy count differs from the true one with a probability below 1e-12.
"""

from __future__ import annotations

import io
import json
import re
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from ruamel.yaml import YAML

from dpsql.api.connection import connect
from dpsql.core.noise.mechanisms import DiscreteLaplace
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.faces.cli.commands.policies import policy_suggest
from dpsql.planner.postprocessing.searches.octaves import Octaves, SearchResult
from dpsql.policy.load import load_policy
from dpsql.service.checks.suggest import targets
from tests.support import club
from tests.support.club import club_folder
from tests.support.command_line import Call

__all__ = ["club_folder"]
LARGE = "600"
POLICY = (
    club.POLICY.replace("DEFAULTS\n", "")
    .replace(", bounds: [0, 500]", "")
    .replace(", bounds: [0, 10]", "")
    .replace("    max_rows_per_unit: 4\n", "")
    .replace(", bounds: [0, 50]", "")
)


@pytest.fixture
def policy(club_folder: Path, tmp_path: Path) -> str:
    """The club's, without its limits and bounds but those of age and joined."""
    path = tmp_path / "open.yaml"
    path.write_text(POLICY.replace("club.duckdb", str(club_folder / "club.duckdb")), encoding="utf-8")
    return str(path)


def spent(dpsql: Call, policy: str) -> dict[str | None, float]:
    accounts = json.loads(dpsql("budget", policy, "--format", "json").out)["accounts"]
    return {a["analyst"]: a["spent"]["epsilon"] for a in accounts if a["unit"] == "member"}


def test_limits_are_printed_as_a_policy_has_them(dpsql: Call, policy: str) -> None:
    done = dpsql("policy", "suggest", policy, "--epsilon", LARGE)
    assert done.status == 0
    found = YAML(typ="safe").load(done.out)["tables"]
    assert found["visits"]["max_rows_per_unit"] == 8  # each has 5
    lines = done.out.splitlines()
    told = "found with ε 600 of member, ε 600 of tills: noisy, so that they may be published"
    assert lines[0] == f"# limits of club, {told}"
    (rows,) = [line for line in lines if "max_rows_per_unit: 8" in line]
    assert re.search(r"# about 0 ± \d+ member units lie above$", rows)
    # 0 to 399, 0 to 9 and 0 to 49, in hundredths, in 2^-20 and whole.
    assert found["members"] == {"columns": {"fee": {"bounds": [0, 655.36]}}}
    assert found["visits"]["columns"] == {"hours": {"bounds": [0, 16]}}
    assert found["tills"] == {"columns": {"amount": {"bounds": [0, 64]}}}
    assert "age" not in done.out and "SUM(id)" not in done.out
    assert 'search: SELECT COUNT(*) FROM "visits"' in done.err
    assert 'search: SELECT AVG("hours") FROM "visits"' in done.err
    assert "charged to custodian: ε 600 of member, ε 600 of tills" in done.err


def test_what_is_printed_is_a_part_of_a_policy(dpsql: Call, policy: str) -> None:
    done = dpsql("policy", "suggest", policy, "--epsilon", LARGE)
    merged: Any = YAML(typ="safe").load(Path(policy).read_text(encoding="utf-8"))
    for name, table in YAML(typ="safe").load(done.out)["tables"].items():
        for column, spec in table.pop("columns", {}).items():
            merged["tables"][name]["columns"][column] |= spec
        merged["tables"][name] |= table
    with Path(policy).open("w", encoding="utf-8") as file:
        YAML(typ="safe").dump(merged, file)
    loaded = load_policy(Path(policy))
    assert loaded.tables["visits"].columns["hours"].bounds == (0, 16) and targets(loaded) == ()


def test_what_is_held_is_told_at_the_price_that_was_paid(dpsql: Call, policy: str) -> None:
    """Not at the ε that is asked for now: octaves that are held are told again."""
    first = dpsql("policy", "suggest", policy, "visits", "--epsilon", LARGE)
    again = dpsql("policy", "suggest", policy, "visits", "--epsilon", "300")
    assert again.out == first.out and "found with ε 600 of member" in again.out
    assert spent(dpsql, policy) == {None: 600, "custodian": 600}


def test_who_was_told_bounds_asks_for_an_average_at_the_price_of_the_rest(dpsql: Call, policy: str) -> None:
    dpsql("policy", "suggest", policy, "visits", "--epsilon", LARGE)
    with connect(policy, analyst="custodian") as custodian:
        asked = custodian.sql("SELECT AVG(hours) AS a FROM visits")
        answer = asked.run(epsilon=10, limits="search")
        assert answer.spent == PrivacyLoss(Fraction(7)), "three tenths were paid for"
        assert [found.limit for found in answer.bounds] == [(0, 16), 8]


def test_what_was_printed_costs_nothing_the_second_time(dpsql: Call, policy: str) -> None:
    first = dpsql("policy", "suggest", policy, "--epsilon", LARGE)
    assert spent(dpsql, policy) == {None: 600, "custodian": 600}
    again = dpsql("policy", "suggest", policy, "--epsilon", LARGE)
    assert again.out == first.out and "charged to custodian: nothing" in again.err
    assert spent(dpsql, policy) == {None: 600, "custodian": 600}
    with connect(policy, analyst="custodian") as custodian, connect(policy, analyst="ana") as ana:
        asked = "SELECT COUNT(*) AS n FROM visits"
        held = custodian.sql(asked).run(epsilon=8, limits="search")
        assert held.spent == PrivacyLoss(Fraction(6)) and held.bounds[0].limit == 8
        assert ana.sql(asked).cost(epsilon=8, limits="search") == PrivacyLoss(Fraction(8))


def test_what_is_printed_follows_released_counts_alone(
    dpsql: Call, policy: str, club_folder: Path, tmp_path: Path
) -> None:
    """Other rows behind the same counts: not a letter changes."""
    copy = tmp_path / "copy.duckdb"
    copy.write_bytes((club_folder / "club.duckdb").read_bytes())
    text = Path(policy).read_text(encoding="utf-8").replace(str(club_folder / "club.duckdb"), str(copy))
    Path(policy).write_text(text, encoding="utf-8")
    first = dpsql("policy", "suggest", policy, "visits", "--epsilon", LARGE)
    with duckdb.connect(str(copy)) as database:
        database.execute("INSERT INTO visits SELECT 7, 1e12 FROM range(100000)")
    again = dpsql("policy", "suggest", policy, "visits", "--epsilon", LARGE)
    assert first.status == again.status == 0 and again.out == first.out


def test_other_accounts_and_tables(dpsql: Call, policy: str) -> None:
    done = dpsql("policy", "suggest", policy, "VISITS", "--epsilon", LARGE, "--analyst", "eva")
    assert done.status == 0 and "visits:" in done.out and "members" not in done.out
    assert spent(dpsql, policy) == {None: 600, "eva": 600}


def test_all_searches_fit_or_none_is_run(dpsql: Call, policy: str) -> None:
    done = dpsql("policy", "suggest", policy, "--epsilon", "10001")
    assert done.status == 5 and done.codes == {"DP403"} and done.out == ""
    assert spent(dpsql, policy) == {None: 0}


def test_a_dry_run_spends_nothing(dpsql: Call, policy: str, tmp_path: Path) -> None:
    done = dpsql("policy", "suggest", policy, "--epsilon", "0.5", "--dry-run")
    assert done.status == 0 and done.out == "" and "charged to custodian: ε 0.5 of member" in done.err
    assert not list(tmp_path.glob("*ledger*"))


def test_declared_limits_are_searched_if_asked_for(dpsql: Call, club_folder: Path) -> None:
    loaded = load_policy(club_folder / "club.yaml")
    assert [(t.table, t.column) for t in targets(loaded)] == []
    every = [(t.table, t.column) for t in targets(loaded, everything=True)]
    assert ("visits", None) in every and ("members", "age") in every and ("members", "joined") not in every
    assert ("visits", "id") not in every
    done = dpsql("policy", "suggest", club_folder / "club.yaml", "--dry-run", "--ledger", ":memory:")
    assert done.status == 0 and "nothing to search" in done.err


def test_a_ledger_of_rho(dpsql: Call, policy: str) -> None:
    path = Path(policy)
    text = path.read_text(encoding="utf-8").replace("{epsilon: 10000, delta: 1e-3}", "{rho: 10000}")
    path.write_text(text.replace("name: club\n", "name: club\nprivacy: {accountant: zcdp}\n"), encoding="utf-8")
    done = dpsql("policy", "suggest", policy, "visits", "--epsilon", "100", "--ledger", ":memory:")
    assert "charged to custodian: ρ 5000 of member" in done.err
    found = {"max_rows_per_unit": 8, "columns": {"hours": {"bounds": [0, 16]}}}
    assert YAML(typ="safe").load(done.out)["tables"]["visits"] == found


@pytest.mark.parametrize(
    ("words", "code"),
    [(["nowhere"], "DP903"), (["cities"], "DP903"), (["--epsilon", "0"], "DP406"), (["--epsilon", "x"], "DP406")],
)
def test_refusals(dpsql: Call, policy: str, words: list[str], code: str, tmp_path: Path) -> None:
    done = dpsql("policy", "suggest", policy, *words)
    assert done.status != 0 and done.codes == {code} and not list(tmp_path.glob("*ledger*"))


def test_what_is_not_found_is_said() -> None:
    noise = DiscreteLaplace(Fraction(5))
    nothing = Octaves("s", "COUNT(*)", "member", (0,) * 63, noise, 63)
    assert policy_suggest._line("", SearchResult(nothing, None)) == (
        "# max_rows_per_unit: not found: no octave holds the 52 member units that can be seen"
    )
    counts = (0,) * 66 + (500, 500) + (0,) * 59
    values = Octaves("v", "fee", "member", counts, noise, 127, first=-63, grid=Fraction(1, 100))
    assert policy_suggest._line("the fee", SearchResult(values, (2, 8))).startswith(
        '"the fee": {bounds: [0.02, 0.08]}  # about'
    )


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for quiet, expected in ((False, True), (True, False)):
        shown = Terminal()
        monkeypatch.setattr(sys, "stderr", shown)
        with policy_suggest._bar(3, quiet) as step:
            step()
        assert ("searches" in shown.getvalue()) is expected
