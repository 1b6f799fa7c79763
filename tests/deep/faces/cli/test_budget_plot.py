"""Plots of the budget, as pages."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.faces.cli.commands.budgets import budget_plot
from dpsql.policy.load import load_policy
from tests.faces.cli.test_budget_plot import COUNT, F, receipt
from tests.support.command_line import Call, Clinic


def spend(dpsql: Call, clinic: Clinic) -> None:
    for analyst, epsilon in (("ana", "0.5"), ("ben", "0.25"), ("ana", "0.25")):
        done = dpsql("query", clinic.policy, COUNT, "--analyst", analyst, "--epsilon", epsilon, "--fresh")
        assert done.status == 0, done.err


class Tags(HTMLParser):
    """The tags, attributes and drawings of a page; fails on a tag that is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def test_a_page_draws_every_account_against_its_limit(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    spend(dpsql, clinic)
    page = tmp_path / "budget.html"
    done = dpsql("budget", clinic.policy, "--plot", page)
    assert done.status == 0 and "(3 queries charged)" in done.out
    text = page.read_text(encoding="utf-8")
    assert "total: 1 of 10" in text and "ana: 0.75 of 3" in text and "*: 0.25 of 0.5" in text
    found = Tags(text)
    # Nothing is loaded from anywhere, and nothing runs.
    assert not {"script", "link", "img", "iframe", "object"} & set(found.tags)
    assert not any(name.startswith("on") or name in ("src", "href") for name, _ in found.attributes)
    assert "url(" not in text and "http" not in text
    drawings = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(drawings) == found.tags.count("h2") >= 1
    for drawing in drawings:
        ElementTree.fromstring(drawing)


def test_what_is_little_of_the_total_is_drawn_large(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    """A line at the bottom would say nothing: what lies above the picture is said."""
    spend(dpsql, clinic)
    page = tmp_path / "budget.html"
    assert dpsql("budget", clinic.policy, "--plot", page).status == 0
    text = page.read_text(encoding="utf-8")
    assert "limit of total: 10, above the picture" in text and 'class="area"' in text
    (steps,) = re.findall(r'class="curve total k0" d="M[^V]*V([\d.]+)', text)[:1]
    assert float(steps) < 300  # the first charge is well above the axis
    assert "overflow-wrap:anywhere" not in text.replace("td code { overflow-wrap:anywhere }", "")


def test_one_analyst_is_drawn_beside_the_total(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    spend(dpsql, clinic)
    page = tmp_path / "ana.htm"
    assert dpsql("budget", clinic.policy, "--analyst", "ana", "--plot", page).status == 0
    text = page.read_text(encoding="utf-8")
    assert "total: 1 of 10" in text and "ana: 0.75 of 3" in text and "*:" not in text


def test_nothing_spent_is_drawn_too_and_makes_no_ledger(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    page = tmp_path / "empty.html"
    assert dpsql("budget", clinic.policy, "--plot", page).status == 0
    text = page.read_text(encoding="utf-8")
    assert "ε 0 of 10 · 10 left" in text and "1970" not in text and "UTC" not in text
    assert not clinic.ledger.exists()


def test_any_number_can_be_drawn(clinic: Clinic, tmp_path: Path) -> None:
    policy = load_policy(clinic.policy)
    for at, epsilon in enumerate((F(1, 10**900), F(10**900), F(0))):
        entries = [receipt(1, "$x_", PrivacyLoss(epsilon), "2026-01-02T00:00:00+00:00")]
        file = tmp_path / f"{at}.html"
        budget_plot.write(str(file), policy, entries, None)
        assert file.stat().st_size > 1000
