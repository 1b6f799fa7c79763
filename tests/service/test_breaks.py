"""The cases of tests/fixtures/breaks.yaml as they are: two databases that differ in one person, through the Python API.

Each is the same kind of outcome in both, and the numbers before noise differ by no more than the price allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

import dpsql
from dpsql.core.release import noisy
from dpsql.core.release.drawing import EngineAsk
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.errors import Error
from tests.support.neighbour_oracle import Vector, violations

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parents[1] / "fixtures" / "breaks.yaml").read_text())[
    "cases"
]
LATE = "TIMESTAMP '2024-06-01 00:00:00'"


def written(case: dict[str, Any]) -> str:
    """The query of a case, spelt out."""
    sql: str = case["query"]
    numbers = ", ".join(f"({n})" for n in range(32))
    sql = re.sub(r"\{numbers\} AS (\w)", rf"(VALUES {numbers}) AS \1(k)", sql)
    if "bits" in case:
        powers = [2**i for i in range(10)]
        sql = sql.replace("{bits}", " + ".join(f"{p} * {case['bits'].replace('{p}', str(p))}" for p in powers))
    if "conditions" in case:
        each = [case["conditions"].replace("{i}", str(i)) for i in range(1, 6)]
        tests = [(f"{e} > {LATE}", f"{e} IS NULL") for e in each]
        counts = [f"COUNT(*) FILTER (WHERE {' AND '.join(all_)})" for all_ in product(*tests)]
        sql = sql.replace("{counts}", ", ".join(f"{count} AS n{i}" for i, count in enumerate(counts)))
    return sql


@dataclass
class Outcome:
    """How a run ended, what the ledger says of it, and the integers that noise was, or would have been, added to."""

    kind: str = "an answer"
    spent: bool = False
    releases: list[tuple[PlannedRelease, Vector]] = field(default_factory=list)


def outcome(folder: Path, case: dict[str, Any], made: str, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """One run over one database, with a ledger of its own."""
    folder.mkdir()
    (folder / "p.yaml").write_text(case["policy"] + 'ledger: ":memory:"\n')
    with duckdb.connect(str(folder / "a.duckdb")) as data:
        data.execute(made)
    found, fetch = Outcome(), noisy._fetch

    def spied(planned: PlannedRelease, ask: EngineAsk) -> Any:
        integers = fetch(planned, ask)
        found.releases.append((planned, dict(integers.rows())))
        return integers

    with monkeypatch.context() as patched, dpsql.connect(folder / "p.yaml") as con:
        patched.setattr(noisy, "_fetch", spied)
        try:
            con.sql(written(case)).run(epsilon=case["epsilon"])
        except Error as error:
            found.kind = f"{type(error).__name__} {error.diagnostics[0].code}"
        found.spent = bool(con.budget.spent.epsilon)
    return found


def apart(one: Outcome, other: Outcome) -> Iterator[str]:
    """What tells two outcomes apart beyond the price."""
    if (one.kind, one.spent) != (other.kind, other.spent):
        yield f"{one.kind} here and {other.kind} there"
    for (planned, a), (_, b) in zip(one.releases, other.releases, strict=False):
        yield from violations(planned, a, b)


@pytest.mark.filterwarnings("ignore::dpsql.UtilityWarning")
@pytest.mark.parametrize("case", CASES, ids=[c["name"][:40] for c in CASES])
def test_two_databases_that_differ_in_one_person_are_not_told_apart(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (outcome(tmp_path / f"db{i}", case, made, monkeypatch) for i, made in enumerate(case["databases"]))
    told = list(apart(one, other))
    assert not told, told
    assert "EngineError" not in one.kind  # of which nobody is told more than that it was
    assert one.releases or not one.spent
