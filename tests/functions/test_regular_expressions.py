"""Patterns: what is accepted the engine accepts, for every text, and in its own time; what is not is said why."""

from __future__ import annotations

import random

import duckdb
import pytest

from dpsql.core.ir.types import VARCHAR
from dpsql.core.values.constants import literal
from dpsql.functions.function import SignatureError
from dpsql.functions.registry import REGISTRY
from dpsql.functions.text.regular_expressions import groups_of, replaced_room
from dpsql.functions.text.strings import LONGEST

PARTS = [
    "a", "b", "é", "日", ".", "^", "$", "|", "(", ")", "(?:", "(?i)", "(?P<x>", "(?<x>", "[", "]", "[^", "-", "a-c",
    "[:alpha:]", "[[:digit:]]", "*", "+", "?", "??", "{2}", "{2,}", "{1,3}", "{900}", "{", "}", ",", "\\", "\\d",
    "\\W", "\\b", "\\1", "\\.", "\\[", "\\]", "\\Q", "\\p", "(?=", "(?<=", "\\\\", "/", "'", " ", "&&", "{3,1}",
    "\\x", "\\z", "\\C",
]  # fmt: skip
TEXTS = ["", "a", "ab", "aab", "日b", "1 2", "[]", "\n", "a" * 50]


def test_what_is_accepted_the_engine_reads() -> None:
    """Random patterns; the twin: those that are refused are often unreadable to the engine, too."""
    rng, con = random.Random(11), duckdb.connect()
    accepted = refused = 0
    for _ in range(1500):
        pattern = "".join(rng.choice(PARTS) for _ in range(rng.randint(1, 7)))
        try:
            groups = groups_of(pattern)
        except SignatureError:
            refused += _fails(con, pattern)
            continue
        accepted += 1
        rows = con.execute(
            "SELECT regexp_matches(t, $p), regexp_extract(t, $p, 0), regexp_replace(t, $p, $r, 'g') "
            "FROM UNNEST($t) x(t)",
            {"p": pattern, "r": "".join(f"\\{i}" for i in range(groups + 1) if i < 10), "t": TEXTS},
        ).fetchall()
        assert len(rows) == len(TEXTS)
    assert accepted > 150 and refused > 150


def _fails(con: duckdb.DuckDBPyConnection, pattern: str) -> bool:
    try:
        con.execute("SELECT regexp_matches('a', $p)", {"p": pattern}).fetchall()
    except duckdb.Error:
        return True
    return False


@pytest.mark.parametrize(
    ("pattern", "why"),
    [("(a", "not closed"), ("a)", "nothing opens"), ("[a", "not closed"), (r"(a)\1", r"\\1"),
     ("a(?=b)", "of this kind"), ("a**", "repetition"), ("a{1001}", "repetitions"), ("((a{20}){20}){9}", "repetitions"),
     ("a{3,1}", "before it begins"),
     ("*a", "backslash"), ("[b-a]", "range"), ("[[:word]]", "name"), ("(?<!a)b", "of this kind"),
     ("(?<x>a)", "of this kind"), ("a" * 1001, "1000"),
     (r"\pL", "p"), ("(" * 5000 + ")" * 5000, "1000"), ("\\", "near character 1")],
)  # fmt: skip
def test_what_is_not_accepted_is_named(pattern: str, why: str) -> None:
    with pytest.raises(SignatureError, match=why):
        groups_of(pattern)


def test_reading_takes_no_time_that_doubles_with_each_bracket() -> None:
    assert groups_of("(" * 300 + "a" + ")*" * 300) == 300
    assert groups_of("(((((((a{2}){2}){2}){2}){2}){2}){2})") == 7


def test_what_is_replaced_stays_short() -> None:
    """The longest that is given is as long as is told at most, for the worst of texts."""
    con = duckdb.connect()
    for pattern, new in (("", "xyz"), ("(a)", r"\1\1\1\0é"), (".*", r"\0\0"), ("a|", "日日")):
        args = [literal(v, VARCHAR) for v in ("a", pattern, new, "g")]
        room = replaced_room(args)
        row = con.execute("SELECT strlen(regexp_replace(repeat('a', ?), ?, ?, 'g'))", [room, pattern, new]).fetchone()
        assert row is not None and row[0] <= LONGEST
    assert REGISTRY["regexp_like"] is REGISTRY["regexp_matches"]
