"""`dpsql check` of statements about summaries: accepted, or refused by name, without data."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpsql
from tests.support.summary_board import CREATE, POLICY


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("check") / "board.yaml"
    path.write_text(POLICY, encoding="utf-8")
    return path


@pytest.mark.parametrize("sql", [CREATE, "DROP DP SUMMARY board", "CREATE DP SUMMARY v ON visits (ward, day)"])
def test_accepted(policy: Path, sql: str) -> None:
    assert dpsql.check(sql, policy) == []


@pytest.mark.parametrize(
    ("sql", "code", "at"),
    [
        ("CREATE DP SUMMARY s ON flights (monthh)", "DP103", "monthh"),
        ("CREATE DP SUMMARY s ON flightss (month)", "DP102", "flightss"),
        ("CREATE DP SUMMARY s ON flights (dest)", "DP302", ""),
        ("CREATE DP SUMMARY s ON tours (ward)", "DP101", ""),
        ("CREATE DP SUMMARY s ON wards (ward)", "DP101", ""),
        ("CREATE DP SUMMARY s ON flights month", "DP010", "month"),
    ],
)
def test_refused_at_its_place(policy: Path, sql: str, code: str, at: str) -> None:
    (found,) = dpsql.check(sql, policy)
    assert found.code == code and found.help
    if at:
        assert found.source is not None and found.span is not None
        assert found.source.text[found.span.start : found.span.end] == at
