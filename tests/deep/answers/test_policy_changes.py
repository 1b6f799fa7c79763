"""What a change of the policy loses of the stored answers, and what it does not: one case for each part of a policy.

Every question is asked, paid and stored under one policy; then the policy is changed, and each is asked again. What is
given for nothing is what was measured.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.core.privacy_loss import NO_LOSS
from tests.support.policy_changes import CHANGES, POLICY, QUESTIONS, ROWS, changed


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every question was answered: what is stored in it is copied for each case."""
    folder = tmp_path_factory.mktemp("bikes")
    for place in ("bikes.duckdb", "other.duckdb"):
        with duckdb.connect(folder / place) as data:
            for name, sql in ROWS.items():
                data.execute(f"CREATE TABLE {name} AS {sql}")
                for file in (name, f"{name}2"):
                    data.execute(f"COPY {name} TO '{folder / file}.parquet'")
    (folder / "bikes.yaml").write_text(POLICY, encoding="utf-8")
    with _opened(folder) as con:
        for sql in QUESTIONS.values():
            assert con.execute(sql, epsilon=5).spent != NO_LOSS
    return folder


@pytest.fixture
def folder(asked: Path, tmp_path: Path) -> Iterator[Path]:
    shutil.copytree(asked, tmp_path / "bikes")
    yield tmp_path / "bikes"


def _opened(folder: Path) -> dpsql.Connection:
    return dpsql.connect(folder / "bikes.yaml")


def _changed(folder: Path, changes: dict[str, str]) -> None:
    """The policy with other words in it; a table with one row more."""
    for name in ROWS.keys() & changes.keys():
        with duckdb.connect() as data:
            data.execute(f"COPY ({ROWS[name]} UNION ALL VALUES {changes[name]}) TO '{folder / name}.parquet'")
    (folder / "bikes.yaml").write_text(changed(changes), encoding="utf-8")


def _lost(folder: Path) -> set[str]:
    """The questions that are not given for nothing. Nothing is asked: prices tell."""
    with _opened(folder) as con:
        return {name for name, sql in QUESTIONS.items() if con.sql(sql).cost(epsilon=1) != NO_LOSS}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_loses_what_rests_on_it_and_nothing_else(folder: Path, change: str) -> None:
    changes, lost = CHANGES[change]
    _changed(folder, changes)
    assert _lost(folder) == lost
