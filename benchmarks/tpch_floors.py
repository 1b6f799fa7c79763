"""The two-level floor of TPC-H queries: sums per customer and group, then over customers; no noise, no limits.

The least that protecting customers asks for where every line must find its customer. Only queries of one aggregation
have one. `python -m benchmarks.tpch` runs them beside plain DuckDB and dpsql.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Floor:
    """FROM and WHERE of a query with its customer, its keys, and what it sums; counts are sums of 1."""

    source: str
    sums: tuple[str, ...]
    keys: tuple[str, ...] = ()

    def sql(self) -> str:
        """The statement of two levels."""
        keys = [f"{key} AS k{i}" for i, key in enumerate(self.keys)]
        sums = [f"SUM({number}) AS s{i}" for i, number in enumerate(self.sums)]
        outer = [f"k{i}" for i in range(len(keys))] + [f"SUM(s{i})" for i in range(len(sums))]
        inner = f"SELECT o_custkey, {', '.join([*keys, *sums])} {self.source} GROUP BY ALL"
        return f"SELECT {', '.join(outer)} FROM ({inner}) GROUP BY ALL"


_LINES = "FROM lineitem JOIN orders ON o_orderkey = l_orderkey"
_REVENUE = "l_extendedprice * (1 - l_discount)"

FLOORS = {
    "q01": Floor(
        f"{_LINES} WHERE l_shipdate <= DATE '1998-09-02'",
        ("l_quantity", "l_extendedprice", _REVENUE, f"{_REVENUE} * (1 + l_tax)", "l_discount", "1"),
        ("l_returnflag", "l_linestatus"),
    ),
    "q03-months": Floor(
        f"{_LINES} JOIN customer ON c_custkey = o_custkey WHERE c_mktsegment = 'BUILDING' "
        "AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'",
        (_REVENUE,),
        ("date_trunc('month', o_orderdate)",),
    ),
    "q04": Floor(
        "FROM orders WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01' "
        "AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)",
        ("1",),
        ("o_orderpriority",),
    ),
    "q05": Floor(
        f"{_LINES} JOIN customer ON c_custkey = o_custkey JOIN supplier ON s_suppkey = l_suppkey "
        "AND s_nationkey = c_nationkey JOIN nation ON n_nationkey = s_nationkey JOIN region "
        "ON r_regionkey = n_regionkey "
        "WHERE r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'",
        (_REVENUE,),
        ("n_name",),
    ),
    "q06": Floor(
        f"{_LINES} WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' "
        "AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
        ("l_extendedprice * l_discount",),
    ),
    "q10-nations": Floor(
        f"{_LINES} JOIN customer ON c_custkey = o_custkey JOIN nation ON n_nationkey = c_nationkey "
        "WHERE o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01' AND l_returnflag = 'R'",
        (_REVENUE,),
        ("n_name",),
    ),
    "q12": Floor(
        f"{_LINES} WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate "
        "AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'",
        (
            "CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END",
            "CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END",
        ),
        ("l_shipmode",),
    ),
    "q14": Floor(
        f"{_LINES} JOIN part ON p_partkey = l_partkey "
        "WHERE l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'",
        (f"CASE WHEN p_type LIKE 'PROMO%' THEN {_REVENUE} ELSE 0 END", _REVENUE),
    ),
}
