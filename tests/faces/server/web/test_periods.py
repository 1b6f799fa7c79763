"""Periods and counters in both consoles, in the API and for agents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpsql.faces.server.statements import Login
from tests.faces.server.test_counters import MADE, entries, town
from tests.support.agent import Agent
from tests.support.served_web import ServedWeb, post, served_web


def said(answer: Any) -> str:
    """The words of a tool's answer."""
    return str(answer["content"][0]["text"])


READ = "SELECT SUM(n) AS n FROM dpsql.rides"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[ServedWeb]:
    may = {
        "ana": Login("ana", "ana", may=("counters",)),
        "carol": Login("carol", "carol", "custodian", may=("periods",)),
        "dan": Login("dan", "carol", "custodian"),
    }
    with served_web(town(tmp_path), **may) as found:
        yield found


def closed(web: ServedWeb, through: str, name: str = "carol") -> str:
    form = {"table": "trips", "through": through}
    return post(web.client(name, custodian=True), "/periods", "/periods", **form).text


def test_a_custodian_closes_and_an_analyst_sees_it(web: ServedWeb) -> None:
    carol = web.client("carol", custodian=True)
    assert ">none</td>" in carol.get("/periods").text
    assert "queries read 2026-01-01 … 2026-01-03" in closed(web, "2026-01-03")
    page = carol.get("/periods").text
    assert "2026-01-01 … 2026-01-03" in page and "all accounts together" in page and "Counters" not in page
    assert "2026-01-01 … 2026-01-03" in web.client("ana").get("/").text
    for wrong, why in (("2025-12-31", "ends no day of trips"), ("x", "cannot be read"), ("'; DROP", "cannot be read")):
        assert why in closed(web, wrong)
    assert entries(web.server) == 1
    page = closed(web, "2026-01-05", "dan")
    assert "may not close or reopen periods" in page and "may: [periods]" in page and entries(web.server) == 1
    assert web.client("ana").get("/periods").status_code == 404


def test_a_counter_is_priced_made_and_dropped_in_the_console(web: ServedWeb) -> None:
    closed(web, "2026-01-04")
    ana, before = web.client("ana"), entries(web.server)
    page = post(ana, "/query/price", sql=MADE).text
    assert "ρ 100000000000000" in page and "± " in page and "365 in all" in page and entries(web.server) == before
    assert "counted through 2026-01-04" in post(ana, "/query/run", sql=MADE).text
    assert "Run it, for nothing" in post(ana, "/query/price", sql=READ).text
    assert "45" in post(ana, "/query/run", sql=READ).text
    own, other = ana.get("/").text, web.client("ben").get("/").text
    assert "dpsql.rides" in own and "yours" in own and "ρ 100000000000000 of each period" in other
    assert "dpsql.rides" in web.client("carol", custodian=True).get("/periods").text
    told = post(ana, "/query/price", sql="DROP DP COUNTER rides").text
    assert "The counter ends" in told and "Drop it" in told and "dpsql.rides" in ana.get("/").text
    post(ana, "/query/run", sql="DROP DP COUNTER rides")
    assert "dpsql.rides" not in ana.get("/").text
    assert "25006" not in own and "may not make, tick or drop" in post(web.client("ben"), "/query/price", sql=MADE).text


def test_the_api_tells_of_them_and_prices_them(web: ServedWeb) -> None:
    closed(web, "2026-01-04")
    api = web.api("ana")
    cost = api.post("/api/v1/cost", json={"sql": MADE}).json()
    assert cost["price"]["rho"] == 1e14 and set(cost["errors"]) == {"n", "minutes"}
    made = api.post("/api/v1/query", json={"sql": MADE}).json()
    assert made["rows"] == [["rides", "ρ 100000000000000", "2026-01-04", "counted through 2026-01-04"]]
    assert made["spent"]["rho"] == 1e14
    assert api.post("/api/v1/query", json={"sql": READ}).json()["rows"] == [[45]]
    found = api.get("/api/v1/budget").json()
    assert found["closed_periods"] == [
        {"table_name": "trips", "told_by": "day", "every": "day", "first_day": "2026-01-01", "last_day": "2026-01-04"}
    ]
    assert [(p["first_day"], p["last_day"], p["spent"]["rho"]) for p in found["periods"]] == [
        ("2026-01-01", "2026-01-01", 0.0), ("2026-01-02", None, 1e14),
    ]  # fmt: skip
    (counter,) = found["counters"]
    assert counter["name"] == "rides" and counter["held"] and counter["last_day"] == "2026-01-04"
    receipt = web.api("ben").post("/api/v1/cost", json={"sql": "RECEIVE DP COUNTER rides"}).json()
    assert receipt["price"]["rho"] == 1e14
    refused = web.api("ben").post("/api/v1/query", json={"sql": READ})
    assert refused.status_code == 422 and "RECEIVE DP COUNTER rides" in refused.json()["hint"]
    assert web.api("ben").post("/api/v1/query", json={"sql": MADE}).json()["status"] in (403, 422)


def test_an_agent_is_told_of_days_and_counters(web: ServedWeb) -> None:
    closed(web, "2026-01-04")
    web.api("ana").post("/api/v1/query", json={"sql": MADE})
    agent = Agent(web.api("ben"))
    text = said(agent.call("budget"))
    assert "trips grows, by day; queries read 2026-01-01 … 2026-01-04" in text
    assert "dpsql.rides through 2026-01-04: ρ 100000000000000 of each period, once, by RECEIVE DP COUNTER" in text
    assert "price ρ 1e+14" in said(agent.call("cost", sql="RECEIVE DP COUNTER rides"))
    assert "read it:  SELECT * FROM dpsql.rides" in said(agent.call("query", sql="RECEIVE DP COUNTER rides"))
    assert "45" in said(agent.call("query", sql=READ))
