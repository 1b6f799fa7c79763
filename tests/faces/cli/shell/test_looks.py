"""Options of \\pset."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.diagnostics.errors import Rejected
from dpsql.faces.cli.options import Format, Intervals
from dpsql.faces.cli.shell.looks import OPTIONS, Looks, changed, option


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("format", "BOX", Format.BOX),
        ("format", "aligned", Format.TABLE),
        ("expanded", "auto", None),
        ("x", "on", True),
        ("intervals", "cols", Intervals.COLS),
        ("intervals", "off", Intervals.OFF),
        ("pager", "always", "always"),
        ("pager", "off", "off"),
        ("null", "", ""),
        ("confirm", "10%", Fraction(1, 10)),
        ("confirm", "0.5", Fraction(1, 2)),
        ("confirm", "0", Fraction(0)),
        ("confirm", "off", None),
    ],
)
def test_values(name: str, value: str, expected: object) -> None:
    assert getattr(changed(Looks(), name, value), option(name).name) == expected


def test_switches_go_over() -> None:
    assert changed(Looks(expanded=None), "expanded", None).expanded is True
    assert changed(Looks(expanded=True), "expanded", None).expanded is False
    assert changed(Looks(pager="always"), "pager", None).pager == "off"


@pytest.mark.parametrize(
    ("name", "value"),
    [("format", "x"), ("expanded", "maybe"), ("confirm", "2"), ("confirm", "nan"), ("format", None), ("nul", "x")],
)
def test_refusals_name_what_is_possible(name: str, value: str | None) -> None:
    with pytest.raises(Rejected) as refusal:
        changed(Looks(), name, value)
    (d,) = refusal.value.diagnostics
    assert d.code == "DP903" and d.help and name in d.message


def test_what_is_shown_can_be_given_again() -> None:
    for each in OPTIONS.values():
        assert changed(Looks(), each.name, each.shown(Looks())) == Looks(), each.name
