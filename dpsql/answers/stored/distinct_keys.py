"""Whether stored group keys are keys: no two of them the same one, for Python or for the engine.

*Claim.* Of keys that pass, no two are one group. *Why.* They differ in Python, each is of the Python type that the
engine gives for its column's type, and each value of that type is written in one way only. *When it would be false.* If
the engine had values of one of these types that compare equal and are read as different ones. Were a key there twice,
its exact numbers would get noise twice for one price, and a later release that joins its rows would count rows twice.
*Tested by* tests/answers/stored/test_distinct_keys.py, tests/core/ledger/test_edited_answers.py.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.ledger.released import Key

_HELD: Final[dict[Kind, type]] = {
    Kind.BOOLEAN: bool,
    Kind.INTEGER: int,
    Kind.DECIMAL: Decimal,
    Kind.VARCHAR: str,
    Kind.DATE: dt.date,
    Kind.TIMESTAMP: dt.datetime,
    Kind.TIME: dt.time,
    Kind.UUID: str,
}
_UUID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def are_keys(keys: Sequence[Key], types: Sequence[SqlType]) -> bool:
    """Whether these are keys of columns of these types, each there once."""
    if any(len(key) != len(types) for key in keys):
        return False
    # The types first: there are numbers that cannot be hashed.
    return all(_fit([key[i] for key in keys], t) for i, t in enumerate(types)) and len(set(keys)) == len(keys)


def _fit(values: Sequence[Any], type_: SqlType) -> bool:
    held = _HELD.get(type_.kind)
    if held is None or not set(map(type, values)) <= {held, type(None)}:
        return False
    written = _written(type_)
    return written is None or all(written(v) for v in values if v is not None)


def _written(type_: SqlType) -> Callable[[Any], bool] | None:
    """Whether a value is written as the engine writes it, where there are other ways."""
    match type_.kind:
        case Kind.DECIMAL:
            return lambda value: value.as_tuple().exponent == -type_.scale
        case Kind.TIMESTAMP | Kind.TIME:
            return lambda value: value.tzinfo is None and not value.fold
        case Kind.UUID:
            return lambda value: _UUID.fullmatch(value) is not None
        case _:
            return None
