"""`dpsql demo`: builds, walks, ends well; touches nothing that is not its own."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import duckdb
import pytest

from dpsql.faces.cli.commands import demo
from tests.support.command_line import Call

COUNT = re.compile(r"^ ([\d,]+) ± \d+$", re.MULTILINE)


def test_the_walk(process: Call, tmp_path: Path) -> None:
    """In a process of its own, as `make demo` does."""
    done = process("demo", tmp_path / "d")
    assert done.status == 0 and done.err == ""
    headings = re.findall(r"^(\d\. .*|What has been spent|Next)\n─+$", done.out, re.MULTILINE)
    assert [h[:2] for h in headings] == ["1.", "2.", "3.", "4.", "5.", "Wh", "Ne"]
    assert done.out.count(" ± ") >= 1 + 8 + 10 and "± at 95 %" in done.out
    assert "error[DP101]: MAX over private rows is not supported" in done.out
    assert "   |              ^^^^^^^^^ one person decides" in done.out and "QUANTILE_DISC(cost, 0.99)" in done.out
    assert "(asked: ε 0.5 of each patient)" in done.out and "spent ε 0.5 δ " in done.out
    assert "Millbridge" in done.out
    (threshold,) = re.findall(r"the noisy number of units reaches (\d+)", done.out)
    # A town of three is shown, if once in 1e7 runs, with a number that reaches the threshold.
    assert 20 < int(threshold) <= min(map(int, re.findall(r"Lonely Farm +\| +(\d+)", done.out)), default=10**9)
    assert re.search(r"^ patient \| ana     \| ε 1\.5 δ ", done.out, re.MULTILINE)
    assert "(3 queries charged)" in done.out and "\x1b" not in done.out
    first = COUNT.search(done.out)
    assert first is not None
    with duckdb.connect(str(tmp_path / "d" / "clinic.duckdb"), read_only=True) as con:
        row = con.execute("SELECT count(*) FROM patients WHERE age >= 65").fetchone()
        rare = con.execute("SELECT count(*) FROM patients WHERE town = 'Lonely Farm'").fetchone()
    shown = int(first.group(1).replace(",", ""))
    assert row is not None and abs(shown - row[0]) < 200  # scale 2: off by more once in 1e43 runs
    assert rare == (3,)


def test_it_can_be_run_again_and_after_its_folder_was_removed(
    dpsql: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        done = dpsql("demo")
        assert done.status == 0 and "(3 queries charged)" in done.out
        assert {f.name for f in Path("dpsql-demo").iterdir()} <= demo.MADE_HERE
    shutil.rmtree("dpsql-demo")
    assert dpsql("demo").status == 0
    assert not (tmp_path / "state").exists(), "the demo keeps everything in its own folder"


def test_the_next_steps_work(dpsql: Call, tmp_path: Path) -> None:
    done = dpsql("demo", tmp_path / "a demo")
    commands = re.findall(r"^[a-z ]+: +dpsql (.*)$", done.out, re.MULTILINE)
    assert len(commands) == 5
    for command in commands[:-1]:
        assert dpsql(*shlex.split(command)).status == 0, command


def test_its_policy_is_a_good_example(dpsql: Call, clinic_data: Path) -> None:
    policy = clinic_data / "clinic.yaml"
    done = dpsql("policy", "check", policy, "--data")
    assert done.status == 0 and "the data agrees" in done.out
    assert policy.read_text(encoding="utf-8").count("#") >= 15
    assert "surcharge" in dpsql("policy", "show", policy, "visits").out
    assert "would find" not in done.out, "nobody has to ask for what a search finds"


@pytest.mark.parametrize("content", ["a file of mine", ".hidden"])
def test_a_folder_with_anything_else_is_refused_by_name(dpsql: Call, tmp_path: Path, content: str) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / content).write_text("precious")
    done = dpsql("demo", mine)
    assert done.status == 1 and done.codes == {"DP903"} and str(mine) in done.err and content in done.err
    assert [f.name for f in mine.iterdir()] == [content] and (mine / content).read_text() == "precious"


def test_an_earlier_demo_that_was_worked_on_is_kept(dpsql: Call, tmp_path: Path) -> None:
    assert dpsql("demo", tmp_path / "d").status == 0
    policy = tmp_path / "d" / "clinic.yaml"
    changed = policy.read_text(encoding="utf-8").replace("epsilon: 10", "epsilon: 11")
    policy.write_text(changed, encoding="utf-8")
    done = dpsql("demo", tmp_path / "d")
    assert done.status == 1 and "was changed" in done.err
    assert policy.read_text(encoding="utf-8") == changed and (tmp_path / "d" / "clinic.ledger.sqlite").exists()
    policy.unlink()
    assert dpsql("demo", tmp_path / "d").status == 1, "a database without its policy may be anybody's"


def test_places_where_it_cannot_be_made(dpsql: Call, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below", "nul\x00byte"):
        done = dpsql("demo", place)
        assert done.status == 1 and done.codes == {"DP903"}
    assert (tmp_path / "file").read_text() == ""
