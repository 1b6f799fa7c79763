"""`dpsql close`, and queries over a table that grows, as their users meet them."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpsql
from dpsql.faces.cli.main import main

POLICY = """
version: 1
name: town
{ledger}
budgets: {{total: {{epsilon: 1000}}}}
defaults: {{epsilon: 100}}
tables:
  trips:
    unit: {{rows: 1}}
    grows: {{by: day, every: day, from: 2026-01-01}}
    source: "read_csv('trips.csv', auto_detect = false, header = true, columns = {{'day': 'DATE'}})"
    columns: {{day: {{type: date, nullable: false}}}}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "trips.csv").write_text("day\n2026-01-01\n2026-01-01\n2026-01-02\n2026-01-03\n")
    policy = tmp_path / "town.yaml"
    policy.write_text(POLICY.format(ledger="ledger_head: head"))
    return str(policy)


def answer(file: str, where: str = "TRUE") -> int:
    with dpsql.connect(file) as con:
        ((n,),) = con.sql(f"SELECT COUNT(*) AS n FROM trips WHERE {where}").run()
    return int(n)


def test_the_evening_of_a_custodian(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", file, "SELECT COUNT(*) AS n FROM trips"]) == 4
    assert "DP017" in capsys.readouterr().err
    assert main(["close", file, "--through", "2026-01-02"]) == 0
    assert "trips: queries read 2026-01-01 … 2026-01-02" in capsys.readouterr().err
    assert answer(file) == 3
    assert main(["query", file, "SELECT COUNT(*) AS n FROM trips WHERE day = DATE '2026-01-03'"]) == 4
    assert "the query reads no closed period" in capsys.readouterr().err
    assert main(["close", file, "--through", "2026-01-03", "--table", "trips"]) == 0
    assert answer(file, "day > last_closed('trips') - 1") == 1
    assert main(["budget", file, "--history"]) == 0
    assert "CLOSE DP PERIODS" in capsys.readouterr().out


def test_what_is_stored_is_free_until_its_days_are_opened_again(file: str) -> None:
    main(["close", file, "--through", "2026-01-02"])
    sql = "SELECT COUNT(*) AS n FROM trips WHERE day <= DATE '2026-01-02'"
    with dpsql.connect(file) as con:
        con.sql(sql).run()
        assert con.sql(sql).cost() == dpsql.PrivacyLoss()
        main(["close", file, "--through", "2026-01-03"])
        assert con.sql(sql).cost() == dpsql.PrivacyLoss()  # of the same days: the same answer
        main(["close", file, "--reopen", "2026-01-03", "2026-01-03"])
        assert con.sql(sql).cost() == dpsql.PrivacyLoss()
        main(["close", file, "--reopen", "2026-01-02", "2026-01-02"])
        assert con.sql(sql).cost() != dpsql.PrivacyLoss()


def test_a_plan_is_made_anew_once_another_period_is_closed(file: str) -> None:
    main(["close", file, "--through", "2026-01-02"])
    with dpsql.connect(file) as con:
        sql = "SELECT COUNT(*) AS n FROM trips"
        old = con.plan(sql, epsilon=100)
        main(["close", file, "--through", "2026-01-03"])
        with pytest.raises(dpsql.Rejected, match="the closed periods of trips have changed") as refused:
            con.run(old)
        assert [d.code for d in refused.value.diagnostics] == ["DP409"]
        ((n,),) = con.sql(sql).run(epsilon=100)
        assert n == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say what is closed"),
        (["--through", "2026-01-02", "--reopen", "2026-01-02", "2026-01-02"], "say what is closed"),
        (["--through", "tomorrow"], "'tomorrow' is no day"),
        (["--through", "2026-01-02", "--table", "rides"], "the policy has no table 'rides'"),
        (["--through", "2026-01-02", "--ledger", ":memory:"], "a ledger in memory keeps no periods"),
    ],
)
def test_what_is_no_closing_is_refused(
    file: str, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["close", file, *arguments]) != 0
    assert said in capsys.readouterr().err


def test_made_up_rows_have_periods_of_their_own(file: str) -> None:
    with dpsql.connect(file, draft=True) as con:
        ((n,),) = con.sql("SELECT COUNT(*) AS n FROM trips").run(epsilon=100)
        assert n > 0


def test_the_shell_tells_what_each_day_has_lost(
    file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    by_period = "{each_period: {epsilon: 1}, analysts: {ana: {epsilon: 0.5}}}"
    text = Path(file).read_text().replace("{total: {epsilon: 1000}}", by_period)
    Path(file).write_text(text)
    assert main(["close", file, "--through", "2026-01-02"]) == 0
    asked = "SET epsilon = 0.25; SELECT COUNT(*) AS n FROM trips WHERE day = DATE '2026-01-02';"
    capsys.readouterr()
    assert main(["shell", file, "--analyst", "ana", "-c", asked, "-c", "\\budget"]) == 0
    shown = capsys.readouterr().out
    assert "  2026-01-02                 spent ε 0.25, left ε 0.75 of ε 1\n" in shown
    assert "  2026-01-02                 spent ε 0.25, left ε 0.25 of ε 0.5\n" in shown
    assert "Nothing limits what all periods together tell of all rows." in shown
