"""Terminals without colour or cursor, a terminal that goes away, readers that leave, limits that are reached."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dpsql.faces.cli.shell import start as app
from tests.support.terminal import Terminal

pytestmark = pytest.mark.processes
COUNT = "SELECT COUNT(*) AS n FROM people;"


def colours(text: str) -> set[str]:
    """The codes that choose a colour of letters or ground."""
    codes = {part for found in re.findall(r"\x1b\[([\d;]*)m", text) for part in found.split(";")}
    return {code for code in codes if re.fullmatch(r"[349][0-8]|10[0-7]", code)}


def test_no_color_and_colours(folder: Path) -> None:
    with (
        Terminal(["shop.yaml", "-X"], folder, {"NO_COLOR": "1"}) as plain,
        Terminal(["shop.yaml", "-X"], folder) as shell,
    ):
        for terminal in (plain, shell):
            terminal.wait_for_prompt()
            terminal.type("SELECT nonsense FROM people;\r")
            terminal.wait("DP103")
        plain.wait_for_prompt()
        shell.wait_for_prompt()
        assert not colours(plain.raw) and colours(shell.raw)
        assert plain.leave() == shell.leave() == 0


def test_a_dumb_terminal(folder: Path) -> None:
    """No codes but those for a line's end: the prompt works, line by line."""
    with Terminal(["shop.yaml", "-X"], folder, {"TERM": "dumb"}) as shell:
        shell.wait("=>")
        shell.type("SELECT code FROM codes WHERE rank = 3;\r")
        shell.wait("(1 row)")
        assert not colours(shell.raw)
        shell.type("\\q\r")
        assert shell.ended() == 0


def test_the_terminal_goes_away(folder: Path) -> None:
    """Closing the window ends the shell, and what was typed is kept."""
    with Terminal(["shop.yaml"], folder) as shell:
        shell.wait_for_prompt()
        shell.ask("SELECT code FROM codes WHERE rank = 4;")
        shell.child.kill(signal.SIGHUP)
        assert shell.ended() in (130, -signal.SIGHUP)
        assert "Traceback" not in shell.raw
    kept = [p for p in (folder / "home").rglob("*") if p.is_file() and "rank = 4" in p.read_text(errors="replace")]
    assert [oct(p.stat().st_mode & 0o777) for p in kept] == ["0o600"]


class HungUpAtItsEnd:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGHUP)


def test_a_terminal_that_goes_away_unheard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python drops what is raised while an object is destroyed, as the event loop between two prompts."""
    lost: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: lost.append(unraisable.exc_type))
    monkeypatch.setattr(app, "SECONDS_TO_LEAVE", 0.3)
    before = signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGALRM)
    with pytest.raises(SystemExit), app._HangUp():
        HungUpAtItsEnd()
        signal.pause()
    assert lost == [SystemExit]
    assert (signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGALRM)) == before


def test_the_reader_goes_away(folder: Path) -> None:
    """As in `… | head`: no traceback."""
    shell = subprocess.Popen(
        [sys.executable, "-m", "dpsql", "shell", "shop.yaml", "-X", "-f", "-"], cwd=folder, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip
    assert shell.stdout is not None and shell.stdin is not None and shell.stderr is not None
    shell.stdout.close()
    with contextlib.suppress(BrokenPipeError):  # it may have ended by then
        shell.stdin.write("SELECT code FROM codes;\n" * 50)
        shell.stdin.close()
    said = shell.stderr.read()
    shell.stderr.close()
    assert shell.wait(300) != 0 and "Traceback" not in said


def test_ctrl_c_away_from_a_terminal(folder: Path) -> None:
    """130, and no prompt to come back to."""
    shell = subprocess.Popen(
        [sys.executable, "-m", "dpsql", "shell", "shop.yaml", "-X", "-f", "-"], cwd=folder, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip
    assert shell.stdout is not None and shell.stdin is not None
    shell.stdin.write("\\echo ready\n")
    shell.stdin.flush()
    assert shell.stdout.readline() == "ready\n"  # it reads the next line now, or is about to
    for _ in range(5):  # Python itself may lose one, in the callback of a weak reference
        shell.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            shell.wait(60)
    _, said = shell.communicate(timeout=600)
    assert shell.returncode == 130 and "Traceback" not in said


def test_json(folder: Path) -> None:
    """One document a query, and nothing else."""
    done = subprocess.run(
        [sys.executable, "-m", "dpsql", "shell", "shop.yaml", "-X", "--json", "-c", "SELECT code, rank FROM codes"],
        cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=300,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["columns"] == ["code", "rank"] and ["b", None] in found["rows"]
    assert found["spent"]["epsilon"] == 0


def test_a_budget_that_ends_at_the_prompt(folder: Path) -> None:
    """What costs much of what is left is asked about; what does not fit is refused, and the shell goes on."""
    with Terminal(["shop.yaml", "-X", "--analyst", "poor", "--epsilon", "0.6"], folder) as shell:
        shell.wait_for_prompt()
        shell.type(COUNT + "\r")
        shell.wait("[y/N]")
        shell.type("y\r")
        shell.wait("spent ε 0.6, left ε 0.4")
        shell.wait_for_prompt()
        shell.type("SELECT COUNT(*) AS m FROM people WHERE age > 30;\r")
        shell.wait("DP404")
        shell.wait_for_prompt()
        assert "shop[ε 0.4/1]=>" in shell.screen.replace("0.40", "0.4").replace("1.00", "1")
        shell.ask("\\epsilon 0.1")
        shell.type("SELECT code FROM codes WHERE rank = 3;\r")
        shell.wait("spent nothing")
        assert shell.leave() == 0
