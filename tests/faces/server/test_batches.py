"""A batch over the wire, as its front asks: answers at one price, refused at its place, explained for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.core.ir.types import BIGINT, DOUBLE, VARCHAR
from dpsql.diagnostics.note import Note
from dpsql.faces.server.front.commands.client_tokens import statements
from dpsql.faces.server.speech import Spoken, spoken
from dpsql.faces.server.statements import Answer, Ceilings, Refused
from dpsql.faces.server.workers.worker_messages import Reply, read, write
from tests.support.served_shop import ANA, BEN, FINE, TENTH, Served, inside, served, with_serve
from tests.support.small_shop import make_shop

CITIES = "SELECT city, COUNT(*) AS n, SUM(amount) AS s FROM orders GROUP BY city"
WHOLE = "SELECT AVG(amount) AS m, COUNT(*) AS n FROM orders"
BOARD = f"DP BATCH (\n  {CITIES};\n  {WHOLE};\n)"
PARTLY = f"DP BATCH SKIP REFUSED ({CITIES};\nSELECT MAX(amount) FROM orders)"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    shop = make_shop(tmp_path_factory.mktemp("shop"), epsilon="100")
    with_serve(shop, f"{FINE}, rows: 5}}")
    with served(shop, inside(shop)) as server:
        yield server


def test_a_batch_is_paid_once_and_given_again(server: Served) -> None:
    before = server.shop.spent()
    explained = server.ask(f"EXPLAIN {BOARD}")
    text = "\n".join(str(line) for (line,) in explained.rows)
    assert "batch of 2 queries" in text and "cost: ε 0.1" in text and "at most ±" in text
    (cost,) = server.ask(f"EXPLAIN (COST) {BOARD}").rows
    assert cost[:2] == ("ε 0.1", "2 queries")
    assert server.shop.spent() == before
    first = server.ask(BOARD)
    assert [[name for name, _ in each.columns] for each in first.more] == [["city", "n", "s"], ["m", "n"]]
    assert [len(each.rows) for each in first.more] == [3, 1]
    assert first.spent == "ε 0.1" and first.entry and first.notices[0].startswith("charged ε 0.1; left")
    assert server.shop.spent() == before + Fraction(1, 10)
    again = server.ask(BOARD)
    assert [each.rows for each in again.more] == [each.rows for each in first.more] and again.spent == again.entry == ""
    assert server.shop.spent() == before + Fraction(1, 10)


def test_ends_of_intervals_stand_behind_all_columns(server: Served) -> None:
    found = server.ask(BOARD, settings=replace(TENTH, intervals=True))
    names = [name for name, _ in found.more[0].columns]
    assert names == ["city", "n", "s", "n_low", "n_high", "s_low", "s_high"]
    for row in found.more[0].rows:
        _, n, _, low, high, *_ = row
        assert low < n and high is None  # type: ignore[operator]  # a limit cuts it


def test_a_comment_before_it_holds_where_no_front_reads_it(server: Served) -> None:
    """As the API and the consoles send it."""
    text = f"/* dpsql: epsilon=0.01 */ DP BATCH ({WHOLE} WHERE city = 'Oslo')"
    before = server.shop.spent()
    (cost,) = server.ask(f"EXPLAIN (COST) {text}").rows
    assert cost[0] == server.ask(text).spent == "ε 0.01" and server.shop.spent() == before + Fraction(1, 100)


@pytest.mark.parametrize("text", ["DP /* {} */ BATCH (" + WHOLE + ")", f"DP BATCH ({WHOLE}) -- {{}}"])
def test_a_comment_that_would_not_hold_is_refused(server: Served, text: str) -> None:
    before = server.shop.spent()
    with pytest.raises(Refused) as refused:
        server.ask(text.format("dpsql: epsilon=0.01"))
    (found,) = refused.value.diagnostics
    assert found.code == "DP902" and server.shop.spent() == before


def test_a_refused_query_has_its_place_or_is_left_out(server: Served) -> None:
    before = server.shop.spent()
    whole = PARTLY.replace(" SKIP REFUSED", "")
    with pytest.raises(Refused) as refused:
        server.ask(whole, login=BEN)
    (found,) = refused.value.diagnostics
    assert found.code == "DP101" and found.span is not None
    assert whole[found.span.start : found.span.end] == "MAX(amount)"
    assert server.shop.spent() == before
    partly = server.ask(PARTLY, login=BEN)
    assert len(partly.more) == 1 and [d.code for d in partly.warnings] == ["DP101"]
    span = partly.warnings[0].span
    assert span is not None and PARTLY[span.start : span.end] == "MAX(amount)"


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (f"DP BATCH ({CITIES}", "DP010"),
        ("DP BATCH ()", "DP903"),
        (f"EXPLAIN (FORMAT JSON) {BOARD}", "DP903"),
        (f"DP BATCH ({CITIES}; SELECT COUNT(*) FROM cities)", "DP101"),
        (f"DP BATCH ({CITIES}; SELECT COUNT(*) FROM orders WHERE note = 'x')", "DP302"),
        (f"DP BATCH ({CITIES}; SELECT SUM(customer) FROM orders)", "DP201"),
        (f"DP BATCH ({CITIES}; SELECT COUNT(*) FROM orders WHERE amount > 3)", "DP302"),
        (f"DP BATCH ({WHOLE}; {CITIES}; {CITIES})", "DP415"),
    ],
)
def test_what_is_no_batch(server: Served, sql: str, code: str) -> None:
    before = server.shop.spent()
    with pytest.raises(Refused) as refused:
        server.ask(sql)
    assert refused.value.diagnostics[0].code == code and server.shop.spent() == before


def test_a_ceiling_holds_for_the_whole_batch(server: Served) -> None:
    """Each of its marginals alone would be below the ceiling."""
    lyon = "SELECT COUNT(*) AS n FROM orders WHERE city <> 'Lyon'"
    low = replace(BEN, ceilings=Ceilings(per_query="0.09"))
    with pytest.raises(Refused) as refused:
        server.ask(f"DP BATCH ({lyon}; {lyon.replace('COUNT(*)', 'SUM(amount)')})", login=low)
    assert refused.value.diagnostics[0].code == "DP413"
    server.ask(BOARD)
    assert server.ask(BOARD, login=replace(ANA, ceilings=Ceilings(per_query="0.09"))).spent == ""


def test_its_text_stays_together_and_is_read_in_its_place() -> None:
    text = f"SELECT 1; -- DP BATCH (\n dp /* x */ batch ({CITIES}; SELECT ')' ;); SELECT 2; EXPLAIN {BOARD};"
    found = statements(text)
    assert [s.text.split(None, 1)[0] for s in found][2:] == ["SELECT", "EXPLAIN"] and len(found) == 4
    assert all(text[s.start : s.start + len(s.text)] == s.text for s in found)
    said = spoken(found[3].text)
    assert (said.form, said.command, said.batch) == ("text", "EXPLAIN", "all")
    assert said.sql.strip() == BOARD and said.sql.index(CITIES) == found[3].text.index(CITIES)
    assert spoken("SELECT 1") == Spoken("SELECT 1")
    assert [s.text for s in statements("SELECT (1; 2)")] == ["SELECT (1", " 2)"]


def test_answers_of_a_batch_cross_as_they_are() -> None:
    more = (Answer((("n", BIGINT), ("city", VARCHAR)), [(1, "x")]), Answer((("m", DOUBLE),), [(0.5,)]))
    reply = Reply("r1", Answer((), [], (Note("charged"),), command="BATCH", more=more))
    assert read(write(reply)) == reply


def test_a_refused_text_reaches_no_worker(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def asked(*_: object, **__: object) -> Reply:
        raise AssertionError("a worker was asked")

    monkeypatch.setattr(server.gateway.pool, "look", asked)
    for sql in (f"DP BATCH ({CITIES}; SELECT MAX(amount) FROM orders)", "DP BATCH (SELECT SUM(customer) FROM orders)"):
        for each in (sql, f"EXPLAIN {sql}"):
            with pytest.raises(Refused):
                server.ask(each)
