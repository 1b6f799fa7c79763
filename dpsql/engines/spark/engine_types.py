"""Types of the cluster's columns: which a policy knows, and why some are not.

*Claim.* What is read of a column is a value of the type that is told, for each value that it can hold; and equality,
grouping and joining tell texts apart exactly as their bytes do. *Why.* A type that is not here is refused by name; so
are blank-padded text and text of a collation. *When it would be false.* If a type of the list compared values by
anything but themselves. *Tested by* tests/engines_elsewhere/spark/test_catalogue.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_PLAIN: Final = {
    "boolean": "BOOLEAN",
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "date": "DATE",
    "timestamp_ntz": "TIMESTAMP",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "binary": "BLOB",
}
"""A type as schemas write it → type of a policy."""
_WHY: Final = {
    "struct": "structs; store the fields as columns",
    "map": "maps; store their entries as rows",
    "variant": "variants; store their fields as columns",
    "interval": "intervals; store their days or seconds",
    "udt": "a type of somebody's own; store it as one of Spark's",
}
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_TIME: Final = re.compile(r"time\([0-6]\)")


@dataclass(frozen=True, slots=True)
class Read:
    """How a column is read. type: as policies know it; empty: it is not, and `why` says what it is, and a repair."""

    type: str = ""
    why: str = ""


def read_as(field: Mapping[str, Any]) -> Read:
    """How a column is read. field: its entry in the JSON of a schema."""
    type_, metadata = field["type"], field.get("metadata") or {}
    if "__COLLATIONS" in metadata or (isinstance(type_, str) and "collate" in type_.lower()):
        return Read(why="text with a collation, which may take different texts for equal; store it without COLLATE")
    if str(metadata.get("__CHAR_VARCHAR_TYPE_STRING", "")).lower().startswith("char("):
        return Read(why="blank-padded text; store it as STRING")
    if isinstance(type_, str):
        return _plain(type_)
    if type_.get("type") == "array":
        item = type_.get("elementType")
        known = _PLAIN.get(item) if isinstance(item, str) else None
        return Read(why="lists of such elements; store these as rows") if known is None else Read(f"{known}[]")
    kind = str(type_.get("type", ""))
    return Read(why=_WHY.get(kind, kind))


def _plain(text: str) -> Read:
    if text in _PLAIN:
        return Read(_PLAIN[text])
    if _TIME.fullmatch(text):
        return Read("TIME")
    if (found := _DECIMAL.fullmatch(text)) is not None and int(found[2]) <= int(found[1]) <= 38:
        return Read(f"DECIMAL({found[1]},{found[2]})")
    kind = re.split(r"[ (]", text)[0]
    return Read(why=_WHY.get(kind, kind))
