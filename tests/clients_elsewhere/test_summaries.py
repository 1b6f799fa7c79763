"""psycopg 3 at `dpsql serve`: a dashboard of twelve tiles from one summary, each with its ±, the second view free."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deep.faces.server.test_serve import serving
from tests.support.served import PASSWORD, people
from tests.support.served_shop import FINE, with_serve
from tests.support.small_shop import Shop
from tests.support.summary_board import CREATE, POLICY, TILES, make_board

psycopg = pytest.importorskip("psycopg")


def test_a_dashboard_from_one_summary(tmp_path: Path) -> None:
    make_board(tmp_path, POLICY.replace("name: board", "name: shop")).rename(tmp_path / "shop.yaml")
    shop = with_serve(Shop(tmp_path), f"{FINE}, workers: 1, memory: 1GB}}")
    secret = people().secret_of("ana")
    users = f"users:\n  ana: {{secret: '{secret}', may: [summaries]}}\n  viewer: {{secret: '{secret}', account: ana}}\n"
    (tmp_path / "users.yaml").write_text(users)
    with serving(shop) as (_, port):
        dsn = f"host=127.0.0.1 port={port} password='{PASSWORD}' dbname=shop user="
        with psycopg.connect(f"{dsn}ana", autocommit=True) as con:
            priced = con.execute(f"EXPLAIN (COST) {CREATE}")
            assert priced.statusmessage == "EXPLAIN" and {row[0] for row in priced} == {"ε 0.5"}
            assert con.execute(f"EXPLAIN {CREATE}").fetchall()[-1] == ("cost: ε 0.5",)
            made = con.execute(CREATE)
            assert made.statusmessage == "CREATE DP SUMMARY" and made.fetchall() == [("board", "ε 0.5")]
            before = con.execute("SELECT epsilon_spent FROM dpsql.budget WHERE unit = 'flight'").fetchone()
        with psycopg.connect(f"{dsn}viewer", autocommit=True) as con:
            told: list[str] = []
            con.add_notice_handler(lambda notice: told.append(notice.message_primary))
            con.execute("SET dpsql.intervals = on")
            views = [
                [con.execute(sql).fetchall() for sql in TILES]  # no ε is given: nothing is spent
                for _ in range(2)
            ]
            con.execute("SET dpsql.intervals = off")
            assert views[0] == views[1] and all(views[0])
            assert len([note for note in told if note.startswith("from summary board of ")]) == 2 * len(TILES)
            assert before == con.execute("SELECT epsilon_spent FROM dpsql.budget WHERE unit = 'flight'").fetchone()
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                con.execute("DROP DP SUMMARY board")
            assert con.execute("SELECT name, held FROM dpsql.summaries").fetchall() == [("board", True)]
