"""`-- dpsql: ignore[CODE] reason`: which statement it is about, what it hides, and what is wrong with it."""

from __future__ import annotations

import pytest

from dpsql.faces.check.examine.epsilon_limits import EpsilonLimits
from dpsql.faces.check.examine.examine_text import TextOptions
from tests.support.checked_files import DEAR, GOOD, NO_BOUNDS, NO_KEY, codes, shown

OK = "-- dpsql: ignore[DP301] fees are public here"
LIMITED = TextOptions(limits=EpsilonLimits(query=1))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        f"{OK}\n{NO_KEY};",
        f"{OK}\r\n{NO_KEY};\r\n",
        f"{NO_KEY}; {OK}",
        f"{NO_KEY} {OK}\n;",
        f"SELECT fee, {OK}\nCOUNT(*) AS n FROM visits GROUP BY fee",
        f"{OK}\n-- another comment\n/* and\n\n   one of three lines */\n{NO_KEY}",
        f"/* dpsql: ignore[DP301] fees are public */ {NO_KEY}",
        f"{GOOD}; /* dpsql: ignore[DP301] fees are public */ {NO_KEY}",
        f"{GOOD};\n--DPSQL:IGNORE[ dp301 , DP412 ]: fees are public, and it is dear\n{NO_KEY}".replace(", DP412", ""),
        f"-- dpsql: ignore[DP301] one reason\n-- dpsql: ignore[DP301] another one\n{NO_KEY}",
    ],
)
def test_hidden(text: str) -> None:
    assert codes(text) == []
    assert codes(text.replace("ignore", "ignored").replace("IGNORE", "ignored"))[-1] in ("DP301", "DP902")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{OK}\n\n{NO_KEY}", ["1:DP902 " + OK, "3:DP301 fee"]),  # an empty line between
        (f"{OK}\n{GOOD};\n{NO_KEY}", ["1:DP902 DP301", "3:DP301 fee"]),  # about the next statement, not the one after
        (f"{NO_KEY};\n{OK}", ["1:DP301 fee", "2:DP902 " + OK]),  # below the statement
        (f"{NO_KEY}; {OK}\n{NO_KEY}", ["2:DP301 fee"]),  # beside the first one
        (f"SELECT '{OK}' AS x, fee, COUNT(*) AS n FROM visits GROUP BY fee, x", ["1:DP301 fee"]),  # a string
        (f'SELECT fee AS "{OK}", COUNT(*) AS n FROM visits GROUP BY fee', ["1:DP301 fee"]),  # a name
        (f"-- see also: {OK[3:]}\n{NO_KEY}", ["2:DP301 fee"]),  # not at the beginning of the comment
        (f"-- dpsql: ignore[DP301]\n{NO_KEY}", ["1:DP902 -- dpsql: ignore[DP301]", "2:DP301 fee"]),
        (f"-- dpsql: ignore[DP301] - ...\n{NO_KEY}", ["1:DP902 -- dpsql: ignore[DP301] - ...", "2:DP301 fee"]),
        (f"/* dpsql: ignore[DP301] */\n{NO_KEY}", ["1:DP902 /* dpsql: ignore[DP301] */", "2:DP301 fee"]),
        (f"-- dpsql: ignore[] why\n{NO_KEY}", ["1:DP902 -- dpsql: ignore[] why", "2:DP301 fee"]),
        (f"-- dpsql: ignore DP301 why\n{NO_KEY}", ["1:DP902 -- dpsql: ignore DP301 why", "2:DP301 fee"]),
        (f"-- dpsql: ignore[DP3] why\n{NO_KEY}", ["1:DP902 DP3", "2:DP301 fee"]),
        (f"-- dpsql: ignore[DP999] why\n{GOOD}", ["1:DP902 DP999"]),
        (f"-- dpsql: ignore[DP301, DP501] why\n{NO_KEY}", ["1:DP902 DP501"]),  # each code for itself
        (f"-- dpsql: ignore[DP301] why\n{GOOD}", ["1:DP902 DP301"]),
        (f"-- dpsql: ignore[DP201] why\n{NO_BOUNDS}", ["1:DP902 DP201", "2:DP201 fee"]),
        (f"-- dpsql: ignore[DP110] why\n{GOOD}", ["1:DP902 DP110"]),  # trying is a finding even where there is none
        ("-- dpsql: ignore[DP010] why\nSELEC 1", ["1:DP902 DP010", "2:DP010 SELEC"]),
        # What lies behind a refusal is not known: the ignore is not called unused.
        (f"-- dpsql: ignore[DP301] why\n{NO_BOUNDS}", ["2:DP201 fee"]),
        (f"-- dpsql: ignore[DP902] why\n{GOOD}", ["1:DP902 DP902"]),
    ],
)
def test_not_hidden(text: str, expected: list[str]) -> None:
    assert shown(text) == expected


def test_limits_of_epsilon_can_be_ignored() -> None:
    assert codes(DEAR, LIMITED) == ["DP412"]
    assert codes(f"{DEAR}; -- dpsql: ignore[DP412] yearly", LIMITED) == []
    assert codes(f"{DEAR}; -- dpsql: ignore[DP412] yearly") == ["DP902"]


def test_a_text_without_tokens_has_no_comments() -> None:
    assert codes(f"{OK}\nSELECT 'open FROM visits") == ["DP010"]
