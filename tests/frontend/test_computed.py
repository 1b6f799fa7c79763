"""`from:` of any expression: what is understood of a policy, and what is refused, where it stands there."""

from __future__ import annotations

import pytest

import dpsql
from dpsql.core.ir import types
from dpsql.core.ir.expressions import Cast, Column, walk
from dpsql.core.policy.derived import Derived
from dpsql.frontend.bind.expressions.computed import with_computed
from dpsql.planner.computed import understood
from dpsql.policy.policy import Policy
from dpsql.spelling.duckdb_functions import DUCKDB

POLICY = """
version: 1
name: shop
database: {database}
tables:
  orders:
    unit: {{column: id}}
    max_rows_per_unit: 10
    columns:
      id: {{type: integer}}
      mail: {{type: varchar}}
      amount: {{type: integer, bounds: [0, 1000]}}
      day: {{type: timestamp, bounds: [2024-01-01, 2024-12-31]}}
      tags: {{type: 'integer[]', max_length: 3}}
      low: {{from: "lower(mail)", type: varchar}}
      x: {{from: "{text}", type: {type}}}
budgets: {{total: {{epsilon: 1}}}}
"""


def policy(text: str, type: str = "integer", database: str = "shop.duckdb") -> Policy:
    return dpsql.Policy.from_yaml(POLICY.format(text=text, type=type, database=database))


def refused(text: str, type: str = "integer", database: str = "shop.duckdb") -> dpsql.CannotOpen:
    with pytest.raises(dpsql.CannotOpen) as caught:
        understood(policy(text, type, database))
    return caught.value


UNDERSTOOD = {
    "upper(mail)": "varchar",
    "mail ->> 'a' || 'b'": "varchar",
    "amount / 100": "double",
    "amount * 2 + id": "bigint",
    "date_trunc('month', day)": "date",
    "coalesce(amount, 0)": "integer",
    "CASE WHEN amount > 100 THEN 'much' WHEN amount IS NULL THEN NULL ELSE 'little' END": "varchar",
    "CAST(mail AS integer)": "integer",
    "amount::varchar || '€'": "varchar",
    "mail LIKE '%@example.org'": "boolean",
    "extract(year FROM day)": "integer",
    "len(tags)": "bigint",
    "list_contains(tags, 3)": "boolean",
    "day + INTERVAL 1 DAY": "timestamp",
    "orders.amount + main.orders.id": "bigint",
    "amount > 10 AND NOT mail IS NULL": "boolean",
    "CLIP(amount, 0, 10)": "integer",
    "'x'": "varchar",
    "amount -- of all\n": "integer",
}


@pytest.mark.parametrize(("text", "type"), UNDERSTOOD.items())
def test_an_expression_of_one_row_is_understood(text: str, type: str) -> None:
    found = understood(policy(text.replace("\n", "\\n"), type)).tables["orders"].columns["x"]
    assert found.derived is None and found.computed is not None and found.computed.text == text
    assert found.computed.expr is not None and found.computed.expr.type == found.sql_type
    own = tuple(policy(text.replace("\n", "\\n"), type).tables["orders"].columns)
    for e in walk(found.computed.expr):
        assert e.span is None  # it points into no query
        assert not isinstance(e, Column) or own[e.uid] == e.name
    again = dpsql.Policy.from_dict(policy(text.replace("\n", "\\n"), type).document)
    assert again.tables["orders"].columns["x"].made_of == text


def test_a_value_of_another_type_is_converted() -> None:
    expr = understood(policy("amount / 100", "integer")).tables["orders"].columns["x"].computed
    assert expr is not None and isinstance(expr.expr, Cast) and expr.expr.type == types.INTEGER


REFUSED = {
    "frob(mail)": ("function frob is not supported", "frob(mail)"),
    "amount + SUM(amount)": ("SUM is an aggregate, of several rows", "SUM(amount)"),
    "count(*)": ("COUNT is an aggregate, of several rows", "count(*)"),
    "1 + row_number() OVER (ORDER BY day)": ("a window reads other rows", "row_number() OVER (ORDER BY day)"),
    "(SELECT 1)": ("a subquery reads other rows", "(SELECT 1)"),
    "EXISTS (SELECT 1 FROM orders)": ("a subquery reads other rows", "(SELECT 1 FROM orders)"),
    "mail IN (SELECT mail FROM orders)": ("a subquery reads other rows", "(SELECT mail FROM orders)"),
    "amount FROM orders UNION SELECT id": ("a subquery reads other rows", "amount FROM orders UNION SELECT id"),
    "unnest(tags)": ("UNNEST makes several rows of one", "unnest(tags)"),
    "random()": ("random gives another value at every call", "random()"),
    "now() > day": ("it depends on when it is asked", "now() > day"),
    "amount + ?": ("a parameter has no value here", "?"),
    "amount + $1": ("a parameter has no value here", "$1"),
    "amount, id": ("it is more than one value of each row", "amount, id"),
    "DISTINCT amount": ("it is more than one value of each row", "DISTINCT amount"),
    "*": ("it is more than one value of each row", "*"),
    "amount + 1 AS y": ("AS names it", "amount + 1 AS y"),
    "amount; SELECT 1": ("exactly one statement", "amount; SELECT 1"),
    "amount LIMIT 1": ("it is not one expression", "1"),
    "amount FROM orders WHERE id > 1 --": ("it is not one expression", "-"),
    "amount +": ("syntax error", "+"),
    "(amount": ("syntax error", "(amount"),
    "amount /* so": ("never closed", "/* so"),
    "lower(nope)": ("column nope does not exist", "nope"),
    "upper(low)": ("column low is computed itself", "low"),
    "upper(x)": ("column x is computed itself", "x"),
    "lower(amount)": ("expects text", "lower(amount)"),
    "CLIP(amount, 0, auto)": ("AUTO finds the bounds", "CLIP(amount, 0, auto)"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_expression_of_a_row_is_refused_where_it_stands(text: str) -> None:
    said, at = REFUSED[text]
    (found, *_) = refused(text).diagnostics
    assert found.code == "DP003" and found.message.startswith("tables.orders.columns.x.from: ")
    assert said in found.message and found.help
    assert found.source is not None and found.span is not None
    shown = found.source.text[found.span.start : found.span.end]
    assert shown in text and (at in shown or shown in at), shown


def test_the_caret_stands_in_the_expression_also_without_a_file() -> None:
    document = dict(policy("lower(nope)", "varchar").document)
    with pytest.raises(dpsql.CannotOpen) as caught:
        understood(dpsql.Policy.from_dict(document))
    (found,) = caught.value.diagnostics
    assert found.source is not None and found.source.text == "lower(nope)"
    assert found.span is not None and found.source.text[found.span.start : found.span.end] == "nope"


def test_a_text_that_yaml_writes_otherwise_is_pointed_at_as_a_whole() -> None:
    (found,) = refused("lower(\\n nope)", "varchar").diagnostics
    assert found.source is not None and found.span is not None
    assert "nope" in found.source.text[found.span.start : found.span.end]


@pytest.mark.parametrize("type", ["interval", "blob", "'integer[]'"])
def test_what_is_not_converted_is_told_with_the_type_that_it_has(type: str) -> None:
    (found,) = refused("amount + 1", type).diagnostics
    assert "it is bigint" in found.message and found.help == ("type: bigint",)


def test_a_list_is_one_as_it_is() -> None:
    column = understood(policy("CASE WHEN amount > 1 THEN tags END", "'integer[]'")).tables["orders"].columns["x"]
    assert column.computed is not None and column.computed.expr is not None


def test_every_mistake_is_told_at_once() -> None:
    text = POLICY.format(text="frob(mail)", type="varchar", database="shop.duckdb").replace("lower(mail)", "lowr(mail)")
    with pytest.raises(dpsql.CannotOpen) as caught:
        understood(dpsql.Policy.from_yaml(text))
    assert [d.message.rpartition(": ")[2] for d in caught.value.diagnostics] == [
        "function lowr is not supported", "function frob is not supported"
    ]  # fmt: skip


def test_it_waits_for_the_types_of_the_data() -> None:
    text = POLICY.format(text="amount + 1", type="bigint", database="shop.duckdb").replace("{type: varchar}", "{}")
    found = understood(dpsql.Policy.from_yaml(text))
    column = found.tables["orders"].columns["x"]
    assert column.computed is not None and column.computed.expr is None
    (refusal,) = dpsql.check("SELECT COUNT(*) FROM orders", found)
    assert refusal.code == "DP005"


def test_what_is_understood_once_is_kept() -> None:
    given = policy("amount + 1", "bigint")
    found = with_computed(given, DUCKDB)
    assert with_computed(given, DUCKDB) is found and with_computed(found, DUCKDB) is found
    plain = dpsql.Policy.from_yaml(
        "\n".join(line for line in POLICY.format(text="", type="", database="a").splitlines() if "from:" not in line)
    )
    assert with_computed(plain, DUCKDB) is plain


def test_the_older_forms_are_what_they_were() -> None:
    for text, made in {"address.city": Derived("address", ("city",)), "amount": Derived("amount")}.items():
        column = policy(text).tables["orders"].columns["x"]
        assert column.derived == made and column.computed is None


def test_the_type_of_an_id_stands_at_its_column() -> None:
    text = POLICY.format(text="id + 1", type="bigint", database="shop.duckdb")
    with pytest.raises(dpsql.CannotOpen) as caught:
        dpsql.Policy.from_yaml(text.replace("column: id", "column: x, as: bigint"))
    assert "stands beside the expression" in str(caught.value) and "leave  as  out" in str(caught.value)
    assert understood(dpsql.Policy.from_yaml(text.replace("column: id", "column: x")))


SERVER = "postgresql://h/shop"


def test_a_server_computes_expressions_and_says_what_it_does_not() -> None:
    for text, type in {"lower(mail)": "varchar", "amount": "bigint", "mail = 'ja'": "boolean"}.items():
        assert understood(policy(text, type, SERVER)).tables["orders"].columns["x"].computed
    (json,) = refused("mail ->> '$.a'", "varchar", SERVER).diagnostics
    assert json.code == "DP105" and json.help == ("make a view that has the column, and declare the view",)
    (zone,) = refused("day AT TIME ZONE 'UTC'", "timestamp", SERVER).diagnostics
    assert zone.code == "DP003" and "AT TIME ZONE" in zone.help[-1]  # it is a clock already
