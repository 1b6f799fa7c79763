"""ibis and dbt at a server, in the environment of tools (`environment.py`), where nothing of dpsql is.

Standard input: {client, address: {port, user, password, database}, statements}; the last line of standard output: for
each statement {rows, said, refused, state, place}. For "verbs" and "tests" there are none: ibis answers its verbs, by
name, and dbt says how its tests ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

PROJECT = """
name: shop
profile: shop
model-paths: [models]
"""
SOURCES = """
sources:
  - name: shop
    schema: public
    tables:
      - name: orders
        columns:
          - {name: customer, tests: [not_null]}
          - {name: city, tests: [not_null, {accepted_values: {values: [Bonn, Lyon, Oslo]}}]}
      - name: cities
        columns:
          - {name: city, tests: [unique]}
"""


def texts(rows: Any) -> list[list[str]]:
    return [["" if value is None else str(value) for value in row] for row in rows]


def connected(address: dict[str, Any]) -> Any:
    import ibis

    return ibis.postgres.connect(host="127.0.0.1", **address)


def of_ibis(address: dict[str, Any], statements: list[str]) -> list[dict[str, Any]]:
    import psycopg

    con, told = connected(address), list[str]()
    con.con.add_notice_handler(lambda d: told.append(str(d.message_primary)))

    def one(sql: str) -> dict[str, Any]:
        try:
            with contextlib.closing(con.raw_sql(sql)) as cursor:
                return {"rows": texts(cursor.fetchall())}
        except psycopg.Error as e:
            con.con.rollback()
            place = e.diag.statement_position
            return {
                "refused": e.diag.message_primary,
                "state": e.sqlstate,
                "place": None if place is None else int(place),
            }

    found = []
    for sql in statements:
        found.append({**one(sql), "said": "\n".join(told)})
        told.clear()
    return found


def verbs(address: dict[str, Any]) -> dict[str, list[list[str]]]:
    """What people write with ibis: no statement of SQL."""
    import ibis
    from ibis import _

    con = connected(address)
    orders, cities, n = con.table("orders"), con.table("cities"), _.count()
    by_city, of_two = orders.group_by("city"), orders.filter(_.city.isin(["Bonn", "Oslo"]), _.amount < 50)
    size = ibis.cases((_.amount > 50, "big"), else_="small")
    asked = {
        "count": orders.aggregate(n=n),
        "filters": of_two.filter(_.day >= "2024-01-10").aggregate(n=n),
        "groups": by_city.aggregate(n=n, s=_.items.sum()).order_by("city"),
        "means": by_city.aggregate(m=_.amount.mean().round(1)).order_by("city"),
        "months": orders.group_by(m=_.day.strftime("%Y-%m")).aggregate(n=n).filter(_.m.notnull()).order_by("m"),
        "truncated": orders.group_by(m=_.day.truncate("M")).aggregate(n=n).filter(_.m.notnull()).order_by("m"),
        "cases": orders.group_by(b=size).aggregate(n=n).order_by("b"),
        "join": orders.join(cities, "city").group_by("land").aggregate(n=n).order_by("land"),
        "median": orders.aggregate(m=_.items.median()),
        "top": orders.city.topk(2).aggregate(n=n),
        "public": cities.order_by("city"),
    }
    found = {name: texts(row.values() for row in table.to_pyarrow().to_pylist()) for name, table in asked.items()}
    return {"tables": [[name] for name in con.list_tables()], **found}


def project(address: dict[str, Any]) -> Path:
    folder = Path(tempfile.mkdtemp())
    (folder / "models").mkdir()
    (folder / "dbt_project.yml").write_text(PROJECT)
    (folder / "models" / "sources.yml").write_text(SOURCES)
    own = {name: address[name] for name in ("port", "user", "password")}
    made = {"type": "postgres", "host": "127.0.0.1", **own, "dbname": address["database"], "schema": "public"}
    (folder / "profiles.yml").write_text(json.dumps({"shop": {"target": "dev", "outputs": {"dev": made}}}))
    return folder


def invoked(folder: Path, *arguments: str) -> Any:
    """What dbt found; it prints nothing."""
    os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"
    from dbt.cli.main import dbtRunner

    at = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    with contextlib.redirect_stdout(sys.stderr):
        return dbtRunner().invoke(["--quiet", *arguments, *at])


def of_dbt(address: dict[str, Any], statements: list[str]) -> list[dict[str, Any]]:
    folder, found = project(address), []
    for sql in statements:
        done = invoked(folder, "show", "--limit", "-1", "--inline", sql)
        if done.success:
            found.append({"rows": texts(done.result.results[0].agate_table.rows)})
        else:
            said = str(done.exception or done.result.results[0].message)
            refused = re.search(r"\[DP\d+\].*", said)
            found.append({"refused": said if refused is None else refused[0]})
    return found


def tests(address: dict[str, Any]) -> dict[str, str]:
    """Of `dbt test`: name → how it ended."""
    done = invoked(project(address), "test")
    return {result.node.name: str(result.status) for result in done.result.results}


if __name__ == "__main__":
    given = json.load(sys.stdin)
    own = {"verbs": verbs, "tests": tests}.get(given["client"])
    of = {"ibis": of_ibis, "dbt": of_dbt}
    print(json.dumps(own(given["address"]) if own else of[given["client"]](given["address"], given["statements"])))
