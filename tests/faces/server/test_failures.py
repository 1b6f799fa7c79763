"""What fails in the engine at a server: it counts, it is noted, and it stops who is asked for next, at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.core.engine import RawTable
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.faces.server.statements import Login, Refused
from tests.support.served_shop import ANA, BEN, FINE, Served, inside, served, with_serve
from tests.support.small_shop import COUNT, MEANS, Shop, board, make_shop

CUSTODIAN = Login("carol", "carol", "custodian")
LISTED = "SELECT account, how, statement FROM dpsql.failures"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = with_serve(make_shop(tmp_path / "shop"), f"{FINE}}}")
    made.policy.write_text(made.policy.read_text() + "failures: {most: 2}\n")
    return made


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether private tables fail: the last of these."""
    fetch, on = DuckDBEngine.fetch, [True]

    def fails(engine: DuckDBEngine, sql: str) -> RawTable:
        if on[-1] and '"orders"' in sql:
            raise RuntimeError("could not convert 4711")
        return fetch(engine, sql)

    monkeypatch.setattr(DuckDBEngine, "fetch", fails)
    yield on


def refused(server: Served, sql: str, login: Login = ANA) -> Refused:
    with pytest.raises(Refused) as refusal:
        server.ask(sql, login=login)
    return refusal.value


def test_it_counts_is_noted_and_stops_the_account_and_no_other(shop: Shop, broken: list[bool]) -> None:
    with served(shop, inside(shop)) as server:
        for sql in (COUNT, board(1)):
            found = refused(server, sql)
            assert found.diagnostics[0].code == "DP901"
            charge = server.charge_of(found)
            assert charge.price == "ε 0.1" and charge.has_failed
        assert shop.failures() == [("ana", "failed")] * 2
        broken.append(False)
        before = shop.spent()
        for sql in (COUNT, board(2)):
            found = refused(server, sql)
            assert found.diagnostics[0].code == "DP416" and found.charge is None and "4711" not in str(found)
        assert shop.spent() == before
        assert server.ask(f"EXPLAIN (COST) {COUNT}").rows and server.ask("SELECT city FROM cities").rows
        assert server.ask(MEANS, login=BEN).rows


def test_a_refusal_that_is_none_of_the_engine_does_not_count(shop: Shop) -> None:
    shop.policy.write_text(shop.policy.read_text().replace("serve: {", "serve: {rows: 5, "))
    sql = "SELECT city, amount > 50 AS dear, COUNT(*) AS n FROM orders GROUP BY city, dear HAVING COUNT(*) > -1000000"
    with served(shop, inside(shop)) as server:
        found = refused(server, sql)
        assert found.diagnostics[0].code == "DP415" and server.charge_of(found)[::2] == ("ε 0.1", False)
    assert not shop.failures()


def test_custodians_read_them_and_analysts_do_not(shop: Shop, broken: list[bool]) -> None:
    with served(shop, inside(shop)) as server:
        refused(server, COUNT)
        assert [*server.ask(LISTED, login=CUSTODIAN).rows] == [("ana", "failed", COUNT)]
        assert refused(server, LISTED).diagnostics[0].code == "DP102"
