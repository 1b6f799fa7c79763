"""`dpsql policy report`: the page says what policy and ledger say, loads nothing, and holds no row."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from fractions import Fraction
from html.parser import HTMLParser
from itertools import pairwise, product
from pathlib import Path

import pytest

from dpsql import Policy
from dpsql.core.privacy_loss import PrivacyLoss, rho_to_epsilon
from dpsql.faces.report import odds
from dpsql.faces.report.deployments import DEPLOYMENTS, LOOKED_UP
from dpsql.faces.report.page import report
from dpsql.policy.load import load_policy
from dpsql.policy.tools.assumptions import grouped, promises
from tests.support.canary import holds
from tests.support.command_line import Call, Clinic

F = Fraction
TODAY = dt.date(2026, 11, 27)
SECTIONS = ["fill", "whom", "meaning", "limits", "spent", "beside", "uncovered", "promises"]


class Page(HTMLParser):
    """Tags, attributes and the text of a page."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def made(dpsql: Call, clinic: Clinic, *options: str) -> str:
    file = clinic.folder / "report.html"
    file.unlink(missing_ok=True)
    done = dpsql("policy", "report", clinic.policy, "-o", file, *options)
    assert done.status == 0, done.err
    return file.read_text(encoding="utf-8")


def test_the_page_has_its_sections_and_loads_nothing(dpsql: Call, clinic: Clinic) -> None:
    source = made(dpsql, clinic)
    page = Page(source)
    assert re.findall(r'<section id="(\w+)"', source) == SECTIONS
    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & set(page.tags)
    assert not any(name.startswith("on") or name in ("src", "srcset", "action") for name, _ in page.attributes)
    assert "url(" not in source and "@import" not in source
    assert {value for name, value in page.attributes if name == "href"} == {d.source for d in DEPLOYMENTS}
    assert "<td colspan=2></td><th scope=col colspan=2>has some property" in source and "></th>" not in source
    assert page.tags.count("svg") >= 1 and "There is no ledger yet" in page.text
    assert "prefers-color-scheme:dark" in source and "@media print" in source


def test_it_opens_no_data_unless_asked(dpsql: Call, clinic: Clinic) -> None:
    clinic.change("database: '", "database: '/nowhere")
    assert "Private." not in made(dpsql, clinic)
    done = dpsql("policy", "report", clinic.policy, "--data")
    assert done.status == 2 and done.out == "" and "Traceback" not in done.err


def test_with_data_it_says_what_is_cut_and_that_this_is_private(dpsql: Call, clinic: Clinic) -> None:
    clinic.change("{rows: 12, nobody_has_more: true}", "5")
    source = made(dpsql, clinic, "--data")
    text = Page(source).text
    assert "Private. This copy holds exact numbers about private data" in text and "Private numbers." in text
    assert re.search(r"patients with more than 5 rows of visits [\d,]+ of [\d,]+ \(", text)
    assert re.findall(r'<section id="(\w+)"', source) == [*SECTIONS[:4], "measured", *SECTIONS[4:]]


def test_no_row_and_no_text_of_a_query_is_in_it(dpsql: Call, clinic: Clinic) -> None:
    asked = "SELECT COUNT(*) AS n FROM patients WHERE town = 'a name that somebody typed'"
    assert dpsql("query", clinic.policy, asked, "--analyst", "ana", "--epsilon", "0.25").status == 0
    source = made(dpsql, clinic)
    assert "somebody typed" not in source and not holds(source)
    assert str(clinic.folder) not in source  # nor where its files lie


def test_what_is_spent_is_the_ledgers(dpsql: Call, clinic: Clinic) -> None:
    count = "SELECT COUNT(*) AS n FROM patients"
    for analyst, epsilon in (("ana", "0.5"), ("ben", "0.25")):
        assert dpsql("query", clinic.policy, count, "--analyst", analyst, "--epsilon", epsilon, "--fresh").status == 0
    text = Page(made(dpsql, clinic)).text
    assert "ε 0.75 of 10 · 9.25 left" in text and "ε 0.5 of 3 · 2.5 left" in text and "ε 0.25 of 0.5" in text
    assert "ε 0.75 spent so far, by 2 queries" in text


def test_an_existing_file_is_not_overwritten(dpsql: Call, clinic: Clinic) -> None:
    made(dpsql, clinic)
    done = dpsql("policy", "report", clinic.policy, "-o", clinic.folder / "report.html")
    assert done.status == 1 and done.codes == {"DP903"}
    assert dpsql("policy", "report", clinic.policy).out.startswith("<!DOCTYPE html>")


EVIL = "<script>alert(1)</script>\"'&\u202e"


def evil(**changes: object) -> Policy:
    """A policy whose every name is markup."""
    return Policy.from_dict(
        {
            "version": 1,
            "name": "evil",
            "units": {EVIL: {}},
            "tables": {
                EVIL: {
                    "unit": {"column": EVIL},
                    "unique": [[EVIL]],
                    "columns": {
                        EVIL: {"type": "varchar", "nullable": False, "domain": [EVIL]},
                        f"{EVIL}2": {"type": "integer", "bounds": [0, 1]},
                    },
                },
                f"public {EVIL}": {"public": True},
            },
            "budgets": {"total": {"epsilon": 1}, "analysts": {EVIL: {"epsilon": 1}}},
            **changes,
        }
    )


def test_what_a_policy_says_cannot_become_markup() -> None:
    source = report(evil(), None, None, version=EVIL, today=TODAY)
    assert "<script" not in source and "alert(1)&lt;/script&gt;" in source and "\u202e" not in source
    assert Page(source).tags.count("section") == len(SECTIONS)


@pytest.mark.parametrize("accountant", ["pure_dp", "approx_dp", "zcdp"])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("unit", [{"column": "id"}, {"rows": 1}, {"rows": 3}])
def test_every_kind_of_policy_has_a_report(accountant: str, neighbours: str, unit: dict[str, object]) -> None:
    total = {"rho": 0.5, "delta": 1e-9} if accountant == "zcdp" else {"epsilon": 2}
    policy = Policy.from_dict(
        {
            "version": 1, "name": "p", "privacy": {"accountant": accountant, "neighbours": neighbours},
            "tables": {"t": {"unit": unit, "columns": {"id": {"type": "integer", "nullable": False}}}},
            "budgets": {"total": total},
        }
    )  # fmt: skip
    text = Page(report(policy, (), None, version="0", today=TODAY)).text
    assert ("a row is protected, not a person" in text) == ("rows" in unit)
    epsilon = rho_to_epsilon(F(1, 2), odds.CONVERSION_DELTA) if accountant == "zcdp" else F(2)
    step = 2 if neighbours == "add_remove" else 1
    assert odds.in_hundred(odds.afterwards(0.01, epsilon, step)) in text
    assert ("δ is 0 here" in text) == (accountant != "zcdp")


def test_a_policy_without_private_tables_has_one_too() -> None:
    policy = Policy.from_dict({"version": 1, "name": "open", "tables": {"t": {"public": True}}})
    assert "nobody" in Page(report(policy, None, None, version="0", today=TODAY)).text


# Odds -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(3)])
@pytest.mark.parametrize("before", [0.01, 0.5, 0.9])
def test_the_odds_of_being_in_the_data_are_reached_and_never_passed(epsilon: Fraction, before: float) -> None:
    """Whether one is there, told by randomised response: one neighbour apart."""
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    reached = before * truth / (before * truth + (1 - before) * (1 - truth))
    assert odds.afterwards(before, epsilon) == pytest.approx(reached, rel=1e-12)
    assert odds.afterwards(before, epsilon / 2) < reached  # the twin: half of ε would promise too much


@pytest.mark.parametrize("epsilon", [F(1, 10), F(1)])
def test_two_properties_are_two_steps_apart_where_people_come_and_go(epsilon: Fraction) -> None:
    """A count of each of two groups with noise e^(−ε|x|), of one person who is in the one or in the other."""
    worst = 0.0
    for x, y in product(range(-6, 7), repeat=2):
        in_first, in_second = (math.exp(-epsilon * (abs(x - a) + abs(y - 1 + a))) for a in (1, 0))
        worst = max(worst, 0.01 * in_first / (0.01 * in_first + 0.99 * in_second))
    assert odds.afterwards(0.01, epsilon, odds.steps("add_remove")) == pytest.approx(worst, rel=1e-12)
    assert odds.afterwards(0.01, epsilon, odds.steps("replace_one")) < worst


def test_words_of_probabilities_are_rounded_against_the_policy() -> None:
    assert [odds.in_hundred(p) for p in (0.0161, 0.0999, 0.622, 0.99, 0.9901)] == [
        "1.7 in 100", "10.0 in 100", "63 in 100", "99 in 100", "over 99 in 100",
    ]  # fmt: skip
    assert odds.one_in(F(1, 10**6)) == "1 in 1,000,000" and odds.one_in(F(2, 3)) == "1 in 1"
    assert odds.afterwards(0.5, F(10**9)) <= 1
    assert odds.as_epsilon(PrivacyLoss(F(1), F(1, 5))) == (F(1), F(1, 5))


# Others' figures, and promises ----------------------------------------------------------------------------------------


def test_published_figures_name_their_source_and_stand_in_order() -> None:
    assert all(a.epsilon <= b.epsilon for a, b in pairwise(DEPLOYMENTS))
    assert all(d.source.startswith("https://") and d.protects and d.figure for d in DEPLOYMENTS)
    assert dt.date.fromisoformat(LOOKED_UP) <= TODAY
    (census,) = (d for d in DEPLOYMENTS if "Census" in d.who)  # what its code says, and what was announced
    assert float(rho_to_epsilon(F(542, 339) ** 2, F(1, 10**10))) == pytest.approx(census.epsilon, abs=0.005)


def test_each_promise_is_said_once(dpsql: Call, clinic: Clinic) -> None:
    policy = load_policy(clinic.policy)
    groups = grouped(policy)
    assert sorted(p.where for g in groups for p in g.promises) == sorted(p.where for p in promises(policy))
    assert len({(g.kind, g.when_false) for g in groups}) == len(groups) < len(promises(policy))
    text = dpsql("policy", "audit", clinic.policy).out
    for group in groups:
        assert text.count(f"{group.heading} ({len(group.promises)})") == 1
    assert text.count("never NULL") == 1 and "of visits: visit_id, patient_id, day, ward, code" in text


def test_a_report_goes_to_one_page(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    assert len(made(dpsql, clinic)) < 60_000


def test_the_page_for_boards_counts_as_the_report_does() -> None:
    """At ε 1 somebody thought 1 in 2 to be ill may be thought so by e^2, and to be in the data by e."""
    page = (Path(__file__).parents[3] / "docs" / "for-boards.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| 1 \|(.*)\|$", page, re.M)
    ill, there = (odds.afterwards(0.5, F(1), step) for step in (odds.steps("add_remove"), 1))
    assert [cell.strip() for cell in row.split("|")][3::2] == [f"{math.ceil(p * 1000) / 10:g} %" for p in (ill, there)]
    assert "e^(2ε)" in page


def test_it_says_what_a_board_signs(dpsql: Call, clinic: Clinic) -> None:
    """That nobody has reviewed it, what only people know, whether promises were checked; nothing else."""
    text = Page(made(dpsql, clinic)).text
    assert "before 1.0, and nobody outside the project has reviewed it" in text and "word alone" in text
    assert "Not checked for this report" in text and "has had each" not in text
    for blank in (
        "Controller",
        "Custodian",
        "Purpose of the questions",
        "Period and source of the data",
        "at a server",
    ):
        assert blank in text
    assert "one query, by default" not in text.partition("Beside known")[2] and "B/R" not in text
    assert "larger end of the bounds" not in text  # rows are added or removed here
    checked = Page(made(dpsql, clinic, "--data")).text
    assert re.search(r"Checked on \d{4}-\d\d-\d\d for this report.*\d+ kept, none broken, none in doubt", checked)


def test_a_declared_number_of_rows_is_what_delta_is_told_for() -> None:
    table = {"unit": {"rows": 1, "neighbours": "replace_one"}, "size": {"exact": 2000}, "columns": {}}
    budgets = {"total": {"epsilon": 1, "delta": 1e-6}}
    policy = Policy.from_dict({"version": 1, "name": "p", "tables": {"t": table}, "budgets": budgets})
    assert (
        "For the 2,000 rows that the policy declares" in Page(report(policy, None, None, version="0", today=TODAY)).text
    )


def test_a_draft_says_so_at_the_top(dpsql: Call, clinic: Clinic) -> None:
    assert "A draft" not in dpsql("policy", "report", clinic.policy).out
    clinic.change("version: 1", "version: 1\ndraft: true")
    page = dpsql("policy", "report", clinic.policy).out
    assert page.index("A draft.") < page.index("class=cards")


def test_the_fields_of_a_registry_of_deployments(dpsql: Call, clinic: Clinic) -> None:
    """Those of a second-tier entry; what the policy does not know is null."""
    told = json.loads(dpsql("policy", "report", clinic.policy, "--registry").out)
    assert told["tier"] == 2 and told["status"] == "Draft"
    deployment, policy = told["deployment"], load_policy(clinic.policy)
    assert deployment["name"] == policy.name and deployment["data_curator"] is None
    assert deployment["dp_flavor"]["name"] == "Approximate DP" and deployment["model"]["model_name"] == "Central"
    (total,) = policy.caps_for().total.values()
    loss = deployment["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": float(total.epsilon), "delta": float(total.delta)}
    assert "all rows of one patient" in loss["privacy_unit_description"]
    assert len(deployment["implementation"]["promises_that_nothing_enforces"]) == len(promises(policy))
    clinic.change("version: 1", "version: 1\ndraft: true")
    assert "nobody is answered" in json.loads(dpsql("policy", "report", clinic.policy, "--registry").out)["status"]
