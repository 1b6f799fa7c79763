"""A setting in a comment before a query means the same wherever the query is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpsql
from dpsql.diagnostics.diagnostic import Source
from dpsql.faces.check.examine.epsilon_limits import EpsilonLimits
from dpsql.faces.check.examine.examine_text import TextOptions, check_text
from dpsql.frontend.text.query_comments import settings_before
from tests.support.checked_files import policy as checked
from tests.support.command_line import Call, Clinic

COUNT = "SELECT COUNT(*) AS n FROM patients"
CHEAP = f"/* dpsql: epsilon=0.0625 */ {COUNT}"


def test_python_charges_what_the_comment_says(clinic: Clinic) -> None:
    with dpsql.connect(clinic.policy, ledger=":memory:", analyst="ana", epsilon=0.5) as con:
        assert con.sql(CHEAP).cost(epsilon=0.25).epsilon == 0.0625  # as on a server, where it beats SET
        clause = COUNT.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.25)")
        assert con.sql(f"/* dpsql: epsilon=0.0625 */ {clause}").cost().epsilon == 0.25
        assert con.sql(f"/* dpsql: ignore[DP501] it is known */ {COUNT}").cost().epsilon == 0.5
        assert con.sql(f"/* dpsql: notices=off, intervals=on */ {COUNT}").cost().epsilon == 0.5
        lines = con.execute(f"/* dpsql: epsilon=0.0625 */ EXPLAIN {COUNT}").fetchall()
        assert any("0.0625" in line for (line,) in lines)
        made = con.summary_of("/* dpsql: epsilon=0.0625 */ CREATE DP SUMMARY s ON patients (region)")
        assert made.cost(epsilon=0.25).epsilon == 0.0625
        assert con.execute(f"-- dpsql: epsilon=0.125\n{COUNT}").spent.epsilon == 0.125


@pytest.mark.parametrize(
    ("sql", "code", "place"),
    [
        (f"/* dpsql: epsilon=lots */ {COUNT}", "DP406", "epsilon"),
        (f"/* dpsql: limits=none */ {COUNT}", "DP406", "limits"),
        (f"/* dpsql: coverage=perhaps */ {COUNT}", "DP406", "coverage"),
        (f"/* dpsql: epsilon=1, rho=1 */ {COUNT}", "DP902", "rho"),
        (f"/* dpsql: account=ben */ {COUNT}", "DP902", "account"),
        (f"-- dpsql: a small one\n{COUNT}", "DP902", "a"),
        (f"{COUNT} -- dpsql: epsilon=0.1", "DP902", "epsilon"),
        (f"{COUNT.replace('COUNT', '/* dpsql: epsilon=0.1 */ COUNT')}", "DP902", "epsilon"),
    ],
)
def test_what_would_not_hold_is_refused_at_its_place(clinic: Clinic, sql: str, code: str, place: str) -> None:
    with (
        dpsql.connect(clinic.policy, ledger=":memory:", epsilon=0.5) as con,
        pytest.raises(dpsql.Rejected) as refused,
    ):
        con.execute(sql)
    (found,) = refused.value.diagnostics
    assert found.code == code and found.source is not None and found.span is not None and found.help
    assert found.source.text[found.span.start : found.span.end] == place


def test_a_comment_beside_max_error_and_in_a_batch_is_refused(clinic: Clinic) -> None:
    with dpsql.connect(clinic.policy, ledger=":memory:") as con:
        with pytest.raises(dpsql.Rejected, match="DP406"):
            con.sql(CHEAP).cost(max_error={"n": 50})
        for batch in (con.batch([CHEAP]), con.batch_of(f"{COUNT};\n{CHEAP}")):
            with pytest.raises(dpsql.Rejected, match="DP902"):
                batch.cost(epsilon=0.5)


def test_the_command_and_the_shell_charge_it(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    done = dpsql("query", clinic.policy, CHEAP, "--epsilon", "0.3", "--analyst", "ana")
    assert (done.status, "spent ε 0.0625" in done.out) == (0, True)
    file = tmp_path / "q.sql"
    file.write_text(f"-- what it is for\n-- dpsql: epsilon=0.125\n{COUNT};\n")
    done = dpsql("explain", clinic.policy, "-f", str(file))
    assert (done.status, "0.125" in done.out) == (0, True)
    done = dpsql("shell", clinic.policy, "--ledger", ":memory:", "-f", str(file))
    assert (done.status, "spent ε 0.125" in done.out) == (0, True)


def test_the_check_prices_it() -> None:
    limited = TextOptions(limits=EpsilonLimits(file=1))  # type: ignore[arg-type]
    texts = [f"/* dpsql: epsilon={e} */ {COUNT};\n" for e in ("0.75", "0.25", "0.5")]
    (found,) = check_text(Source("".join(texts), "q.sql"), checked(), limited)
    assert found.diagnostic.code == "DP412" and found.diagnostic.span is not None
    assert found.diagnostic.span.start == len("".join(texts[:2])) + len("/* dpsql: ")


def test_comments_of_other_dialects_and_texts_without_tokens() -> None:
    assert [s.value for s in settings_before(Source(f"# dpsql: epsilon=0.5\n{COUNT}"), "bigquery")] == ["0.5"]
    assert settings_before(Source("/* dpsql: epsilon=0.5 */ SELECT 'open")) == ()
