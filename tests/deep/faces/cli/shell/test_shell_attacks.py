"""What a shell opens beyond single queries: history, screens, files, programs, clocks, other people's text.

The real program in a pseudo-terminal over the checklist's database; one shell for most tests. What is looked for in a
function `check_…` is found in test_p_shell_twins.py, by the same function, in shells that are broken on purpose.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import duckdb
import pytest

from tests.support.checklist_clinic import CANARY, MARKER, POLICY, PRIVATE_ROWS, PUBLIC_ROWS, SCHEMA, Call
from tests.support.terminal import Terminal

pytestmark = pytest.mark.processes

EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b5n\u202e"
"""Codes that would name the window, clear the screen, colour, ask the terminal to type, and turn text around."""


class Asked(Protocol):
    """A shell that can be asked. screen: what can be seen now. raw: all that it ever wrote."""

    @property
    def screen(self) -> str: ...

    @property
    def raw(self) -> str: ...

    def ask(self, text: str) -> str:
        """Hand an input over; what is written until the next prompt."""
        ...


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clinic whose public table holds hostile text."""
    return make_home(tmp_path_factory.mktemp("p"))


def make_home(folder: Path) -> Path:
    """The policy and the data of that clinic in a folder."""
    (folder / "clinic.yaml").write_text(POLICY)
    with duckdb.connect(str(folder / "d.duckdb")) as con:
        for statement in (*SCHEMA, *PUBLIC_ROWS, *PRIVATE_ROWS):
            con.execute(statement)
        con.execute("INSERT INTO grid VALUES (?, 60, ?)", [EVIL, EVIL])
    return folder


@pytest.fixture(scope="module")
def running(home: Path) -> Iterator[Terminal]:
    """A shell without colours, so that every escape code on it is the line editor's."""
    editor = home / "editor.sh"
    editor.write_text('#!/bin/sh\nls -ld "$(dirname "$1")" "$1" >> seen.txt\n')
    editor.chmod(0o755)
    environment = {"NO_COLOR": "1", "EDITOR": "./editor.sh", "TMPDIR": str(home)}
    with Terminal(["clinic.yaml", "--epsilon", "1", "--delta", "1e-9"], home, environment, lines=50) as terminal:
        terminal.wait_for_prompt()
        yield terminal
        assert terminal.leave() == 0
        assert "Traceback" not in terminal.raw and "DP904" not in terminal.raw


@pytest.fixture
def shell(running: Terminal) -> Terminal:
    """That shell, its looks as at the start."""
    running.ask("\\pset format table \\x off \\pset pager off \\o")
    return running


def test_item_24_no_clock_in_the_shell(shell: Terminal) -> None:
    check_no_clock(shell)


def check_no_clock(shell: Asked) -> None:
    """Neither \\timing nor EXPLAIN ANALYZE nor a bar; an answer says nothing of how long it took."""
    for command in ("\\timing", "\\timing on", "\\timing 1"):
        assert "error[DP906]" in shell.ask(command)
    assert "error[DP906]" in shell.ask("EXPLAIN ANALYZE SELECT COUNT(*) AS n FROM patients;")
    answer = shell.ask("SELECT COUNT(*) AS n FROM patients WHERE age > 1;")
    assert not re.search(r"\d ?(ms|s|sec|seconds)\b", answer) and "%|" not in answer
    assert "no option" in shell.ask("\\pset timing on")


def test_item_25_errors_are_the_same_bytes_for_values_that_exist_and_that_do_not(shell: Terminal) -> None:
    for template in (
        "SELECT name FROM patients WHERE name = '{}';",
        "SELECT SUM(CASE WHEN name = '{}' THEN big ELSE 1 END) AS s FROM patients;",
        "SELECT COUNT(*) FROM patients WHERE name = '{}' AND CAST(zip AS JSON) IS NULL;",
        "\\explain SELECT COUNT(*) AS n FROM patients WHERE name = '{}'",
        "\\cost SELECT COUNT(*) AS n FROM patients WHERE name = '{}'",
    ):
        assert shell.ask(template.format("bob")) == shell.ask(template.format("eve")).replace("eve", "bob")


def test_item_33_only_the_policy_is_described(shell: Terminal) -> None:
    declared = "3 rows"  # the policy's max_rows_per_unit
    for command in ("\\d", "\\d+", "\\dt+", "\\d patients", "\\d+ patients", "\\l+", "\\conninfo"):
        told = shell.ask(command).replace(declared, "")
        assert not re.search(r"rows? *\||[0-9]+ (kB|MB|rows)|estimated", told), command
    assert "error[DP102]" in shell.ask("\\d duckdb_tables")


def test_item_37_a_variable_is_checked_as_if_it_had_been_typed(shell: Terminal) -> None:
    shell.ask("\\set v 'x'' OR ''1''=''1'")
    quoted = shell.ask("\\cost SELECT COUNT(*) AS n FROM patients WHERE name = :'v'")
    assert "would cost" in quoted and "would cost" in shell.ask("\\explain SELECT 1") + quoted
    for value, code in (
        ("1; SELECT name FROM patients", "DP011"),
        ("1 FROM patients UNION ALL SELECT name FROM patients --", "DP1"),
        ("(SELECT name FROM patients LIMIT 1)", "DP1"),
        ("read_text(''/etc/passwd'')", "DP1"),
    ):
        shell.ask(f"\\set v '{value}'")
        assert f"error[{code}" in shell.ask("SELECT :v;"), value


def test_item_31_files_and_programs_of_the_host_stay_out_of_reach(shell: Terminal, home: Path) -> None:
    check_host(shell, home)


def check_host(shell: Asked, home: Path) -> None:
    """No program runs, and no row goes to a file."""
    for command in ("\\! cat /etc/passwd", "\\!id", "\\o |id", "\\o | id", "\\copy patients to x", "\\echo `id`"):
        shown = shell.ask(command)
        assert "error[DP906]" in shown or "error[DP903]" in shown
        assert "root:" not in shown and "uid=" not in shown
    assert not (home / "x").exists()


@pytest.mark.parametrize("kind", ["folder", "missing", "binary", "large", "latin"])
def test_item_31_odd_files_are_refused_in_words(shell: Terminal, home: Path, kind: str) -> None:
    path = home / f"odd-{kind}"
    match kind:
        case "folder":
            path.mkdir()
        case "binary":
            path.write_bytes(b"SELECT 1\x00;\x1b[2J")
        case "large":
            with path.open("wb") as file:
                file.truncate(20_000_000)
        case "latin":
            path.write_bytes("SELECT 'größe';".encode("latin-1"))
    assert "error[DP903]" in shell.ask(f"\\i {path.name}")
    assert re.search(r"error\[DP90[36]\]", shell.ask("\\i d.duckdb")) and CANARY not in shell.raw


def test_item_65_answers_overwrite_neither_policy_nor_ledger_nor_data(shell: Terminal, home: Path) -> None:
    shell.ask("SELECT COUNT(*) AS n FROM patients;")
    (home / "link").unlink(missing_ok=True)
    (home / "link").symlink_to("spent.sqlite")
    (home / "dangling").symlink_to("made-by-the-shell")
    before = {name: (home / name).read_bytes() for name in ("clinic.yaml", "spent.sqlite", "spent.head", "d.duckdb")}
    for name in (*before, "link", str(home / "spent.sqlite"), "./spent.sqlite"):
        for command in ("\\o", "\\history"):
            assert "error[DP903]" in shell.ask(f"{command} {name}"), name
    assert {name: (home / name).read_bytes() for name in before} == before


def test_item_69_history_is_for_its_owner_and_never_holds_an_answer(shell: Terminal, home: Path) -> None:
    check_history(shell, home / "home/.local/state/dpsql/history")


def check_history(shell: Asked, kept: Path) -> None:
    """What is kept can be read by nobody else, and no number of an answer is in it."""
    answer = shell.ask("SELECT COUNT(*) + 2500000 + 2500000 AS n FROM patients;")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600 and stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    shown = re.findall(r"\d[\d,]{8,}", answer)
    numbers = [*shown, *(number.replace(",", "") for number in shown)]
    assert numbers and not any(number in kept.read_text() for number in numbers)


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_item_69_what_stands_in_the_history_s_place_is_left_alone(home: Path, kind: str, tmp_path: Path) -> None:
    """Another's file behind a link is neither written nor read; a pipe does not make the shell wait."""
    place, victim = tmp_path / "history", tmp_path / "victim"
    victim.write_text('"SELECT planted"\n')
    victim.chmod(0o644)
    match kind:
        case "link":
            place.symlink_to(victim)
        case "fifo":
            os.mkfifo(place)
        case "folder":
            place.mkdir()
    with Terminal(["clinic.yaml"], home, {"DPSQL_HISTORY": str(place)}) as terminal:
        terminal.wait_for_prompt()
        assert "history file cannot be used" in terminal.screen
        terminal.ask("\\echo something")
        assert "planted" not in terminal.ask("\\history")
        assert terminal.leave() == 0
    assert victim.read_text() == '"SELECT planted"\n' and stat.S_IMODE(victim.stat().st_mode) == 0o644


def test_item_69_the_editor_s_file_is_private_and_gone(shell: Terminal, home: Path) -> None:
    shell.ask("SELECT COUNT(*) AS n FROM patients;")
    shell.type("\\e\r")
    shell.wait(lambda: shell.screen.endswith("=> SELECT COUNT(*) AS n FROM patients;"))
    shell.interrupt()
    folder, file = (home / "seen.txt").read_text().splitlines()[-2:]
    assert folder.startswith("drwx------") and file.startswith("-rw-------")
    assert not Path(file.split()[-1]).exists() and not Path(folder.split()[-1]).exists()
    assert not [p for p in home.iterdir() if p.name.startswith("dpsql-edit-")]


def test_item_69_planted_values_are_on_no_screen_and_in_no_file(shell: Terminal, home: Path) -> None:
    check_planted(shell, home)


def check_planted(shell: Asked, home: Path) -> None:
    """Neither queries that are refused nor those that are not show one."""
    for text in (
        "SELECT name FROM patients;",
        "SELECT zip, COUNT(*) AS n FROM patients GROUP BY zip;",
        "SELECT kind, COUNT(*) AS n FROM events GROUP BY kind;",
        "SELECT SUM(big) AS s FROM patients;",
        "SELECT AVG(income) AS a, SUM(CLIP(big, 0, 10)) AS s FROM patients;",
        "\\explain SELECT AVG(income) AS a FROM patients",
        "\\d patients",
        "\\policy",
        "\\budget history",
        "\\history",
    ):
        shell.ask(text)
    assert CANARY not in shell.raw and MARKER not in shell.raw
    for path in home.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.name != "d.duckdb" and path.stat().st_size < 10_000_000:
            found = path.read_bytes()
            assert CANARY.encode() not in found and MARKER.encode() not in found, path


@pytest.mark.parametrize(
    "format", ["table", "box", "vertical", "unaligned", "csv", "json", "jsonl", "markdown", "html"]
)
def test_item_69_codes_in_data_never_reach_the_terminal(shell: Terminal, format: str) -> None:
    shell.ask(f"\\pset format {format}")
    shown = raw(shell, "SELECT diag, label FROM grid WHERE age = 60;")
    assert "owned" in shown and not hostile(shown)


def test_item_69_codes_in_names_and_literals_never_reach_the_terminal(shell: Terminal, home: Path) -> None:
    (home / "evil.sql").write_text(f"\\echo {EVIL}\n\\set v '{EVIL}'\n\\set\nSELECT '{EVIL}' AS \"{EVIL}\" FROM pub;\n"
                                   f"SELECT COUNT(*) AS n FROM patients WHERE nmae = '{EVIL}';\n\\nosuch{EVIL}\n"
                                   f"\\pset null {EVIL}\n\\pset\n\\pset null x\n\\i {EVIL}\n\\d {EVIL}\n")  # fmt: skip
    for text in ("\\i evil.sql", "\\d", "\\policy", "\\p", "\\history"):
        shown = raw(shell, text)
        assert not hostile(shown), text
    shell.ask("\\unset v")


def test_item_69_codes_in_the_names_of_a_policy_are_refused_and_not_shown(home: Path) -> None:
    (home / "evil.yaml").write_text(
        POLICY.replace(
            "  grid:", '  "odd\\e[31mname":\n    public: true\n    columns: {"c\\e]0;owned\\a": {}}\n  grid:'
        )
    )
    with Terminal(["evil.yaml"], home, {"NO_COLOR": "1"}) as terminal:
        assert terminal.ended() == 2
        assert "error[DP003]" in terminal.raw and "owned" in terminal.raw and not hostile(terminal.raw)


def raw(shell: Terminal, text: str) -> str:
    """All that the program wrote since an input was handed over."""
    before = len(shell.raw)
    shell.ask(text)
    written = shell.raw[before:]
    return written[written.find("\x1b[?2004l") : written.rfind("\x1b[?2004h")]


def hostile(written: str) -> bool:
    """Whether a code of EVIL is in it."""
    return any(code in written for code in ("\x1b]", "\x1b[2J", "\x1b[31m", "\x9b", "\u202e", "\x07"))


def test_item_69_a_name_of_an_analyst_is_shown_without_its_codes(home: Path) -> None:
    with Terminal(["clinic.yaml", "--analyst", f"a{EVIL}", "--no-history"], home, {"NO_COLOR": "1"}) as terminal:
        terminal.wait_for_prompt()
        terminal.ask("\\conninfo")
        terminal.ask("\\budget")
        assert "owned" in terminal.raw and not hostile(terminal.raw)
        assert terminal.leave() == 0


def test_item_60_the_footer_counts_released_rows_only(shell: Terminal) -> None:
    """As many rows as the domain has values, whatever the data hold."""
    for condition in ("true", "age > 1000", "name = 'bob'"):
        assert "(4 rows)" in shell.ask(f"SELECT diag, COUNT(*) AS n FROM patients WHERE {condition} GROUP BY diag;")


def test_item_47_asking_again_is_free_and_the_same_and_fresh_noise_costs(shell: Terminal) -> None:
    query = "SELECT COUNT(*) AS n FROM patients WHERE age < 77;"
    first, again = shell.ask(query), shell.ask(query)
    assert "spent ε 1" in first and "spent nothing" in again
    assert first.splitlines()[:3] == again.splitlines()[:3]
    shell.ask("\\fresh on")
    assert "spent ε 1" in shell.ask(query)
    shell.ask("\\fresh off")


def test_item_36_a_configuration_beside_the_policy_is_not_read(home: Path) -> None:
    """A hostile folder changes nothing: settings are read from the user's own folder only."""
    (home / "config.toml").write_text('[shell]\nanalyst = "eve"\n')
    (home / "dpsql").mkdir(exist_ok=True)
    (home / "dpsql" / "config.toml").write_text('[shell]\nanalyst = "eve"\n')
    (home / "dpsql.toml").write_text('[shell]\nanalyst = "eve"\n')
    with Terminal(["clinic.yaml", "--no-history"], home, {"XDG_CONFIG_HOME": "."}) as terminal:
        terminal.wait_for_prompt()
        assert "no analyst named" in terminal.screen and "eve" not in terminal.ask("\\conninfo")
        assert terminal.leave() == 0


def test_item_63_ctrl_c_gives_nothing_back(shell: Terminal) -> None:
    """Pressed while it may be charged."""

    def stopped(query: str) -> None:
        shell.type(f"{query}\r\x03")
        shell.wait_for_prompt()
        shell.interrupt()

    check_nothing_given_back(shell, stopped)


def check_nothing_given_back(shell: Asked, stopped: Callable[[str], object]) -> None:
    """What the prompt shows never goes up, and stays down where the shell says that something was charged."""
    for number in range(3):
        shell.ask(f"SELECT COUNT(*) AS n FROM patients WHERE age > {30 + number};")
        before, written = left(shell), len(shell.raw)
        stopped(f"SELECT COUNT(*) AS n FROM patients WHERE age > {40 + number};")
        charged = re.search("spent ε|was charged before", shell.raw[written:])
        assert left(shell) < before if charged else left(shell) <= before


def left(shell: Asked) -> float:
    """What the last prompt says is left."""
    return float(re.findall(r"clinic\[ε ([\d.]+)/", shell.screen)[-1])


def test_item_25_exit_codes_and_words_do_not_depend_on_rows(home: Path, dpsql_command: object, tmp_path: Path) -> None:
    """`-c` against values that exist and that do not."""
    for sql in ("SELECT name FROM patients WHERE name = '{}'", "SELECT SUM(big) FROM patients WHERE name = '{}'"):
        calls: list[Call] = [
            dpsql_command("shell", home / "clinic.yaml", "-c", sql.format(who))  # type: ignore[operator]
            for who in ("bob", "eve")
        ]
        assert calls[0].status == calls[1].status == 4
        assert calls[0].err == calls[1].err.replace("eve", "bob") and calls[0].out == calls[1].out == ""
