"""What pages read of a ledger does not grow with it: counted, not timed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest

from dpsql.core.ledger.chain.hash_chain import LedgerRow, Point
from dpsql.core.ledger.ledger import Receipt
from dpsql.faces.server.account_relations import RELATIONS
from dpsql.faces.server.statements import Answer, Ceilings, StatementSettings
from dpsql.faces.server.workers.answering import WorkerAnswering
from dpsql.faces.server.workers.ceilings import AccountSpending
from dpsql.faces.server.workers.worker_messages import Ask
from dpsql.service.accounts.spending_story import NEWEST
from dpsql.service.open_data import open_data
from dpsql.service.service import Service
from tests.support.long_ledger import ACCOUNTS, lengthen
from tests.support.small_shop import make_shop

CEILINGS = Ceilings(per_hour="1000", per_day="1000", statements=1000)
LONG = 7_000


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerAnswering]:
    """A worker that has read a long ledger, as workers do before they are asked anything."""
    shop = make_shop(tmp_path_factory.mktemp("shop"), epsilon="100")
    lengthen(shop.policy, LONG)
    with Service(*open_data(shop.policy, None, None, None, None)) as service:
        spending = AccountSpending(service)
        spending.read()
        yield WorkerAnswering(service, 10_000, lambda id: None, lambda id, entry: None, spending=spending)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The entries that are read and checked."""
    found, follows = list[int](), LedgerRow.follows

    def counted(row: LedgerRow, last: Point) -> Receipt:
        found.append(row.sequence)
        return follows(row, last)

    monkeypatch.setattr(LedgerRow, "follows", counted)
    return found


def ask(answering: WorkerAnswering, sql: str, account: str = "ana", wish: str = "look") -> Answer:
    now = dt.datetime.now(dt.UTC)
    reply = answering.answer(Ask("one", wish, account, sql, (), StatementSettings(epsilon="0.1"), CEILINGS, now))  # type: ignore[arg-type]
    assert reply.answer is not None, reply.refused
    return reply.answer


@pytest.mark.parametrize("name", RELATIONS)
def test_a_page_reads_no_more_than_it_shows(answering: WorkerAnswering, read: list[int], name: str) -> None:
    rows = ask(answering, f"SELECT * FROM dpsql.{name}").rows
    assert len(read) <= (NEWEST if name == "history" else 0) and len(rows) <= NEWEST * 2
    planned = list(ask(answering, f"SELECT h.* FROM dpsql.{name} AS h").rows)
    assert len(read) <= 2 * (NEWEST if name == "history" else 0)
    assert sorted(map(repr, rows)) == sorted(map(repr, planned))


def test_the_newest_are_told_with_the_numbers_that_they_have_had(answering: WorkerAnswering) -> None:
    rows = ask(answering, "SELECT * FROM dpsql.history").rows
    own = range(ACCOUNTS.index("ana"), LONG, len(ACCOUNTS))[-NEWEST:]
    assert [row[0] for row in rows] == list(range(LONG // 5 - NEWEST + 1, LONG // 5 + 1))
    assert [str(row[2]).split(" < ")[1].split()[0] for row in rows] == list(map(str, own))


def test_what_is_spent_is_told_exactly_at_the_end(answering: WorkerAnswering) -> None:
    spending = list(ask(answering, "SELECT * FROM dpsql.spending_of_all").rows)
    last = {row[1]: row[3] for row in spending}
    assert last == {None: LONG / 10**5, **dict.fromkeys(ACCOUNTS, LONG / 5 / 10**5)}
    assert [row[1:] for row in ask(answering, "SELECT * FROM dpsql.spending").rows][-1][1] == last["ana"]
    facts = dict(ask(answering, "SELECT * FROM dpsql.ledger").rows)  # type: ignore[arg-type]
    assert facts["charges"] == str(LONG) and str(facts["its place in the chain"]).startswith(f"{LONG}, ")


def test_ceilings_and_prices_read_what_is_new(answering: WorkerAnswering, read: list[int]) -> None:
    ask(answering, f"{3:032x}", wish="entry")
    assert read == [4]
    ask(answering, "SELECT 1 AS x")
    assert read == [4]
