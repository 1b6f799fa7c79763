"""The twins of test_p_shell.py: shells broken on purpose, in which its checks find what they look for.

The shell's own loop in this process, as it reads on a terminal that can do nothing; first as it is, then broken.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpsql
from dpsql.answers.results.answer import Release
from dpsql.core.ledger.sqlite import SqliteLedger
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.faces.cli.shell.commands import all_commands as meta
from dpsql.faces.cli.shell.commands import refused_commands as refused
from dpsql.faces.cli.shell.commands import run_statement as statements
from dpsql.faces.cli.shell.commands.all_commands import Command
from dpsql.faces.cli.shell.input import history
from dpsql.faces.cli.shell.input import run_input as reading
from dpsql.faces.cli.shell.input.history import History
from dpsql.faces.cli.shell.input.loop import run_prompt
from dpsql.faces.cli.shell.state import Shell
from tests.deep.faces.cli.shell.test_shell_attacks import (
    check_history,
    check_host,
    check_no_clock,
    check_nothing_given_back,
    check_planted,
    make_home,
)


class Inside:
    """A shell in this process; what it writes reaches nothing that watches the tests, for some of it is planted."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.raw = ""

    @property
    def screen(self) -> str:
        return self.raw

    def ask(self, text: str) -> str:
        """Hand an input over; what is written, prompts apart."""
        written = io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TERM", "dumb")
            for name, stream in (("stdin", io.StringIO(f"{text}\n")), ("stdout", written), ("stderr", written)):
                patch.setattr(sys, name, stream)
            assert run_prompt(self.shell) == 0
        self.raw += written.getvalue()
        return re.sub(r"^clinic\S*\[[^]]*\]=> ", "", written.getvalue(), flags=re.MULTILINE)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_home(tmp_path_factory.mktemp("twins"))


@pytest.fixture(scope="module")
def connection(home: Path) -> Iterator[dpsql.Connection]:
    with dpsql.connect(home / "clinic.yaml", epsilon=1, delta=1e-9) as con:
        yield con


@pytest.fixture
def shell(connection: dpsql.Connection, home: Path) -> Inside:
    kept = home / "history"
    kept.unlink(missing_ok=True)
    return Inside(Shell(connection, prompting=True, quiet=True, history=History(kept)))


def found_in(check: Callable[[], None]) -> bool:
    """Whether a check fails."""
    try:
        check()
    except AssertionError:
        return True
    return False


def with_command(patch: pytest.MonkeyPatch, name: str, run: Callable[[Shell, list[str]], None]) -> None:
    patch.setitem(meta.COMMANDS, name, Command((name,), "", "", run, 1, True))


def test_item_24_a_clock_in_the_shell_is_found(shell: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    check_no_clock(shell)
    shown = statements.show

    def show(to: Shell, release: Release) -> None:
        shown(to, release)
        to.output.line("Time: 1.234 ms")

    with monkeypatch.context() as patch:
        patch.setattr(statements, "show", show)
        assert found_in(lambda: check_no_clock(shell))
    with_command(monkeypatch, "\\timing", lambda to, arguments: to.output.line("Timing is on."))
    assert found_in(lambda: check_no_clock(shell))


def test_item_31_programs_and_copies_of_rows_are_found(
    shell: Inside, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_host(shell, home)

    def starting(to: Shell, arguments: list[str]) -> None:
        to.output.line("uid=0(root) gid=0(root)")
        refused.program(to, arguments)

    def copying(to: Shell, arguments: list[str]) -> None:
        (home / "x").touch()
        refused.copy(to, arguments)

    for name, run in (("\\!", starting), ("\\copy", copying)):
        with monkeypatch.context() as patch:
            with_command(patch, name, run)
            assert found_in(lambda: check_host(shell, home)), name


def test_item_63_a_charge_that_is_given_back_is_found(
    shell: Inside, connection: dpsql.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C comes while the engine works."""

    def pressed(sql: str) -> Any:
        raise KeyboardInterrupt

    def stopped(query: str) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(connection.service.engine, "fetch", pressed)
            shell.ask(query)
        shell.ask("")

    shell.shell.fresh = True
    check_nothing_given_back(shell, stopped)
    assert shell.raw.count("was charged before the engine started") == 3
    spent, refunds = SqliteLedger.spent, []

    def refunded(ledger: SqliteLedger, unit: str, analyst: str | None = None) -> PrivacyLoss:
        now = spent(ledger, unit, analyst)
        return PrivacyLoss(max(Fraction(0), now.epsilon - sum(refunds, Fraction(0))), now.delta, now.rho)

    def given_back(query: str) -> None:
        stopped(query)
        refunds.append(Fraction(1))
        shell.ask("")

    monkeypatch.setattr(SqliteLedger, "spent", refunded)
    assert found_in(lambda: check_nothing_given_back(shell, given_back))


def test_item_69_an_answer_in_the_history_is_found(shell: Inside, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_history(shell, home / "history")
    shown, opened = statements.show, history._opened

    def show(to: Shell, release: Release) -> None:
        shown(to, release)
        assert to.history is not None
        to.history.add(f"{release.rows}")

    def opened_to_all(path: Path, flags: int = 0) -> Any:
        file = opened(path, flags)
        path.chmod(0o644)
        return file

    for place, name, broken in ((statements, "show", show), (history, "_opened", opened_to_all)):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, broken)
            assert found_in(lambda: check_history(shell, home / "history")), name
            shell.shell.history = History(home / "history")


def test_item_69_planted_values_on_a_screen_or_in_a_file_are_found(
    shell: Inside, home: Path, connection: dpsql.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal that quotes a row; and one that keeps it."""
    check_planted(shell, home)
    complain = reading.exits.complain
    kept = home / "log"

    def rows() -> str:
        table = connection.service.engine.table_sql("patients")
        return str(connection.service.engine.fetch(f"SELECT name, zip FROM {table}").columns)

    def quoting(diagnostics: Any) -> None:
        complain(diagnostics)
        print(rows())

    def keeping(diagnostics: Any) -> None:
        complain(diagnostics)
        kept.write_text(rows())

    try:
        for broken in (keeping, quoting):
            with monkeypatch.context() as patch:
                patch.setattr(reading.exits, "complain", broken)
                assert found_in(lambda: check_planted(shell, home)), broken
            kept.unlink(missing_ok=True)
    finally:
        kept.unlink(missing_ok=True)
