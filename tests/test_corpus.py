"""Queries as analysts write them: what the check says of each, read by a person, and that what it proposes works.

`tests/corpus/<policy>/<theme>.sql` hold the queries. Above each stands what its author wants (`-- wants:`), or that it
is the query before, repaired as the help says (`-- repaired:`). The `.txt` beside it holds what the check finds: place
and code, message, the text that is marked, and the help. `pytest tests/test_corpus.py --update` rewrites.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import dpsql
from dpsql.checking.examine.statements import check_text
from dpsql.checking.report.finding import Finding
from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.frontend.text.split import split_statements
from dpsql.policy.load import load_policy
from dpsql.policy.policy import Policy

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "corpus"
TPCH = ROOT / "examples" / "tpch"
POLICIES = {
    "clinic": ROOT / "tests" / "policies" / "pages.yaml",
    "shop": ROOT / "tests" / "policies" / "shop.yaml",
    "flights": ROOT / "examples" / "flights" / "flights.yaml",
}
FILES = sorted(FOLDER.glob("*/*.sql"))
INTENTION = re.compile(r"^-- (wants|repaired): \S.*$", re.MULTILINE)
_WHOLE = "cast it first|convert and bound it|count days and bound them"
_PART = "or, in this query|keep the divisor away from zero|or bound the quotient"
PROPOSED = re.compile(
    rf"^(?:{_PART}):  (\S.*[^…])$|^(?:{_WHOLE}):  (.+?)(?:, or .*)?$|^bound it in the query:  (.*, -?\d+, -?\d+\))$"
)


@cache
def policy(path: Path) -> Policy:
    return load_policy(path)


@cache
def found_in(path: Path, policy_path: Path) -> tuple[Finding, ...]:
    return tuple(check_text(Source(path.read_text(encoding="utf-8"), path.name), policy(policy_path)))


def shown(findings: tuple[Finding, ...]) -> str:
    return "".join(f"{text}\n" for finding in findings for text in described(finding.diagnostic))


def described(d: Diagnostic) -> Iterator[str]:
    """Place, code and message; what is marked; what stands under the mark; help and fix."""
    assert d.source is not None and d.span is not None
    line, column = d.source.position(d.span.start)
    severity = "" if d.severity == "error" else f"{d.severity} "
    yield f"{line}:{column} {severity}{d.code} {d.message}"
    marked = " ".join(d.source.text[d.span.start : d.span.end].split())
    yield f"    ^ {marked}" + (f"  -- {d.label}" if d.label else "")
    yield from (f"    help: {text}" for text in d.help)
    if d.fix is not None:
        edits = ", ".join(f"{d.source.text[e.span.start : e.span.end]!r} → {e.text!r}" for e in d.fix.edits)
        yield f"    {'safe fix' if d.fix.safe else 'fix'}: {d.fix.message}: {edits}"


def compare(expected: Path, text: str, update: bool) -> None:
    if update:
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8"), f"{expected.name}: run with --update, and read the diff"


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_findings(path: Path, update: bool) -> None:
    compare(path.with_suffix(".txt"), shown(found_in(path, POLICIES[path.parent.name])), update)


@pytest.mark.parametrize("name", ["tpch", "tpch-supplier", "tpch-rows"])
def test_tpch(name: str, update: bool) -> None:
    """The 22 queries of the benchmark, and the variants of those that are refused."""
    queries = sorted((TPCH / "queries").glob("*.sql"))
    assert len({path.stem[:3] for path in queries}) == 22
    parts = [f"# {path.stem}\n{shown(found_in(path, TPCH / f'{name}.yaml'))}" for path in queries]
    compare(FOLDER / f"{name}.txt", "".join(parts), update)


@dataclass(frozen=True, slots=True)
class Query:
    """A statement of the corpus with its intention, and what is found in it alone."""

    file: str
    text: str
    intention: str
    policy: Path

    def check(self, text: str | None = None) -> list[Diagnostic]:
        return list(dpsql.check(self.text if text is None else text, policy(self.policy)))

    def errors(self, text: str | None = None) -> list[Diagnostic]:
        return [d for d in self.check(text) if d.severity == "error"]


@cache
def queries() -> tuple[Query, ...]:
    found = []
    for path in FILES:
        text, before = path.read_text(encoding="utf-8"), 0
        for part in split_statements(text):
            said = list(INTENTION.finditer(text, before, part.start))
            assert said or before, f"{path.name}: no intention before {part.text[:40]!r}"
            intention = said[-1][1] if said else found[-1].intention
            found.append(Query(path.stem, part.text, intention, POLICIES[path.parent.name]))
            before = part.start + len(part.text)
    return tuple(found)


def test_the_corpus_is_large_and_varied() -> None:
    written = [query for query in queries() if query.intention == "wants"]
    assert len(written) >= 250 and len({query.text for query in queries()}) == len(queries())
    refused = [query for query in written if query.errors()]
    assert len(written) / 4 <= len(refused) <= len(written) * 3 / 4
    assert len({d.code for query in written for d in query.check()}) >= 25


def test_repaired_queries_are_accepted() -> None:
    repaired = [query for query in queries() if query.intention == "repaired"]
    assert len(repaired) >= 8
    assert {query.text: [d.message for d in query.errors()] for query in repaired if query.errors()} == {}


def test_the_form_of_every_finding() -> None:
    """A known code, a sentence, a mark under text of the statement, a repair."""
    for query in queries():
        for d in query.check():
            assert d.code in CODES and d.message.strip() == d.message and not d.message.endswith("."), d
            assert d.source is not None and d.span is not None and d.source.text == query.text
            assert d.source.text[d.span.start : d.span.end].strip(), d
            assert d.help and all(text.strip() for text in d.help), d
            assert "None" not in d.message and " the table " not in f" {d.message} ", d


def test_what_the_help_proposes_works() -> None:
    """Where the help is a text to write in place of what is marked, the finding is gone with it, and none is new."""
    tried = 0
    for query in queries():
        for d in query.errors():
            for text in proposals(d):
                assert d.span is not None
                after = query.errors(query.text[: d.span.start] + text + query.text[d.span.end :])
                assert codes(after) < codes(query.errors()), f"{query.text}\n{d.help}\n{[a.message for a in after]}"
                tried += 1
    assert tried >= 20


def proposals(d: Diagnostic) -> list[str]:
    """Texts to write for what is marked: the argument of an aggregate is marked, the aggregate is proposed.

    `lower` and `upper` stand for numbers that whoever asks knows.
    """
    told = (text.replace("lower,", "1,").replace("upper)", "50)") for text in d.help if "…" not in text)
    found = [match for match in map(PROPOSED.match, told) if match]
    return [match[1] or match[3] or match[2].split("(", 1)[1][:-1] for match in found]


def codes(diagnostics: list[Diagnostic]) -> Codes:
    return Codes(sorted(d.code for d in diagnostics))


def places(diagnostics: list[Diagnostic]) -> set[tuple[str, int | None]]:
    return {(d.message, None if d.span is None else d.span.start) for d in diagnostics}


class Codes(list[str]):
    """Codes with repetition; `a < b` if `a` is what is left of `b` without some."""

    def __lt__(self, other: list[str]) -> bool:
        rest = list(other)
        for code in self:
            if code not in rest:
                return False
            rest.remove(code)
        return bool(rest)


@pytest.mark.parametrize(
    ("sql", "told", "old", "new"),
    [
        ("SELECT SUM(fee) AS f FROM visits", "visits.columns.fee:  bounds: [lower, upper]",
         "fee: {type: double}", "fee: {type: double, bounds: [0, 100]}"),
        ("SELECT COUNT(*) AS n FROM letters", "tables.letters:  max_rows_per_unit: 20",
         "  letters:", "  letters:\n    max_rows_per_unit: 20"),
        ("SELECT COUNT(*) AS n FROM (SELECT patient_id FROM visits UNION ALL SELECT patient_id FROM letters) AS b",
         "tables.letters, tables.visits that has none:  max_rows_per_unit: 20",
         "  letters:", "  letters:\n    max_rows_per_unit: 20"),
        ("SELECT SUM(p.price) AS s FROM orders o JOIN prices p ON p.item = o.item", "prices:  unique: [[item]]",
         "  prices:", "  prices:\n    unique: [[item]]"),
        ("SELECT COUNT(*) AS n FROM orders o JOIN patients p ON o.customer_id = p.patient_id",
         "in tables.orders:  max_frequency: [{columns: [customer_id], rows: …, enforce: truncate}]",
         "  orders:", "  orders:\n    max_frequency: [{columns: [customer_id], rows: 9, enforce: truncate}]"),
    ],
)  # fmt: skip
def test_what_the_custodian_is_told_works(sql: str, told: str, old: str, new: str, tmp_path: Path) -> None:
    """A policy changed as the help says accepts the query."""
    text = POLICIES["clinic"].read_text(encoding="utf-8")
    assert text.count(old) == 1
    (found,) = dpsql.check(sql, policy(POLICIES["clinic"]))
    assert any(told in line for line in found.help), found.help
    changed = tmp_path / "changed.yaml"
    comment = text.index("#", text.index(old)) if old.endswith(":") else -1
    line = text[text.index(old) : text.index("\n", comment)] if comment >= 0 else old
    changed.write_text(text.replace(line, new), encoding="utf-8")
    assert [d for d in dpsql.check(sql, changed) if d.severity == "error"] == []


def test_every_fix_makes_it_better() -> None:
    """With a finding's edits made, its message does not come again at its place, and the query still parses."""
    tried = 0
    for query in queries():
        for d in query.check():
            if d.fix is not None:
                text = query.text
                for edit in sorted(d.fix.edits, key=lambda e: e.span, reverse=True):
                    text = text[: edit.span.start] + edit.text + text[edit.span.end :]
                after = query.check(text)
                assert d.span is not None and (d.message, d.span.start) not in places(after), text
                assert "DP010" not in codes(after) and (not d.fix.safe or codes(after) < codes(query.check())), text
                tried += 1
    assert tried >= 10
