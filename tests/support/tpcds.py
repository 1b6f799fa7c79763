"""TPC-DS as DuckDB's extension makes it, and a policy under which a customer is protected.

Returns belong to whoever bought: the path leads through the sale. Other tables than these and customers are public.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

CUSTOMERS = {
    "customer": "c_customer_sk",
    "store_sales": "ss_customer_sk",
    "catalog_sales": "cs_bill_customer_sk",
    "web_sales": "ws_bill_customer_sk",
}
RETURNS = {
    "store_returns": ("sr", "ticket_number", "store_sales", "ss"),
    "catalog_returns": ("cr", "order_number", "catalog_sales", "cs"),
    "web_returns": ("wr", "order_number", "web_sales", "ws"),
}
KEYS = {
    "store_sales": "ss_item_sk, ss_ticket_number",
    "catalog_sales": "cs_item_sk, cs_order_number",
    "web_sales": "ws_item_sk, ws_order_number",
    "inventory": "inv_date_sk, inv_item_sk, inv_warehouse_sk",
}
LISTED = {
    "item_sk": "item", "store_sk": "store", "promo_sk": "promotion", "warehouse_sk": "warehouse",
    "call_center_sk": "call_center", "ship_mode_sk": "ship_mode", "web_page_sk": "web_page",
    "web_site_sk": "web_site", "reason_sk": "reason",
}  # fmt: skip
"""End of a foreign key's name → the public table that lists its values."""


def make(file: Path) -> list[str]:
    """Fill a database file at scale 0.01 and give the 99 texts. Raises duckdb.Error without the extension."""
    with duckdb.connect(str(file)) as con:
        con.execute("INSTALL tpcds")
        con.execute("LOAD tpcds")
        con.execute("CALL dsdgen(sf = 0.01)")
        return [text for (text,) in con.execute("SELECT query FROM tpcds_queries() ORDER BY query_nr").fetchall()]


def policy(file: Path) -> str:
    """The policy of a database file, with limits that leave room."""
    with duckdb.connect(str(file), read_only=True) as con:
        columns = con.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns "
            "WHERE table_schema = 'main' ORDER BY table_name, ordinal_position"
        ).fetchall()
    first = {table: column for table, column, _ in reversed(columns)}
    lines = ["version: 1", "name: tpcds", f"database: {file.name}", "units:"]
    lines += ["  customer: {table: customer, key: c_customer_sk}", "tables:"]
    for table in sorted(first):
        lines += [f"  {table}:", *_protection(table)]
        if table not in RETURNS:
            lines.append(f"    primary_key: [{KEYS.get(table, first[table])}]")
        if table == "date_dim":
            lines.append("    unique: [[d_date]]")
        lines.append("    columns:")
        lines += [_column(table, name, kind, first) for t, name, kind in columns if t == table]
    lines += ["defaults: {epsilon: 1, delta: 1e-6, max_keys: 2000000}"]
    return "\n".join([*lines, "budgets:", "  total: {epsilon: 1000000, delta: 0.1}", ""])


def _protection(table: str) -> list[str]:
    limit = "    max_rows_per_unit: 500"
    if table in CUSTOMERS:
        unit = f"    unit: {{column: {CUSTOMERS[table]}}}"
        return [unit] if table == "customer" else [unit, limit]
    if table in RETURNS:
        own, number, sales, sale = RETURNS[table]
        hop = f"columns: [{own}_item_sk, {own}_{number}], references: '{sales}({sale}_item_sk, {sale}_{number})'"
        return [f"    unit: {{path: [{{{hop}}}]}}", limit]
    return ["    public: true"]


def _column(table: str, name: str, kind: str, first: dict[str, str]) -> str:
    said = [f'type: "{kind.lower()}"']
    if table in CUSTOMERS or table in RETURNS:
        listed = next((t for end, t in LISTED.items() if name.endswith(f"_{end}")), None)
        if listed is not None:
            said.append(f"domain: {{table: {listed}, column: {first[listed]}}}")
    if name == "c_preferred_cust_flag":
        said.append("domain: [Y, N]")
    bounds = _bounds(name, kind)
    if bounds is not None:
        said.append(f"bounds: [{bounds[0]}, {bounds[1]}]")
    return f"      {name}: {{{', '.join(said)}}}"


def _bounds(name: str, kind: str) -> tuple[int, int] | None:
    if name.endswith("_quantity"):
        return 0, 100
    if "_dep_" in name:
        return 0, 10
    if name == "c_birth_year":
        return 1920, 2000
    if kind != "DECIMAL(7,2)":
        return None
    return (-20000, 20000) if name.endswith("_profit") else (0, 300) if name.endswith("_price") else (0, 30000)
