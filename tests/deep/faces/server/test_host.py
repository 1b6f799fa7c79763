"""Workers of another user: one for each connection to a socket that only its group may open."""

from __future__ import annotations

import contextlib
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.faces.server import gateway
from dpsql.faces.server.size_limits import failed
from dpsql.faces.server.statements import Refused
from dpsql.faces.server.workers.worker_link import connected
from tests.support.served_shop import FINE, Served, served, with_serve
from tests.support.small_shop import COUNT, MEANS, PRICE, Shop, make_shop

pytestmark = pytest.mark.processes


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return with_serve(make_shop(tmp_path / "shop"), f"{FINE}}}")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, a look asks for no third worker: the host has none to give."""
    monkeypatch.setattr(gateway, "SLICE", 60.0)


@contextlib.contextmanager
def host(shop: Shop) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    path = shop.folder / "w"
    process = subprocess.Popen([sys.executable, "-m", "dpsql.faces.server.workers.host", str(path), str(shop.policy)])
    try:
        while not path.is_socket():
            assert process.poll() is None
            time.sleep(0.01)
        yield path, process
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert not path.exists()


def test_a_front_is_served_over_the_socket(shop: Shop) -> None:
    with host(shop) as (path, _):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        with served(shop, connected(path)) as server:
            assert len(server.ask(MEANS).rows) == 3
            assert server.ask(MEANS).spent == ""
        with served(shop, connected(path)) as server:  # another front, after the first has gone
            assert len(server.ask(COUNT).rows) == 1
    assert shop.spent() == 2 * PRICE


def test_more_connections_than_the_policy_has_workers_get_none(shop: Shop) -> None:
    with host(shop) as (path, _), contextlib.ExitStack() as open_ones:
        servers = [open_ones.enter_context(served(shop, connected(path))) for _ in range(2)]
        with pytest.raises(Exception, match=failed().diagnostics[0].message):
            Served(shop, connected(path))
        assert len(servers[0].ask(COUNT).rows) == 1


def test_without_a_host_the_server_does_not_open(shop: Shop) -> None:
    with pytest.raises(Exception, match="nobody gives workers at"):
        Served(shop, connected(shop.folder / "nothing"))


def test_a_host_that_ends_lets_the_front_finish(shop: Shop) -> None:
    with host(shop) as (path, process), served(shop, connected(path)) as server:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        with contextlib.suppress(Refused):
            server.ask(COUNT)
        assert shop.spent() == PRICE
