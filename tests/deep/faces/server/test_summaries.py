"""A dashboard at `dpsql serve`, answered from one summary: by a client of our own, and by psql where it is there."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import dpsql
from tests.deep.faces.server.test_serve import connected, serving
from tests.support.served import PASSWORD, people
from tests.support.served_shop import FINE, with_serve
from tests.support.small_shop import Shop
from tests.support.summary_board import CREATE, POLICY, TILES, make_board
from tests.support.wire_client import rows

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shop, int]]:
    folder = tmp_path_factory.mktemp("board")
    make_board(folder, POLICY.replace("name: board", "name: shop")).rename(folder / "shop.yaml")
    shop = with_serve(Shop(folder), f"{FINE}, workers: 2, memory: 1GB}}")
    secret = people().secret_of("ana")
    users = f"users:\n  ana: {{secret: '{secret}', may: [summaries]}}\n  bob: {{secret: '{secret}'}}\n"
    (folder / "users.yaml").write_text(users)
    with serving(shop) as (_, port):
        with connected(port) as client:
            told = client.query(CREATE)
            assert rows(told) == [("board", "ε 0.5")], [r.fields for r in told if r.kind == "E"]
        yield shop, port


def charged(shop: Shop) -> Fraction:
    with dpsql.connect(shop.policy, analyst="ana") as con:
        return Fraction(con.budget.spent.epsilon)


def test_twelve_tiles_for_one_price(running: tuple[Shop, int]) -> None:
    """Each with its interval; the second viewing shows the same numbers; nothing more is charged."""
    shop, port = running
    views = []
    for _ in range(2):
        with connected(port) as client:
            client.query("SET epsilon = 0.001; SET intervals = on")
            views.append([rows(client.query(sql)) for sql in TILES])
    assert views[0] == views[1] and len(views[0]) == 12 and all(views[0])
    assert charged(shop) == Fraction(1, 2)


def test_who_has_no_right_is_refused(running: tuple[Shop, int]) -> None:
    _, port = running
    with connected(port, "bob") as client:
        for sql in (CREATE, "DROP DP SUMMARY board", "CREATE TABLE x (y int)"):
            (error,) = (r for r in client.query(sql) if r.kind == "E")
            assert error.fields["C"] == "25006"


PSQL = shutil.which("psql")


@pytest.mark.skipif(PSQL is None, reason="psql is not on this machine")
def test_psql_shows_the_board(running: tuple[Shop, int], tmp_path: Path) -> None:
    shop, port = running
    assert PSQL is not None
    script = "SET epsilon = 0.001;\nSET intervals = on;\n" + "".join(f"{sql};\n" for sql in TILES)
    views = []
    for _ in range(2):
        done = subprocess.run(
            [PSQL, "-X", "-A", "-q", f"host=127.0.0.1 port={port} user=ana dbname=shop sslmode=prefer"], input=script,
            text=True, capture_output=True, timeout=600,
            env={**os.environ, "PGPASSWORD": PASSWORD, "PGCLIENTENCODING": "UTF8", "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        assert "ERROR" not in done.stderr, done.stderr
        assert done.stderr.count("from summary board of ") == done.stderr.count("nothing was charged") == len(TILES)
        views.append(done.stdout)
    assert views[0] == views[1] and views[0].count("_low") >= len(TILES)
    assert charged(shop) == Fraction(1, 2)
