"""Every format of the check is valid whatever texts it holds."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.diagnostics.diagnostic import Diagnostic, Edit, Fix, Source, Span
from dpsql.faces.check.report.finding import Finding, Report
from dpsql.faces.check.report.formats import FORMATS, full
from tests.faces.check.formats.readers import READERS, read_github, read_gitlab, read_sarif
from tests.faces.check.formats.test_formats import ODD

ODD_TEXT = st.one_of(st.lists(ODD, max_size=8).map("".join), st.text(max_size=12))
# Files hold UTF-8 without NUL; names and messages may hold anything.
FILE_TEXT = ODD_TEXT.map(lambda text: text.encode("utf-8", "replace").decode().replace("\x00", ""))


@st.composite
def diagnostics(draw: st.DrawFn) -> Diagnostic:
    source = draw(st.none() | st.builds(Source, FILE_TEXT, ODD_TEXT))
    offset = st.integers(0, len(source.text) + 2) if source else st.integers(0, 9)
    spans = st.tuples(offset, offset).map(lambda ends: Span(min(ends), max(ends)))
    inside = st.integers(0, len(source.text) if source else 0)
    edits = st.builds(Edit, st.tuples(inside, inside).map(lambda ends: Span(min(ends), max(ends))), FILE_TEXT)
    return Diagnostic(
        draw(st.sampled_from(["DP010", "DP110", "DP201", "DP501", "DP903"])),
        draw(ODD_TEXT) + "m",  # no message is empty
        source,
        draw(st.none() | spans) if source else None,
        draw(ODD_TEXT),
        draw(st.lists(ODD_TEXT, max_size=2).map(tuple)),
        draw(st.lists(ODD_TEXT, max_size=1).map(tuple)),
        draw(st.sampled_from(["error", "warning"])),
        draw(st.none() | st.builds(Fix, ODD_TEXT, st.lists(edits, min_size=1, max_size=2).map(tuple))),
    )


REPORTS = st.builds(
    Report,
    st.lists(st.builds(Finding, diagnostics(), FILE_TEXT), max_size=3).map(tuple),
    unreadable=st.lists(diagnostics(), max_size=2).map(tuple),
    names=st.lists(ODD_TEXT, max_size=2, unique=True).map(tuple),
)


@given(REPORTS)
@settings(max_examples=100)
def test_every_format_is_valid_whatever_it_holds(report: Report) -> None:
    for name, read in READERS.items():
        text = FORMATS[name](report)
        assert text.isprintable() or name == "github" or all(c.isprintable() or c == "\n" for c in text)
        read(text)
    said = (*(f.diagnostic for f in report.findings), *report.unreadable)
    assert len(read_github(FORMATS["github"](report))) == len(said) == len(json.loads(FORMATS["json"](report)))
    assert len(read_gitlab(FORMATS["gitlab"](report))) == len(said)
    assert len(read_sarif(FORMATS["sarif"](report))["results"]) == len(report.findings)
    concise = FORMATS["concise"](report)
    assert len(concise.split("\n") if concise else []) == len(report.findings)
    for text in (concise, FORMATS["full"](report), full.render(report, color=True).replace("\x1b[", "")):
        assert not [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cs")]
