"""Prompts, amounts, colours, the table of meta-commands."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import Rejected
from dpsql.diagnostics.layout import printable
from dpsql.faces.cli.shell.commands.accounts import Left, share, short
from dpsql.faces.cli.shell.commands.all_commands import COMMANDS, GROUPS, help_text, split_name, unknown
from dpsql.faces.cli.shell.commands.show_commands import _functions, _matching
from dpsql.faces.cli.shell.input.highlight import ExplainLexer, ShellLexer, painted_explain
from dpsql.faces.cli.shell.output.output import line_width
from dpsql.policy.policy import Policy


@pytest.mark.parametrize(
    ("amount", "expected"),
    [("2.35", "2.35"), ("2.359", "2.35"), ("3", "3.00"), ("0", "0.00"), ("0.001", "0.001"), ("0.0099", "0.0099")],
)
def test_what_is_left_is_rounded_down(amount: str, expected: str) -> None:
    assert short(Fraction(amount)) == expected


def test_the_prompt_s_amounts() -> None:
    assert str(Left("ε", Fraction("2.35"), Fraction(3))) == "ε 2.35/3.00"


@pytest.mark.parametrize(
    ("price", "left", "expected"),
    [
        (PrivacyLoss(Fraction(1)), PrivacyLoss(Fraction(4)), "1/4"),
        (PrivacyLoss(Fraction(1), Fraction(1, 10)), PrivacyLoss(Fraction(4), Fraction(1, 5)), "1/2"),
        (PrivacyLoss(Fraction(1)), PrivacyLoss(), "1"),
        (PrivacyLoss(), PrivacyLoss(), "0"),
        (PrivacyLoss(rho=Fraction(1)), PrivacyLoss(rho=Fraction(10)), "1/10"),
        (PrivacyLoss(Fraction(1)), None, "0"),
    ],
)
def test_shares(price: PrivacyLoss, left: PrivacyLoss | None, expected: str) -> None:
    assert share(price, left) == Fraction(expected)


def test_colours_change_no_character() -> None:
    text = (
        "project n   public\n└─ join inner a = b   stability patient=1 id · rule join\n\ncost: ε 0.5 of each patient\n"
    )
    painted = painted_explain(text)
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == text and painted.count("\x1b[") > 10
    for sql in ("SELECT :a, :'b' FROM t -- x", "\\d t", "SELECT 'a", "☃ \\"):
        assert "".join(v for _, v in ShellLexer(ensurenl=False, stripnl=False).get_tokens(sql)) == sql
    assert "".join(v for _, v in ExplainLexer(ensurenl=False, stripnl=False).get_tokens("☃\n\n")) == "☃\n\n"


def test_the_table_of_commands() -> None:
    assert len(COMMANDS) == sum(len(c.names) for group in GROUPS.values() for c in group)
    wanted = (
        "? q d dt l conninfo x timing i o pset set unset echo budget explain cost policy epsilon intervals "
        "history watch copy ! e g r p delta ir h"
    )
    assert {f"\\{name}" for name in wanted.split()} <= set(COMMANDS)
    text = help_text()
    assert all(c.usage in text and c.help in text for c in COMMANDS.values())
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\\d visits", ("\\d", " visits")),
        ("\\!ls -l", ("\\!", "ls -l")),
        ("\\d;", ("\\d", ";")),
        ("\\set\tx 1", ("\\set", "\tx 1")),
        ("\\", ("\\", "")),
        ("\\echo'a'", ("\\echo", "'a'")),
    ],
)
def test_names(text: str, expected: tuple[str, str]) -> None:
    assert split_name(text) == expected


def test_unknown_commands_are_guessed() -> None:
    assert "\\budget" in unknown("\\budegt").diagnostics[0].help[0]
    assert len(unknown("\\zzz").diagnostics[0].help) == 1


def test_control_characters_and_widths() -> None:
    assert printable("a\x1b[31m\tb\nc\u202e") == "a\ufffd[31m    b\nc\ufffd"
    assert line_width("\x1b[1m日本\x1b[0m ") == 5 and line_width("abc") == 3


def test_help_knows_aggregates() -> None:
    names = {name for f in _functions() for name in f.names}
    assert {"COUNT", "SUM", "AVG", "STDDEV_SAMP", "CLIP"} <= names


def test_tables_like_a_pattern() -> None:
    tables = {n: {"public": True, "columns": {"x": {"type": "bigint"}}} for n in ("visits", "Villages", "wards")}
    policy = Policy.from_dict({"version": 1, "name": "p", "tables": tables})
    assert [t.name for t in _matching(policy, "VI*")] == ["visits", "Villages"]
    assert [t.name for t in _matching(policy, "war?s")] == ["wards"]
    assert [t.name for t in _matching(policy, "wards")] == ["wards"]
    for wrong in ("q*", "[vw]*", "ward", '"v*"'):
        with pytest.raises(Rejected):
            _matching(policy, wrong)
