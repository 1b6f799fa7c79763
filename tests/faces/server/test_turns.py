"""Whose turn it is, and how many may wait."""

from __future__ import annotations

import asyncio

import pytest

from dpsql.faces.server.statements import Refused
from dpsql.faces.server.turns import OWN, Seats, Turns
from tests.support.hand_clock import settle


def test_the_next_is_the_account_whose_turn_is_longest_ago() -> None:
    turns = Turns[str](100)
    for number in range(10):
        turns.add("mallory", f"m{number}")
    turns.add("ana", "a")
    given = []
    while (account := turns.next()) is not None:
        given += turns.take(account)
        if len(given) == 3:
            turns.add("ana", "again")
            turns.add("ben", "b")
    assert given == ["m0", "a", "m1", "b", "again", *(f"m{n}" for n in range(2, 10))]


def test_what_the_server_asks_for_itself_goes_first() -> None:
    turns = Turns[str](1)
    turns.add("ana", "a")
    for number in range(3):
        turns.add(OWN, str(number))
    assert turns.next() == OWN and turns.take(OWN, 2) == ["0", "1"] and turns.next() == OWN


def test_each_account_has_a_queue_of_its_own() -> None:
    turns = Turns[int](2)
    for number in range(2):
        turns.add("mallory", number)
    with pytest.raises(Refused) as refusal:
        turns.add("mallory", 2)
    assert [d.code for d in refusal.value.diagnostics] == ["DP414"] and len(turns) == 2
    turns.add("ana", 3)
    turns.put_back("mallory", [7, 8])  # what had its turn is not refused for it
    assert turns.take("mallory", 3) == [7, 8, 0]


def test_seats_are_taken_in_turns_and_by_nobody_who_has_left() -> None:
    async def test() -> None:
        seats, order, goes = Seats(1, 10), list[str](), asyncio.Event()

        async def sit(name: str, account: str) -> None:
            async with seats.taken(account):
                order.append(name)
                await goes.wait()

        asked = [asyncio.create_task(sit(name, name[0])) for name in ("m1", "m2", "m3", "a1", "m4", "b1")]
        await settle()
        assert order == ["m1"]
        asked[1].cancel()
        await settle()
        goes.set()
        await settle()
        assert order == ["m1", "a1", "b1", "m3", "m4"]
        await sit("c1", "c")  # the seat is free again
        assert order[-1] == "c1"

    asyncio.run(test())


def test_a_seat_is_passed_on_by_whoever_leaves_when_it_is_his_turn() -> None:
    async def test() -> None:
        seats = Seats(1, 10)
        first = seats.taken("ana")
        await first.__aenter__()
        second = asyncio.create_task(seats.taken("ben").__aenter__())
        third = asyncio.create_task(seats.taken("cleo").__aenter__())
        await settle()
        await first.__aexit__(None, None, None)
        second.cancel()  # before it has noticed that it is its turn
        await settle()
        assert second.cancelled() and third.done()

    asyncio.run(test())
