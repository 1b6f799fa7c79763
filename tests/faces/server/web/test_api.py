"""The JSON API: what it answers, how it refuses, and that its description says so."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import httpx
import jsonschema
import pytest

from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.faces.server.web.api import problems
from tests.support.served_web import ServedWeb
from tests.support.small_shop import COUNT, MEANS, PRICE, board

NOTHING = {"epsilon": 0.0, "delta": 0.0, "rho": 0.0}


def ask(web: ServedWeb, name: str, body: Any, who: str = "ana") -> httpx.Response:
    answer = web.api(who).post(f"/api/v1/{name}", json=body)
    described(web, answer)
    return answer


def described(web: ServedWeb, answer: httpx.Response) -> None:
    """Raises unless a response is one that the description of its address has."""
    document = web.api().get("/api/v1/openapi.json").json()
    operation = document["paths"][answer.request.url.path][answer.request.method.lower()]
    said = operation["responses"][str(answer.status_code)]
    if "content" in said:
        media, schema = next((kind, held["schema"]) for kind, held in said["content"].items())
        assert answer.headers["content-type"] == media
        jsonschema.validate(answer.json(), {**schema, "components": document["components"]})


def query(sql: str, epsilon: Any = "0.1", *parameters: Any, **settings: Any) -> dict[str, Any]:
    return {"sql": sql, "parameters": list(parameters), "settings": {"epsilon": epsilon, **settings}}


def test_an_answer_has_rows_types_intervals_and_its_price(web: ServedWeb) -> None:
    before = web.server.shop.spent()
    found = ask(web, "query", query(MEANS, 0.1)).json()
    assert [c["name"] for c in found["columns"]] == ["city", "twice"] and found["columns"][0]["type"] == "VARCHAR"
    assert len(found["rows"]) == 3 and found["spent"] == {**NOTHING, "epsilon": 0.1} and found["entry"]
    for row, (none, (low, high)) in zip(found["rows"], found["intervals"], strict=True):
        assert none is None and low < row[1] and high is None  # a limit cuts it
    again = ask(web, "query", query(MEANS, 0.1)).json()
    assert (again["rows"], again["spent"], again["plan"]) == (found["rows"], NOTHING, found["plan"])
    assert web.server.shop.spent() == before + PRICE


def test_a_batch_has_its_price_and_a_list_of_answers(web: ServedWeb) -> None:
    before = web.server.shop.spent()
    cost = ask(web, "cost", query(board(1))).json()
    assert cost["price"] == {**NOTHING, "epsilon": 0.1} and cost["errors"] == {}
    explained = ask(web, "explain", query(board(1))).json()
    assert any("at most ±" in line for line in explained["operators"]) and web.server.shop.spent() == before
    found = ask(web, "query", query(board(1))).json()
    cities, whole = found["answers"]
    assert [column["name"] for column in cities["columns"]] == ["city", "n"] and len(cities["rows"]) == 3
    assert [column["name"] for column in whole["columns"]] == ["n", "s"] and len(whole["rows"]) == 1
    for each in (cities, whole):
        for row, intervals in zip(each["rows"], each["intervals"], strict=True):
            for value, interval in zip(row, intervals, strict=True):
                assert interval is None if isinstance(value, str) else interval[0] < value and interval[1] is None
    assert found["columns"] == found["rows"] == [] and found["spent"] == cost["price"] and found["entry"]
    again = ask(web, "query", query(board(1))).json()
    assert again["answers"] == found["answers"] and again["spent"] == NOTHING
    assert web.server.shop.spent() == before + PRICE


def test_parameters_have_the_types_of_the_query(web: ServedWeb) -> None:
    sql = "SELECT COUNT(*) AS n FROM orders WHERE amount < $1 AND city = $2"
    with_values = ask(web, "query", query(sql, "0.1", 50.5, "Bonn")).json()
    again = ask(web, "query", query(sql, "0.1", "50.5", "Bonn")).json()
    assert again["spent"] == NOTHING and again["rows"] == with_values["rows"] != []
    for wrong in ((), (1,), ("x", "Bonn"), (1, 2, 3), ([1], "Bonn"), (1, {"a": 1})):
        answer = ask(web, "query", query(sql, "0.1", *wrong))
        assert answer.status_code in (400, 422) and answer.json()["spent"] == NOTHING


def test_a_refusal_is_a_problem_with_its_place_and_its_repair(web: ServedWeb) -> None:
    sql = "SELECT COUNT(*) AS n FROM orders WHERE nothing_such < 3"
    answer = ask(web, "query", query(sql))
    found = answer.json()
    assert (answer.status_code, found["code"], found["type"], found["spent"]) == (422, "DP103", "/codes/DP103", NOTHING)
    at = sql.index("nothing_such")
    assert found["span"] == {"start": at, "end": at + 12, "line": 1, "column": at + 1}
    unsaid = ask(web, "query", {"sql": COUNT})
    assert unsaid.json()["code"] == "DP401" and '"settings": {"epsilon": "0.5"}' in unsaid.json()["hint"]
    assert ask(web, "query", query(COUNT, "1000")).status_code == 403
    assert ask(web, "query", query(COUNT, "-1")).json()["code"] == "DP406"
    assert ask(web, "query", query(COUNT, "1", rho=1)).json()["code"] == "DP903"
    others = ask(web, "query", query("SELECT * FROM dpsql.accounts")).json()
    assert others["code"] == "DP102"


BROKEN = (
    b"", b"{", b"[]", b"null", b'{"sql": 1}', b'{"sql": "x", "more": 1}', b'{"sql": "x", "sql": "y"}', b'{"sql": NaN}',
    b'{"sql": "\xff"}', b'{"sql": "\\ud800"}', b"[" * 100_000, b'{"sql": "x", "settings": {"epsilon": true}}',
    b'{"sql": "x", "settings": {"epsilon": [1]}}', b'{"sql": "x", "settings": {"analyst": "ben"}}',
    b'{"sql": "x", "parameters": [{}]}', b'{"sql": "x", "settings": {"limits": "all"}}',
    b'{"sql": "x", "account": "ben"}',
    b'{"sql": "x", "settings": {"epsilon": 1' + b"0" * 5000 + b"}}",
    b'{"sql": "x", "settings": {"epsilon": 1e999999999}}',
)  # fmt: skip


@pytest.mark.parametrize("body", BROKEN, ids=range(len(BROKEN)))
def test_a_body_that_is_not_understood(web: ServedWeb, body: bytes) -> None:
    before = web.server.shop.spent()
    for name in ("query", "cost"):
        answer = web.api().post(f"/api/v1/{name}", content=body, headers={"content-type": "application/json"})
        described(web, answer)
        assert answer.status_code in (400, 422) and answer.json()["spent"] == NOTHING, answer.text
    assert web.server.shop.spent() == before


def test_another_kind_of_body_is_not_read(web: ServedWeb) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = web.api().post("/api/v1/query", content=b'{"sql": "x"}', headers={"content-type": kind})
        assert answer.status_code == 400


def test_costs_and_plans_are_free(web: ServedWeb) -> None:
    sql, before = "SELECT COUNT(*) AS n FROM orders WHERE amount < 93", web.server.shop.spent()
    cost = ask(web, "cost", query(sql, "0.25")).json()
    assert cost["price"] == {**NOTHING, "epsilon": 0.25} and 1 < cost["errors"]["n"] < 1000 and cost["times"] > 10
    explained = ask(web, "explain", query(sql, "0.25")).json()
    assert explained["plan"]["releases"][0]["components"] and "scan orders" in explained["operators"][-1]
    unsaid = ask(web, "cost", {"sql": sql}).json()
    assert unsaid["price"] is None and any("no ε is known" in note["text"] for note in unsaid["notes"])
    assert ask(web, "cost", query("SHOW budget")).json()["code"] == "DP012"
    assert web.server.shop.spent() == before
    assert [e.statement for e in web.log.events if e.statement.startswith("EXPLAIN (COST)") and "93" in e.statement]


def test_a_batch_counts_an_equal_question_once(web: ServedWeb) -> None:
    one, other = (
        "SELECT COUNT(*) AS n FROM orders WHERE amount < 61",
        "SELECT COUNT(*) AS n FROM orders WHERE amount < 62",
    )
    found = ask(web, "batch/cost", {"queries": [query(one, "0.1"), query(other, "0.2"), query(one, "0.1")]}).json()
    assert math.isclose(found["price"]["epsilon"], 0.3) and found["fits"] and len(found["queries"]) == 3
    much = ask(web, "batch/cost", {"queries": [query(one, "0.1"), query(other, "10000")]}).json()
    assert not much["fits"]
    partly = ask(web, "batch/cost", {"queries": [query(one), query("SELECT x FROM orders")]}).json()
    assert partly["queries"][1]["refused"]["code"] == "DP103" and not partly["fits"]
    assert ask(web, "batch/cost", {"queries": []}).status_code == 400
    assert ask(web, "batch/cost", {"queries": [query(one)] * 101}).status_code == 400


def test_budget_and_tables(web: ServedWeb) -> None:
    api = web.api("ben")
    budget = api.get("/api/v1/budget")
    described(web, budget)
    assert budget.json()["account"] == "ben" and budget.json()["units"][0]["unit"] == "customer"
    tables = api.get("/api/v1/tables")
    described(web, tables)
    orders = next(t for t in tables.json()["tables"] if t["name"] == "orders")
    assert orders["promises"] == ["at most 5 rows per unit [enforced]"] and not orders["public"]
    assert {"name": "amount", "type": "DOUBLE", "nullable": True, "declared": ["bounds [0, 100]"]} in orders["columns"]


def test_a_token_in_place_of_a_password(web: ServedWeb) -> None:
    begun = web.api().post("/api/v1/session")
    described(web, begun)
    bearer = {"authorization": f"Bearer {begun.json()['token']}"}
    program = web.client()
    assert program.get("/api/v1/budget", headers=bearer).status_code == 200
    again = program.post("/api/v1/session", headers=bearer)
    described(web, again)
    assert again.status_code == 403  # else a session would have no end
    cookie = web.client()
    cookie.cookies.set("dpsql-analyst", begun.json()["token"])
    assert cookie.get("/").status_code == 303  # it opens no console, and a console's cookie no API
    assert web.client("ana").get("/api/v1/budget").status_code == 401
    ended = program.delete("/api/v1/session", headers=bearer)
    assert ended.status_code == 204 and program.get("/api/v1/budget", headers=bearer).status_code == 401


def test_what_is_not_there_is_a_problem(web: ServedWeb) -> None:
    for method, path, status in (
        ("GET", "nowhere", 404),
        ("GET", "query", 405),
        ("POST", "budget", 405),
        ("GET", "a//b", 404),
    ):
        answer = web.api().request(method, f"/api/v1/{path}")
        assert answer.status_code == status and answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["spent"] == NOTHING


def test_amounts_are_rounded_so_that_nothing_looks_cheaper() -> None:
    loss = PrivacyLoss(Fraction(2, 3), Fraction(1, 10**8))
    assert problems.spent(loss) == {"epsilon": 0.666667, "delta": 1e-8, "rho": 0.0}
    assert problems.left(loss) == {"epsilon": 0.666666, "delta": 1e-8, "rho": 0.0} and problems.left(None) is None
    json.dumps(problems.as_data(422, "x"), allow_nan=False)
