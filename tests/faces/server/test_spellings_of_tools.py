"""One question in the spellings of many tools costs once, and what tools ask unasked costs nothing.

`RECORDED` is what tools were seen to send, over another table: dbt 1.10 and dbt-postgres 1.9 to a server of ours, the
others as the page says that stands beside each. `WRITTEN` is written as the tools' documentation describes them.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import dpsql
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.faces.server.asked import DIALECT
from dpsql.faces.server.statements import Login, StatementSettings
from tests.support.served import PASSWORD
from tests.support.served_shop import FINE, with_serve
from tests.support.served_web import served_web
from tests.support.small_shop import Shop
from tests.support.wire_client import Client, rows

RECORDED = {
    # dbt show --select model; dbt show --inline
    "dbt, model": """\
/* {"app": "dbt", "dbt_version": "1.10.23", "profile_name": "clinic", "node_id": "model.clinic.by_region"} */

  \n  \nwith source as (select * from "clinic"."public"."patients"),
renamed as (select region from source)
select region, count(*) as n from renamed group by region
  \n  limit 5
""",
    "dbt, inline": """\
/* {"app": "dbt", "dbt_version": "1.10.23", "profile_name": "clinic", "node_id": "sql_operation.clinic.inline_query"} */

  \n  select region, count(*) as n from "clinic"."public"."patients" group by 1
  \n  limit 5
""",
    # https://github.com/AdobeDocs/analytics-platform.en: help/use-cases/data-views/bi-extension/limits.md
    "Power BI": """\
select "_"."region",
    "_"."a0"
from \n(
    select "rows"."region" as "region",
        count(*) as "a0"
    from \n    (
        select "_"."id",
            "_"."region",
            "_"."age"
        from "public"."patients" "_"
    ) "rows"
    group by "region"
) "_"
where not "_"."a0" is null
limit 1000001""",
    "dbplyr": """\
SELECT "region", COUNT(*) AS "n"
FROM (
  SELECT "patients".*
  FROM "patients"
) AS "q01"
GROUP BY "region"
ORDER BY "n" DESC
LIMIT 5""",
    # the same page; https://github.com/cwida/public_bi_benchmark: queries-original
    "Tableau": """\
SELECT SUM(1) AS "cnt:patients_5460F7F804494E7CB9FD188E329004C1:ok",
  CAST("patients"."region" AS TEXT) AS "region"
FROM "public"."patients" "patients"
GROUP BY 2""",
    # https://github.com/metabase/metabase/issues/6729 (the remark) and 23854
    "Metabase": """\
-- Metabase:: userID: 1 queryType: MBQL queryHash: 84312c35be2599726c0af83cbea31aa7a2f67c53fd0528b723c964221a9b1bef
SELECT "public"."patients"."region" AS "region", count(*) AS "count"
FROM "public"."patients"
GROUP BY "public"."patients"."region"
ORDER BY "public"."patients"."region" ASC""",
    # https://github.com/stackql/stackql: test/python/stackql_test_tooling/stackql_context.py
    "Superset": """\
SELECT region AS region, count(*) AS "COUNT(*)" FROM (SELECT *    from patients    ) AS virtual_table \
GROUP BY region ORDER BY "COUNT(*)" DESC LIMIT 1000;""",
    # https://github.com/dbeaver/dbeaver/issues/40639
    "DBeaver": """\
SELECT region, COUNT(*) AS count FROM public.patients AS sh
GROUP BY region""",
    # https://github.com/dbeaver/dbeaver/issues/11159
    "DBeaver, of a query": """\
SELECT region, COUNT(*) FROM (
SELECT * FROM public.patients) src
GROUP BY region""",
    # https://github.com/grafana/grafana/pull/115974 has its frame, of the builder's table
    "Grafana": "SELECT COUNT(*), region FROM patients GROUP BY region LIMIT 50 ",
}
WRITTEN = {
    "Metabase": 'SELECT "public"."patients"."region" AS "region", COUNT(*) AS "count" FROM "public"."patients" '
    'GROUP BY "public"."patients"."region" ORDER BY "public"."patients"."region" ASC',
    "Superset": "SELECT region AS region, COUNT(*) AS count FROM public.patients GROUP BY region "
    "ORDER BY count DESC LIMIT 10000",
    "Superset, virtual": 'SELECT region AS region, COUNT(*) AS "COUNT(*)" FROM (SELECT * FROM patients) AS '
    'virtual_table GROUP BY region ORDER BY "COUNT(*)" DESC LIMIT 1000',
    "Power BI": 'select "rows"."region" as "region", count(*) as "a0" from (select "$Table"."region" as "region" '
    'from "public"."patients" "$Table") "rows" group by "region" limit 1000001',
    "Tableau": 'SELECT "patients"."region" AS "region", SUM(1) AS "cnt:patients:ok" '
    'FROM "public"."patients" "patients" GROUP BY 1',
    "DBeaver": "SELECT x.region, count(*) FROM public.patients x GROUP BY x.region",
    "Grafana": "SELECT region AS metric, count(*) AS value FROM patients GROUP BY region ORDER BY 1",
    "dbt": 'with source as (select * from "clinic"."public"."patients"), renamed as (select region from source) '
    "select region, count(*) as n from renamed group by region",
    "dplyr": 'SELECT "region", COUNT(*) AS "n" FROM "patients" GROUP BY "region"',
    "Looker": 'SELECT patients.region AS "patients.region", COUNT(*) AS "patients.count" FROM public.patients AS '
    "patients GROUP BY 1 ORDER BY 2 DESC FETCH NEXT 500 ROWS ONLY",
}
BY_REGION = RECORDED | {f"{tool}, as described": sql for tool, sql in WRITTEN.items()}
FREE = {
    "Metabase's probe": 'SELECT TRUE FROM "public"."patients" WHERE 1 <> 1 LIMIT 0',
    "Metabase's values": 'SELECT "public"."patients"."region" AS "region" FROM "public"."patients" '
    'GROUP BY "public"."patients"."region" ORDER BY "public"."patients"."region" ASC LIMIT 1001',
    "dplyr's probe": 'SELECT * FROM "patients" AS "q01" WHERE (0 = 1)',
    "dbt's probe": 'select * from (select region, count(*) as n from "clinic"."public"."patients" group by region) '
    "as __dbt_sbq where false limit 0",
    # as RECORDED has Tableau
    "Tableau's values": 'SELECT CAST("patients"."region" AS TEXT) AS "region"\nFROM "public"."patients" "patients"\n'
    "GROUP BY 1",
    # dbt-adapters: get_empty_subquery_sql
    "dbt's probe, as its macro writes it": "select * from (\n        select region, count(*) as n from "
    '"clinic"."public"."patients" group by region\n    ) as __dbt_sbq\n    where false\n    limit 0',
    "Tableau's probe": "SELECT * FROM (SELECT region, AVG(age) n FROM patients GROUP BY 1) t LIMIT 0",
}


POLICY: dict[str, Any] = {
    "version": 1,
    "name": "clinic",
    "units": {"patient": {}},
    "tables": {
        "patients": {
            "unit": {"column": "id"},
            "primary_key": ["id"],
            "columns": {
                "id": {"type": "bigint", "nullable": False},
                "region": {"type": "varchar", "domain": ["east", "west"], "nullable": False},
                "age": {"type": "bigint", "bounds": [0, 110], "nullable": False},
            },
        }
    },
    "budgets": {"total": {"epsilon": 100}},
}


@pytest.fixture
def con() -> Iterator[dpsql.Connection]:
    rows = pa.table({"id": range(40), "region": ["east", "west"] * 20, "age": range(40)})
    with dpsql.connect(dpsql.Policy.from_dict(POLICY), frames={"patients": rows}, ledger=":memory:") as found:
        yield found


@pytest.mark.parametrize("dialect", ["postgres", DIALECT])
def test_one_question_in_many_spellings_costs_once(con: dpsql.Connection, dialect: str) -> None:
    """A server reads them in its own dialect."""
    first, *others = BY_REGION.items()
    assert con.sql(first[1], dialect=dialect).run(epsilon="0.1").spent != PrivacyLoss()
    spent = {tool: con.sql(sql, dialect=dialect).run(epsilon="0.1").spent for tool, sql in others}
    assert spent == dict.fromkeys(dict(others), PrivacyLoss())


@pytest.mark.parametrize("tool", FREE)
@pytest.mark.parametrize("dialect", ["postgres", DIALECT])
def test_what_tools_ask_unasked_is_free(tool: str, con: dpsql.Connection, dialect: str) -> None:
    assert con.sql(FREE[tool], dialect=dialect).run(epsilon="0.1").spent == PrivacyLoss()


TOTAL = {
    "SQL": "SELECT COUNT(*) FROM patients",
    # https://github.com/cwida/public_bi_benchmark: queries-original, and its remark
    "Tableau": 'SELECT SUM(1) AS "cnt:TEMP(row count)(290714814)(0):qk"\nFROM "public"."patients" "patients"\n'
    'HAVING (COUNT(1) > 0)\n/* { "tableau-query-origins": { "query-category": "RowCount", "lqctx-root-activity-id": '
    '"H/oHPpVtURhJ221TSuyAu0" } } */',
}


@pytest.mark.parametrize("dialect", ["postgres", DIALECT])
def test_a_number_of_rows_in_two_spellings_costs_once(con: dpsql.Connection, dialect: str) -> None:
    spent = [con.sql(sql, dialect=dialect).run(epsilon="0.1").spent for sql in TOTAL.values()]
    assert spent[0] != PrivacyLoss() and spent[1] == PrivacyLoss()


def test_another_question_costs_again(con: dpsql.Connection) -> None:
    """A twin: not everything is free."""
    con.sql(WRITTEN["Metabase"], dialect="postgres").run(epsilon="0.1")
    other = WRITTEN["Grafana"].replace("GROUP BY", "WHERE age > 17 GROUP BY")
    assert con.sql(other, dialect="postgres").run(epsilon="0.1").spent != PrivacyLoss()


def test_over_the_wire_a_tool_that_says_no_epsilon_pays_once(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    files = {"database": "clinic.duckdb", "ledger": "ledger.sqlite", "ledger_head": "head.json"}
    shop.policy.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in {**POLICY, **files}.items()))
    with_serve(shop, f"{FINE}}}")
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as db:
        db.execute("CREATE TABLE patients AS SELECT i AS id, ['east', 'west'][1 + i % 2] AS region, i AS age "
                   "FROM range(40) t(i)")  # fmt: skip
    board = Login("board", "board", kind="bi", defaults=StatementSettings(epsilon="0.1"))
    other = WRITTEN["Grafana"].replace("GROUP BY", "WHERE age > 17 GROUP BY")
    with served_web(shop, board=board) as served:
        port = served.server.do(lambda: served.front.start("127.0.0.1", 0))
        with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
            client = Client(connection)
            client.login("board", PASSWORD)

            def asked(sql: str) -> Fraction:
                """What the ledger holds after a statement that was answered."""
                replies = client.query(sql)
                assert "E" not in {reply.kind for reply in replies}, replies
                assert ("limit 0" in sql.lower() or "where (0 = 1)" in sql.lower()) == (rows(replies) == [])
                with shop.ledger() as ledger:
                    return ledger.spent("patient").epsilon

            unasked = {name: asked(sql) for name, sql in FREE.items()}
            spent = {tool: asked(sql) for tool, sql in BY_REGION.items()}
            twin = asked(other)
        served.server.do(served.front.stop)
    assert unasked == dict.fromkeys(FREE, 0)
    assert spent == dict.fromkeys(BY_REGION, Fraction(1, 10))
    assert twin == Fraction(2, 10)
