"""What a change of the policy loses of the stored answers, and what it does not: one case for each part of a policy.

Every question is asked, paid and stored under one policy; then the policy is changed, and each is asked again. What is
given for nothing is what was measured: its exact integers are what they were. What changes in the policy alone is told
before it is made.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.core.privacy_loss import NO_LOSS
from dpsql.core.release import noisy
from dpsql.core.release.noisy import EngineAsk
from dpsql.service.checks.policy_change import change as told
from tests.support.policy_changes import CHANGES, QUESTIONS, ROWS, changed, made

Integers = dict[str, list[list[tuple[object, ...]]]]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Integers]:
    """A folder in which every question was answered, copied for each case, and the integers that were measured."""
    folder = tmp_path_factory.mktemp("bikes")
    made(folder)
    with dpsql.connect(folder / "bikes.yaml") as con:
        for sql in QUESTIONS.values():
            assert con.execute(sql, epsilon=5).spent != NO_LOSS
        return folder, {name: _integers(con, name) for name in QUESTIONS}


def _integers(con: dpsql.Connection, name: str) -> list[list[tuple[object, ...]]]:
    """Of each release the rows that its noise is added to."""
    ask = EngineAsk(con.service.engine, con.ledger.salt)
    releases = con.sql(QUESTIONS[name]).plan(epsilon=1).releases
    return [sorted(noisy._fetch(planned, ask).rows(), key=repr) for planned in releases]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_loses_what_rests_on_it_and_nothing_else(
    asked: tuple[Path, Integers], tmp_path: Path, change: str
) -> None:
    words, lost = CHANGES[change]
    folder = tmp_path / "bikes"
    shutil.copytree(asked[0], folder)
    for name in ROWS.keys() & words.keys():
        with duckdb.connect() as data:
            data.execute(f"COPY ({ROWS[name]} UNION ALL VALUES {words[name]}) TO '{folder / name}.parquet'")
    (folder / "new.yaml").write_text(changed(words), encoding="utf-8")
    if not ROWS.keys() & words.keys():
        found = told(folder / "bikes.yaml", folder / "new.yaml")
        assert {s.statement for s in found.lost} == {QUESTIONS[name] for name in lost}
        assert {s.statement for s in found.kept} == {QUESTIONS[name] for name in QUESTIONS.keys() - lost}
    with dpsql.connect(folder / "new.yaml") as con:
        paid = {name for name, sql in QUESTIONS.items() if con.sql(sql).cost(epsilon=1) != NO_LOSS}
        assert paid == lost
        for name in QUESTIONS.keys() - lost:
            assert _integers(con, name) == asked[1][name], name
