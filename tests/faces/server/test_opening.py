"""The databases that a server is told to have, before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.diagnostics.errors import CannotOpen, Rejected
from dpsql.faces.server.open_databases import planned
from dpsql.faces.server.workers.worker_link import command
from tests.support.small_shop import make_shop


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two policies, and a third whose name is that of what is made up of the first."""
    found = []
    for name in ("shop", "market", "shop_made_up"):
        policy = make_shop(tmp_path_factory.mktemp(name)).policy
        policy.write_text(policy.read_text().replace("name: shop", f"name: {name}"))
        found.append(str(policy))
    return found


def test_each_policy_is_a_database_and_so_is_what_is_made_up_of_it(files: list[str]) -> None:
    shop, market, _ = files
    beside, only = planned([shop, market], [], "beside"), planned([shop, market], [], "only")
    made_up = {"shop_made_up": "shop", "market_made_up": "market"}
    assert dict(planned([shop, market], [], "none").names) == {"shop": "shop", "market": "market"}
    assert dict(beside.names) == {"shop": "shop", "market": "market"} | made_up and dict(only.names) == made_up
    assert list(beside.names)[:2] == ["shop", "market"] and not only.true


def test_names_that_meet_are_refused(files: list[str]) -> None:
    shop, _, collides = files
    assert len(planned([shop, collides], [], "none").names) == 2
    for given, made_up in (([shop, collides], "beside"), ([shop, shop], "none")):
        with pytest.raises(CannotOpen, match="two databases of the server would be called") as refusal:
            planned(given, [], made_up)  # type: ignore[arg-type]
        assert refusal.value.diagnostics[0].code == "DP009"


def test_each_policy_has_workers_of_its_own(files: list[str]) -> None:
    shop, market, _ = files
    assert [one.socket for one in planned([shop, market], ["a.sock", "b.sock"], "none").of] == [
        Path("a.sock"), Path("b.sock"),
    ]  # fmt: skip
    for sockets, made_up in ((["a.sock"], "beside"), (["a.sock", "b.sock"], "only")):
        with pytest.raises(Rejected, match="workers of its own"):
            planned([shop, market], sockets, made_up)  # type: ignore[arg-type]


def test_a_worker_of_made_up_rows_is_told_so(files: list[str]) -> None:
    """It is started here, whoever has the others, and takes neither threads nor memory for data."""
    (one,) = planned([files[0]], ["a.sock"], "beside").of
    assert command(one.file, one.policy.serving, one.made_up)[-2:] == ["--made-up", "shop_made_up"]
