"""SET, RESET, SHOW and EXPLAIN: one reader, so that cursors and the shell follow the same rules in the same words."""

from __future__ import annotations

from fractions import Fraction

import pytest

import dpsql
from dpsql.api.session_statements import Explain, Set, Show, amount_text, special
from dpsql.faces.cli.shell.state import Shell
from tests.api.conftest import Opener

READ = {
    "SET epsilon = 0.2": Set("epsilon", "0.2"),
    "set session EPSILON to '1/3' ;": Set("epsilon", "1/3"),
    'SET delta="1e-9"': Set("delta", "1e-9"),
    "/* a; */ -- b;\nSET rho = 1 -- c;\n;": Set("rho", "1"),
    "SET epsilon = 1 2": Set("epsilon", "1 2"),
    "SET epsilon = DEFAULT": Set("epsilon", None),
    "SET epsilon = 'DEFAULT'": Set("epsilon", "DEFAULT"),
    "RESET Epsilon /* so */;": Set("epsilon", None),
    "SET nonsense = 4": Set("nonsense", "4"),
    "SHOW Confidence -- now": Show("confidence"),
    "-- é\nEXPLAIN\nSELECT 1;": Explain("    \n       \nSELECT 1;"),
    "EXPLAIN(SELECT 1)": Explain("       (SELECT 1)"),
    "EXPLAIN SELECT 1; SELECT 2": Explain("        SELECT 1; SELECT 2"),
    "SET epsilon = 1; SELECT 1": None,
    "SET epsilon": None,
    "SETepsilon = 1": None,
    "SET epsilon TO1": None,
    "SHOW tables": None,
    "EXPLAINED": None,
    "SELECT 'SET epsilon = 1'": None,
    "-- SET epsilon = 1": None,
    "": None,
    "SET epsilon = '": Set("epsilon", "'"),
    f"SET epsilon = {'/*' * 600}": None,
    f"SET epsilon = {'9' * 200_000}": None,
    f"SET epsilon = 1{'/**/' * 200} y": Set("epsilon", f"1{'/**/' * 200} y"),
    f"SHOW epsilon{' /**/-- -- --' * 60}\n y": None,
}


@pytest.mark.parametrize("sql", READ, ids=lambda sql: sql[:30])
def test_what_is_read(sql: str) -> None:
    assert special(sql) == READ[sql]


@pytest.mark.parametrize("sql", ["EXPLAIN ANALYZE SELECT 1", "explain\nanalyse SELECT 1", "EXPLAIN (ANALYZE) SELECT 1"])
def test_times_are_not_explained(sql: str) -> None:
    with pytest.raises(dpsql.Rejected) as refusal:
        special(f"-- no\n{sql}")
    found = refusal.value.diagnostics[0]
    assert found.code == "DP906" and found.span is not None and found.source is not None
    assert found.source.text[found.span.start : found.span.end].lower().lstrip("(") in ("analyze", "analyse")


@pytest.mark.parametrize("sql", ["SHOW ALL", "show\nall -- now\n;"])
def test_settings_are_shown_one_by_one(sql: str) -> None:
    with pytest.raises(dpsql.Rejected) as refusal:
        special(sql)
    found = refusal.value.diagnostics[0]
    assert found.code == "DP903" and found.help == (
        "SHOW epsilon  (or delta, rho, confidence, allow_dearer, coverage, consistent_totals, limits)",
    )


@pytest.mark.parametrize("sql", ["SET confidence = 0.9", "RESET confidence"])
def test_a_cursor_is_told_its_confidence_by_each_query(opened: Opener, sql: str) -> None:
    with opened(epsilon=3) as con:
        with pytest.raises(dpsql.Rejected) as refusal:
            con.execute(sql)
        found = refusal.value.diagnostics[0]
        assert found.code == "DP903" and any("confidence=0.9" in help for help in found.help)
        assert con.execute("SELECT COUNT(*) AS n FROM members", max_error={"n": 50}, confidence=0.9).intervals(0.9)


@pytest.mark.parametrize("amount", ["0.25", "1/3", "1e-9", "1000000", "0.1"])
def test_amounts_are_written_as_users_write_them(amount: str) -> None:
    assert amount_text(Fraction(amount)) == amount


def test_showing(opened: Opener) -> None:
    with opened(epsilon="1/3") as con:
        assert con.execute("SHOW epsilon").fetchall() == [("epsilon", "1/3")]
        assert con.execute("SHOW delta").fetchall() == [("delta", None)]
        assert con.execute("SHOW confidence").fetchall() == [("confidence", "0.95")]
        shell = Shell(con)
        assert (shell.amount("epsilon"), shell.amount("delta"), shell.amount("confidence")) == (
            "1/3",
            "not set",
            "0.95",
        )


def test_the_shell_goes_back_to_what_it_was_started_with(opened: Opener) -> None:
    with opened(epsilon=2) as con:
        shell = Shell(con)
        for name, amount, told in (
            ("rho", "0.5", "rho: 0.5"),
            ("rho", None, "rho: back to not set"),
            ("epsilon", None, "epsilon: back to 2"),
            ("confidence", "0.9", "confidence: 0.9"),
            ("confidence", None, "confidence: back to 0.95"),
        ):
            shell.set_amount(name, amount)
            assert shell.confirmation(name, amount) == told
        with pytest.raises(dpsql.Rejected):
            shell.set_amount("confidence", "2")
        assert shell.confidence == 0.95 and con.settings.epsilon == 2
