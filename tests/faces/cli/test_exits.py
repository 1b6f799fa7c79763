"""Every code has one documented exit code."""

from __future__ import annotations

import pytest

from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import BudgetExceeded, CannotOpen, EngineError, Error, Rejected, reject
from dpsql.diagnostics.render import render_text
from dpsql.faces.cli.exits import internal_error, status_of, usage_error

EXPECTED = {
    "DP01": 3,
    "DP017": 4,
    "DP1": 4,
    "DP2": 4,
    "DP3": 4,
    "DP40": 4,
    "DP41": 4,
    "DP401": 1,
    "DP406": 1,
    "DP903": 1,
}


@pytest.mark.parametrize("code", [c for c in CODES if c.startswith(("DP01", "DP1", "DP2", "DP3", "DP4", "DP903"))])
def test_rejections(code: str) -> None:
    longest = max((prefix for prefix in EXPECTED if code.startswith(prefix)), key=len)
    assert status_of(reject(code, "…")) == EXPECTED[longest]


@pytest.mark.parametrize(
    ("kind", "status"),
    [(BudgetExceeded, 5), (CannotOpen, 2), (EngineError, 1)],
    ids=lambda v: getattr(v, "__name__", v),
)
def test_other_errors_go_by_their_kind(kind: type[Error], status: int) -> None:
    assert status_of(kind([Diagnostic("DP010", "…")])) == status


def test_the_first_finding_decides() -> None:
    assert status_of(Rejected([Diagnostic("DP201", "…"), Diagnostic("DP010", "…")])) == 4


def test_the_words_of_the_option_parser_become_a_diagnostic() -> None:
    assert usage_error("No such option: --x.", "dpsql --help") == Diagnostic(
        "DP903", "no such option: --x", help=("dpsql --help",)
    )
    assert "the charge stays" in render_text([internal_error()])
