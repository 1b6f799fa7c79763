"""Bounds that are found, and the quantile within them: what both together tell of neighbours is within what is paid.

The octaves are a COUNT, whose noise tells at most e^(Σ|Δ|/scale). Of the quantile follow the probabilities of all cells
from the histograms that DuckDB returns. Both add up, whatever bounds were read from the octaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from dpsql.core.noise.mechanisms import PureExponential
from dpsql.diagnostics.diagnostic import Source
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.planning.public_facts import FactStore
from tests.deep.core.analysis.test_replace_one import Listed
from tests.deep.core.noise.test_quantile_neighbours import GROUPS, Form
from tests.deep.planner.test_searches import told, vectors
from tests.support.chosen_losses import DIGITS, Database, changed, decimal, histograms_of, loss_of_group
from tests.support.random_databases import Column, Row, Store, World, world_of

MEDIAN, BY_GROUP = "SELECT MEDIAN(x) FROM t", "SELECT g, MEDIAN(x) FROM t GROUP BY g"
ROW: dict[str, Any] = {"ids": False, "rows": 1, "full": 1}
FORMS = {
    "rows": Form({}, MEDIAN, **ROW),
    "rows, groups": Form({}, BY_GROUP, **ROW),
    "rows, a tenth": Form({}, "SELECT QUANTILE_DISC(x, 0.9) FROM t", **ROW),
    "ids": Form({}, MEDIAN, groups=GROUPS[:1]),
    "ids, groups": Form({}, BY_GROUP, groups=GROUPS[:2]),
    "replaced rows": Form({}, MEDIAN, replaced=True, **ROW),
    "replaced ids": Form({}, MEDIAN, replaced=True, rows=2, groups=GROUPS[:1]),
}
FOUND = [(0, 2**16 - 1), (-(2**40), 2**40)]
"""Bounds that noise may lead to: those that nearly all cells lie between two values of, and far wider ones."""
ROWS = 2
"""As `Form.full`."""


def others_of(form: Form) -> list[list[Row]]:
    """Those of `Form.others` that come near the price."""
    return form.others[2:4]


def world_of_form(form: Form) -> World:
    """As `Form.world`, of values without bounds and ids without limits."""
    columns = (
        Column("pid", "BIGINT", ()),
        Column("g", "VARCHAR", (), {"domain": {"values": ["a", "b"], "null": True}}),
        Column("x", "BIGINT", ()),
    )
    rows: list[tuple[Row, int]] = []
    for number, (others, one) in enumerate((o, s) for o in others_of(form) for s in form.sets):
        rows += [((str(i + 10), g, x), number) for i, (g, x) in enumerate(others)]
        rows += [(("1", g, x), number) for g, x in one]
    unit: dict[str, Any] = {"column": "pid"} if form.ids else {"rows": 1}
    unit |= {"neighbours": "replace_one"} if form.replaced else {}
    last = len(others_of(form)) * len(form.sets) - 1
    return world_of([Listed("t", columns, {"unit": unit}, tuple(rows))], last, repr(form))


def pairs(form: Form) -> Iterator[tuple[int, int]]:
    """Numbers of neighbouring databases, as `Form.pairs` has them."""
    last = len(others_of(form)) * len(form.sets)
    return ((x, y) for x, y in form.pairs() if max(x, y) < last)


def compiled(store: Store, world: World, sql: str, found: dict[str, int | tuple[int, int]]) -> Plan:
    settings = QuerySettings(Fraction(1), search=True, found=found)
    return FactStore(store).compile(
        lambda public: compile_query(Source(sql), world.policy, public, settings, (), store.table_sql)
    )


def chains(name: str) -> tuple[float, float]:
    """The most that a chain tells; the most that it would tell if the rest had the whole ε."""
    form, store = FORMS[name], Store()
    world = world_of_form(form)
    store.load(world)
    try:
        first = compiled(store, world, form.sql, {})
        assert first.searches is not None and first.loss.epsilon == 1
        databases = range(world.neighbours + 1)
        octaves = vectors(store, databases, first.first.releases)
        most, whole = Decimal(0), Decimal(0)
        for bounds in FOUND:
            found = {s.limit.label: bounds if s.limit.rule.of_values else ROWS for s in first.searches.limits}
            rest = compiled(store, world, form.sql, found)
            (planned,) = rest.releases
            (m,) = planned.measured.measurements
            assert isinstance(m.mechanism, PureExponential) and rest.searches is None
            assert first.searches.plan.loss.epsilon + rest.loss.epsilon == 1
            shown: list[Database] = []
            for db in databases:
                store.show(db)
                shown.append(histograms_of(planned, store))
            for x, y in pairs(form):
                search = decimal(told(first.first.releases, octaves[x], octaves[y]))
                for a, b in ((x, y), (y, x)):
                    moved = changed(shown[a], shown[b], 0)
                    own, more = (
                        sum((loss_of_group(*pair, eta) for pair in moved), Decimal(0))
                        for eta in (m.mechanism.eta, m.mechanism.eta / rest.loss.epsilon)
                    )
                    most, whole = max(most, DIGITS.add(search, own)), max(whole, DIGITS.add(search, more))
    finally:
        store.close()
    return float(most), float(whole)


@pytest.mark.parametrize("name", FORMS)
def test_a_chain_tells_what_is_paid_and_no_more(name: str) -> None:
    most, whole = chains(name)
    assert 0.85 <= most <= 1 + 1e-12, "ε is 1, and it is nearly reached"
    assert whole > 1.1, "a rest that has the whole ε is told apart"
