"""The benchmarks run, compare like with like, and write what they measured. No figure is judged here."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

import dpsql
from benchmarks import data, frame, growth, quantiles, queries, render, targets, tpch
from benchmarks.__main__ import main
from benchmarks.frame import Figures, Settings
from benchmarks.parts import PARTS
from benchmarks.peers import contest, environments
from benchmarks.peers.environments import PEERS, QUANTILES


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the benchmarks of this file keep their tables."""
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="module")
def measured(tables: Path) -> dict[str, Figures]:
    """Figures of all benchmarks that start no process, as small as they can be."""
    settings = Settings("quick", tables, people=300, rounds=1)
    names = ("queries", "prepared", "growth", "tpch", "limits", "quantiles", "peers")
    return {name: frame.measured(PARTS[name].run, settings) for name in names}


def test_every_benchmark_is_a_part() -> None:
    folder = Path(queries.__file__).parent
    found = {p.stem for p in folder.glob("*.py") if "\ndef run(settings: Settings" in p.read_text(encoding="utf-8")}
    assert found | {"peers"} == set(PARTS) | {"postgres", "spark", "before", "attacks", "truth", "held_sets", "year"}, (
        "on their own"
    )
    for part in PARTS.values():
        assert part.TITLE and callable(part.run) and callable(part.markdown)


def test_queries_run_with_their_contestants(measured: dict[str, Figures]) -> None:
    found = measured["queries"]["figures"]["queries"]
    assert list(found) == ["Q1", "Q2", "Q3", "Q4", "Q5"]
    for name, rows in found.items():
        assert {"plain", "engine", "dpsql", "again"} <= set(rows)
        assert ("floor" in rows) == (name in {"Q3", "Q4", "Q5"})
        assert all(row["ms"][1] <= row["ms"][0] <= row["ms"][2] for row in rows.values())
    assert measured["queries"]["machine"]["duckdb"] == duckdb.__version__


def test_prepared_tables_are_measured_beside_the_tables_as_they_are(measured: dict[str, Figures]) -> None:
    figures = measured["prepared"]["figures"]
    (size,) = figures["persons"]
    assert list(size["queries"]) == ["Q3", "Q4", "Q5"] and set(figures["tpch"]["queries"]) <= set(tpch.NUMBERS)
    for row in [*size["queries"].values(), *figures["tpch"]["queries"].values()]:
        assert list(row) == ["plain", "as it is", "prepared"]
    assert size["orders"] > size["people"] == 300


def test_growth_measures_every_size_in_both_layouts(measured: dict[str, Figures], tables: Path) -> None:
    figures = measured["growth"]["figures"]
    assert {(row["query"], row["layout"]) for row in figures["rows"]} == {
        (query, layout) for query in ("Q1", "Q2", "Q3") for layout in ("native", "parquet")
    }
    assert [row["groups"] for row in figures["groups"]["sizes"]] == [10, 100]
    assert not list(tables.glob("people-only-*")), "the tables of growth are deleted"


def test_the_page_shows_every_benchmark(measured: dict[str, Figures], tmp_path: Path) -> None:
    text = render.page(measured)
    for name in measured:
        assert f"\n## {PARTS[name].TITLE}\n" in text
    assert text.count("| not measured | – |") == len(targets.TARGETS), "quick figures are not judged"
    render.picture(measured, tmp_path / "page.svg")
    assert (tmp_path / "page.svg").read_text(encoding="utf-8").count("<svg") == 1


def test_targets_are_read_from_the_figures(measured: dict[str, Figures]) -> None:
    """The same ratio on both sides of a limit."""

    def judged(ratio: float, people: int = 10**6) -> str:
        found = json.loads(json.dumps(measured["queries"]))
        found["figures"]["rows"]["people"] = people
        for query in ("Q3", "Q5"):
            found["figures"]["queries"][query]["dpsql"]["over"]["floor"] = [ratio, ratio, ratio]
        (line,) = [x for x in targets.markdown({"queries": found | {"size": "short"}}).splitlines() if "Q3, Q5" in x]
        return line

    assert "**missed**" in judged(1.21)
    assert "not measured" in judged(1.21, people=300)
    assert "met" in judged(1.19) and "**missed**" not in judged(1.19)


def test_a_ratio_is_the_median_of_ratios_within_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine gets ten times slower in the middle: the ratio stays, the ratio of sums would not."""
    spent = iter([1.0, 2.0, 10.0, 20.0, 1.0, 2.0])
    monkeypatch.setattr(frame, "seconds", lambda run: next(spent))
    found = frame.take_turns({"a": lambda: None, "b": lambda: None}, 3, warm=False)
    assert found["b"]["over"]["a"] == [2.0, 2.0, 2.0]
    assert found["a"]["ms"] == [1000.0, 1000.0, 10000.0]


def test_a_line_is_found() -> None:
    fitted = growth.fit([(10**6, 5.0), (10**7, 32.0), (10**8, 302.0)])
    assert fitted["fixed_ms"] == pytest.approx(2) and fitted["ms_per_million"] == pytest.approx(3)
    assert fitted["residual"] < 1e-9 and fitted["exponent"] == pytest.approx(0.975, abs=0.01)


def test_the_command_writes_what_it_measured(tmp_path: Path, tables: Path) -> None:
    target = tmp_path / "found.json"
    target.write_text(json.dumps({"queries": {"kept": True}}))
    assert main(["--quick", "--only", "ledger", "--folder", str(tables), "--into", str(target)]) == 0
    report = json.loads(target.read_text())
    assert report["queries"] == {"kept": True}
    assert report["ledger"]["figures"]["charges"]["race of 2 processes"]["admitted"] == 5


def test_the_page_of_the_docs_is_that_of_the_published_figures() -> None:
    assert render.PAGE.read_text(encoding="utf-8") == render.page(render.published())
    assert render.PICTURE.exists()


ADAPTER = """
import os
from serve import serve

def open_task(task):
    def fails():
        raise ValueError("no such thing")
    said = {"Q1": lambda: [(None, [41.0])], "Q2": fails, "Q3": "cannot be said"}
    return said | {"Q4": lambda: print("noise") or [], "Q5": lambda: os._exit(3)}

serve(open_task, "pip")
"""


def test_an_adapter_is_asked_over_its_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "adapter.py").write_text(ADAPTER)
    monkeypatch.setattr(contest, "HERE", tmp_path)
    with (tmp_path / "log").open("w") as log:
        peer = contest.Peer(Path(sys.executable), "fake", {}, 60, log)
        try:
            assert peer.ready == {"Q1": None, "Q2": None, "Q3": "cannot be said", "Q4": None, "Q5": None}
            assert peer.answer("Q1") == {None: [41.0]}
            with pytest.raises(contest.Failed, match="ValueError: no such thing"):
                peer.answer("Q2")
            assert peer.answer("Q4") == {}
            with pytest.raises(contest.Failed, match="its process ended"):
                peer.answer("Q5")
        finally:
            peer.close()
    assert (tmp_path / "log").read_text().strip() == "noise"


def test_errors_of_peers_are_relative_and_a_missing_group_counts() -> None:
    exact = {"a": [100.0, 10.0], "b": [200.0, 10.0], "c": [300.0, 10.0]}
    assert contest.errors(exact, [{"a": [101.0, 10.0], "b": [202.0, 5.0]}]) == [0.01, 0.5]


def test_a_peer_that_cannot_answer_is_shown_with_the_reason(measured: dict[str, Figures]) -> None:
    answer = measured["peers"]["figures"]["own"]["dpsql"]["Q1"] | {"over": {"dpsql": [2.0, 1.0, 3.0]}}
    asked = {"queries": {"Q1": answer, "Q2": {"refused": "no | such\nthing"}}, "failed": "its process ended"}
    missing = {"queries": {}, "failed": "needs Java"}
    figures = measured["peers"]["figures"] | {"peers": {"qrlew": asked, "tumult": missing}}
    text = contest.markdown(figures)
    assert "| per-person floor | – | – |" in text and "| dpsql, prepared | – | – |" in text
    (line,) = [x for x in text.splitlines() if x.startswith("| Qrlew on DuckDB") and "ms" in x]
    assert "(**2.00 ×**) | no (1) | no (2) |" in line
    assert "1. Qrlew on DuckDB, Q2: no / such thing\n2. Qrlew on DuckDB, Q3: its process ended" in text
    assert "Tumult on Spark, Q5: needs Java" in text


def test_the_error_of_a_quantile_is_counted_in_rows_and_in_values() -> None:
    """The quantiles at 1/2 of 1, 2, 2, 5, 9, 9 are 2 … 5; of five values it is the third."""
    six, five = np.array([1.0, 2, 2, 5, 9, 9]), np.array([1.0, 2, 2, 5, 9])
    answers = np.array([0.0, 1, 2, 3, 5, 6, 9, 10])
    of_six = quantiles.errors(six, Fraction(1, 2), answers)
    assert of_six["rank"].tolist() == [3, 2, 0, 0, 0, 1, 1, 3]
    assert of_six["value"].tolist() == [2, 1, 0, 0, 0, 1, 4, 5]
    of_five = quantiles.errors(five, Fraction(1, 2), answers)
    assert of_five["rank"].tolist() == [2.5, 1.5, 0, 0.5, 0.5, 1.5, 1.5, 2.5]
    assert of_five["value"].tolist() == [2, 1, 0, 1, 3, 4, 7, 8]


def test_smaller_errors_are_ahead() -> None:
    small, large = np.arange(100.0), np.arange(100.0) + 50
    assert quantiles.ahead(small, large) > quantiles.SURE
    assert quantiles.ahead(large, small) == -quantiles.ahead(small, large)
    assert quantiles.ahead(small, small) == quantiles.ahead(np.zeros(9), np.zeros(5)) == 0


def test_whole_queries_and_draws_are_of_one_plan(measured: dict[str, Figures]) -> None:
    """Where noise cannot matter both give the one value that is the quantile."""
    found = measured["quantiles"]["figures"]["sets"]
    assert list(found) == [one.name for one in quantiles.SETS[:3]]
    assert found["delays, all"]["rows"] == 328_521
    assert found["delays, all"]["errors"]["0.5|1.0"]["dpsql"]["rank"][:2] == [0, 0]
    assert found["delays, all"]["whole"]["0.5|1.0"] == 0


def test_java_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(environments, "which", lambda program: None)
    with pytest.raises(environments.NotInstalled, match="Java"):
        environments.python_of("tumult", tmp_path)
    assert not list(tmp_path.iterdir())


PEER_FILES = [*((name, "adapter.py") for name in PEERS), *((name, "quantiles.py") for name in QUANTILES)]


@pytest.mark.parametrize(("name", "file"), PEER_FILES)
def test_a_peer_is_a_folder_with_pinned_versions(name: str, file: str) -> None:
    folder = contest.HERE / name
    compile((folder / file).read_text(encoding="utf-8"), file, "exec")
    wanted = (folder / "requirements.txt").read_text(encoding="utf-8").split()
    assert wanted and all("==" in line for line in wanted)


def test_floors_and_answers_are_those_of_the_queries(tmp_path: Path) -> None:
    """At a large ε, dpsql answers what the per-person floor says (counts and sums: the bounded truth)."""
    policy = tmp_path / "persons.yaml"
    policy.write_text(data.POLICY_PERSONS + "ledger: l.sqlite\nledger_head: head.json\n")
    by_name = {q.name: q for q in queries.QUERIES}
    with duckdb.connect(str(data.make(tmp_path, 2000)), read_only=True) as plain:
        with dpsql.connect(plain, policy=policy, optimizers="ours") as con:
            ours = {n: con.execute(by_name[n].sql, epsilon=100_000).rows for n in ("Q3", "Q4", "Q5")}
        floors = {n: plain.execute(by_name[n].floor or "").fetchall() for n in ours}
        assert plain.execute("SELECT MAX(n) FROM (SELECT COUNT(*) n FROM orders GROUP BY person_id)").fetchall() == [
            (200,)
        ]
        assert plain.execute("SELECT COUNT(*), COUNT(DISTINCT id) FROM people").fetchall() == [(2000, 2000)]
    ((n, s),) = ours["Q3"]
    assert (n, s) == (pytest.approx(floors["Q3"][0][0], rel=1e-3), pytest.approx(floors["Q3"][0][1], rel=1e-3))
    assert [row[0] for row in ours["Q4"]] == sorted(row[0] for row in floors["Q4"])
    floor5 = {row[0]: row[1:] for row in floors["Q5"]}
    assert len(ours["Q5"]) == 4
    for region, n, s in ours["Q5"]:
        assert (n, s) == (pytest.approx(floor5[region][0], rel=1e-3), pytest.approx(floor5[region][1], rel=1e-3))
