"""Counters and periods at `dpsql serve`: a custodian closes, an analyst counts, over real connections and workers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deep.faces.server.test_serve import connected, serving
from tests.faces.server.test_counters import MADE, town
from tests.support.counted_trips import PER_DAY
from tests.support.served import PASSWORD, people
from tests.support.small_shop import Shop
from tests.support.wire_client import Client, rows

pytestmark = pytest.mark.processes
PSQL = shutil.which("psql")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Shop, int]]:
    shop = town(tmp_path)
    text = shop.policy.read_text().replace("600s]}", "600s], workers: 2, memory: 1GB}")
    shop.policy.write_text(text.replace("name: trips", "name: shop"))
    secret = people().secret_of("ana")
    lines = [
        f"ana: {{secret: '{secret}', may: [counters]}}", f"ben: {{secret: '{secret}'}}",
        f"eve: {{secret: '{secret}', role: custodian, account: ana, may: [periods]}}",
    ]  # fmt: skip
    (tmp_path / "users.yaml").write_text("users:\n" + "".join(f"  {line}\n" for line in lines))
    with serving(shop) as (_, port):
        yield shop, port


def asked(client: Client, sql: str) -> list[tuple[str | None, ...]]:
    told = client.query(sql)
    assert not [r.fields for r in told if r.kind == "E"]
    return rows(told)


def refused(client: Client, sql: str) -> dict[str, str]:
    (error,) = (r for r in client.query(sql) if r.kind == "E")
    return dict(error.fields)


def test_a_dashboard_that_is_refreshed_day_by_day(running: tuple[Shop, int]) -> None:
    _, port = running
    with connected(port) as ana, connected(port, "eve") as eve, connected(port, "ben") as ben:
        assert refused(ana, "CLOSE DP PERIODS THROUGH DATE '2026-01-03'")["C"] == "25006"
        assert refused(ben, MADE)["C"] == "25006"
        assert asked(eve, "CLOSE DP PERIODS THROUGH DATE '2026-01-03'")[0][2] == "2026-01-03"
        assert asked(ana, f"EXPLAIN (COST) {MADE}")[0][0] == "ρ 100000000000000"
        assert asked(ana, MADE) == [("rides", "ρ 100000000000000", "2026-01-03", "counted through 2026-01-03")]
        total = "SELECT SUM(n) FROM dpsql.rides"
        assert asked(ana, total) == [(str(2 * 3 * PER_DAY),)]
        asked(eve, "CLOSE DP PERIODS THROUGH DATE '2026-01-04'")
        assert asked(ana, total) == [(str(3 * 3 * PER_DAY),)]
        assert "RECEIVE DP COUNTER rides" in refused(ben, total)["H"]
        asked(ben, "RECEIVE DP COUNTER rides")
        assert asked(ben, total) == asked(ana, total)
        asked(ana, "PREPARE tile AS SELECT SUM(n) FROM dpsql.rides WHERE station = $1")
        assert asked(ana, "EXECUTE tile(2)") == [(str(3 * 2 * PER_DAY),)]
        asked(ana, "DROP DP COUNTER rides")
        assert "does not exist" in refused(ben, total)["M"]


@pytest.mark.skipif(PSQL is None, reason="psql is not on this machine")
def test_psql_shows_a_counter(running: tuple[Shop, int]) -> None:
    _, port = running
    assert PSQL is not None

    def said(user: str, script: str) -> str:
        done = subprocess.run(
            [PSQL, "-X", "-A", "-q", "-t", f"host=127.0.0.1 port={port} user={user} dbname=shop sslmode=prefer"],
            input=script, text=True, capture_output=True, timeout=600,
            env={**os.environ, "PGPASSWORD": PASSWORD, "PGCLIENTENCODING": "UTF8", "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        assert "ERROR" not in done.stderr, done.stderr
        return done.stdout

    said("eve", "CLOSE DP PERIODS OF trips THROUGH DATE '2026-01-03';")
    shown = said("ana", f"{MADE};\nSELECT day, SUM(n) FROM dpsql.rides GROUP BY day ORDER BY day;\n")
    assert shown.splitlines()[1:] == ["2026-01-02|15", "2026-01-03|15"]
