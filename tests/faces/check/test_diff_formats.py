"""A comparison's formats with names, paths and messages that a hostile branch chose."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.faces.check.examine.measures import ColumnMeasure, Measures
from dpsql.faces.check.report.diff import Comparison, QueryPair, VersionedQuery
from dpsql.faces.check.report.diff_formats import About, as_markdown, as_text
from dpsql.faces.check.report.formats.texts import code_span

ABOUT = About("origin/main", "0123456789abcdef", "clinic.yaml", "there")
HOSTILE = [
    "![x](http://evil.example/p.png) @org/team",
    "@org/team",
    "[here](https://evil.example)",
    "<img src=//evil.example/p.png>",
    "<!-- ",
    "https://evil.example www.evil.example mail@evil.example",
    "#12 org/repo#12 GH-12",
    "a|![x](//evil.example)|@org",
    "\\|@org\\",
    "`@org`",
    "` @org ``",
    "```@org",
    "@org`",
    "||",
    "|",
    "`",
    "\n\n# @org\n\n- [ ] x",
    "\r::error file=x::@org",
    "\u2028@org\u2029",
    "**a** __b__ ~~c~~ $x$ :tada:",
    "&#64;org &lt;",
    "@" * 5000,
]


def comparison(text: str) -> Comparison:
    """One changed, one refused and one moved query, in which everything that a branch names is `text`."""
    old, new = (VersionedQuery(text or "q.sql", 1, text, "SELECT 1", "s") for _ in range(2))
    before = Measures((), {text: 1}, {text: ColumnMeasure(Fraction(1), None)}, {text: PrivacyLoss(Fraction(1))})
    after = Measures((), {text: 2}, {text: ColumnMeasure(Fraction(2), 1.5)}, {text: PrivacyLoss(Fraction(2))})
    refused = Measures((("DP201", f"{text} has no bounds"),))
    gone = QueryPair(old, new, before, Measures())
    moved = QueryPair(VersionedQuery(f"{text}.sql", 1, "", "SELECT 1", "s"), new, before, after)
    return Comparison((QueryPair(old, new, before, after), QueryPair(old, new, before, refused), gone, moved), True)


def outside_of_code(markdown: str) -> str:
    """What is left without code spans (CommonMark 0.31, 6.1: from a run of backticks to the next one as long)."""
    return re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", markdown)


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_of_the_branch_is_markdown(text: str) -> None:
    about = About(text, ABOUT.commit, text, "there")
    out = as_markdown(comparison(text), about)
    bare = outside_of_code(out).replace("&#124;", "")
    words = (
        r"### Privacy of the queries|compared with +\(\): the policy +has changed, too|before → now|query|what|"
        r"rows per|cost of each|sensitivity of|expected error of|column|moved from|refused|newly refused|changed|"
        r"gone|new|worse|none|DP201|ε|=|[⚠—→±,;.|\s\d-]|1\.5"
    )
    assert re.sub(words, "", bare) == ""
    table = [line for line in bare.splitlines() if line.startswith("|")]
    assert len(table) > 8 and all(line.count("|") == 5 for line in table)


def test_code_shows_what_was_written() -> None:
    assert code_span("a.sql:1") == "`a.sql:1`" and code_span("") == ""
    assert code_span("a\\b &lt; <c>") == "`a\\b &lt; <c>`"
    assert code_span("a`b``c") == "```a`b``c```" and code_span("`a") == "`` `a ``"
    assert code_span("a\\|b") == "`a\\`&#124;`b`"
    assert code_span("a\nb\x1b\u202e") == "`a b\ufffd\ufffd`"
    assert len(code_span("a" * 5000)) == 1002


@pytest.mark.parametrize("name", ["::error::x.sql", " ::stop-commands::x.sql", "\n::error::x.sql"])
def test_no_line_of_text_is_a_workflow_command(name: str) -> None:
    out = as_text(comparison(name), About(name, ABOUT.commit, name, "missing"))
    assert not any(line.lstrip().startswith("::") for line in out.splitlines())
