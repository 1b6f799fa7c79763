"""Every fixture gives what its file says. `pytest tests/test_fixtures.py --update` rewrites; read the diff."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from dpsql.core.noise.mechanisms import DiscreteLaplace
from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.plan import Plan
from tests.fixtures.cases import Case, File, files, plan_of, read, result_of, write

FILES = files()
CASES = [case for file in FILES for case in file.cases]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.path.parent.name}/{file.path.stem}")
def test_file(file: File, update: bool) -> None:
    results = {case.title: result_of(case) for case in file.cases}
    assert len(results) == len(file.cases), "two cases have one title"
    for case in file.cases:
        present = [text for text in case.unwanted if text in results[case.title]]
        assert not present, f"{case.title}: must not appear: {present}\n{results[case.title]}"
    if update:
        write(file, results)
        return
    for case in file.cases:
        assert results[case.title] == case.expected, case.title


@every_case
def test_the_form_of_a_refusal(case: Case) -> None:
    """Place, repair and code: the caret is under text of the line that it names, and a help line says what to do."""
    for diagnostic in outcome(case)[1]:
        assert diagnostic.code in CODES
        assert diagnostic.source is not None and diagnostic.source.text == case.sql
        span = diagnostic.span
        assert span is not None, "no place"
        assert 0 <= span.start < span.end <= len(case.sql), "the place is outside the text"
        assert case.sql[span.start : span.end].strip() or diagnostic.code == "DP010", "the caret is under nothing"
        assert diagnostic.help and all(line.strip() for line in diagnostic.help), "no repair"
        assert diagnostic.message[0].strip() and not diagnostic.message.endswith(".")


@every_case
def test_a_refusal_moves_with_the_text(case: Case) -> None:
    """Text in front of a query moves the caret by exactly its length: spans are computed, not guessed."""
    found = [(d.code, d.message, d.span) for d in outcome(case)[1]]
    if not found:
        return
    before = "-- a remark\n\t\n  "
    with pytest.raises(Rejected) as refusal:
        plan_of(case, before + case.sql)
    moved = [(d.code, d.message, d.span) for d in refusal.value.diagnostics]
    assert [(code, message) for code, message, _ in moved] == [(code, message) for code, message, _ in found]
    for (_, _, here), (_, _, there) in zip(found, moved, strict=True):
        assert here is not None and there is not None
        assert (there.start - here.start, there.end - here.end) == (len(before), len(before))


@every_case
def test_arithmetic_limits(case: Case) -> None:
    """F·r·B ≤ 2⁴⁰ and B ≤ 2³⁰ whatever the query: the engine's integers fit their types, scales fit the sampler."""
    plan, _ = outcome(case)
    for release in () if plan is None else plan.releases:
        measured = release.measured
        for m in measured.measurements:
            c = m.component
            assert c.lo <= c.hi and c.magnitude == max(map(abs, c.ends))
            assert c.squared or c.ends == (c.lo, c.hi)
            assert c.magnitude <= 2**30
            if c.per_group is None:
                assert c.weight * measured.contribution.rows * c.magnitude <= 2**40
            assert m.sensitivity.l1 <= 2**40 * measured.contribution.ids
            assert c.weight == 1 or 2**8 <= c.weight <= 2**20
            s = m.sensitivity
            if s.l1 == 0:  # SUM(0), no rows, or a public number of them: the same for every database, so without noise
                assert (c.lo, c.hi) == (0, 0) or m.known == 0 or measured.contribution.size is not None
                assert m.known is not None and m.mechanism.name == "exact"
                continue
            assert 0 < s.linf <= s.l1 and s.linf**2 <= s.l2_squared <= s.l1**2 and s.l1 <= s.l0 * s.linf
            assert isinstance(m.mechanism, DiscreteLaplace) and m.mechanism.scale <= 2**55


@every_case
def test_the_price_is_what_was_asked_for(case: Case) -> None:
    """The parts of a query cost together exactly its ε at most, and all of it but for rounding up scales."""
    plan, _ = outcome(case)
    if plan is None:
        return
    noisy = {r.measured.unit for r in plan.releases if any(m.sensitivity.l1 for m in r.measured.measurements)}
    for unit, loss in plan.cost.items():
        assert loss.epsilon <= plan.epsilon and loss.delta <= plan.delta
        assert (loss.epsilon > 0) == (unit in noisy)
        assert not loss.delta or any(r.measured.threshold for r in plan.releases)
    if len(noisy) == 1:
        assert plan.epsilon - plan.loss.epsilon <= plan.epsilon / 1000


def test_fixtures_cover_what_a_text_alone_can_be_refused_for() -> None:
    """At least one fixture per code that the static check can give; the rest needs data, a ledger or a terminal."""
    seen = {d.code for case in CASES for d in outcome(case)[1]}
    needs_more = {"DP401", "DP402", "DP403", "DP404", "DP405", "DP406", "DP407", "DP409", "DP411", "DP412", "DP501"}
    static = {code for code in CODES if code[2] in "1234" or code[:4] == "DP01"} - needs_more
    assert sorted(static - seen) == []


def test_files_hold_both_kinds() -> None:
    """A rule is shown by what it gives and by what it must not give."""
    assert len(CASES) >= 150
    assert [f.path.name for f in FILES if not any(c.unwanted for c in f.cases)] == []
    assert [title for title, n in Counter(case.id for case in CASES).items() if n > 1] == []


def test_the_runner_sees_mistakes(tmp_path: Path) -> None:
    """A changed result, a missing rule and an unknown setting are not passed over."""
    folder = tmp_path / "plan"
    folder.mkdir()
    path = folder / "x.test"
    path.write_text("# policy: shop\n\n# title: t\nSELECT COUNT(*) FROM orders\n----\nwrong\n", encoding="utf-8")
    file = read(path)
    with pytest.raises(AssertionError):
        test_file(file, False)
    test_file(file, True)
    test_file(read(path), False)
    again = path.read_text(encoding="utf-8")
    assert again.startswith("# policy: shop\n\n# title: t\nSELECT COUNT(*) FROM orders\n----\n")
    test_file(read(path), True)
    assert path.read_text(encoding="utf-8") == again
    path.write_text(again.replace("# title: t\n", "# title: t\n# expect-not: COUNT\n"), encoding="utf-8")
    for updating in (False, True):
        with pytest.raises(AssertionError, match="must not appear"):
            test_file(read(path), updating)
    path.write_text("# title: t\nSELECT 1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no line"):
        read(path)
    path.write_text("# title: t\n# polcy: shop\nSELECT 1\n----\n", encoding="utf-8")
    with pytest.raises(ValueError, match="unknown setting"):
        read(path)


_OUTCOMES: dict[str, tuple[Plan | None, tuple[Diagnostic, ...]]] = {}


def outcome(case: Case) -> tuple[Plan | None, tuple[Diagnostic, ...]]:
    """The plan, or the diagnostics of the refusal. Planned once: a plan is a value."""
    if case.id not in _OUTCOMES:
        try:
            _OUTCOMES[case.id] = plan_of(case), ()
        except Rejected as found:
            _OUTCOMES[case.id] = None, found.diagnostics
    return _OUTCOMES[case.id]
