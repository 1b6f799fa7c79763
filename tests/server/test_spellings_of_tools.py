"""One question in the spellings of many tools costs once, and what tools ask unasked costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import dpsql
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.server.asked import DIALECT

BY_REGION = {
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
}
FREE = {
    "Metabase's probe": 'SELECT TRUE FROM "public"."patients" WHERE 1 <> 1 LIMIT 0',
    "Metabase's values": 'SELECT "public"."patients"."region" AS "region" FROM "public"."patients" '
    'GROUP BY "public"."patients"."region" ORDER BY "public"."patients"."region" ASC LIMIT 1001',
    "dplyr's probe": 'SELECT * FROM "patients" AS "q01" WHERE (0 = 1)',
    "dbt's probe": 'select * from (select region, count(*) as n from "clinic"."public"."patients" group by region) '
    "as __dbt_sbq where false limit 0",
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
    spent = [con.sql(sql, dialect=dialect).run(epsilon="0.1").spent for sql in BY_REGION.values()]
    assert spent[0] != PrivacyLoss()
    assert dict(zip(BY_REGION, spent[1:], strict=False)) == dict.fromkeys(list(BY_REGION)[:-1], PrivacyLoss())


@pytest.mark.parametrize("tool", FREE)
@pytest.mark.parametrize("dialect", ["postgres", DIALECT])
def test_what_tools_ask_unasked_is_free(tool: str, con: dpsql.Connection, dialect: str) -> None:
    assert con.sql(FREE[tool], dialect=dialect).run(epsilon="0.1").spent == PrivacyLoss()


def test_another_question_costs_again(con: dpsql.Connection) -> None:
    """A twin: not everything is free."""
    con.sql(BY_REGION["Metabase"], dialect="postgres").run(epsilon="0.1")
    other = BY_REGION["Grafana"].replace("GROUP BY", "WHERE age > 17 GROUP BY")
    assert con.sql(other, dialect="postgres").run(epsilon="0.1").spent != PrivacyLoss()
