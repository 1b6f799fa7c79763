"""The audit kit: each harness finds a planted fault and nothing in what is sound, and what was missed is said."""

from __future__ import annotations

import json
import random
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dpsql
from dpsql.core.noise.mechanisms.laplace import DiscreteLaplace
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.core.release import noisy
from dpsql.faces.audit.kit import expressions, neighbours, replay, streams
from dpsql.faces.audit.kit.corpus import QUERIES
from dpsql.faces.audit.kit.faults import FAULTS
from dpsql.faces.audit.kit.write import HARNESSES, write, write_case
from dpsql.faces.cli.main import main

ROOT = Path(dpsql.__file__).parents[1]


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kit of two cases."""
    folder: Path = tmp_path_factory.mktemp("kit")
    for name in ("groups", "sum-below-zero"):
        write_case(folder / "conformance" / name, name)
    return folder


def test_every_fault_fits(root: Path) -> None:
    for fault in FAULTS:
        assert (root / fault.path).read_text(encoding="utf-8").count(fault.old) == 1, fault.name
        assert fault.harness in HARNESSES and fault.old != fault.new
    assert len({f.name for f in FAULTS}) == len(FAULTS) >= 8 and len({f.harness for f in FAULTS}) == 3


def test_a_case_says_how_far_numbers_move(kit: Path) -> None:
    said = json.loads((kit / "conformance" / "groups" / "largest.json").read_text(encoding="utf-8"))
    assert said["unit"] == "person" and said["numbers"][0]["number"] == "COUNT(*)"
    for number in said["numbers"]:
        assert all(number["moved"][norm] <= number["at_most"][norm] for norm in ("l0", "l1", "l2", "linf"))
        assert number["reached"] == 1
    one, other = (
        (kit / "conformance" / "groups" / f"{side}.sql").read_text(encoding="utf-8") for side in ("one", "other")
    )
    assert one != other and one.count("CREATE TABLE") == other.count("CREATE TABLE") == 4


def test_a_sound_build_is_not_accused(kit: Path) -> None:
    assert [line for name in ("count", "groups") for line in neighbours.refuted(name)] == []
    assert [line for case in (kit / "conformance").iterdir() for line in replay.apart(case)] == []


def test_a_narrow_statement_is_found_by_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscreteLaplace, "loss", lambda self, l1, l2: PrivacyLoss(epsilon=l1 / (2 * self.scale)))
    assert any("charged less" in line or "draws show more" in line for line in neighbours.refuted("count"))


def test_what_is_told_beside_the_noise_is_found_by_replay(kit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assembled = noisy._noised

    def leaking(planned: Any, given: Any, height: int, exact: Any, noise: Any) -> Any:
        planned, _, shown = assembled(planned, given, height, exact, noise)
        return planned, list(exact), shown

    monkeypatch.setattr(noisy, "_noised", leaking)
    found = list(replay.apart(kit / "conformance" / "groups"))
    assert found and "what is told differs" in found[0]


def test_a_number_that_moves_too_far_is_found_by_replay() -> None:
    class Claim:
        l0, l1, l2_squared, linf = 1, 3, 9, 3

    class Stated:
        by_unit: dict[str, Any] = {}  # noqa: RUF012
        sensitivity = Claim

    recorder = replay.Recorder([])
    recorder.compare([5, 1], [8, 1], Stated)  # type: ignore[arg-type]
    assert recorder.problems == []
    recorder.compare([5, 1], [9, 2], Stated)  # type: ignore[arg-type]
    assert [problem.split()[0] for problem in recorder.problems] == ["l0", "l1", "l2_squared", "linf"]


def test_a_row_that_fails_is_found_by_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = expressions.parse_policy(expressions.POLICY, "odd.yaml")
    query = "SELECT SUM(CLIP({}, 0, 10)) AS s FROM odd"
    assert list(expressions.found_in(policy, query.format("i * i"))) == []
    assert list(expressions.found_in(policy, query.format("NO_SUCH(i)"))) == []  # refused, which costs nothing

    def failing(*_: object) -> None:
        raise expressions.EngineError(())

    world = expressions.World(policy, None)
    try:
        calls: Iterator[int] = iter(range(100))
        real = expressions.exact_totals
        monkeypatch.setattr(expressions, "exact_totals", lambda *a: failing() if next(calls) == 3 else real(*a))
        found = list(expressions.found_in(policy, query.format("i * i")))
    finally:
        world.close()
    assert len(found) == 1 and "makes the statement fail" in found[0]


def test_a_narrow_stream_is_found_by_streams() -> None:
    chance = random.Random(7)
    drawn = [round(chance.gauss(0, 3)) for _ in range(60_000)]
    assert list(streams.differences("wide", drawn, streams.gaussian(9 * 1.2)))
    assert list(streams.differences("repeated", drawn[:30_000] * 2, streams.gaussian(9.0))) == []
    assert list(streams.differences("stuck", [x for x in drawn[:30_000] for _ in (0, 1)], streams.gaussian(9.0)))


def test_the_command_says_what_was_found_and_what_was_not(tmp_path: Path) -> None:
    """Harnesses of a line each, so that what is tested is the command: one finds a fault, and one breaks."""
    find = runpy.run_path(str(ROOT / "dpsql/faces/audit/kit/find_faults.py"))
    (tmp_path / "find.py").write_bytes((ROOT / "dpsql/faces/audit/kit/find_faults.py").read_bytes())
    (tmp_path / "harnesses").mkdir()
    text = "import sys, dpsql.core.privacy_loss as p\nif hasattr(p, 'planted'):\n    print('found: it'); sys.exit(1)\n"
    for name in find["HARNESSES"]:
        (tmp_path / "harnesses" / f"{name}.py").write_text(text if name == "replay" else "", encoding="utf-8")
    old = "from __future__ import annotations"
    faults = [
        {"name": "a", "path": "dpsql/core/privacy_loss.py", "old": old, "new": f"{old}\nplanted = 1", "breaks": "x"},
        {
            "name": "b",
            "path": "dpsql/core/privacy_loss.py",
            "old": old,
            "new": f"{old}  # nothing",
            "breaks": "nothing",
        },
    ]
    (tmp_path / "faults.json").write_text(json.dumps(faults), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, tmp_path / "find.py"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "found by replay: it" in done.stdout and "NOT FOUND" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 of 2 faults found; not found: b"


def test_the_folder_holds_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.faces.audit.kit.write.QUERIES", {"sum": QUERIES["sum"]})
    assert main(["audit", "kit", str(tmp_path / "kit")]) == 0
    names = {p.relative_to(tmp_path / "kit").as_posix() for p in (tmp_path / "kit").rglob("*") if p.is_file()}
    assert {"README.md", "find.py", "faults.json", "conformance/sum/largest.json"} <= names
    assert {f"harnesses/{name}.py" for name in HARNESSES} <= names
    assert main(["audit", "kit", str(tmp_path / "kit")]) == 2  # it is there already
    assert write(tmp_path / "other").is_dir()
