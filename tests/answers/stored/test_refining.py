"""The same question at a larger ρ costs the difference, is as accurate as if it were new, and knows when it is not."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from dpsql.answers.results.answer import Release
from dpsql.answers.stored import refining
from dpsql.answers.stored.ledger_summaries import largest_widths
from dpsql.answers.stored.refining import combined
from dpsql.api.connection import Connection, connect
from dpsql.core.ir.nodes import key_sources
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.mechanisms import DiscreteGaussian
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.release import noisy as noisy_module
from dpsql.core.release.noisy import GivenAnswers, NoisyRelease, public_keys
from dpsql.diagnostics.errors import BudgetExceeded, EngineError
from tests.support.built_once import build
from tests.support.club import DATA, POLICY
from tests.support.planning import planned, policy

COUNT = "SELECT COUNT(*) AS n FROM members"
BY_CITY = "SELECT city, COUNT(*) AS n, SUM(fee) AS s FROM members GROUP BY city"
IMPROVES = re.compile(
    r"improves answers of \d{4}-\d\d-\d\d: ρ 0\.06\d* in place of ρ 0\.08; each look holds at its level, "
    "the one that somebody stops at need not"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The club's data and a policy that counts in ρ, which this test may change."""
    build(tmp_path / "club.duckdb", DATA)
    text = POLICY.replace("DEFAULTS\n", "").replace("epsilon: 10000", "rho: 10")
    (tmp_path / "club.yaml").write_text(text.replace("name: club\n", "name: club\nprivacy: {accountant: zcdp}\n"))
    return tmp_path


@pytest.fixture
def con(folder: Path) -> Iterator[Connection]:
    with connect(folder / "club.yaml") as found:
        yield found


def rho(answer: Release) -> Fraction:
    return answer.spent.rho


def asked(con: Connection, sql: str, **settings: Any) -> Release:
    return con.sql(sql).run(**settings)


def spent(con: Connection) -> Fraction:
    return con.service.ledger.spent("member").rho


@pytest.mark.parametrize("sql", [COUNT, BY_CITY])
def test_each_look_costs_the_difference(con: Connection, sql: str) -> None:
    """ε .1, .2, .4 and .8 cost together what .8 alone costs, and no more accurate number is sold for less."""
    before = Fraction(0)
    for epsilon in ("0.1", "0.2", "0.4", "0.8"):
        price = Fraction(epsilon) ** 2 / 2
        query = con.sql(sql)
        assert query.cost(epsilon=epsilon).rho == pytest.approx(float(price - before))
        answer = query.run(epsilon=epsilon)
        assert float(rho(answer)) == pytest.approx(float(price - before), rel=1e-12)
        assert float(spent(con)) == pytest.approx(float(price), rel=1e-12) and spent(con) >= price
        bounds = answer.intervals(0.95)[0]["n"]
        assert bounds is not None
        low, high = bounds
        assert (high - low) / 2 == pytest.approx(query.accuracy(epsilon=epsilon, confidence=0.95)["n"], abs=1.01)
        again = query.run(epsilon=epsilon)
        assert again.rows == answer.rows and not rho(again) and again.intervals() == answer.intervals()
        before = price


def test_the_answer_says_so(con: Connection) -> None:
    asked(con, COUNT, epsilon="0.2")
    (told,) = notes(asked(con, COUNT, epsilon="0.4"))
    assert IMPROVES.fullmatch(told), told


def notes(answer: Release) -> list[str]:
    return [note for note in answer.notes if "improves" in note or "the mean of draws" in note]


def test_explain_tells_before_it_is_paid(con: Connection) -> None:
    asked(con, COUNT, epsilon="0.2")
    told = con.sql(COUNT).explain(epsilon="0.4")
    assert "improves answers of" in told and "in place of ρ 0.08" in told
    assert notes(asked(con, COUNT, epsilon="0.4", fresh=True)) == []


def test_fresh_pays_for_new_noise(con: Connection) -> None:
    asked(con, COUNT, epsilon="0.2")
    assert rho(asked(con, COUNT, epsilon="0.4", fresh=True)) == Fraction(8, 100)


@pytest.mark.parametrize(
    ("sql", "epsilon"),
    [
        (COUNT, "0.205"),  # hardly more accurate
        ("SELECT AVG(age) AS a FROM members", "0.4"),
        ("SELECT MEDIAN(age) AS a FROM members", "0.4"),
        ("SELECT note, COUNT(*) AS n FROM members GROUP BY note", "0.4"),
        ("SELECT COUNT(*) AS n FROM members WHERE age > (SELECT AVG(age) FROM members)", "0.4"),
    ],
)
def test_what_is_drawn_anew(con: Connection, sql: str, epsilon: str) -> None:
    asked(con, sql, epsilon="0.2", delta="1e-6")
    answer = asked(con, sql, epsilon=epsilon, delta="1e-6")
    assert float(rho(answer)) == pytest.approx(float(Fraction(epsilon) ** 2 / 2)) and notes(answer) == []


def test_other_data_are_never_averaged(folder: Path) -> None:
    """A file that was written, replaced or put back is another one; the twin that does not look takes them together."""
    with connect(folder / "club.yaml") as con:
        asked(con, COUNT, epsilon="0.2")
    data = folder / "club.duckdb"
    found = data.stat()
    os.utime(data, ns=(found.st_atime_ns, found.st_mtime_ns + 1))
    with connect(folder / "club.yaml") as con:
        answer = asked(con, COUNT, epsilon="0.4")
        assert rho(answer) == Fraction(8, 100) and notes(answer) == []
        assert float(rho(asked(con, COUNT, epsilon="0.5"))) == pytest.approx(0.125 - 0.08)
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(refining, "data_of", lambda id: con.service.account("*").data)
        with connect(folder / "club.yaml") as con:
            assert float(rho(asked(con, COUNT, epsilon="1"))) == pytest.approx(0.5 - 0.125 - 0.02)


def test_where_nobody_can_tell_it_is_new(con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(con.service.engine, "_looked_at", None)
    asked(con, COUNT, epsilon="0.2")
    assert rho(asked(con, COUNT, epsilon="0.4")) == Fraction(8, 100)


def test_an_account_counts_what_it_has_got(folder: Path) -> None:
    with connect(folder / "club.yaml") as con:
        asked(con, COUNT, epsilon="0.2")
        con.analyst = "ben"
        assert con.sql(COUNT).cost(epsilon="0.4").rho == Fraction(8, 100)
        assert rho(asked(con, COUNT, epsilon="0.4")) == Fraction(8, 100) and spent(con) == Fraction(10, 100)


# --- crashes between the steps ---------------------------------------------------------------------------------------


def test_what_was_charged_and_not_drawn_is_paid_again(con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    first = asked(con, COUNT, epsilon="0.2")
    with monkeypatch.context() as broken:
        broken.setattr(noisy_module, "_fetch", lambda planned, ask: 1 / 0)
        with pytest.raises(EngineError):
            asked(con, COUNT, epsilon="0.4")
    assert float(spent(con)) == pytest.approx(0.02 + 0.06)
    answer = asked(con, COUNT, epsilon="0.4")
    assert float(rho(answer)) == pytest.approx(0.06) and float(spent(con)) == pytest.approx(0.14)
    assert asked(con, COUNT, epsilon="0.4").rows == answer.rows and first.rows


def test_what_was_drawn_and_not_stored_is_paid_again(con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(con, COUNT, epsilon="0.2")
    store = con.service.account("*").store
    with monkeypatch.context() as broken:
        broken.setattr(store, "add", lambda answers: 1 / 0)
        assert any("could not be stored" in note for note in asked(con, COUNT, epsilon="0.4").notes)
    assert float(rho(asked(con, COUNT, epsilon="0.4"))) == pytest.approx(0.06)
    assert float(spent(con)) == pytest.approx(0.14)


def test_a_refusal_spends_nothing_and_the_rest_stays(folder: Path) -> None:
    text = (folder / "club.yaml").read_text().replace("rho: 10", "rho: 0.05")
    (folder / "club.yaml").write_text(text)
    with connect(folder / "club.yaml") as con:
        asked(con, COUNT, epsilon="0.2")
        with pytest.raises(BudgetExceeded):
            asked(con, COUNT, epsilon="0.4")
        assert spent(con) == Fraction(2, 100)
        assert float(rho(asked(con, COUNT, epsilon="0.3"))) == pytest.approx(
            0.025
        )  # .045 in all, for which there is room


# --- the law, enumerated ---------------------------------------------------------------------------------------------

PAIRS = policy("""
t:
  unit: {column: id}
  max_rows_per_unit: 1
  columns:
    id: {type: bigint, nullable: false}
    k: {type: integer, bounds: [0, 6560], nullable: false}
""")
REACH = 40


def masses(variance: Fraction) -> dict[int, float]:
    weights = {z: math.exp(-z * z / (2 * float(variance))) for z in range(-REACH, REACH + 1)}
    return {z: w / sum(weights.values()) for z, w in weights.items()}


def law(first: Fraction, wanted: Fraction) -> tuple[float, float, float]:
    """Mean and variance of what `combined` makes of each pair of draws for a truth of 7, and how often ± holds it."""
    more = 1 / (1 / wanted - 1 / first)
    one, other = masses(first), masses(more)
    pairs = list(product(one, other))
    (release,) = planned("SELECT k, COUNT(*) AS n FROM t GROUP BY k", PAIRS, epsilon="1").releases
    (m,) = release.measured.measurements
    measured = replace(release.measured, measurements=(replace(m, mechanism=DiscreteGaussian(more)),))
    keys = public_keys(key_sources(measured.node) or (), 1)
    drawn = NoisyRelease(replace(release, measured=measured), keys, (Integers.of([7 + b for _, b in pairs]),))
    stored = StoredAnswer("x.0.y", "", [7 + a for a, _ in pairs], "gaussian", first, {}, Fraction(0), datetime.now(UTC))
    found = combined(drawn, GivenAnswers(earlier={0: (stored,)}))
    chance = [one[a] * other[b] for a, b in pairs]
    numbers = found.columns[0].tolist() if hasattr(found.columns[0], "tolist") else list(found.columns[0])
    mean = sum(p * n for p, n in zip(chance, numbers, strict=True))
    variance = sum(p * (n - mean) ** 2 for p, n in zip(chance, numbers, strict=True))
    width = next(iter(largest_widths(found, LEVEL))) / float(m.unit) + 0.5  # each is the nearest integer
    return mean, variance, sum(p for p, n in zip(chance, numbers, strict=True) if abs(n - 7) <= width)


@pytest.mark.parametrize(("first", "wanted"), [("40", "24"), ("32", "12"), ("60", "20"), ("9", "4")])
def test_the_mean_of_two_draws_by_its_exact_law(first: str, wanted: str) -> None:
    """Its variance is what was asked for, and at most the twelfth that rounding adds; its interval holds the truth."""
    mean, variance, covered = law(Fraction(first), Fraction(wanted))
    assert mean == pytest.approx(7, abs=1e-6)
    assert float(wanted) < variance < float(wanted) + 0.09
    assert float(LEVEL) <= covered <= 0.98


def test_the_twin_that_weighs_all_draws_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    class Alike(Fraction):
        """Every variance is 1."""

        def __rtruediv__(self, other: object) -> Fraction:  # type: ignore[override]
            return Fraction(1)

    monkeypatch.setattr(refining, "Fraction", lambda value: Alike(value))
    _, variance, covered = law(Fraction(60), Fraction(12))
    assert variance > 1.2 * 12 or covered < float(LEVEL)
