"""What the shell says about the budget."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpsql
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.faces.cli.shell.commands.all_commands import run_command
from dpsql.faces.cli.shell.commands.run_statement import cost, run_statement
from dpsql.faces.cli.shell.commands.running import Cancelled, left_words
from dpsql.faces.cli.shell.input.items import InputPlace, Meta
from dpsql.faces.cli.shell.start import confirmed
from dpsql.faces.cli.shell.state import Shell
from dpsql.service import stages_of_a_run
from dpsql.service.planning.planning import Planner

POLICY = """\
version: 1
name: clinic
database: clinic.duckdb
ledger_head: head
units: {patient: {table: patients, key: id}, doctor: {table: doctors, key: id}}
tables:
  patients:
    unit: {column: id}
    primary_key: [id]
    columns: {id: {type: bigint, nullable: false}, age: {type: integer, bounds: [0, 100]}}
  doctors: {unit: {column: id}, primary_key: [id], columns: {id: {type: bigint, nullable: false}}}
budgets: {total: {epsilon: 1000}, analysts: {ana: {epsilon: 100}}}
"""
COUNT = "SELECT COUNT(*) AS n FROM patients"


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Shell, dpsql.Connection]]:
    """A shell, and another connection that charges the same account."""
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as con:
        con.execute("CREATE TABLE patients AS SELECT i AS id, 40::INTEGER AS age FROM range(10) t(i)")
        con.execute("CREATE TABLE doctors AS SELECT i AS id FROM range(10) t(i)")
    path = tmp_path / "clinic.yaml"
    path.write_text(POLICY)
    with (
        dpsql.connect(path, analyst="ana", epsilon="0.5") as one,
        dpsql.connect(path, analyst="ana", epsilon=3) as other,
    ):
        yield Shell(one, "ana"), other


def stopped(monkeypatch: pytest.MonkeyPatch, shell: Shell, place: str, meanwhile: Callable[[], object]) -> str:
    """What is said of a query that a Ctrl-C stops, once others have done something meanwhile."""
    whole = getattr(stages_of_a_run, place)

    def interrupted(*arguments: Any) -> Any:
        with monkeypatch.context() as undone:
            undone.setattr(stages_of_a_run, place, whole)
            meanwhile()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(Cancelled) as said:
        patched.setattr(stages_of_a_run, place, interrupted)
        run_statement(shell, COUNT, InputPlace())
    return str(said.value)


@pytest.mark.parametrize("table", ["patients", "doctors"])
def test_a_query_that_is_stopped_cost_what_it_charged_and_not_what_others_did(
    two: tuple[Shell, dpsql.Connection], monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    shell, other = two
    other.execute("SELECT COUNT(*) AS n FROM doctors WHERE id > 3")

    def meanwhile() -> None:
        other.execute(f"SELECT COUNT(*) AS n FROM {table} WHERE id > 5")

    said = stopped(monkeypatch, shell, "draw_release", meanwhile)
    assert said == "cancelled; ε 0.5 was charged before the engine started, and is not given back"
    assert float(shell.connection.budget["doctor" if table == "doctors" else "patient"].spent.epsilon) >= 3


def test_what_was_stopped_before_it_was_charged_cost_nothing_whatever_others_charge(
    two: tuple[Shell, dpsql.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    shell, other = two
    said = stopped(monkeypatch, shell, "backend", lambda: other.execute(f"{COUNT} WHERE age > 5"))
    assert said == "cancelled; nothing was charged" and float(other.budget["patient"].spent.epsilon) == 3


def test_what_was_stopped_while_it_was_charged_is_looked_up(
    two: tuple[Shell, dpsql.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Ctrl-C comes when the ledger has written the entry and the run does not know it yet."""
    from dpsql.core.ledger.sqlite import SqliteLedger

    shell, reserve = two[0], SqliteLedger.reserve

    def interrupted(*arguments: Any) -> Any:
        reserve(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(SqliteLedger, "reserve", interrupted)
    with pytest.raises(Cancelled, match=r"cancelled; ε 0\.5 was charged"):
        run_statement(shell, COUNT, InputPlace())
    with pytest.raises(Cancelled, match=r"cancelled; ε 0\.5 was charged"):  # and not the first one's, too
        run_statement(shell, f"{COUNT} WHERE age > 3", InputPlace())


def test_a_price_is_told_from_one_plan(
    two: tuple[Shell, dpsql.Connection], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shell, plan, made = two[0], Planner.plan, []

    def counted(self: Planner, *arguments: Any) -> Any:
        made.append(arguments)
        return plan(self, *arguments)

    monkeypatch.setattr(Planner, "plan", counted)
    shell.set_amount("confidence", "0.99")
    cost(shell, COUNT, InputPlace())
    (width,) = (line.split()[-1] for line in capsys.readouterr().out.splitlines() if line.startswith("  n "))
    assert len(made) == 1
    assert float(width) == shell.connection.sql(COUNT).accuracy(confidence="0.99")["n"]


@pytest.mark.parametrize("looked", ["\\cost", "\\explain"])
def test_a_look_is_at_the_last_query_whatever_was_set_since(
    two: tuple[Shell, dpsql.Connection], looked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shell, wanted = two[0], {"\\cost": "would cost ε 0.25", "\\explain": "cost: ε 0.25 of each patient"}[looked]
    run_statement(shell, f"EXPLAIN {COUNT}", InputPlace())
    run_statement(shell, "SET epsilon = 0.25", InputPlace())
    run_statement(shell, "SHOW epsilon", InputPlace())
    assert shell.last is not None and shell.last[0] == "SHOW epsilon"  # \\g and \\e are about what ran last, as in psql
    capsys.readouterr()
    run_command(shell, Meta(looked, InputPlace()))
    assert wanted in capsys.readouterr().out
    run_command(shell, Meta(f"{looked} EXPLAIN {COUNT};", InputPlace()))
    assert wanted in capsys.readouterr().out
    assert shell.connection.budget["patient"].spent.epsilon == 0


def test_a_mistake_in_what_is_looked_at_is_shown_where_it_stands(two: tuple[Shell, dpsql.Connection]) -> None:
    shell = two[0]
    for text in ("EXPLAIN SELECT nmae FROM patients", "SELECT nmae FROM patients"):
        with pytest.raises(dpsql.Rejected):
            run_statement(shell, text, InputPlace("<stdin>", 3))
        for looked in ("\\cost", f"\\cost {text}"):
            with pytest.raises(dpsql.Rejected) as refusal:
                run_command(shell, Meta(looked, InputPlace()))
            found = refusal.value.diagnostics[0]
            assert found.source is not None and found.span is not None
            assert found.source.text[found.span.start : found.span.end] == "nmae"
            assert found.source.text.endswith(text)


def test_nothing_is_charged_before_somebody_agreed(two: tuple[Shell, dpsql.Connection]) -> None:
    shell = two[0]
    shell.set_amount("epsilon", "50")

    def interrupted(question: str) -> bool:
        raise KeyboardInterrupt

    shell.confirm = interrupted
    with pytest.raises(Cancelled, match=r"^cancelled; nothing was charged$"):
        run_statement(shell, COUNT, InputPlace())
    assert shell.connection.budget["patient"].spent.epsilon == 0


@pytest.mark.parametrize(("typed", "agreed", "written"), [("y\n", True, ""), ("no\n", False, ""), ("", False, "\n")])
def test_the_line_of_a_question_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, agreed: bool, written: str
) -> None:
    """A terminal shows the Enter that was pressed; Ctrl-D it does not."""
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert confirmed("Run it?") is agreed
    assert capsys.readouterr().out == f"Run it? [y/N] {written}"


@pytest.mark.parametrize(
    ("price", "left", "words"),
    [
        (PrivacyLoss(Fraction("0.1")), PrivacyLoss(Fraction("0.499")), "ε 0.49"),
        (PrivacyLoss(Fraction("0.499")), PrivacyLoss(Fraction("0.499")), "ε 0.499"),
        (PrivacyLoss(Fraction(1, 3)), PrivacyLoss(Fraction(1, 3)), "ε 0.333334"),
        (PrivacyLoss(rho=Fraction("1e-7")), PrivacyLoss(rho=Fraction("2e-7")), "ρ 0.0000002"),
        (PrivacyLoss(Fraction("1e-9"), Fraction("1e-8")), PrivacyLoss(Fraction(1), Fraction("1e-8")), "ε 1.00 δ 1e-8"),
    ],
)
def test_what_is_left_never_looks_less_than_a_price_that_fits(
    price: PrivacyLoss, left: PrivacyLoss, words: str
) -> None:
    assert left_words(price, left) == words
