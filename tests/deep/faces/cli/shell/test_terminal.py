"""`dpsql clinic.yaml` as a person meets it: typed into a pseudo-terminal, read from its screen."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.faces.cli.commands import demo
from tests.support.terminal import Terminal

pytestmark = pytest.mark.processes

REGIONS = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region ORDER BY region;"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh demo."""
    made = tmp_path_factory.mktemp("shell") / "clinic"
    demo.prepare(made)
    return made


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[Terminal]:
    """A shell of analyst ana that the tests of this module share."""
    with Terminal(["clinic.yaml", "--analyst", "ana", "--epsilon", "0.05"], folder) as terminal:
        terminal.wait_for_prompt()
        yield terminal


@pytest.fixture
def shell(running: Terminal) -> Terminal:
    """That shell, its looks as at the start, at an empty prompt."""
    for command in ("\\pset format table", "\\x auto", "\\intervals on", "\\t off", "\\epsilon 0.05"):
        running.ask(command)
    return running


def test_what_the_policy_leaves_open_is_told_at_the_start(tmp_path: Path) -> None:
    made = tmp_path / "clinic"
    demo.prepare(made)
    policy = made / "clinic.yaml"
    text = policy.read_text(encoding="utf-8")
    policy.write_text(text.replace("{type: varchar}", "{type: varchar, domain: [here]}", 1), encoding="utf-8")
    with Terminal(["clinic.yaml", "--epsilon", "0.05"], made) as terminal:
        terminal.wait_for_prompt()
        assert "warning[DP007]" in terminal.screen


def test_a_query_of_several_lines_is_run_at_its_semicolon(shell: Terminal) -> None:
    shell.type("SELECT ';' AS semicolon, COUNT(*) AS n -- not yet ;\r")
    shell.wait("clinic->")
    found = shell.ask("FROM patients;")
    assert re.search(r"; +\| +[\d,]+ ± \d+", found) and re.search(r"\(1 row\)  spent ε 0\.05, left ε \d", found)


def test_the_prompt_shows_what_is_left(shell: Terminal) -> None:
    before = shell.screen.rstrip().rpartition("clinic[")[2]
    shell.ask("SELECT COUNT(*) AS smokers FROM patients WHERE smoker AND age > 30;")
    after = shell.screen.rstrip().rpartition("clinic[")[2]
    left = [float(re.match(r"ε (\d\.\d\d)/3\.00\]=>", text)[1]) for text in (before, after)]  # type: ignore[index]
    assert round(left[0] - left[1], 2) == 0.05


def test_an_answer_from_the_store_says_so_and_costs_nothing(shell: Terminal) -> None:
    first = shell.ask(REGIONS)
    again = shell.ask("\\g")
    assert "answered from" not in first and "spent nothing" in again and "  n answered from" in again
    assert first.splitlines()[:6] == again.splitlines()[:6]


def test_formats(shell: Terminal) -> None:
    shell.ask(REGIONS)
    shell.ask("\\pset format box")
    assert "│ east   │" in shell.ask("\\g")
    assert "n      | " in shell.ask("\\gx")
    shell.ask("\\intervals cols")
    assert "n_low" in shell.ask("\\g")
    shell.ask("\\pset format csv")
    assert shell.ask("\\g").startswith("region,n,n_low,n_high\neast,")


def test_a_refusal_has_a_caret_and_a_repair(shell: Terminal) -> None:
    found = shell.ask("SELECT MAX(cost) AS s FROM visits;")
    assert "error[DP101]" in found and "^^^^^^^^^" in found and "QUANTILE_DISC(cost" in found
    assert "nothing was run and nothing was spent" in found


def test_tables_are_described(shell: Terminal) -> None:
    assert "patients | private | patient" in shell.ask("\\d")
    found = shell.ask("\\d visits")
    assert "surgery" in found and "0 to 1000" in found and "at most 12 rows per unit" in found


def test_explain_and_cost_spend_nothing(shell: Terminal) -> None:
    before = shell.ask("\\budget")
    assert "stability patient=1" in shell.ask("\\explain SELECT COUNT(*) AS n FROM visits")
    shell.ask("\\epsilon 0.3")
    assert "would cost ε 0.3" in shell.ask("\\cost SELECT COUNT(*) AS n FROM visits")
    assert shell.ask("\\budget") == before


def test_a_costly_query_is_asked_about(shell: Terminal) -> None:
    shell.ask("\\epsilon 0.9")
    shell.type("SELECT COUNT(*) AS dear FROM visits;\r")
    shell.wait("Run it? [y/N]")
    shell.type("n\r")
    shell.wait("not run; nothing was spent")
    shell.wait_for_prompt()


def test_refused_commands_say_why(shell: Terminal) -> None:
    for command, reason in (("\\timing", "private rows"), ("\\!ls", "no programs"), ("\\watch 2", "stored answer")):
        found = shell.ask(command)
        assert "error[DP906]" in found and reason in found


def test_ctrl_c_clears_the_line(shell: Terminal) -> None:
    shell.type("SELECT nonsense")
    shell.wait("SELECT nonsense")
    shell.interrupt()
    assert shell.ask("\\echo still here") == "still here\n"


def test_tab_completes_from_the_policy(shell: Terminal) -> None:
    shell.type("SELECT COUNT(*) AS n FROM pat\t")
    shell.wait("FROM patients")
    shell.interrupt()


def test_variables(shell: Terminal) -> None:
    shell.ask("\\set place 'north'")
    assert "north" in shell.ask("SELECT region, COUNT(*) AS n FROM patients WHERE region = :'place' GROUP BY region;")


def test_what_was_typed_is_kept_for_oneself_and_answers_are_not(shell: Terminal, folder: Path) -> None:
    answer = shell.ask(REGIONS)
    kept = folder / "home" / ".local" / "state" / "dpsql" / "history"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600 and stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    text = kept.read_text()
    assert REGIONS in text and all(number not in text for number in re.findall(r"\d{4,} ±", answer))


def test_ctrl_d_leaves(folder: Path) -> None:
    with Terminal(["clinic.yaml", "-q", "--no-history"], folder) as terminal:
        terminal.wait_for_prompt()
        terminal.type("\x04")
        assert terminal.ended() == 0 and "Traceback" not in terminal.everything


# A terminal of 80 columns, and what people type who come from elsewhere -----------------------------------------------


def _words_of(screen: str) -> set[str]:
    return {word.strip("|;:,.()") for word in screen.split()}


def test_no_word_is_broken_at_the_edge(folder: Path) -> None:
    """Every word on the screen of a narrow terminal is one that a wide one shows, too."""
    typed = (
        "\\?",
        "\\? all",
        "\\d visits",
        "\\d+ visits",
        "\\policy visits",
        "\\h",
        "\\h group by",
        "\\h clip",
        "\\pset",
    )
    shown: dict[int, list[set[str]]] = {}
    for columns in (80, 240):
        with Terminal(
            ["clinic.yaml", "--analyst", "ana", "-P", "pager=off"], folder, columns=columns, lines=60
        ) as terminal:
            terminal.wait_for_prompt()
            shown[columns] = [_words_of(terminal.ask(command)) for command in typed]
    for narrow, wide, command in zip(shown[80], shown[240], typed, strict=True):
        broken = {word for word in narrow - wide if not set(word) <= set("-+ |")}
        assert not broken, (command, broken)


def test_others_commands_at_a_prompt(shell: Terminal) -> None:
    assert "(3 tables)" in shell.ask(".tables")
    assert "there is no .mode here" in shell.ask(".mode csv")
    assert "as always" in shell.ask("SET search_path = public;")
    help_ = shell.ask("help")
    assert "\\? all" in help_ and "\\conninfo" not in help_ and "\\conninfo" in shell.ask("\\? all")


def test_an_answer_is_kept_in_a_file_at_a_prompt(shell: Terminal, folder: Path) -> None:
    both = "SELECT region, smoker, COUNT(*) AS n FROM patients GROUP BY ALL"
    shell.ask(f"{both};")
    assert "spent" not in shell.ask("\\g crossed.txt") and "(8 rows)" in (folder / "crossed.txt").read_text(
        encoding="utf-8"
    )
    assert "exists already" in shell.ask("\\g crossed.txt")
    assert "not piped into programs" in shell.ask("\\g |cat")
    assert "may be asked" in shell.ask("\\d+ patients")
