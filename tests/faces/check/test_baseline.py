"""Baselines: what they are kept by, what moves do not change, how often, and what does not occur any more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpsql.diagnostics.errors import Rejected
from dpsql.faces.check.report.baseline import Baseline, read_baseline, write_baseline
from tests.support.checked_files import GOOD, NO_BOUNDS, NO_KEY, found

MOVED = "-- a comment\n\n;;SELECT   SUM( /* the */ fee )\r\n\tAS f\n  FROM visits -- end\n;"


def baseline(folder: Path, text: str, name: str = "q.sql") -> Baseline:
    write_baseline(folder / "known.json", found(text, name=str(folder / name)))
    return read_baseline(folder / "known.json")


def test_the_file(tmp_path: Path) -> None:
    both = f"{NO_BOUNDS};\n{NO_KEY};\n{NO_BOUNDS};"
    assert write_baseline(tmp_path / "known.json", found(both, name=str(tmp_path / "a" / "q.sql"))) == 3
    first = (tmp_path / "known.json").read_bytes()
    content = json.loads(first)
    assert content["version"] == 1
    entries = [(e["path"], e["code"], e["count"]) for e in content["findings"]]
    assert entries == [("a/q.sql", "DP201", 2), ("a/q.sql", "DP301", 1)]
    write_baseline(
        tmp_path / "known.json",
        reversed(found(f"{NO_KEY};{NO_BOUNDS};{NO_BOUNDS}", name=str(tmp_path / "a" / "q.sql"))),
    )
    assert (tmp_path / "known.json").read_bytes() == first  # sorted, and by shape
    assert write_baseline(tmp_path / "empty.json", []) == 0 and read_baseline(tmp_path / "empty.json").entries == {}


def test_moves_do_not_matter_and_changes_do(tmp_path: Path) -> None:
    known = baseline(tmp_path, NO_BOUNDS)
    name = str(tmp_path / "q.sql")
    for text, new in [
        (NO_BOUNDS, 0),
        (f"{GOOD};\n{MOVED}", 0),
        (NO_BOUNDS.replace("visits", "visits WHERE cost > 1"), 1),
        (NO_BOUNDS.replace("AS f", 'AS " f"'), 1),
        (f"{NO_BOUNDS}; {MOVED}", 1),  # twice
        (NO_KEY, 1),
    ]:
        compared = known.compared(found(text, name=name), [name])
        assert (len(compared.new), compared.known) == (new, len(found(text, name=name)) - new), text
    assert len(known.compared(found(NO_BOUNDS, name=str(tmp_path / "other.sql")), []).new) == 1


def test_what_does_not_occur_any_more(tmp_path: Path) -> None:
    name = str(tmp_path / "q.sql")
    known = baseline(tmp_path, f"{NO_BOUNDS}; {NO_BOUNDS}; {NO_KEY}")
    (tmp_path / "q.sql").touch()
    gone = known.compared(found(NO_BOUNDS, name=name), [name]).gone
    assert [(key.path, key.code, count) for key, count in gone] == [("q.sql", "DP201", 1), ("q.sql", "DP301", 1)]
    assert known.compared([], []).gone == ()  # the file was not looked at
    (tmp_path / "q.sql").unlink()
    assert len(known.compared([], []).gone) == 2  # and is not there


@pytest.mark.parametrize("name", ["é/日本.sql", "line\nbreak.sql", "no\udcffutf8.sql", "<stdin>"])
def test_any_name_is_kept(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_baseline(Path("known.json"), found(NO_BOUNDS, name=name))
    assert read_baseline(Path("known.json")).compared(found(NO_BOUNDS, name=name), [name]).new == ()


def test_paths_are_relative_to_the_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "q").mkdir()
    monkeypatch.chdir(tmp_path)
    write_baseline(Path("known.json"), found(NO_BOUNDS, name="q/a.sql"))
    monkeypatch.chdir(tmp_path / "q")
    assert read_baseline(Path("../known.json")).compared(found(NO_BOUNDS, name="a.sql"), ["a.sql"]).new == ()


@pytest.mark.parametrize(
    "content",
    [
        None, b"", b"[]", b"{}", b'{"version": 2, "findings": []}', b'{"version": 1, "findings": [{}]}', b"\xff", b"1",
        b'{"version": 1, "findings": [{"path": 1, "code": "DP201", "hash": "", "count": 1}]}',
        b'{"version": 1, "findings": [{"path": "a", "code": "DP201", "hash": "", "count": 0}]}',
        b'{"version": 1, "findings": [{"path": "a", "code": "DP201", "hash": "", "count": true}]}',
        b"[" * 100_000,
    ],
)  # fmt: skip
def test_files_that_are_no_baseline(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "known.json").write_bytes(content)
    with pytest.raises(Rejected, match="DP903"):
        read_baseline(tmp_path / "known.json")


def test_a_baseline_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="DP903"):
        write_baseline(tmp_path / "nowhere" / "known.json", [])


def test_nothing_but_a_baseline_is_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "clinic.ledger.sqlite"
    file.write_bytes(b"SQLite format 3\x00")
    with pytest.raises(Rejected, match="is there already, and is no baseline"):
        write_baseline(file, [])
    assert file.read_bytes() == b"SQLite format 3\x00"
    for content in (b"", b'{"version": 7, "of another": "dpsql"}\n'):
        file.write_bytes(content)
        write_baseline(file, [])
        assert read_baseline(file).entries == {}
