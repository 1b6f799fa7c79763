"""Tables that read the same table or file have the same unit; what the policy has as public is read by everybody."""

from __future__ import annotations

import pytest

from dpsql.core.policy.catalogue import Catalogue, CatalogueTable
from dpsql.policy.policy import Policy
from dpsql.policy.resolve.one_unit import rows_have_one_unit

ORDERS, RAW, CODES = '"d"."main"."orders"', '"d"."main"."raw"', '"d"."main"."codes"'
ROWS, OTHER, PERSON = "unit: {rows: 1}", "unit: {rows: 2, of: other}", "unit: {column: id, of: person}"
PUBLIC = "public: true"


def mistakes(**tables: tuple[str, tuple[str, ...]]) -> list[str]:
    """table=(what the policy says of it, what it reads besides itself); `source` reads nothing but files."""
    text = "version: 1\nname: p\nbudgets: {total: {epsilon: 1}}\ntables:\n"
    found = []
    for name, (spec, reads) in tables.items():
        text += f"  {name}: {{{spec}, columns: {{id: {{type: bigint}}}}}}\n"
        found.append(CatalogueTable(name, (), reads=(f'"d"."main"."{name}"', *reads)))
    issues = rows_have_one_unit(Policy.from_yaml(text), Catalogue(tuple(found)))
    return [f"{i.loc[1]}: {i.message} | {' | '.join(i.help)}" for i in issues]


def blamed(name: str, other: str, theirs: str, own: str | None, *help: str) -> str:
    """What is said of a table that reads rows of another one's unit."""
    told = f"{name}: reads {other}, which holds rows of unit `{theirs}`, but is declared "
    told += "public" if own is None else f"as rows of unit `{own}`: the same rows would have two budgets"
    return f"{told} | {' | '.join(help)}"


ORDERED = "give it the same unit:  unit: {rows: 1, of: orders}"
BOTH = "give both the same unit, or take one of them out of the policy"
STORED = "if what it shows is public, put a table that holds it in place of the view:  CREATE TABLE … AS …"
LISTED = f"or, if {RAW} holds nobody's rows, list it as a table that is  public: true"
FILE = ("'/x'",)


def source(name: str, spec: str) -> tuple[str, tuple[str, ...]]:
    return f"source: \"read_parquet('{name}')\", {spec}", FILE


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        # a view of a table that the policy has
        ({"orders": (ROWS, ()), "recent": (ROWS, (ORDERS,))},
         [blamed("recent", "`orders`", "orders", "recent", ORDERED)]),
        ({"orders": (ROWS, ()), "recent": ("unit: {rows: 1, of: orders}", (ORDERS,))}, []),
        ({"orders": (PERSON, ()), "recent": ("unit: {column: id, of: clerk}", (ORDERS,))},
         [blamed("recent", "`orders`", "person", "clerk", "give it the same unit:  unit: {column: id, of: person}")]),
        ({"orders": (PERSON, ()), "recent": (ROWS, (ORDERS,))},
         [blamed("recent", "`orders`", "person", "recent", BOTH)]),
        ({"orders": (ROWS, ()), "recent": (PUBLIC, (ORDERS,))}, [blamed("recent", "`orders`", "orders", None, STORED)]),
        # a view that is listed first, and a view of a view
        ({"recent": (ROWS, (ORDERS,)), "orders": (ROWS, ())},
         [blamed("recent", "`orders`", "orders", "recent", ORDERED)]),
        ({"recent": (ROWS, (RAW,)), "top": (OTHER, ('"d"."main"."recent"', RAW))},
         [blamed("top", "`recent`", "recent", "other", "give it the same unit:  unit: {rows: 2, of: recent}")]),
        # two views of a table that the policy does not have
        ({"a": (ROWS, (RAW,)), "b": (OTHER, (RAW,))},
         [blamed("b", f"{RAW}, as `a` does", "a", "other", "give it the same unit:  unit: {rows: 2, of: a}", LISTED)]),
        ({"a": (ROWS, (RAW,)), "b": ("unit: {rows: 1, of: a}", (RAW,))}, []),
        ({"a": (ROWS, (RAW,)), "b": (PUBLIC, (RAW,))}, []),
        # a public table joined into views
        ({"codes": (PUBLIC, ()), "a": (ROWS, (CODES,)), "b": (OTHER, (CODES,))}, []),
        ({"a": (ROWS, (CODES,)), "b": (OTHER, (CODES,)), "codes": (PUBLIC, ())}, []),
        # a view that joins two units' tables is neither's
        ({"orders": (PERSON, ()), "codes": (OTHER, ()), "both": (PERSON, (ORDERS, CODES))},
         [blamed("both", "`codes`", "other", "person", BOTH)]),
        # files: by another name, or through a view
        ({"a": source("a", ROWS), "b": source("b", OTHER)},
         [blamed("b", "`a`", "a", "other", "give it the same unit:  unit: {rows: 2, of: a}")]),
        ({"a": source("a", PUBLIC), "b": source("b", OTHER)}, [blamed("a", "`b`", "other", None, STORED)]),
        ({"a": source("a", PUBLIC), "b": (OTHER, FILE)}, []),
        ({"a": source("a", ROWS), "b": (OTHER, FILE)},
         [blamed("b", "`a`", "a", "other", "give it the same unit:  unit: {rows: 2, of: a}")]),
    ],
)  # fmt: skip
def test_what_reads_the_same_has_the_same_unit(
    tables: dict[str, tuple[str, tuple[str, ...]]], expected: list[str]
) -> None:
    assert mistakes(**tables) == expected


def test_each_table_is_blamed_once() -> None:
    found = mistakes(a=(ROWS, (RAW, CODES)), b=(OTHER, (RAW, CODES)), c=(OTHER, (RAW,)))
    assert [text.partition(":")[0] for text in found] == ["b", "c"]


def test_a_catalogue_that_says_nothing_of_it_refuses_nothing() -> None:
    policy = Policy.from_yaml(
        "version: 1\nname: p\nbudgets: {total: {epsilon: 1}}\ntables: {a: {unit: {rows: 1}}, b: {unit: {rows: 1}}}\n"
    )
    assert list(rows_have_one_unit(policy, Catalogue((CatalogueTable("a", ()), CatalogueTable("b", ()))))) == []
    assert list(rows_have_one_unit(policy, Catalogue(()))) == []
