"""One result whatever the way: with and without cache, in one process or several; what is kept is read back exactly.

The texts hold findings of every kind: refusals, warnings, fixes, comments that ignore, limits of ε, several statements.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.diagnostic import Diagnostic, Edit, Fix, Source, Span
from dpsql.diagnostics.errors import Rejected
from dpsql.diagnostics.pages_loader import load_page
from dpsql.faces.check.examine import cache as caching
from dpsql.faces.check.examine import examination, parallel
from dpsql.faces.check.examine.cache import Cache
from dpsql.faces.check.examine.check_settings import CheckSettings
from dpsql.faces.check.examine.epsilon_limits import EpsilonLimits
from dpsql.faces.check.examine.examination import Examination, examine
from dpsql.faces.check.examine.records import from_record, to_record
from dpsql.faces.check.examine.run_check import check_documents
from dpsql.faces.check.report.finding import Report
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
LIMITED = EpsilonLimits(1, 2)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def examined() -> list[Examination]:
    return [examine(text, policy(), "duckdb") for text in TEXTS]


def report_of(settings: CheckSettings, texts: Sequence[str] = TEXTS) -> Report:
    return check_documents(documents(*texts), settings).report


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
    cache = tmp_path / "faces" / "check" / "examine" / "cache.py"
    cache.parent.mkdir(parents=True)
    cache.write_text("x = 1\n")
    monkeypatch.setattr(caching, "__file__", str(cache))
    one = caching._code()
    cache.write_text("x = 2\n")
    assert len({before, one, caching._code()}) == 3


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


def test_few_texts_start_no_process(monkeypatch: pytest.MonkeyPatch, examined: list[Examination]) -> None:
    monkeypatch.setattr(parallel, "_with_others", never)
    monkeypatch.setattr(parallel, "usual_jobs", lambda: 64)
    assert parallel.examine_all(TEXTS[:40], policy(), "duckdb") == examined[:40]
    assert parallel.examine_all(TEXTS[:2], policy(), "duckdb", 64) == examined[:2]  # one chunk
    assert parallel.examine_all([], policy(), "duckdb", 64) == []
    assert parallel.usual_jobs() >= 1


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
