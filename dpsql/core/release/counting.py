"""Ticks of a counter: what may be counted, at which price, and the drawing of one tick.

*Claim.* All ticks of a counter, for ever, are ρ-zCDP for a unit of one period, with the ρ that COUNTER charges. *Why.*
Let neighbours differ in a unit of period s. Given what was seen, tick t moves by r_{t-s}·v_t: integers of period s
alone differ (`_require_by_row`: each counted row is one row of the one growing table, in the cell of its own day), and
‖v_t‖² ≤ l2² of each component, derived anew at every tick and refused if it is more than COUNTER says. Noise is fresh,
of the σ² that COUNTER says, so tick t loses r_{t-s}²·l2²/2σ², in all at most Σ r_k²·l2²/2σ² = S²·l2²/2σ²: adaptive
composition. v_t may change with t: a row that comes late, or is corrected in its period, loses no more. *When it would
be false.* If a row moved to another period (1.74 times the price); if S² were of unrounded weights (1.13); if noise
were used twice (differences are exact); if a row counted in a cell of another day (a self-join: 3.17); if a policy with
larger bounds were ticked. *Tested by* tests/deep/core/release/test_counter_streams.py,
tests/core/release/test_counting.py.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.core.engine import Engine
from dpsql.core.ir.components import RowCount, ValueSum
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Filter, GroupKeys, Join, JoinKind, Node, Project, Scan, inputs
from dpsql.core.ledger.counters import (
    CounterRefused,
    CounterState,
    Frozen,
    created,
    dropped,
    hash_of_numbers,
    received,
    tick,
    ticked,
)
from dpsql.core.ledger.ledger import Caps, Entry, Ledger, Receipt
from dpsql.core.ledger.losses.regions import LossSpan
from dpsql.core.ledger.paid import Terms, draw_from, named
from dpsql.core.ledger.released import Key, StoredAnswer
from dpsql.core.noise.backends import EXACT, Backend
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.measurement import MeasuredRelease, Measurement
from dpsql.core.noise.mechanisms import DiscreteGaussian
from dpsql.core.noise.sensitivity import Sensitivity
from dpsql.core.numbers.counter_weights import LONGEST, squares, weights
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.units import RowUnit
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.core.release.drawing import EngineAsk, NoiseDraws, drawn
from dpsql.core.release.noisy import Exact, _fetch, public_keys
from dpsql.core.release.planned import PlannedRelease


class NotCounted(Exception):
    """Why a release cannot be a counter's, in words."""


def counted_by(measured: MeasuredRelease, policy: Policy) -> tuple[Scan, int]:
    """The scan of the one growing table that a release counts the rows of, and which group key is their day.

    Raises NotCounted.
    """
    node = measured.node
    if not isinstance(node.input, GroupKeys) or node.input.sources is None or node.threshold is not None:
        raise NotCounted("its group keys need public lists, and its rows a unit of one row")
    if not all(isinstance(c, RowCount | ValueSum) for c in node.components):
        raise NotCounted("it counts rows, and adds values:  COUNT(*), COUNT(x), SUM(x)")
    if node.slices:
        raise NotCounted("conditions of FILTER that exclude each other are keys:  GROUP BY CASE WHEN … END")
    if any(m.known is not None or not isinstance(m.mechanism, DiscreteGaussian) for m in measured.measurements):
        raise NotCounted("its noise is Gaussian, on numbers that rows move")
    scan = _require_by_row(node.input.input, policy)
    table = policy.tables[scan.table]
    if set(measured.contributions) != {table.unit} or not isinstance(table.protection, RowUnit):
        raise NotCounted(f"a unit of {scan.table} is not one row of one period")
    if table.unit not in policy.by_period:
        raise NotCounted(f"the unit of {scan.table} has one account for ever, not one for each period")
    (day,) = [c.uid for c in scan.columns if c.name == (table.grows and table.grows.by)]
    places = [at for at, item in enumerate(node.input.items) if _traced(node.input.input, item.expr) == day]
    alone = [at for at in places if any(source.positions == (at,) for source in node.input.sources)]
    if not alone:
        raise NotCounted(f"the day of {scan.table} is none of its group keys")
    return scan, alone[0]


def _require_by_row(node: Node, policy: Policy) -> Scan:
    """The one scan of private rows below, of which each row that is counted is one; other tables are public."""
    match node:
        case Scan(table=name) if policy.tables[name].grows is not None:
            return node
        case Filter(input=below) | Project(input=below):
            return _require_by_row(below, policy)
        case Join(kind=kind, left=left, right=right):
            sides = (left, right) if kind in (JoinKind.INNER, JoinKind.CROSS) else (left,)
            private = [side for side in (left, right) if not _is_public(side, policy)]
            if kind is not JoinKind.FULL and len(private) == 1 and private[0] in sides:
                return _require_by_row(private[0], policy)
    raise NotCounted("it counts the rows of one growing table by themselves, joined to public tables at most")


def _is_public(node: Node, policy: Policy) -> bool:
    if isinstance(node, Scan):
        return policy.tables[node.table].public
    return all(_is_public(below, policy) for below in inputs(node))


def _traced(node: Node, expr: object) -> int | None:
    """The column of a scan that an expression is, unchanged; None if it is none."""
    while isinstance(expr, Column):
        uid, made = expr.uid, None
        waiting = [node]
        while waiting:
            below = waiting.pop()
            if isinstance(below, Scan) and any(c.uid == uid for c in below.columns):
                return uid
            if isinstance(below, Project):
                made = next((item.expr for item in below.items if item.column.uid == uid), made)
            waiting += inputs(below)
        expr = made
    return None


@dataclass(frozen=True, slots=True)
class AskedCounter:
    """What CREATE says of a counter besides what is measured."""

    name: str
    sql: str
    first: dt.date
    rests_on: str = ""
    amounts: tuple[tuple[str, str], ...] = ()


def frozen(planned: PlannedRelease, policy: Policy, asked: AskedCounter) -> Frozen:
    """What COUNTER fixes, of the release of one period with the noise of one release. Raises NotCounted."""
    measured = planned.measured
    scan, day = counted_by(measured, policy)
    grows = policy.tables[scan.table].grows
    assert grows is not None
    length = min(grows.keep or LONGEST, LONGEST)
    whole = squares(length)
    variances = tuple(whole * _gaussian(m).sigma_squared for m in measured.measurements)
    squared = tuple({u: s.l2_squared for u, s in _by_unit(m, measured)} for m in measured.measurements)
    rho = {
        unit: sum((own[unit] * whole / (2 * v) for own, v in zip(squared, variances, strict=True)), Fraction(0))
        for unit in measured.contributions
    }
    return Frozen(
        asked.name, asked.sql, scan.table, grows.by, grows.every, asked.first, length, variances, squared, rho,
        measured.conversion_delta, len(groups_of(measured, day)), asked.rests_on, asked.amounts,
    )  # fmt: skip


def _gaussian(m: Measurement) -> DiscreteGaussian:
    assert isinstance(m.mechanism, DiscreteGaussian)
    return m.mechanism


def _by_unit(m: Measurement, measured: MeasuredRelease) -> list[tuple[str, Sensitivity]]:
    return [(unit, m.by_unit.get(unit, m.sensitivity)) for unit in measured.contributions]


def groups_of(measured: MeasuredRelease, day: int) -> Sequence[Key]:
    """All groups but for their day, in release order."""
    node = measured.node
    assert isinstance(node.input, GroupKeys) and node.input.sources is not None
    moved = [
        replace(s, positions=tuple(p - (p > day) for p in s.positions))
        for s in node.input.sources
        if s.positions != (day,)
    ]
    return public_keys(moved, len(node.keys) - 1)


@dataclass(frozen=True, slots=True)
class CounterTick:
    """The drawing of one tick: R·x of all periods up to one, and its noise. day: which group key is the rows' day."""

    planned: PlannedRelease
    frozen: Frozen
    last: dt.date
    day: int

    @property
    def declared(self) -> Sequence[Measurement]:
        """One for each component, with the noise that COUNTER says."""
        return [
            replace(m, mechanism=DiscreteGaussian(v))
            for m, v in zip(self.planned.measured.measurements, self.frozen.variances, strict=True)
        ]

    def draw(self, ask: EngineAsk, noise: NoiseDraws) -> tuple[Sequence[int], ...]:
        """y of each component, group by group."""
        found = _fetch(self.planned, ask)
        groups = groups_of(self.planned.measured, self.day)
        sums = self._weighed(list(found.keys), found.columns, {key: at for at, key in enumerate(groups)})
        return tuple(list(noise(i, Integers.of(own)).integers) for i, own in enumerate(sums))

    def _weighed(self, keys: Sequence[Key], columns: Sequence[Exact], at: dict[Key, int]) -> list[list[int]]:
        r, newest = weights(self.frozen.length), self.frozen.place(self.last)
        sums = [[0] * len(at) for _ in columns]
        for row, key in enumerate(keys):
            day, group = key[self.day], at.get((*key[: self.day], *key[self.day + 1 :]))
            if group is None or not isinstance(day, dt.date):
                continue  # not a group of the list
            back = newest - self.frozen.place(day)
            if 0 <= back < len(r):
                for own, column in zip(sums, columns, strict=True):
                    assert isinstance(column, Integers)
                    own[group] += r[back] * column[row]
        return sums


def require_frozen(planned: PlannedRelease, policy: Policy, own: Frozen, last: dt.date) -> int:
    """Which group key of a tick's release is the day. Raises CounterRefused: it is not what COUNTER has charged."""
    measured = planned.measured
    try:
        scan, day = counted_by(measured, policy)
    except NotCounted as why:
        raise CounterRefused(f"counter {own.name} is measured otherwise now: {why}", _MAKE_ANOTHER) from None
    oldest = max(own.begins(max(0, own.place(last) - own.length + 1)), own.first)
    grows = policy.tables[scan.table].grows
    same = (
        grows is not None
        and (own.table, own.by, own.every) == (scan.table, grows.by, grows.every)
        and scan.periods is not None
        and scan.periods.days == ((oldest, last),)
        and own.ends(own.place(last)) == last
        and len(measured.measurements) == len(own.squared)
        and all(
            s.l2_squared <= said.get(unit, Fraction(0))
            for m, said in zip(measured.measurements, own.squared, strict=True)
            for unit, s in _by_unit(m, measured)
        )
    )
    if not same:
        raise CounterRefused(f"counter {own.name} is measured otherwise now than when it was charged", _MAKE_ANOTHER)
    return day


_MAKE_ANOTHER = "drop it, and make another one: what it has counted stays until then"


@dataclass(frozen=True, slots=True)
class TickRequest:
    """Who draws a tick, and how. data: what the data are now, as in `ChargeRequest`. begin: told the id of an entry
    before it is reserved.
    """

    caps: Caps
    policy: Policy
    salt: int
    backend: Backend = EXACT
    data: str = ""
    begin: Callable[[str], object] | None = None


def create(ledger: Ledger, request: TickRequest, analyst: str, own: Frozen, plan_hash: str) -> CounterState:
    """COUNTER: charge all ticks to every period from the first day on. Raises BudgetExceeded, CannotOpen, and
    CounterRefused: there is one of this name.
    """
    id = uuid.uuid4().hex
    made = created(id, analyst, own, request.policy.privacy.accountant, plan_hash, request.policy.hash)
    _reserved(ledger, made, request)
    return next(state for state in ledger.counters() if state.id == id)


def receive(ledger: Ledger, request: TickRequest, analyst: str, counter: CounterState) -> Receipt:
    """Charge an account the price of a counter that another one has made. Raises BudgetExceeded, CannotOpen."""
    return _reserved(ledger, received(uuid.uuid4().hex, analyst, counter, request.policy.hash), request)


def drop(ledger: Ledger, request: TickRequest, analyst: str, counter: CounterState) -> None:
    """DROP: no tick of it is drawn any more, and what it would have measured is given back. Raises CannotOpen."""
    _reserved(ledger, dropped(counter, analyst, request.policy.hash), request)


@dataclass(frozen=True, slots=True)
class ChargedTick:
    """A tick that may be drawn. names: of the noise of each component, with its terms."""

    drawing: CounterTick
    receipt: Receipt
    names: Sequence[tuple[str, Terms]]


def charge_tick(
    ledger: Ledger, request: TickRequest, counter: CounterState, planned: PlannedRelease, last: dt.date
) -> ChargedTick:
    """TICK, which names the noise that may be drawn from then on.

    Raises CounterRefused (nothing ran), BudgetExceeded: it was drawn before, and to draw it again is charged;
    CannotOpen.
    """
    day = require_frozen(planned, request.policy, counter.frozen, last)
    draw = draw_from(uuid.uuid4().hex, request.data)
    names = [(named(draw, i, terms), terms) for i, terms in enumerate(terms_of_tick(counter.frozen))]
    entry = tick(counter, last, [id for id, _ in names], request.policy.privacy.accountant, request.policy.hash)
    receipt = _reserved(ledger, entry, request)
    return ChargedTick(CounterTick(planned, counter.frozen, last, day), receipt, names)


def draw_tick(charged: ChargedTick, request: TickRequest, engine: Engine) -> tuple[Sequence[int], ...]:
    """The numbers of its components. Nothing of them may be shown before `give` has returned. Raises EngineError."""
    return drawn(charged.drawing, engine, charged.receipt, request.salt, backend=request.backend)


def terms_of_tick(own: Frozen) -> list[Terms]:
    """How the numbers of each component are made, and what all ticks of it cost."""
    whole, found = squares(own.length), list[Terms]()
    for variance, squared in zip(own.variances, own.squared, strict=True):
        losses = {unit: PrivacyLoss(rho=whole * part / (2 * variance)) for unit, part in squared.items()}
        regions = {unit: (LossSpan(own.first, None, loss),) for unit, loss in losses.items()}
        found.append(Terms("gaussian", variance, losses, own.conversion, None, regions))
    return found


def give(
    ledger: Ledger, request: TickRequest, counter: CounterState, last: dt.date, answers: Sequence[StoredAnswer]
) -> None:
    """TICKED: what is stored of a period is given from now on. Raises CounterRefused: other numbers of it are."""
    numbers = hash_of_numbers([answer.values for answer in answers])
    entry = ticked(counter, last, [answer.id for answer in answers], numbers, request.policy.hash)
    _reserved(ledger, entry, request)


def _reserved(ledger: Ledger, entry: Entry, request: TickRequest) -> Receipt:
    if request.begin is not None:
        request.begin(entry.id)
    try:
        return ledger.reserve(entry, request.caps)
    except ValueError as why:  # the id is taken: somebody else was first
        if "already belongs" not in str(why):
            raise
        raise CounterRefused("a tick of the counter is drawn elsewhere", "ask again") from None
