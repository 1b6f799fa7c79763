"""Answers that are given again without being made again: only while ledger and stored answers say the same."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.faces.server.statements import Answer, Ceilings, StatementSettings
from dpsql.faces.server.workers import kept_answers
from dpsql.faces.server.workers.answering import WorkerAnswering
from dpsql.faces.server.workers.worker_messages import Ask, Wish
from dpsql.service import pipeline
from dpsql.service.open_data import open_data
from dpsql.service.service import Service
from tests.support.small_shop import COUNT, MEANS, Shop, make_shop

CITIES = "SELECT city, COUNT(*) AS n FROM orders GROUP BY city ORDER BY city"


class Desk:
    """Who answers, and how many answers were made of what is held."""

    def __init__(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = 0
        self._answering = WorkerAnswering(service, 100, lambda id: None, lambda id, entry: None)
        given = pipeline.given

        def counted(*arguments: object) -> object:
            self.made += 1
            return given(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(pipeline, "given", counted)

    def ask(self, sql: str, wish: Wish = "look", account: str = "ana", epsilon: str = "0.1") -> Answer | None:
        asked = StatementSettings(epsilon=epsilon)
        ask = Ask("r", wish, account, sql, (), asked, Ceilings(), dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
        reply = self._answering.answer(ask)
        assert not reply.refused, reply.refused
        return reply.answer


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return make_shop(tmp_path / "shop", epsilon="10")


@pytest.fixture
def desk(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    with Service(*open_data(shop.policy, None, None, None, None)) as service:
        yield Desk(service, monkeypatch)


def test_an_answer_is_made_once_for_all_spellings(desk: Desk) -> None:
    paid = desk.ask(CITIES, "run")
    first = desk.ask(CITIES)
    assert paid is not None and first is not None and first.rows == paid.rows
    assert desk.ask(CITIES) == first == desk.ask(CITIES.replace(" FROM", "\n  FROM -- again\n"))
    assert desk.made == 1
    other = desk.ask(CITIES.replace("AS n", "AS number"))
    assert other is not None and other.rows == first.rows and other.columns[1][0] == "number"


def test_another_account_is_given_nothing_of_it(desk: Desk) -> None:
    desk.ask(COUNT, "run")
    assert desk.ask(COUNT) is not None and desk.ask(COUNT, account="ben") is None


def test_a_better_answer_takes_its_place(desk: Desk) -> None:
    desk.ask(COUNT, "run")
    old = desk.ask(COUNT)
    better = desk.ask(COUNT, "run", epsilon="1")
    again = desk.ask(COUNT)
    assert old is not None and better is not None and again is not None
    assert again.rows == better.rows and again.notices != old.notices


def test_nothing_is_given_that_is_stored_no_more(desk: Desk, shop: Shop) -> None:
    desk.ask(COUNT, "run")
    assert desk.ask(COUNT) is not None
    for path in shop.folder.glob("shop.ledger.sqlite.answers*"):
        path.unlink()
    assert desk.ask(COUNT) is None


def test_what_reads_tables_is_made_each_time(desk: Desk) -> None:
    for sql in (MEANS, "SELECT COUNT(*) FROM cities"):
        desk.ask(sql, "run")
        before = desk.made
        first, second = desk.ask(sql), desk.ask(sql)
        assert first is not None and first == second and desk.made == before + 2


def test_a_bounded_number_is_kept(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_answers, "MOST_CELLS", 3)
    desk.ask(CITIES, "run")
    desk.ask(COUNT, "run")
    for sql in (CITIES, CITIES, COUNT, COUNT):
        desk.ask(sql)
    assert desk.made == 2
    desk.ask(CITIES)
    assert desk.made == 3
