"""Stages: what each sort of run has, and that a new one is one class and one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest

from dpsql.api.connection import Connection
from dpsql.core.analysis.derive import derive
from dpsql.core.analysis.facts import Facts
from dpsql.core.engine import Engine
from dpsql.core.ir.walk import Tagged
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.note import Note
from dpsql.engines.scratch import Scratch
from dpsql.planner import plan_of_stages
from dpsql.planner.plan_of_stages import STAGES
from dpsql.planner.stages.finished_tree import FinishedTree
from dpsql.planner.stages.noise_of_stages import NoiseOfStages
from dpsql.planner.stages.query_to_plan import QueryToPlan
from dpsql.planner.stages.stage import HandedOn, Stage

HOURS = "SELECT COUNT(*) AS n, SUM(hours) AS h FROM visits"


def kinds(con: Connection, sql: str, **options: object) -> list[str]:
    return [type(stage).__name__ for stage in con.plan(sql, epsilon=1, **options).stages]  # type: ignore[arg-type]


def test_what_each_run_does(con: Connection) -> None:
    assert kinds(con, HOURS) == ["Releasing", "AnsweringRows"]
    assert kinds(con, HOURS, coverage=True) == ["Releasing", "Covering", "AnsweringRows"]
    assert kinds(con, HOURS, limits="search") == ["Searches", "Releasing", "AnsweringRows"]
    assert [type(s).__name__ for s in con.batch([HOURS]).plan(1).stages] == [
        "Releasing",
        "PartOfBatch",
        "AnsweringRows",
    ]


@dataclass(frozen=True, slots=True)
class Recount(Stage):
    """Counts once more, at a quarter of the price, and tells it."""

    tree: Tagged[Facts]

    @classmethod
    def of(cls, query: QueryToPlan, tree: FinishedTree) -> Recount:
        release = tree.releases.node(0)
        output = release.outputs[0]
        own = replace(output, column=replace(output.column, uid=next(tree.numbers)))
        return cls(derive(replace(release, components=release.components[:1], outputs=(own,)), query.ctx))

    @property
    def trees(self) -> tuple[Tagged[Facts], ...]:
        return (self.tree,)

    def weighed(self, weights: Mapping[int, Fraction], query: QueryToPlan, tree: FinishedTree) -> dict[int, Fraction]:
        (output,) = self.tree.node.outputs  # type: ignore[union-attr]
        return {**weights, output.column.uid: Fraction(len(tree.releases.node(0).components), 3)}

    def told(self, noise: NoiseOfStages, query: QueryToPlan) -> Iterator[Note]:
        yield Note("a quarter counts once more")

    def handed_on(self, before: HandedOn, engine: Engine, scratch: Scratch) -> HandedOn:
        last = before.noisy[-1]
        counted = round(int(last.columns[0].array[0]) * last.planned.measured.measurements[0].unit)
        return replace(before, notes=(*before.notes, Note(f"once more: {counted}")))


@pytest.mark.parametrize("options", [{}, {"coverage": True}])
def test_a_new_stage_is_one_class_and_one_line(
    con: Connection, ledger: MemoryLedger, monkeypatch: pytest.MonkeyPatch, options: dict[str, bool]
) -> None:
    """It is priced, charged, drawn, stored and told as any other."""
    monkeypatch.setattr(plan_of_stages, "STAGES", (*STAGES[:-1], Recount, STAGES[-1]))
    plan = con.plan(HOURS, epsilon=1000, **options)  # type: ignore[arg-type]
    *_, recount, last = plan.stages
    assert isinstance(recount, Recount) and len(recount.releases) == 1 and not last.releases
    assert plan.cost == {"member": PrivacyLoss(Fraction(1000))} and "a quarter counts once more" in plan.notes
    (own,) = recount.releases[0].measured.measurements
    whole = sum(m.loss.epsilon for r in plan.releases for m in r.measured.measurements)
    assert own.loss.epsilon * 4 >= whole * Fraction(8, 10) and whole <= 1000
    answer = con.run(plan)
    assert "once more: 4000" in answer.notes and ledger.spent("member") == PrivacyLoss(Fraction(1000)) == answer.spent
    assert con.sql(HOURS).cost(epsilon=1000, **options) == PrivacyLoss()  # type: ignore[arg-type]  # all is stored


def test_a_stage_may_follow_what_a_search_finds(
    con: Connection, ledger: MemoryLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands at its price behind the search, which pays for all; its noise is drawn once the limit is known."""
    monkeypatch.setattr(plan_of_stages, "STAGES", (*STAGES[:-1], Recount, STAGES[-1]))
    query = con.sql("SELECT COUNT(*) AS n, SUM(hours) AS h FROM visits")
    plan = query.plan(epsilon=8000, limits="search")
    assert [type(stage).__name__ for stage in plan.stages] == ["Searches", "Releasing", "Recount", "AnsweringRows"]
    assert plan.cost == {"member": PrivacyLoss(Fraction(8000))}
    answer = query.run(epsilon=8000, limits="search")
    assert [type(s).__name__ for s in answer.plan.stages] == ["LimitsFound", "Releasing", "Recount", "AnsweringRows"]
    assert ledger.spent("member") == PrivacyLoss(Fraction(8000)) == answer.spent
    assert any(note.startswith("once more: ") for note in answer.notes)
