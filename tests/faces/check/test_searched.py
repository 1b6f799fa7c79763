"""Queries whose limits a run finds: accepted with a warning that can be forbidden, priced, and compared in truth."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.diagnostic import Source
from dpsql.faces.check.documents.document import Document
from dpsql.faces.check.examine.cache import Cache
from dpsql.faces.check.examine.check_settings import settle
from dpsql.faces.check.examine.epsilon_limits import EpsilonLimits
from dpsql.faces.check.examine.examination import examine
from dpsql.faces.check.examine.examine_text import TextOptions
from dpsql.faces.check.examine.measures import measures_of
from dpsql.faces.check.examine.run_check import check_documents
from dpsql.faces.check.examine.selection import CodeSelection
from dpsql.faces.check.report.diff import Side, compare
from dpsql.faces.check.report.diff_formats import About, as_json, as_text
from tests.support.checked_files import POLICY, codes, documents, policy, settings

LETTERS = "SELECT COUNT(*) AS n FROM letters"
LIMITED = LETTERS.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 20)")
AUTO = LIMITED.replace("20", "AUTO")


def test_a_search_is_accepted_with_a_warning() -> None:
    assert codes(LETTERS) == ["DP211"]
    assert codes(LETTERS, TextOptions(search=True)) == ["DP506"] == codes(AUTO)
    assert codes(LIMITED) == []
    assert codes(f"{AUTO} -- dpsql: ignore[DP506] nobody knows how many letters people write") == []


def test_it_can_be_forbidden_and_left_out(tmp_path: Path) -> None:
    for asked, shown, failing in (
        ({}, ["DP506"], False), ({"strict": True}, ["DP506"], True), ({"ignore": ["DP506"]}, [], False),
        ({"select": ["DP506"], "strict": True}, ["DP506"], True), ({"select": ["DP3"]}, [], False),
    ):  # fmt: skip
        wanted = settings(tmp_path, limits="search", **asked)
        report = check_documents(documents(LETTERS), wanted).report
        assert [f.diagnostic.code for f in report.findings] == shown
        assert (report.has_errors or (wanted.strict and bool(report.findings))) == failing


def test_the_setting_comes_from_the_file_or_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "dpsql.toml").write_text(f'policy = "{POLICY}"\nlimits = "search"\n', encoding="utf-8")
    assert settle({}, tmp_path).options.search
    assert not settle({"limits": "declared"}, tmp_path).options.search


def test_what_is_kept_is_not_mixed_up(tmp_path: Path) -> None:
    found = examine(LETTERS, policy(), "duckdb", search=True)
    Cache(tmp_path, b"", "p", "duckdb", search=True).keep({LETTERS: found})
    assert Cache(tmp_path, b"", "p", "duckdb", search=True).find([LETTERS]) == {LETTERS: found}
    assert Cache(tmp_path, b"", "p", "duckdb").find([LETTERS]) == {}


def test_the_price_is_that_of_the_whole_query() -> None:
    for sql in (AUTO, LIMITED):
        text = sql.replace("OPTIONS (", "OPTIONS (epsilon = 0.8, ")
        price = examine(text, policy(), "duckdb").statements[0].price
        assert price is not None and price.epsilon == Fraction(4, 5)
        assert price.cost == (("patient", PrivacyLoss(Fraction(4, 5))),)
        assert codes(text, TextOptions(limits=EpsilonLimits(Fraction(3, 4)), selection=CodeSelection(("DP412",)))) == [
            "DP412"
        ]


def test_limits_that_stand_as_one_are_not_told() -> None:
    """Until they are found; they would make searched queries look better than declared ones."""
    for sql in (LETTERS, "SELECT SUM(pages) AS n FROM letters", "SELECT AVG(pages) AS n FROM letters"):
        found = measures_of(sql, policy(), "duckdb", {}, search=True)
        assert found.searched and not found.rows and not found.limits
        assert (found.columns["n"].sensitivity, found.columns["n"].error) == (None, None)
    assert measures_of("SELECT SUM(fee) AS n FROM visits", policy(), "duckdb", {}, search=True).clips == {}


def test_a_diff_says_that_a_limit_is_found() -> None:
    before, after = (Side({"q.sql": Document(Source(s, "q.sql"))}, policy()) for s in (LIMITED, AUTO))
    (pair,) = compare(before, after).shown
    assert pair.worse == ("limit of COUNT(*)",)
    about = About("HEAD", "0" * 40, "p.yaml", "there")
    text = as_text(compare(before, after), about)
    assert "limit of COUNT(*) — → found at run time" in " ".join(text.split())
    (told,) = json.loads(as_json(compare(before, after), about))["queries"]
    assert told["searched"] == {"old": [], "new": ["COUNT(*)"]}
    assert told["columns"]["n"]["sensitivity"] == {"old": 20.0, "new": None}
    assert compare(after, before).shown[0].worse == ()
