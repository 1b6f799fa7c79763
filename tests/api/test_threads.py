"""A connection used from other threads than the one that made it, also by several at one time, and from async code."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dpsql
from tests.api.conftest import POLICY, Opener, cities, members


def on_disk(folder: Path) -> dpsql.Connection:
    """Its ledger and answers are SQLite files, which have their own opinion of threads."""
    policy = dpsql.Policy.from_dict(POLICY | {"ledger_head": "head.json"}, directory=folder)
    return dpsql.connect(policy, frames={"members": members(), "cities": cities()}, epsilon=1)


def test_a_connection_made_in_one_thread_works_in_another(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as maker, ThreadPoolExecutor(1) as user:
        con = maker.submit(on_disk, tmp_path).result()
        answer = user.submit(con.execute, "SELECT COUNT(*) AS n FROM members").result()
        assert len(answer) == 1 and con.budget.spent.epsilon == 1
        maker.submit(lambda: con.execute("SELECT COUNT(*) AS n FROM members WHERE age < 5")).result()
        assert user.submit(lambda: con.budget.spent.epsilon).result() == 2
        user.submit(con.close).result()


def test_async_code(tmp_path: Path) -> None:
    async def ask() -> list[int]:
        with await asyncio.to_thread(on_disk, tmp_path) as con:
            sql = "SELECT COUNT(*) AS n FROM members WHERE age < ?"
            found = await asyncio.gather(*(asyncio.to_thread(con.execute, sql, [age]) for age in (10, 20, 30)))
            return [len(cursor.fetchall()) for cursor in found] + [int(con.budget.spent.epsilon)]

    assert asyncio.run(ask()) == [1, 1, 1, 3]


def test_many_threads_at_one_time(opened: Opener) -> None:
    """Each gets an answer of its own question, and each question is charged once."""
    with opened(epsilon=1000) as con:
        begin = threading.Barrier(8)

        def ask(i: int) -> tuple[int, int]:
            begin.wait(60)
            (found,) = con.execute("SELECT COUNT(*) AS n FROM members WHERE age < ?", [10 * (i % 4)]).fetchall()
            cost = con.sql("SELECT COUNT(*) AS n FROM members").cost()
            assert cost.epsilon == 1000
            return i % 4, int(found[0])

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(ask, range(8)))
        true = {k: sum(1 for i in range(3000) if i % 80 < 10 * k) for k in range(4)}
        assert [true[k] == n for k, n in found] == [True] * 8
        assert con.budget.spent.epsilon == 4000
