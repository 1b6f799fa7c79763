"""Types of the server's columns: which a policy knows, how they are read, and why some are not.

*Claim.* What is read of a column is a value of the type that is told, for each value that it can hold; and equality,
grouping and joining tell values apart exactly as their bytes do. *Why.* A type that is not here is refused by name.
Domains and enumerations are read as what they are made of. `numeric` without a precision holds numbers of 131072
digits, and is refused; with one it holds NaN beside its numbers, and NaN is read as NULL. Blank-padded text, and text
of a collation that merges, are refused. *When it would be false.* If a type of the list compared values by anything but
themselves. *Tested by* tests/engines_elsewhere/postgres/test_catalogue.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_PLAIN: Final = {
    "bool": "BOOLEAN",
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "text": "VARCHAR",
    "varchar": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "time": "TIME",
    "uuid": "UUID",
    "bytea": "BLOB",
}
"""Name in pg_catalog → type of a policy."""

_WHY: Final = {
    "bpchar": "blank-padded text: 'a ' equals 'a'; ALTER it to text, or make a view that casts it",
    "citext": "text that ignores case: 'A' equals 'a'; make a view that casts it to text",
    "numeric": "numbers without a precision; make a view that casts it to numeric(18, 2), or what fits",
    "interval": "intervals; make a view with their days or seconds",
    "timetz": "times with a zone; make a view that casts it to time",
    "name": "names of the server's catalogue; make a view that casts it to text",
    "money": "amounts whose meaning a setting changes; make a view that casts it to numeric(18, 2)",
}
"""Name of a type → what it is, and a repair."""

_MOST_DIGITS: Final = 38
_BUILT_IN: Final = "pg_catalog"


@dataclass(frozen=True, slots=True)
class ServerType:
    """A row of pg_type. kind: `b`ase, `c`omposite, `d`omain, `e`num, `p`seudo, `r`ange, `m`ultirange.

    base, modifier: of a domain, what it is made of. element: of an array, its elements' type; else 0.
    """

    number: int
    schema: str
    name: str
    kind: str
    base: int
    modifier: int
    element: int


@dataclass(frozen=True, slots=True)
class Read:
    """How a column is read. type: as policies know it; empty: it is not, and `why` says the reason.

    sql: the expression for its value, with {} for the column; empty: the column itself. may_be_null: whether reading
    gives NULL for a value that is not. enumerated: the number of its ENUM.
    """

    type: str = ""
    why: str = ""
    sql: str = ""
    may_be_null: bool = False
    enumerated: int | None = None


def read_as(known: Mapping[int, ServerType], number: int, modifier: int, merges: bool, shown: str) -> Read:
    """How a column of a type is read. merges: whether its collation takes different texts for equal ones.

    known: the column's type, and what it is made of. modifier: its typmod. shown: what its type is called.
    """
    found, domain = known[number], False
    while found.kind == "d":
        if found.modifier != -1:
            modifier = found.modifier
        found, domain = known[found.base], True
    if merges:
        return Read(why=f"{shown} with a collation that takes different texts for equal; store it without COLLATE")
    if found.kind == "e":
        return Read("VARCHAR", sql="CAST({} AS text)", enumerated=found.number)
    if found.schema != _BUILT_IN and found.name not in _WHY:
        return Read(why=shown)
    if found.element and found.name.startswith("_"):
        return _list_of(known, found, modifier, shown)
    if found.name == "numeric":
        return _decimal(modifier, domain)
    plain = _PLAIN.get(found.name)
    if plain is None:
        return Read(why=_WHY.get(found.name, shown))
    return Read(plain, sql=f"CAST({{}} AS {found.name})" if domain else "")


def _decimal(modifier: int, domain: bool) -> Read:
    if modifier < 0:
        return Read(why=_WHY["numeric"])
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, (((modifier - 4) & 0x7FF) ^ 1024) - 1024
    if not (precision <= _MOST_DIGITS and 0 <= scale <= precision):
        return Read(why=f"numeric({precision},{scale}): more than {_MOST_DIGITS} digits, or none that are whole")
    cast = f"CAST({{}} AS numeric({precision},{scale}))" if domain else "{}"
    return Read(f"DECIMAL({precision},{scale})", sql=f"nullif({cast}, 'NaN')", may_be_null=True)


def _list_of(known: Mapping[int, ServerType], found: ServerType, modifier: int, shown: str) -> Read:
    element = known[found.element]
    item = _PLAIN.get(element.name) if element.schema == _BUILT_IN else None
    return Read(why=shown) if item is None else Read(f"{item}[]")
