"""Item 69 through all faces: planted values reach no stream, object, traceback, file or temporary folder.

What each test shows and leaves behind is searched by tests/support/canary.py as well, like everything of the whole
session.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import io
import logging
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.core.engine import RawTable
from dpsql.engines.duckdb.engine import DuckDBEngine
from tests.core.ledger.test_budget_attacks import PROBES, QUERIES
from tests.support.canary import CANARY, DATA, MARKER, NUMBER, files_with_planted_values, holds
from tests.support.checklist_clinic import POLICY, Call, Clinic

PACKAGE = str(Path(dpsql.__file__).parent)
MORE = (
    "SELECT STDDEV(income), VAR_POP(age) FROM patients",
    "SELECT zip, diag, COUNT(*) FROM patients GROUP BY ROLLUP (zip, diag)",
    "SELECT COUNT(*) FROM (SELECT pid, zip FROM patients UNION SELECT pid, name FROM patients)",
    "SELECT (SELECT COUNT(*) FROM events) AS a, AVG(amt) FROM visits",
    "SELECT COUNT(DISTINCT zip), COUNT(DISTINCT big) FROM patients",
    "SELECT MEDIAN(income), QUANTILE_DISC(age, 0.99) FROM patients WHERE zip > 'a'",
    "SELECT diag, MEDIAN(CLIP(big, 0, 5)) FROM patients GROUP BY diag",
    "SELECT MEDIAN(big), QUANTILE_CONT(zip, 0.5) FROM patients",
    "SELECT SUM(CLIP(big, 0, 5)) FROM patients WHERE zip > 'a' AND income > 1",
)
ALL = (*dict.fromkeys((*QUERIES, *PROBES, *MORE)),)
BROKEN = POLICY.replace("primary_key: [pid]", "primary_key: [diag]").replace("[flu, HIV, rare]", "[flu]")
"""Promises that rows with planted values break."""


def test_item_69_no_command_shows_a_planted_value(
    dpsql_command: Callable[..., Call], make: Callable[..., Clinic], tmp_path: Path
) -> None:
    """Every command in every format; `dpsql_command` itself asserts that its streams hold none."""
    clinic, broken = make(), make(policy=BROKEN)
    (tmp_path / "all.sql").write_text(";\n".join(q for q in ALL if q.count("(") == q.count(")")))
    ran: list[Call] = []
    for at, sql in enumerate(ALL):
        form = ("table", "csv", "json", "jsonl", "markdown")[at % 5]
        ran.append(dpsql_command("query", clinic.policy, sql, "--epsilon", "1", "--delta", "1e-12", "--format", form))
        form = ("text", "json")[at % 2]
        ran.append(dpsql_command("explain", clinic.policy, sql, "--epsilon", "1", "--format", form, "--engine-sql"))
    for form in ("full", "concise", "json"):
        ran.append(dpsql_command("check", tmp_path / "all.sql", "--policy", clinic.policy, "--output-format", form))
    for arguments in (
        ("budget", clinic.policy, "--history"),
        ("budget", clinic.policy, "--history", "--format", "json"),
        ("budget", clinic.policy, "--plot", str(tmp_path / "spent.html")),
        ("policy", "check", clinic.policy),
        *(("policy", what, p, "--format", f) for what in ("show", "audit", "verify") for f in ("text", "json")
          for p in (clinic.policy, broken.policy)),
        ("policy", "report", clinic.policy),
        ("policy", "report", clinic.policy, "-o", str(tmp_path / "report.html"), "--data"),
        ("policy", "init", clinic.folder / "d.duckdb"),
        ("policy", "init", clinic.folder / "d.duckdb", "-o", str(tmp_path / "drafted.yaml")),
    ):  # fmt: skip
        ran.append(dpsql_command(*arguments))
    statuses = {call.status for call in ran}
    assert {0, 1, 4} <= statuses and len(ran) > 2 * len(ALL) + 15
    assert "broken" in ran[-3].out + ran[-4].out + ran[-5].out
    assert files_with_planted_values(tmp_path) == []
    assert files_with_planted_values(clinic.folder) == [] == files_with_planted_values(broken.folder)


def test_item_69_verify_counts_and_shows_no_value(make: Callable[..., Clinic]) -> None:
    """It is for the custodian and names promises, places and numbers of rows; which rows break them it does not say."""
    clinic = make("INSERT INTO patients SELECT * FROM patients WHERE name = 'bob'", policy=BROKEN)
    found = dpsql.verify_policy(clinic.policy)
    assert len(found.broken) >= 1 and not holds(repr(found))
    for check in found.checks:
        assert check.measured is None or 0 <= check.measured < 100
        for name in ("bob", "carol", "HIV", "12345"):
            assert name not in repr(check) or name in BROKEN


def reachable(*roots: object) -> Iterator[object]:
    """Everything that can be reached from objects, without code, modules and what is inside of the engine."""
    seen: set[int] = set()
    todo = list(roots)
    while todo:
        at = todo.pop()
        if id(at) in seen or isinstance(
            at, type | types.ModuleType | types.FunctionType | types.CodeType | types.FrameType | DuckDBEngine
        ):
            continue
        seen.add(id(at))
        yield at
        todo += gc.get_referents(at)


def planted(*roots: object) -> list[object]:
    """The planted numbers and texts among all values that can be reached."""
    return [
        x
        for x in reachable(*roots)
        if (isinstance(x, str | bytes) and holds(x))
        or (isinstance(x, int | float) and not isinstance(x, bool) and x == NUMBER)
    ]


def test_item_69_no_object_holds_a_planted_value(make: Callable[..., Clinic]) -> None:
    """Connection, query, plan, answer, budget: neither as they print nor anywhere below them."""
    clinic = make()
    with clinic.connect() as con:
        for sql in ALL:
            query = con.sql(sql)
            try:
                plan = query.plan(1, "1e-12")
                answer = con.run(plan)
            except dpsql.Error as error:
                assert planted(error) == []
                continue
            shown = (con, query, plan, answer, con.budget, answer.plan, answer.notes, answer.intervals(), answer.spent)
            for thing in shown:
                for text in (repr(thing), str(thing), f"{thing}", ascii(thing)):
                    assert not holds(text)
                for hook in ("_repr_markdown_", "_repr_mimebundle_", "_repr_pretty_"):
                    assert not hasattr(thing, hook)
                shown_in_notebooks = getattr(thing, "_repr_html_", None)
                assert shown_in_notebooks is None or not holds(shown_in_notebooks())
            for data in (answer.df(), answer.pl(), answer.arrow(), answer.arrow().schema, answer.to_dict()):
                assert not holds(repr(data))
            assert not holds(pickle.dumps(plan)) and not holds(repr(copy.deepcopy(answer)))
            assert planted(*shown) == [], sql
        assert planted(list(con.sql(ALL[0]).explain(1, format="json"))) == []


def test_item_69_the_walk_finds_what_is_there() -> None:
    """The twin: hidden in a slot, a key and an exception's context, it is found."""

    class Slots:
        __slots__ = ("x",)

    slots, error = Slots(), ValueError()
    slots.x = [{(1, NUMBER): 2}]
    error.__context__ = KeyError(f"no {MARKER}")
    assert planted(slots) == [NUMBER] and planted({"a": error}) == [f"no {MARKER}"]
    assert planted([float(NUMBER)]) == [float(NUMBER)]


def broken_engine(sql: str) -> RawTable:
    row = [f"{CANARY} {MARKER}", NUMBER]
    raise RuntimeError(f"could not convert {row}")


def odd_engine(sql: str) -> RawTable:
    return RawTable(("k0", "m0"), ([f"{CANARY} {MARKER}", 1], [1, NUMBER]))


def out_of_memory(sql: str) -> RawTable:
    raise MemoryError(NUMBER)


@pytest.mark.parametrize("fetch", [broken_engine, odd_engine, out_of_memory])
def test_item_69_tracebacks_with_locals_hold_no_planted_value(
    make: Callable[..., Clinic], fetch: Callable[[str], RawTable], caplog: pytest.LogCaptureFixture
) -> None:
    """What a debugger or an error reporter would collect: locals of all our frames, causes, contexts and notes."""
    caplog.set_level(logging.DEBUG)
    with make().connect() as con:
        plan = con.sql("SELECT name, COUNT(*), SUM(income) FROM patients GROUP BY name").plan(1, "1e-12")
        con.service.engine.fetch = fetch  # type: ignore[method-assign]
        with pytest.raises(dpsql.EngineError) as caught:
            con.run(plan)
    error = caught.value
    assert error.__cause__ is None and error.__context__ is None and not getattr(error, "__notes__", ())
    ours = [f for f in traceback.TracebackException.from_exception(error, capture_locals=True).stack
            if f.filename.startswith(PACKAGE)]  # fmt: skip
    assert ours, "no frame of the package in the traceback"
    for frame in ours:
        assert not holds(repr(frame.locals)), frame
    at, frames = error.__traceback__, 0
    while at is not None:
        if at.tb_frame.f_code.co_filename.startswith(PACKAGE):
            frames += 1
            assert planted(list(at.tb_frame.f_locals.values())) == [], at.tb_frame
        at = at.tb_next
    assert frames >= 2 and not holds(caplog.text)
    assert not holds(pickle.dumps(str(error))) and planted(error.diagnostics, error.args) == []


LARGE = (
    "CREATE TABLE many AS SELECT i AS pid, 'x' || i || '" + MARKER + "' AS word, " + CANARY + " AS n "
    "FROM range(400000) r(i)",
)
LARGE_POLICY = (
    POLICY
    + """
  many:
    unit: {column: pid}
    max_rows_per_unit: 1
    columns:
      pid: {type: bigint}
      word: {type: varchar}
      n: {type: integer}
"""
)


SPILLING = (
    "SELECT COUNT(DISTINCT word) FROM many",
    "SELECT word, COUNT(*) FROM many GROUP BY word",
    "SELECT COUNT(*) FROM (SELECT pid, word FROM many UNION SELECT pid, word || 'x' FROM many)",
)


def test_item_69_what_spills_is_private_and_gone_afterwards(make: Callable[..., Clinic]) -> None:
    """With too little memory DuckDB writes rows to disk: to a folder of this user's alone, and nowhere else; none of
    it is there when the session has been closed, whether the query failed or not.

    δ is far below one in the number of keys: with 10⁻⁶ for each of 400,000 people, a key of one of them would be
    released, and stored, in every third run."""
    clinic = make(*LARGE, policy=LARGE_POLICY)
    place = Path(tempfile.gettempdir())
    stop, modes, outside, spilled = threading.Event(), set(), set(), set()

    def look() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError):
                for path in place.iterdir():
                    if path.name.startswith("dpsql-") and path.is_dir():
                        modes.add(path.stat().st_mode & 0o777)
                        spilled.update(path.iterdir())
                    elif path.is_file() and path.suffix not in DATA:
                        outside.add(path)
            stop.wait(0.01)

    watching = threading.Thread(target=look)
    watching.start()
    try:
        with clinic.connect(memory_limit="40MB", threads=2) as con:
            ((found,),) = con.service.engine._connection.execute("SELECT current_setting('temp_directory')").fetchall()  # type: ignore[attr-defined]
            spill = Path(found)
            assert spill.parent == place
            for at, sql in enumerate(20 * SPILLING):
                if at < len(SPILLING) or not spilled:  # once, and again if the machine is too busy for looking
                    with contextlib.suppress(dpsql.EngineError):
                        con.execute(sql, epsilon=1, delta="1e-20", fresh=True)
    finally:
        stop.set()
        watching.join()
    assert modes == {0o700} and outside == set()
    assert spilled, "nothing was spilled: this looked at nothing"
    assert not spill.exists()
    assert files_with_planted_values(clinic.folder) == []


@pytest.mark.processes
@pytest.mark.parametrize("end", ["exit", "error", "interrupt", "terminate"])
def test_item_69_however_a_process_ends_its_streams_and_folder_are_silent(
    make: Callable[..., Clinic], tmp_path: Path, end: str
) -> None:
    """Asked from a script with full logging; TMPDIR is empty again afterwards."""
    clinic = make()
    program = textwrap.dedent(
        """
        import faulthandler, logging, os, signal, sys, dpsql
        logging.basicConfig(level=logging.DEBUG); faulthandler.enable()
        con = dpsql.connect(sys.argv[1])
        print(con.execute("SELECT diag, COUNT(*), SUM(income) FROM patients GROUP BY diag", epsilon=1))
        fetch = con.service.engine.fetch
        def ended(sql):
            raw = fetch(sql)
            if sys.argv[2] == "error": raise RuntimeError(raw.rows())
            if sys.argv[2] == "interrupt": raise KeyboardInterrupt(raw.rows())
            if sys.argv[2] == "terminate": signal.raise_signal(signal.SIGINT)
            return raw
        con.service.engine.fetch = ended
        con.execute("SELECT zip, COUNT(*), SUM(income) FROM patients GROUP BY zip", epsilon=1, delta=1e-12)
        """
    )
    here = tmp_path / "tmp"
    here.mkdir()
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore", "-c", program, str(clinic.policy), end],
        capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(here)},
    )  # fmt: skip
    assert (done.returncode == 0) == (end == "exit"), done.stderr
    assert done.returncode in (0, 1, -signal.SIGINT)
    assert not holds(done.stdout) and not holds(done.stderr)
    assert list(here.iterdir()) == []
    assert files_with_planted_values(tmp_path) == [] == files_with_planted_values(clinic.folder)


@pytest.mark.processes
def test_item_69_the_command_as_a_process(make: Callable[..., Clinic], tmp_path: Path) -> None:
    """Real streams, a real environment, a folder of its own: the query that is answered and the one that fails."""
    clinic = make()
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "PYTHONDEVMODE": "1", "TMPDIR": str(tmp_path)}
    for sql, status in ((QUERIES[1], 0), (QUERIES[9], 4), ("SELECT error(zip) FROM patients", 4)):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "dpsql", "query", str(clinic.policy), sql, "--epsilon", "1"],
            capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, env=env, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == status and not holds(done.stdout) and not holds(done.stderr), done
    assert files_with_planted_values(tmp_path) == []


def test_item_69_the_planted_values_are_where_they_should_be(make: Callable[..., Clinic]) -> None:
    """The twin: the data file itself holds both, as text and as numbers, and a look without protection prints them."""
    clinic = make()
    raw = (clinic.folder / "d.duckdb").read_bytes()
    assert CANARY.encode() in raw and MARKER.encode() in raw
    with duckdb.connect(str(clinic.folder / "d.duckdb"), read_only=True) as con:
        shown = io.StringIO()
        shown.write(repr(con.execute("SELECT zip, income, big FROM patients").fetchall()))
    assert holds(shown.getvalue())
    assert issubclass(DuckDBEngine, object) and repr(RawTable(("x",), ([CANARY],))) == "<private>"
