"""The check gives the same in several processes, with whatever cache, and however a process or a file ends."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.diagnostics.errors import Rejected
from dpsql.faces.check.examine import cache as caching
from dpsql.faces.check.examine import parallel
from dpsql.faces.check.examine.cache import Cache
from dpsql.faces.check.examine.epsilon_limits import EpsilonLimits
from dpsql.faces.check.examine.examination import Examination, examine
from dpsql.faces.check.examine.records import from_record, to_record
from dpsql.faces.check.report.finding import Report
from dpsql.faces.check.report.formats import FORMATS
from tests.faces.check.test_same import TEXTS, never, report_of
from tests.support.checked_files import GOOD, policy, settings


@pytest.fixture(scope="module")
def examined() -> list[Examination]:
    return [examine(text, policy(), "duckdb") for text in TEXTS]


def printed(report: Report) -> list[str]:
    return [format(report) for format in FORMATS.values()]


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
    loose = replace(cached, options=replace(cached.options, limits=EpsilonLimits()))
    assert {f.diagnostic.code for f in report_of(loose).findings}.isdisjoint({"DP412"})


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


# Processes ----------------------------------------------------------------------------------------------------------


@pytest.mark.processes
def test_the_same_in_several_processes(examined: list[Examination], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_CHUNK", 4)  # more chunks than are given out at once
    assert len(TEXTS) > 4 * (2 * parallel._AHEAD + 1)
    assert parallel.examine_all(TEXTS, policy(), "duckdb", 3, "spawn") == examined
    if threading.active_count() == 1 and "fork" in multiprocessing.get_all_start_methods():
        assert parallel.examine_all(TEXTS, policy(), "duckdb", 3, "fork") == examined


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
