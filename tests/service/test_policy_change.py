"""What a change of the policy would lose is what it loses, told before; by the command, too."""

from __future__ import annotations

import hashlib
import json
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

import dpsql
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss
from dpsql.faces.cli.main import main
from dpsql.service.checks.policy_change import change
from tests.support.policy_changes import CHANGES, EVERY, QUESTIONS, changed, made

FEW = {name: QUESTIONS[name] for name in ("station", "minutes", "pay", "city", "riders")}
"""Of all of them the others are told in tests/deep/answers/stored/test_policy_changes.py."""
SUMMARY = "CREATE DP SUMMARY homes ON riders (home, age) WITH (epsilon = 0.5)"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the policy, its data, and what was answered: questions, a summary, and one that has none."""
    folder = tmp_path_factory.mktemp("bikes")
    made(folder)
    with dpsql.connect(folder / "bikes.yaml", analyst="ana") as con:
        for sql in FEW.values():
            con.execute(sql, epsilon=5)
        con.execute(SUMMARY)
        con.execute("SELECT COUNT(*) AS n FROM trips WHERE minutes > ?", [5], epsilon=1)
    return folder


@pytest.fixture
def folder(asked: Path, tmp_path: Path) -> Path:
    shutil.copytree(asked, tmp_path / "bikes")
    return tmp_path / "bikes"


def content(folder: Path) -> dict[str, str]:
    """What is in its files, apart from what a reader of SQLite leaves beside them."""
    files = (p for p in folder.iterdir() if not p.name.endswith(("-shm", "-wal")))
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def names(stored: tuple[object, ...]) -> set[str]:
    known = {sql: name for name, sql in FEW.items()}
    return {known.get(s.statement, s.name or s.statement) for s in stored}  # type: ignore[attr-defined]


@pytest.mark.parametrize("case", ["a value in a domain", "a promised key", "a data version"])
def test_what_is_told_is_what_happens(folder: Path, case: str) -> None:
    words, lost = CHANGES[case]
    (folder / "new.yaml").write_text(changed(words), encoding="utf-8")
    before = content(folder)
    found = change(folder / "bikes.yaml", folder / "new.yaml")
    assert content(folder) == before
    summaries = {"homes"} if lost == EVERY else set()
    assert names(found.lost) == lost & FEW.keys() | summaries
    assert names(found.kept) == (FEW.keys() | {"homes"}) - lost - summaries
    assert len(found.untold) == 1 and "?" in found.untold[0].statement
    with dpsql.connect(folder / "new.yaml", analyst="ana") as con:
        again = {name for name, sql in FEW.items() if con.sql(sql).cost(epsilon=1) != NO_LOSS}
        assert again == lost & FEW.keys()
        assert bool(con.summaries[0].state) == bool(summaries)
    assert {s.price.epsilon for s in found.lost if not s.name} <= {5}
    assert {s.accounts for s in found.lost} <= {("ana",)}


def test_what_is_then_searched_unasked_is_lost_and_back_again(tmp_path: Path) -> None:
    """An answer under a declared limit of 40 rows is no answer of a search; what was searched stays found."""
    text = """\
version: 1
name: walks
database: walks.duckdb
units: {walker: {}}
tables:
  walks: {unit: {column: id, of: walker}, max_rows_per_unit: ROWS, columns: {id: {type: bigint, nullable: false}}}
budgets: {total: {epsilon: 1000000}}
"""
    import duckdb

    with duckdb.connect(str(tmp_path / "walks.duckdb")) as data:
        data.execute("CREATE TABLE walks AS SELECT i % 1000 AS id FROM range(6000) t(i)")
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    plain, found = "SELECT COUNT(*) AS n FROM walks", "SELECT COUNT(*) AS m FROM walks WHERE id < 900"
    few = "SELECT COUNT(DISTINCT id) AS u FROM walks"
    old.write_text(text.replace("ROWS", "40"), encoding="utf-8")
    new.write_text("search: auto\n" + text.replace("ROWS", "40"), encoding="utf-8")
    with dpsql.connect(old, analyst="ana") as con:
        con.execute(plain, epsilon=400)
        con.execute(found, epsilon=400, limits="search")
        con.execute(few, epsilon=1)
    told = change(old, new)
    assert [s.statement for s in told.lost] == [plain] and {s.statement for s in told.kept} == {found, few}
    with dpsql.connect(new, analyst="ana") as con:
        costs = [con.sql(sql).cost(epsilon=e) != NO_LOSS for sql, e in ((plain, 400), (found, 400), (few, 1))]
        assert costs == [True, False, False]
        assert con.sql(plain).cost(epsilon=400, limits="declared") == NO_LOSS, "whoever asks for it has it still"


def test_a_question_that_would_be_refused_is_lost_and_says_why(folder: Path) -> None:
    words = {"      pay: {from: fee, type: integer, bounds: [0, 60]}\n": ""}
    (folder / "new.yaml").write_text(changed(words), encoding="utf-8")
    (lost,) = change(folder / "bikes.yaml", folder / "new.yaml").lost
    assert lost.statement == QUESTIONS["pay"] and lost.why.startswith("DP") and "pay" in lost.why


def test_a_summary_goes_where_a_list_that_it_has_grows_and_is_made_again(folder: Path) -> None:
    words = {"[North, South]": "[North, South, West]"}
    (folder / "new.yaml").write_text(changed(words), encoding="utf-8")
    (lost,) = change(folder / "bikes.yaml", folder / "new.yaml").lost
    assert lost.name == "homes" and lost.price == PrivacyLoss(Fraction(1, 2))


def test_without_a_ledger_nothing_is_stored_and_none_is_made(tmp_path: Path) -> None:
    made(tmp_path)
    before = content(tmp_path)
    assert main(["policy", "diff", *[str(tmp_path / "bikes.yaml")] * 2]) == 0
    assert content(tmp_path) == before


def test_the_command_as_text_and_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = folder / "new.yaml"
    new.write_text(changed(CHANGES["wider bounds"][0]), encoding="utf-8")
    asked = ["policy", "diff", str(folder / "bikes.yaml"), str(new)]
    assert main(asked) == 1
    text = capsys.readouterr().out
    assert QUESTIONS["minutes"] in text and "ε 5" in text and QUESTIONS["riders"] not in text and "DP" not in text
    assert text.splitlines()[-1] == f"1 lost, {len(FEW)} kept of what is stored; nothing was spent"
    assert main([*asked, "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [s["statement"] for s in found["lost"]] == [QUESTIONS["minutes"]]
    assert len(found["kept"]) == len(FEW) and len(found["untold"]) == 1
    assert main(["policy", "diff", str(new), str(folder / "nowhere.yaml")]) == 2
