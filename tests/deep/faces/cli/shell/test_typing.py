"""What fingers do at the prompt: lines, keys, history, completion, editor, pager, window."""

from __future__ import annotations

import re
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.deep.faces.cli.shell.conftest import clear, enter, pattern, prompts
from tests.support.terminal import Terminal, plain

pytestmark = pytest.mark.processes

SLOW = """\
  slow:
    unit: {column: person_id}
    primary_key: [person_id]
    columns:
      person_id: {type: bigint}
      age: {type: integer, bounds: [0, 100]}
"""
UP, DOWN, ALT_ENTER, CTRL_C, CTRL_D, CTRL_R, TAB = "\x1b[A", "\x1b[B", "\x1b\r", "\x03", "\x04", "\x12", "\t"


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[Terminal]:
    """A shell whose editor and pager are programs of the test."""
    editor, pager = folder / "editor.sh", folder / "pager.sh"
    editor.write_text(
        '#!/bin/sh\nstat -c \'%a %n\' "$1" >> edited.txt\ncat "$1" >> edited.txt\n[ -e fail ] && exit 3\n'
        "sed -i \"s/ WHERE/\\nWHERE/; s/'a'/'d'/\" \"$1\"\n"
    )
    pager.write_text("#!/bin/sh\ncat > paged.txt\necho PAGED\n")
    for script in (editor, pager):
        script.chmod(0o755)
    with duckdb.connect(str(folder / "shop.duckdb")) as con:  # minutes, unless somebody presses Ctrl-C
        con.execute("CREATE VIEW slow AS SELECT a.person_id, a.age FROM people a, people b, people c, people d")
    policy = folder / "shop.yaml"
    policy.write_text(policy.read_text().replace("defaults:", SLOW + "defaults:"))
    environment = {"EDITOR": "./editor.sh", "PAGER": "./pager.sh"}
    with Terminal(["shop.yaml", "--analyst", "ana"], folder, environment, lines=60) as terminal:
        terminal.wait_for_prompt()
        yield terminal
        assert "Traceback" not in terminal.raw
        assert terminal.leave() == 0


@pytest.fixture
def shell(running: Terminal) -> Terminal:
    """An empty prompt on an empty screen."""
    running.resize(100, 60)
    clear(running)
    enter(running, "\\r \\pset format table \\x auto \\epsilon 0.05 \\pset pager on")
    clear(running)
    return running


@pytest.mark.parametrize(
    "lines, answer",
    [
        (["SELECT 'a;b' AS x", "FROM codes WHERE code = 'a';"], "a;b"),
        (["SELECT 'two", "lines; in a text' AS x FROM codes WHERE code = 'a';"], "two lines; in a text"),
        (["SELECT code -- a comment; with a semicolon", "FROM codes WHERE code = 'b';"], " b"),
        (["SELECT code /* one;", "two; */ FROM codes WHERE code = 'c';"], " c"),
        (["SELECT $$it's;", "$$ AS x FROM codes WHERE code = 'a'", ";"], " it's;\n"),
        (['SELECT code AS "a;', "b\" FROM codes WHERE code = 'a';"], " a"),
        (["SELECT", "", "code", "FROM codes", "WHERE code = 'a'", "\\g"], " a"),
    ],
    ids=["string", "string over lines", "comment", "block comment", "dollar quotes", "name", "go"],
)
def test_enter_runs_a_statement_at_its_real_end(shell: Terminal, lines: list[str], answer: str) -> None:
    for number, line in enumerate(lines[:-1], 1):
        shell.type(line + "\r")
        shell.wait(lambda n=number: len(re.findall(r"shop[-'\"$*]>", shell.screen)) == n)  # type: ignore[misc]
    enter(shell, lines[-1])
    assert answer in shell.screen and "(1 row)" in shell.screen


def test_what_is_typed_ahead_is_not_lost(shell: Terminal) -> None:
    enter(shell, "\\echo one\n\\echo two\nSELECT code FROM codes WHERE code = 'a';\n\\echo three", more=4)
    assert re.search(r"\none\n.*\ntwo\n(.*\n)*.* a\n(.*\n)+three\n", shell.screen)


def test_two_statements_in_a_line_give_two_answers(shell: Terminal) -> None:
    enter(shell, "SELECT 1 AS one FROM codes WHERE code = 'a'; SELECT 2 AS two FROM codes WHERE code = 'a'; \\echo end")
    assert shell.screen.count("(1 row)") == 2 and shell.screen.index("one\n") < shell.screen.index("two\n")
    assert "\nend\n" in shell.screen


def test_a_paste_of_several_lines_is_one_input(shell: Terminal) -> None:
    shell.type("\x1b[200~SELECT code\nFROM codes\nWHERE code = 'e'\x1b[201~")
    shell.wait("WHERE code = 'e'")
    assert "row" not in shell.screen
    enter(shell, ";")
    assert re.search(r"^ e$", shell.screen, re.MULTILINE)


def test_alt_enter_begins_a_line(shell: Terminal) -> None:
    shell.type("\\explain SELECT COUNT(*) AS n" + ALT_ENTER)
    shell.wait("shop->")
    enter(shell, "FROM people;")
    assert "stability person=1" in shell.screen and "cost: ε 0.05" in shell.screen


def test_the_continuation_prompt_shows_what_is_open(shell: Terminal) -> None:
    """As psql's: a parenthesis, a text, a name, a comment; and after a lone semicolon the first prompt again."""
    for line, sign in (("SELECT (1", "("), ("+ 2), '", "'"), ("', \"", '"'), ('x", /*', "*"), ("*/ 3", "-")):
        shell.type(f"{line}\r")
        shell.wait(f"{line}\n{'shop' + sign:>{len('shop[ε 500.00/500.00]=')}}>")
    shell.type(CTRL_C)
    shell.wait(lambda: prompts(shell) == 2 and shell.at_prompt)
    enter(shell, "/* nothing */\n-- at all", more=2)
    shell.type("/* nothing\r")
    shell.wait("shop*>")
    enter(shell, "*/ ;")
    assert "error" not in shell.screen


def test_ctrl_c_forgets_a_statement_of_several_lines(shell: Terminal) -> None:
    shell.type("SELECT town\r")
    shell.wait("shop->")
    shell.type("FROM people")
    shell.wait("-> FROM people")
    shell.type(CTRL_C)
    shell.wait(lambda: prompts(shell) == 2 and shell.at_prompt)
    enter(shell, "SELECT code FROM codes WHERE code = 'a';")
    assert "error" not in shell.screen and "(1 row)" in shell.screen


def test_ctrl_c_at_an_empty_prompt_keeps_the_shell(shell: Terminal) -> None:
    shell.type(CTRL_C)
    shell.wait(lambda: prompts(shell) == 2 and shell.at_prompt)
    enter(shell, "\\echo here")
    assert "\nhere\n" in shell.screen


def charges(folder: Path) -> int:
    ledger = folder / "shop.ledger.sqlite"
    if not ledger.exists():
        return 0
    with sqlite3.connect(f"file:{ledger}?mode=ro", uri=True) as con:
        return int(con.execute("SELECT COUNT(*) FROM entries").fetchone()[0])


def test_ctrl_c_during_a_query_cancels_it_and_says_what_it_cost(shell: Terminal, folder: Path) -> None:
    enter(shell, "SELECT COUNT(*) AS n FROM people WHERE age > 88;")  # so that there is a ledger
    before = charges(folder)
    shell.type("SELECT SUM(age) AS s FROM slow;\r")
    shell.wait(lambda: charges(folder) > before)
    shell.type(CTRL_C)
    shell.wait(lambda: prompts(shell) == 3 and shell.at_prompt)
    assert "cancelled; ε 0.05 was charged before the engine started, and is not given back" in shell.screen
    enter(shell, "\\echo here")
    assert "\nhere\n" in shell.screen


def test_ctrl_d_behind_text_does_not_leave(shell: Terminal) -> None:
    shell.type("\\echo stays" + CTRL_D)
    enter(shell, "")
    assert "\nstays\n" in shell.screen


def test_ctrl_r_finds_what_was_typed_before(shell: Terminal) -> None:
    enter(shell, "\\echo needle in the history")
    enter(shell, "\\echo something else")
    shell.type(CTRL_R + "needle")
    shell.wait("needle in the history\nshop")
    shell.wait(lambda: shell.screen.count("needle in the history") >= 3)
    shell.type("\r")
    shell.wait("\\echo needle in the history")
    if not shell.at_prompt:
        enter(shell, "")
    assert shell.screen.count("\nneedle in the history\n") == 2


def test_up_brings_back_an_input_of_several_lines_whole(shell: Terminal) -> None:
    shell.type("SELECT code\r")
    shell.wait("shop->")
    enter(shell, "FROM codes WHERE code = 'a';")
    shell.type(UP)
    shell.wait(lambda: shell.screen.count("FROM codes") == 2)
    enter(shell, "")
    assert shell.screen.count("(1 row)") == 2


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "typed, offered",
    [
        ("SEL", "SELECT"),
        ("SELECT COUNT(*) AS n FROM peo", "FROM people"),
        ("SELECT COUNT(*) FROM people WHERE person_", "WHERE person_id"),
        ("SELECT CLI", "CLIP"),
        ("SELECT COUNT(*) FROM people p WHERE p.ag", "p.age"),
        ("\\d peo", "\\d people"),
        ("\\interv", "\\intervals"),
        ("\\pset form", "\\pset format"),
        ("\\pset format mark", "\\pset format markdown"),
        ("\\intervals co", "\\intervals cols"),
        ("\\df sq", "\\df SQRT"),
        ("\\i shop.ya", "\\i shop.yaml"),
        ("\\explain SELECT COUNT(*) FROM peo", "FROM people"),
    ],
)
def test_tab_completes(shell: Terminal, typed: str, offered: str) -> None:
    shell.type(typed + TAB)
    shell.wait(offered)
    shell.type(CTRL_C)
    shell.wait(lambda: shell.at_prompt and prompts(shell) == 2)


@pytest.mark.parametrize(
    "typed", ["SELECT COUNT(*) FROM people WHERE region = 'no", "SELECT * FROM codes WHERE label = 'pl"]
)
def test_tab_offers_no_value(shell: Terminal, typed: str) -> None:
    """Neither of data nor of the policy: 'north' and 'plain' stay what they are, somebody's values."""
    shell.type(f"{typed}{TAB}{TAB}mark")
    shell.wait(f"{typed}mark")
    assert "north" not in shell.screen and "plain" not in shell.screen
    shell.type(CTRL_C)
    shell.wait(lambda: shell.at_prompt and prompts(shell) == 2)


def test_the_editor_s_text_stands_at_the_next_prompt(shell: Terminal, folder: Path) -> None:
    enter(shell, "SELECT code FROM codes WHERE code = 'a';")
    shell.type("\\e\r")
    shell.wait("WHERE code = 'd';")
    assert "(1 row)" in shell.screen and " d\n" not in shell.screen  # shown, not run; its semicolon is the shell's
    enter(shell, "")
    assert re.search(r"^ d$", shell.screen, re.MULTILINE)
    mode, _, path = (folder / "edited.txt").read_text().splitlines()[-2].partition(" ")
    assert mode == "600" and not Path(path).exists() and not Path(path).parent.exists()


def test_an_editor_that_fails_changes_nothing(shell: Terminal, folder: Path) -> None:
    (folder / "fail").touch()
    enter(shell, "\\e")
    (folder / "fail").unlink()
    assert "the editor failed, so the text stays as it was" in shell.screen


def test_long_answers_go_through_the_pager(shell: Terminal, folder: Path) -> None:
    shell.resize(100, 12)
    shell.type("SELECT code FROM codes ORDER BY code;\r")
    shell.wait("PAGED")
    shell.wait_for_prompt()
    assert plain((folder / "paged.txt").read_text()).startswith(" code\n------\n a\n") and " i\n" not in shell.screen


def test_short_ones_do_not_unless_always(shell: Terminal) -> None:
    enter(shell, "SELECT code FROM codes ORDER BY code;")
    assert "PAGED" not in shell.screen
    enter(shell, "\\pset pager always")
    enter(shell, "SELECT code FROM codes ORDER BY code;")
    assert "PAGED" in shell.screen


def test_a_narrower_window_is_noticed(shell: Terminal) -> None:
    query = "SELECT code, label, rank, day FROM codes WHERE code = 'a';"
    enter(shell, query)
    assert re.search(r"code +\| label +\| rank \| +day", shell.screen)
    clear(shell)
    shell.resize(32, 60)
    enter(shell, "SELECT 'a long text for it' AS one, 'another text' AS two FROM codes WHERE code = 'a';")
    assert "-[ RECORD 1 ]-" in shell.screen and re.search(r"two \| another text", shell.screen)


def test_files(shell: Terminal, folder: Path) -> None:
    (folder / "sub").mkdir(exist_ok=True)
    (folder / "sub" / "outer.sql").write_text("\\echo outer\n\\ir inner.sql\nSELECT code FROM codes WHERE code = 'b'")
    (folder / "sub" / "inner.sql").write_text("SELECT 'in' AS x\nFROM codes -- ;\nWHERE code = 'a';\n")
    (folder / "broken.sql").write_text("\\echo begins\n\nSELECT SUM(debt) AS s\nFROM people;\n\\echo goes on\n")
    (folder / "itself.sql").write_text("\\i itself.sql\n")
    enter(shell, "\\i sub/outer.sql")
    assert re.search(r"\nouter\n(.*\n)* in\n(.*\n)* b\n", shell.screen)
    enter(shell, "\\i broken.sql")
    assert "--> broken.sql:3:12" in shell.screen and "\nbegins\n" in shell.screen and "\ngoes on\n" in shell.screen
    clear(shell)
    enter(shell, "\\i itself.sql")
    assert "more than 16 files read one another" in shell.screen and "itself.sql:1" in shell.screen


def test_output_goes_to_a_new_file(shell: Terminal, folder: Path) -> None:
    enter(shell, "\\pset format csv")
    enter(shell, "\\o answers.csv")
    enter(shell, "SELECT code, rank FROM codes WHERE code < 'c' ORDER BY code;")
    enter(shell, "\\o")
    enter(shell, "SELECT code FROM codes WHERE code = 'a';")
    assert (folder / "answers.csv").read_text() == "code,rank\na,1\nb,\n"
    assert "b," not in shell.screen and "code\na\n" in shell.screen


def test_history_is_listed_and_can_be_stopped(shell: Terminal, folder: Path) -> None:
    kept = folder / "home/.local/state/dpsql/history"
    enter(shell, " \\echo a secret of mine")
    enter(shell, "\\echo kept")
    enter(shell, "\\history 2")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert "echo kept" in kept.read_text() and "secret of mine" not in kept.read_text()
    assert pattern(shell.screen).count("\\echo kept") == 2


def test_an_empty_input_does_nothing(shell: Terminal) -> None:
    for text in ("", "   ", "-- a remark"):
        enter(shell, text)
    assert "error" not in shell.screen
