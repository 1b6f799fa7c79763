"""One result whatever the way: with and without cache, in one process or several; what is kept is read back exactly.

The texts hold findings of every kind: refusals, warnings, fixes, comments that ignore, limits of ε, several statements.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.checking.examine import cache as caching
from dpsql.checking.examine import examination, parallel
from dpsql.checking.examine.cache import Cache
from dpsql.checking.examine.examination import Examination, examine
from dpsql.checking.examine.limits import Limits
from dpsql.checking.examine.records import from_record, to_record
from dpsql.checking.examine.run import check_documents
from dpsql.checking.examine.settings import Settings
from dpsql.checking.report.finding import Report
from dpsql.checking.report.formats import FORMATS
from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.diagnostic import Diagnostic, Edit, Fix, Source, Span
from dpsql.diagnostics.errors import Rejected
from dpsql.diagnostics.pages_loader import load_page
from tests.support.checked_files import CHEAP, DEAR, GOOD, NO_BOUNDS, NO_KEY, POLICY, documents, policy, settings


def pages() -> Iterator[str]:
    """The rejected and accepted queries of all pages."""
    for code in CODES:
        for block in load_page(code).split("```sql ")[1:]:
            yield block.split("\n", 1)[1].split("```")[0]


TEXTS = [
    GOOD, NO_BOUNDS, f"-- dpsql: ignore[DP301] public\n{NO_KEY};\r\n{DEAR}", f"{CHEAP}; {CHEAP}; -- dpsql: ignore[] x",
    "SELECT 'open", "", "-- nothing\n", "SELECT COUNT(*) AS n FROM items", "SELECT 'é🙂\udc80' FROM visits",
    "SELECT * FROM visits; DROP TABLE visits", "SELECT SUM(CLIP(fee, 0, 0.001)) AS f FROM visits", *pages(),
]  # fmt: skip
LIMITED = Limits(1, 2)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def examined() -> list[Examination]:
    return [examine(text, policy(), "duckdb") for text in TEXTS]


def report_of(settings: Settings, texts: Sequence[str] = TEXTS) -> Report:
    return check_documents(documents(*texts), settings).report


def printed(report: Report) -> list[str]:
    return [format(report) for format in FORMATS.values()]


def test_the_texts_hold_findings_of_every_kind(examined: list[Examination]) -> None:
    everything = [d for e in examined for s in e.statements for d in s.diagnostics]
    assert {d.code[:3] for d in everything} >= {"DP0", "DP1", "DP2", "DP3", "DP5"}
    assert any(d.fix for d in everything) and any(d.severity == "warning" for d in everything)
    assert any(e.remarks for e in examined) and any(r.mistakes for e in examined for r in e.remarks)
    assert {len(e.statements) for e in examined} >= {0, 1, 2}
    assert any(s.price is not None and s.price.cost for e in examined for s in e.statements)


def test_records_are_json_and_lose_nothing(examined: list[Examination]) -> None:
    for whole in examined:
        assert from_record(json.loads(json.dumps(to_record(whole)))) == whole
    elsewhere = Diagnostic("DP005", "m", Source("a: 1", "p.yaml"), Span(0, 1), "l", ("h",), ("n",), "warning")
    odd = replace(elsewhere, source=None, span=None, fix=Fix("f", (Edit(Span(0, 0), "x"),), True))
    statement = replace(examined[0].statements[0], diagnostics=(elsewhere, odd))
    whole = replace(examined[0], statements=(statement,))
    assert from_record(json.loads(json.dumps(to_record(whole)))) == whole


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.sampled_from(["", "DP301", "1/2", "1/0", "x"]),
    lambda inner: st.lists(inner, max_size=9),
    max_leaves=20,
)


@given(data=st.data())
def test_other_records_are_refused(data: st.DataObject) -> None:
    """A record with one part replaced is refused, or read as an examination that could be: never another error."""
    record = to_record(examine(TEXTS[2], policy(), "duckdb")) if data.draw(st.booleans()) else data.draw(JSON)
    place: Any = record
    while isinstance(place, list) and place:
        index = data.draw(st.integers(0, len(place) - 1))
        if not isinstance(place[index], list) or not place[index] or data.draw(st.booleans()):
            place[index] = data.draw(JSON)
            break
        place = place[index]
    with contextlib.suppress(ValueError):
        assert isinstance(from_record(record), Examination)


# The cache ----------------------------------------------------------------------------------------------------------


def test_the_same_with_and_without_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = settings(tmp_path, select=["DP3,DP4,DP5,DP9"], max_epsilon="1", max_epsilon_per_file="2", jobs=1)
    expected = report_of(plain)
    assert {f.diagnostic.code for f in expected.findings} >= {"DP010", "DP201", "DP412", "DP902"}
    cached = replace(plain, cache=tmp_path / "cache")
    assert report_of(cached) == expected  # written
    (file,) = (tmp_path / "cache").glob("*.json")
    before = file.read_bytes()
    with monkeypatch.context() as broken:
        broken.setattr(parallel, "examine_all", never)
        broken.setattr("dpsql.policy.load.load_policy", never)  # not even the policy is read again
        again = report_of(cached)
    assert again == expected and printed(again) == printed(expected)
    assert file.read_bytes() == before
    # What is shown is settled after the cache: other options, the same examinations.
    loose = replace(cached, options=replace(cached.options, limits=Limits()))
    assert {f.diagnostic.code for f in report_of(loose).findings}.isdisjoint({"DP412"})


def never(*arguments: object) -> Any:
    raise AssertionError("should not be needed")


def test_what_makes_another_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, found = GOOD, examine(GOOD, policy(), "duckdb")
    content = POLICY.read_bytes()
    Cache(tmp_path, content, "p.yaml", "duckdb").keep({text: found})
    assert Cache(tmp_path, content, "p.yaml", "DuckDB").find([text]) == {text: found}
    assert Cache(tmp_path, content, "p.yaml", "duckdb").find([text + " "]) == {}
    assert Cache(tmp_path, content + b"\n", "p.yaml", "duckdb").find([text]) == {}
    assert Cache(tmp_path, content, "other.yaml", "duckdb").find([text]) == {}  # messages may name it
    assert Cache(tmp_path, content, "p.yaml", "postgres").find([text]) == {}
    for name in ("_code", "version"):
        with monkeypatch.context() as other:
            other.setattr(caching, name, lambda *a: "another version")
            assert Cache(tmp_path, content, "p.yaml", "duckdb").find([text]) == {}
    assert (tmp_path / ".gitignore").read_text().endswith("*\n")
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix != ".json") == [".gitignore"]  # nothing half written


def test_the_code_is_a_part_of_the_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = caching._code()
    (tmp_path / "checking").mkdir()
    (tmp_path / "checking" / "cache.py").write_text("x = 1\n")
    monkeypatch.setattr(caching, "__file__", str(tmp_path / "checking" / "cache.py"))
    one = caching._code()
    (tmp_path / "checking" / "cache.py").write_text("x = 2\n")
    assert len({before, one, caching._code()}) == 3


def test_damaged_files_are_as_good_as_none(tmp_path: Path) -> None:
    cached = replace(settings(tmp_path), cache=tmp_path / "cache")
    expected = report_of(cached, TEXTS[:5])
    (file,) = (tmp_path / "cache").glob("*.json")
    whole = file.read_bytes()
    assert whole.count(b"DP201") > 0
    _, body = whole.split(b"\n", 1)
    foreign = b'{"x": 1}'
    for damaged in (
        b"", whole[:-1], whole[: len(whole) // 2], whole.replace(b"DP201", b"DP301", 1), b"\xff" * 100, b"[" * 100_000,
        b"\x80\x04\x95pickle", body, f"{caching._hash(foreign)}\n".encode() + foreign,
        f"{caching._hash(b'[]')}\n[]".encode(),
    ):  # fmt: skip
        file.write_bytes(damaged)
        assert report_of(cached, TEXTS[:5]) == expected
        assert file.read_bytes() == whole or json.loads(file.read_bytes().split(b"\n", 1)[1])
    file.unlink()
    file.mkdir()  # cannot be replaced
    assert report_of(cached, TEXTS[:5]) == expected


def test_a_place_where_no_folder_can_be_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    expected = report_of(settings(tmp_path))
    assert report_of(replace(settings(tmp_path), cache=tmp_path / "file" / "cache")) == expected


def test_old_texts_and_old_files_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "_MOST_TEXTS", 3)
    monkeypatch.setattr(caching, "_MOST_FILES", 2)
    found = examine(GOOD, policy(), "duckdb")
    for number in range(5):
        cache = Cache(tmp_path, b"", "p", "duckdb")
        cache.keep({f"t{number}": found}, used=["t0"])
    assert set(Cache(tmp_path, b"", "p", "duckdb").find(["t0", "t1", "t2", "t3", "t4"])) == {"t0", "t3", "t4"}
    for number in range(4):
        Cache(tmp_path, bytes([number]), "p", "duckdb").keep({GOOD: found})
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_a_policy_that_changes_meanwhile_is_not_mixed_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "p.yaml"
    own.write_bytes(POLICY.read_bytes())
    cached = replace(settings(tmp_path, policy=str(own)), cache=tmp_path / "cache")

    def changing(texts: list[str], *arguments: object, **named: object) -> list[Examination | None]:
        own.write_bytes(POLICY.read_bytes() + b"\n")
        return [examine(text, policy(), "duckdb") for text in texts]

    monkeypatch.setattr(parallel, "examine_all", changing)
    assert report_of(cached).files == len(TEXTS)
    assert not (tmp_path / "cache").exists()


# Processes ----------------------------------------------------------------------------------------------------------


@pytest.mark.processes
def test_the_same_in_several_processes(examined: list[Examination], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_CHUNK", 4)  # more chunks than are given out at once
    assert len(TEXTS) > 4 * (2 * parallel._AHEAD + 1)
    assert parallel.examine_all(TEXTS, policy(), "duckdb", 3, "spawn") == examined
    if threading.active_count() == 1 and "fork" in multiprocessing.get_all_start_methods():
        assert parallel.examine_all(TEXTS, policy(), "duckdb", 3, "fork") == examined


def test_few_texts_start_no_process(monkeypatch: pytest.MonkeyPatch, examined: list[Examination]) -> None:
    monkeypatch.setattr(parallel, "_with_others", never)
    monkeypatch.setattr(parallel, "usual_jobs", lambda: 64)
    assert parallel.examine_all(TEXTS[:40], policy(), "duckdb") == examined[:40]
    assert parallel.examine_all(TEXTS[:2], policy(), "duckdb", 64) == examined[:2]  # one chunk
    assert parallel.examine_all([], policy(), "duckdb", 64) == []
    assert parallel.usual_jobs() >= 1


def hears(texts: list[str]) -> Any:
    return [signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ()) for _ in texts]


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals")
def test_other_processes_hear_no_ctrl_c_from_their_first_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only once they have loaded everything: until then it would end them, with a traceback of their own."""
    monkeypatch.setattr(parallel, "_work", hears)
    monkeypatch.setattr(parallel, "from_record", lambda heard: heard)
    found = parallel.examine_all(["SELECT 1"] * 100, policy(), "duckdb", 2, "spawn")
    assert found[-1] is False and True not in found
    assert hears([""]) == [True]


def die(texts: list[str]) -> Any:
    os._exit(1)


@pytest.mark.processes
def test_a_process_that_dies_is_a_clean_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_work", die)
    with pytest.raises(Rejected) as refused:
        parallel.examine_all(["SELECT 1"] * 100, policy(), "duckdb", 2, "spawn")
    assert refused.value.diagnostics[0].code == "DP904" and "--jobs 1" in refused.value.diagnostics[0].help[0]


def test_an_error_in_dpsql_hides_no_other_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = examination.examine

    def broken(text: str, *arguments: Any) -> Examination:
        if "broken" in text:
            raise KeyError("private value 4711")
        return real(text, *arguments)

    monkeypatch.setattr(parallel, "examine", broken)
    outcome = check_documents(documents("SELECT broken", NO_BOUNDS), replace(settings(tmp_path), cache=tmp_path / "c"))
    (failed,) = outcome.report.unreadable
    assert failed.code == "DP904" and failed.source is not None and failed.source.name == "f0.sql"
    assert "4711" not in str(failed) and [f.diagnostic.code for f in outcome.report.findings] == ["DP201"]
    assert (
        len(Cache(tmp_path / "c", POLICY.read_bytes(), str(POLICY), "duckdb").find(["SELECT broken", NO_BOUNDS])) == 1
    )


def test_an_unknown_dialect(tmp_path: Path) -> None:
    for texts in ([GOOD], []):
        with pytest.raises(Rejected, match="DP903"):
            check_documents(documents(*texts), settings(tmp_path, dialect="klingon"))


def test_writers_at_the_same_time_leave_a_whole_file(tmp_path: Path) -> None:
    """What one of them wrote may be lost; what is read is what was written, or nothing."""
    found = {f"{GOOD} -- {number}": examine(GOOD, policy(), "duckdb") for number in range(40)}
    texts = list(found)

    def write(start: int) -> None:
        for text in texts[start::4]:
            Cache(tmp_path, b"", "p", "duckdb").keep({text: found[text]})

    threads = [threading.Thread(target=write, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = Cache(tmp_path, b"", "p", "duckdb").find(texts)
    assert kept and kept == {text: found[text] for text in kept}
    assert sorted(path.suffix for path in tmp_path.iterdir()) == ["", ".json"]
