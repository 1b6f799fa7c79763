"""A batch: many counts over one relation, measured together and paid for once.

Its marginals are ordinary queries of this session: each is planned, priced, charged, drawn and stored as any other. How
ε is divided between them follows from the texts alone, before anything is drawn; all the rest is arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpsql.aggregates.formula import Bounds
from dpsql.core.analysis.context import Context
from dpsql.core.analysis.derive import derive
from dpsql.core.ir.expressions import Expr
from dpsql.core.ir.nodes import BoundContributions
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.types import SqlType
from dpsql.core.noise.mechanisms.laplace import DiscreteLaplace
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.privacy_loss import PrivacyLoss, largest
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.planner.batch.classes import Classes, classes_of
from dpsql.planner.batch.estimate import Measured, Noise
from dpsql.planner.batch.members import Member, read_member
from dpsql.planner.batch.shares import best_shares, spread
from dpsql.planner.batch.workload import Marginal, Number, Table, table_of
from dpsql.planner.plan import Charge, Plan
from dpsql.service.arguments import Parameters, checked_parameters
from dpsql.service.budgets import require_left, total
from dpsql.service.planning import Question
from dpsql.service.settings import Amount, settled

if TYPE_CHECKING:
    import pandas

    from dpsql.service.session import Session

Statement = str | tuple[str, Parameters]


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """The answer of one member. columns, types, rows: as of any query."""

    sql: str
    columns: tuple[str, ...]
    types: tuple[SqlType, ...]
    rows: tuple[tuple[Any, ...], ...]
    _numbers: tuple[tuple[Number | None, ...], ...] = field(repr=False)
    _measured: Measured = field(repr=False)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def intervals(self, level: float | Fraction = float(LEVEL)) -> list[dict[str, Bounds | None]]:
        """One dict per row: column → (low, high) at this confidence. Raises Rejected DP406 unless 0 < level < 1."""
        if not 0 < level < 1:
            raise reject("DP406", "a confidence is above 0 and below 1", help=["intervals(0.95)"])
        found: list[dict[str, Bounds | None]] = []
        for row, numbers in zip(self.rows, self._numbers, strict=True):
            widths = {
                name: (value, math.ceil(self._measured.width(number, float(level)) + 0.5))
                for name, value, number in zip(self.columns, row, numbers, strict=True)
                if number is not None
            }
            found.append({name: (value - w, value + w) for name, (value, w) in widths.items()})
        return found

    def to_dict(self) -> dict[str, list[Any]]:
        """Column name → values."""
        return {name: [row[i] for row in self.rows] for i, name in enumerate(self.columns)}

    def df(self) -> pandas.DataFrame:
        """As a pandas DataFrame (needs the `pandas` extra)."""
        from dpsql.results import frames

        with frames.extra("pandas"):
            import pandas

            return pandas.DataFrame(self.to_dict())


@dataclass(frozen=True, slots=True)
class BatchRelease(Sequence[BatchAnswer]):
    """The answers in the order of the members. spent: for all. refused: place of a member → why it has none."""

    answers: tuple[BatchAnswer | None, ...]
    spent: PrivacyLoss
    notes: tuple[str, ...]
    refused: Mapping[int, Rejected]

    @property
    def predicted_error(self) -> float:
        """The root of the mean variance of all numbers, in rows: what the design says of its own noise."""
        found = [a._measured.variance(n) for a in self.answers if a for row in a._numbers for n in row if n is not None]
        return math.sqrt(sum(found) / len(found)) if found else 0.0

    def __getitem__(self, place: Any) -> Any:
        found = self.answers[place]
        if found is None and isinstance(place, int):
            raise self.refused[place % len(self.answers)]
        return found

    def __len__(self) -> int:
        return len(self.answers)


@dataclass(frozen=True, slots=True)
class Design:
    """What is asked, and what is measured for it: all of it public."""

    members: Mapping[int, Member]
    tables: Mapping[int, Table]
    classes: Mapping[int, Classes]
    refused: Mapping[int, Rejected]
    shares: Mapping[Marginal, Fraction]
    gaussian: bool

    @property
    def sizes(self) -> dict[int, int]:
        return {uid: c.size for uid, c in self.classes.items()}

    def sql(self, marginal: Marginal) -> str:
        """The query that measures a marginal."""
        first = next(iter(self.members.values()))
        keys = [f"{self.classes[uid].sql} AS c{i}" for i, uid in enumerate(marginal, 1)]
        group = f" GROUP BY {', '.join(str(i) for i in range(1, len(keys) + 1))}" if keys else ""
        return f"SELECT {', '.join([*keys, 'COUNT(*) AS n'])} FROM {first.from_text}{group}"

    def name(self, marginal: Marginal) -> str:
        """What it is a marginal of, in words."""
        return " × ".join(self.classes[uid].name for uid in marginal) or "all rows"


class Batch:
    """Counts over one relation, to look at and to run together. Everything but `run` spends nothing.

    >>> con = dpsql.connect("clinic.yaml")
    >>> batch = con.batch([
    ...     "SELECT region, COUNT(*) AS n FROM patients GROUP BY region",
    ...     "SELECT COUNT(*) AS n FROM patients WHERE age >= 65",
    ... ])
    >>> batch.cost(epsilon=0.5)
    PrivacyLoss(epsilon=0.5)
    """

    def __init__(self, session: Session, statements: Sequence[Statement], skip_refused: bool) -> None:
        self._session, self._skip = session, skip_refused
        self._statements = [(s, ()) if isinstance(s, str) else (s[0], s[1]) for s in statements]
        self._found: Design | None = None

    # --- planning ----------------------------------------------------------------------------------------------------

    @property
    def design(self) -> Design:
        """What is asked and measured. Raises Rejected."""
        if self._found is None:
            facts = self._session.service.facts
            read = self._read()
            with facts.lock:
                self._found = facts.compile(lambda public: self._designed(read, public))
        return self._found

    def _read(self) -> tuple[dict[int, Member], dict[int, Rejected]]:
        policy = self._session.policy
        members: dict[int, Member] = {}
        refused: dict[int, Rejected] = {}
        for place, (sql, parameters) in enumerate(self._statements):
            try:
                member = read_member(sql, checked_parameters(sql, parameters, "duckdb"), policy)
                first = next(iter(members.values()), member)
                if member.relation != first.relation or member.from_text != first.from_text:
                    raise reject(
                        "DP101", f"this member reads other rows than the first: FROM {first.from_text}",
                        source=member.source, help=[f"write  FROM {first.from_text}", "put it into another batch"],
                    )  # fmt: skip
                members[place] = member
            except Rejected as refusal:
                self._refuse(refused, place, refusal)
        if not members:
            raise reject("DP903", "a batch needs a query", help=["con.batch([sql, …])"])
        return members, refused

    def _designed(self, read: tuple[dict[int, Member], dict[int, Rejected]], public: PublicFacts) -> Design:
        policy = self._session.policy
        members, refused = dict(read[0]), dict(read[1])
        relation = next(iter(members.values())).relation
        env = {
            uid: c.value
            for uid, c in derive(relation, Context(policy, public, policy.defaults.max_keys)).fact.columns.items()
        }
        classes: dict[int, Classes] = {}
        for place in list(members) if self._skip else ():
            try:
                classes_of([members[place]], env)
            except Rejected as refusal:
                self._refuse(refused, place, refusal, members)
        classes = classes_of(list(members.values()), env)
        tables: dict[int, Table] = {}
        kept: dict[Expr, Number] = {}
        for place in list(members):
            try:
                tables[place] = table_of(members[place], classes, env, kept)
            except Rejected as refusal:
                self._refuse(refused, place, refusal, members)
        numbers = [n for t in tables.values() for column in t.numbers for n in column]
        gaussian = policy.privacy.accountant == "zcdp"
        sizes = {uid: c.size for uid, c in classes.items()}
        shares = best_shares(spread(numbers, sizes), [n.columns for n in numbers], sizes, gaussian) if numbers else {}
        return Design(members, tables, classes, refused, shares, gaussian)

    def _refuse(
        self, refused: dict[int, Rejected], place: int, refusal: Rejected, members: dict[int, Member] | None = None
    ) -> None:
        if not self._skip:
            raise refusal
        refused[place] = refusal
        if members is not None:
            members.pop(place, None)

    def _plans(self, epsilon: Amount | None, rho: Amount | None) -> dict[Marginal, Plan]:
        """A plan for each marginal, at its share. Raises Rejected."""
        design, session = self.design, self._session
        settings = settled({"epsilon": epsilon, "rho": rho}, session.settings)
        whole, of_rho = settings.epsilon or session.policy.defaults.epsilon, settings.rho
        if whole is None and of_rho is None:
            raise reject("DP401", "no epsilon was given, and the policy has no default", help=["run(epsilon=0.5)"])
        if design.gaussian and of_rho is None:
            assert whole is not None
            of_rho = whole**2 / 2
        found: dict[Marginal, Plan] = {}
        for marginal, share in design.shares.items():
            sql = design.sql(marginal)
            if of_rho is not None:
                asked = replace(settings, epsilon=None, rho=of_rho * share, unlisted=True)
            else:
                assert whole is not None
                asked = replace(settings, epsilon=whole * share, unlisted=True)
            plan = session.planned_with(Question(sql), asked)
            self._require_additive(plan)
            found[marginal] = plan
        return found

    def _require_additive(self, plan: Plan) -> None:
        """Refuse where the weight of a row depends on what is grouped by: marginals would not be of one table."""
        for release in plan.releases:
            below = release.measured.node.input
            cut = isinstance(below, BoundContributions) and below.truncate_groups
            for of in release.measured.contributions.values():
                if cut or (of.scaled and (of.by_rows is None or of.per_group is not None)):
                    raise reject(
                        "DP101", "limits on groups weigh a row differently in each marginal: they do not add up",
                        help=["custodian: declare max_rows_per_unit alone for this table", "run each query by itself"],
                    )  # fmt: skip

    # --- looking and running -----------------------------------------------------------------------------------------

    def cost(self, epsilon: Amount | None = None, *, rho: Amount | None = None) -> PrivacyLoss:
        """What a run charges now: stored marginals are free. Raises Rejected, CannotOpen."""
        return largest(total(self._charges(self._plans(epsilon, rho))).values())

    def _charges(self, plans: Mapping[Marginal, Plan]) -> list[Charge]:
        return [self._session.charge(plan) for plan in plans.values()]

    def explain(self, epsilon: Amount | None = None, *, rho: Amount | None = None) -> str:
        """What is measured, at which share, and the ± of each member's numbers. Raises Rejected."""
        design, plans = self.design, self._plans(epsilon, rho)
        measured = _measured(design, {m: plan.releases[0] for m, plan in plans.items()})
        count = sum(len(column) for t in design.tables.values() for column in t.numbers)
        lines = [f"batch of {len(design.members)} queries, {count} numbers", ""]
        lines.append("share   cells  σ of a cell  measured")
        for m, s in design.shares.items():
            cells, spread_of = math.prod(measured.sizes[u] for u in m), math.sqrt(measured.noise[m].variance)
            lines.append(f"{float(s):.3f} {cells:>7,} {spread_of:>12.1f}  {design.name(m)}")
        lines.append("")
        alone = self._alone(design, measured)
        for place, t in design.tables.items():
            worst = max((measured.width(n, float(LEVEL)) for column in t.numbers for n in column), default=0.0)
            lines.append(f"query {place + 1}: at most ± {worst + 0.5:.1f}; alone, at an equal part, ± {alone:.1f}")
        lines += [f"query {place + 1}: refused: {r.diagnostics[0].message}" for place, r in design.refused.items()]
        lines.append(f"cost: {largest(total(self._charges(plans)).values())}")
        return "\n".join(lines)

    def run(self, epsilon: Amount | None = None, *, rho: Amount | None = None) -> BatchRelease:
        """Measure every marginal, and answer every member from all of them.

        Raises Rejected, BudgetExceeded (nothing ran), EngineError (what was charged stays charged; what was drawn is
        stored, and the same batch goes on from there).
        """
        import numpy as np

        design, plans, session = self.design, self._plans(epsilon, rho), self._session
        require_left("batch", self._charges(plans), session.policy, session.budget, session.analyst)
        marginals: dict[Marginal, Any] = {}
        made: dict[Marginal, PlannedRelease] = {}
        spent, notes = PrivacyLoss(), dict[str, None]()
        for marginal, plan in plans.items():
            answer = session.run(plan)
            spent += answer.spent
            made[marginal] = answer._made[0]
            cells = np.zeros(tuple(design.classes[uid].size for uid in marginal))
            for *key, n in answer.rows:
                cells[tuple(key)] = n
            marginals[marginal] = cells
            notes |= dict.fromkeys(n for n in answer.notes if " AS c" not in n and "another c" not in n)
        measured = _measured(design, made)
        answers = tuple(
            _answer(design.members[p], design.tables[p], measured, marginals) if p in design.tables else None
            for p in range(len(self._statements))
        )
        others = [c.name for c in design.classes.values() if not c.complete]
        if others:
            notes[f"members that read {', '.join(others)} count rows whose value is listed"] = None
        return BatchRelease(answers, spent, tuple(notes), design.refused)

    def _alone(self, design: Design, measured: Measured) -> float:
        """The ± of a count that is asked by itself with its equal part of the same price."""
        if not design.shares:
            return 0.0
        marginal, share = next(iter(design.shares.items()))
        part = share * len(design.tables)
        noise = measured.noise[marginal]
        if design.gaussian:
            return math.sqrt(noise.variance * part) * 1.96
        return math.sqrt(noise.variance / 2) * part * math.log(20)

    def __repr__(self) -> str:
        return f"<dpsql batch of {len(self._statements)} queries>"


def _measured(design: Design, made: Mapping[Marginal, PlannedRelease]) -> Measured:
    noise = {}
    for marginal, release in made.items():
        (measurement,) = release.measured.measurements
        mechanism = measurement.mechanism
        grain = float(measurement.component.worth / measurement.component.weight)
        scale = float(mechanism.scale) * grain if isinstance(mechanism, DiscreteLaplace) else None
        noise[marginal] = Noise(mechanism.variance() * grain**2, scale, grain)
    return Measured(noise, design.sizes)


def _answer(member: Member, found: Table, measured: Measured, marginals: Mapping[Marginal, Any]) -> BatchAnswer:
    rows: list[tuple[tuple[Any, ...], tuple[Number | None, ...]]] = []
    for i, key in enumerate(found.keys):
        numbers: list[Number | None] = [*(None for _ in key), *(column[i] for column in found.numbers)]
        values = [*key, *(round(measured.estimate(column[i], marginals)) for column in found.numbers)]
        rows.append((tuple(values), tuple(numbers)))
    for place, descending, nulls_first in reversed(member.order):
        rows.sort(key=lambda row: (row[0][place] is None) == nulls_first, reverse=nulls_first)
        there = [row for row in rows if row[0][place] is not None]
        there.sort(key=lambda row: row[0][place], reverse=descending)
        none = [row for row in rows if row[0][place] is None]
        rows = none + there if nulls_first else there + none
    return BatchAnswer(
        member.source.text, tuple(c.name for c in member.columns), tuple(c.type for c in member.columns),
        tuple(tuple(values[p] for p in member.shown) for values, _ in rows),
        tuple(tuple(numbers[p] for p in member.shown) for _, numbers in rows), measured,
    )  # fmt: skip
