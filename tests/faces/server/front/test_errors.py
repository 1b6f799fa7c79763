"""Refusals on the wire: a SQLSTATE for each code, places in what was sent, and repairs that can be typed there."""

from __future__ import annotations

import re

import pytest

from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span
from dpsql.diagnostics.errors import Rejected
from dpsql.faces.server.front import error_fields as errors
from dpsql.faces.server.front.hints import in_sql
from dpsql.faces.server.statements import Refused
from dpsql.policy.load import load_policy, parse_policy
from dpsql.service.checks.check import static_plan
from tests.meta.test_pages import SHARED_POLICY, read_example

OF_ANOTHER_DOOR = re.compile(r"run\(|con\.|connect\(|[Ii]n Python|--\w|parameters=|\w+=\{|query\.|pip |cur\.|epsilon=")


def test_each_code_has_a_sqlstate() -> None:
    assert set(errors.SQLSTATES) == set(CODES)
    assert all(re.fullmatch(r"[0-9A-Z]{5}", state) for state in errors.SQLSTATES.values())


def test_drivers_see_the_errors_they_know() -> None:
    assert errors.SQLSTATES["DP102"] == "42P01" and errors.SQLSTATES["DP103"] == "42703"
    assert {errors.SQLSTATES[code] for code in ("DP403", "DP404", "DP405")} == {"53400"}


def test_a_refusal_has_all_its_fields() -> None:
    source = Source("SELECT x,\n  y FROM t")
    first = Diagnostic("DP103", "column x does not exist", source, Span(7, 8), "here", ("help",), ("a note",))
    second = Diagnostic("DP103", "column y does not exist", source, Span(12, 13), help=("help", "more"))
    found = dict(errors.refusal(Refused([first, second]), 100))
    assert found["S"] == found["V"] == "ERROR" and found["C"] == "42703" and found["P"] == "108"
    assert found["M"] == "[DP103] column x does not exist" and found["H"] == "help\nmore"
    assert found["D"].splitlines()[:3] == ["here", "a note", "also [DP103] column y does not exist (line 2, column 3)"]
    assert "nothing was spent" in found["D"]
    assert dict(errors.refusal(Refused([first], "57014")))["C"] == "57014"
    refused = Refused([first])
    refused.at = None
    assert "P" not in dict(errors.refusal(refused, 100))


def test_a_place_counts_characters_not_bytes() -> None:
    diagnostic = Diagnostic("DP103", "x", Source("SELECT 'ε𝄞', x"), Span(13, 14))
    assert dict(errors.refusal(Refused([diagnostic])))["P"] == "14"


TRANSLATED = {
    "say how much to spend, e.g.  run(epsilon=0.5)  or  --epsilon 0.5": "say how much to spend:  SET epsilon = 0.5",
    "pass  parameters=[value, …] for ? and $1": "bind a value for each parameter, or write the value into the query",
    "or let a quarter of ε find it, in front of the query:  /* dpsql: limits=search */":
        "or let a quarter of ε find it, in front of the query:  /* dpsql: limits=search */",
    "SET limits = 'search';  in Python  limits=\"search\"": "SET limits = 'search'",
    "coverage = on;  in Python  coverage=True": "SET coverage = on",
    "open it again with dpsql.connect(…)": "connect again",
    "query.run(epsilon=…).df()": "",
    "write  ?": "write  ?",
}  # fmt: skip


@pytest.mark.parametrize("help", TRANSLATED)
def test_repairs_are_in_sql(help: str) -> None:
    assert in_sql(help) == TRANSLATED[help]


@pytest.mark.parametrize("code", [c for c in CODES if read_example(c).language == "sql"])
def test_repairs_of_what_the_pages_refuse_can_be_typed(code: str) -> None:
    example = read_example(code)
    own = example.blocks.get(("yaml", "policy"))
    policy = load_policy(SHARED_POLICY) if own is None else parse_policy(own)
    try:
        static_plan(Source(example.blocks["sql", "rejected"]), policy)
    except Rejected as refused:
        for diagnostic in refused.diagnostics:
            for help in diagnostic.help:
                assert not OF_ANOTHER_DOOR.search(in_sql(help)), help
