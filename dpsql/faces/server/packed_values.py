"""Values between front and workers, as JSON can hold them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from dpsql.faces.server.statements import Value


def pack(value: Value) -> Any:
    """A value as JSON can hold it."""
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return value if math.isfinite(value) else {"float": repr(value)}
        case Decimal():
            return {"decimal": str(value)}
        case bytes():
            return {"bytes": value.hex()}
        case dt.datetime():
            return {"datetime": value.isoformat()}
        case dt.date():
            return {"date": value.isoformat()}
        case dt.time():
            return {"time": value.isoformat()}
        case dt.timedelta():
            return {"timedelta": [value.days, value.seconds, value.microseconds]}
        case UUID():
            return {"uuid": str(value)}
        case list() | tuple():
            return {"list": [pack(item) for item in value]}
    raise ValueError(f"a {type(value).__name__} is no value of SQL")


_UNPACK: Final[Mapping[str, Callable[[Any], Value]]] = {
    "float": float,
    "decimal": Decimal,
    "bytes": bytes.fromhex,
    "datetime": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "timedelta": lambda parts: dt.timedelta(*parts),
    "uuid": UUID,
    "list": lambda items: [unpack(item) for item in items],
}


def unpack(packed: Any) -> Value:
    """The value that was packed. Raises ValueError, KeyError."""
    if not isinstance(packed, dict):
        return packed  # type: ignore[no-any-return]
    ((kind, held),) = packed.items()
    return _UNPACK[kind](held)
