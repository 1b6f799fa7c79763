"""JSON that loses nothing: numbers of any size and exact decimals are JSON numbers, dates are ISO texts.

Control and format characters are escaped, so that no text writes to a terminal. NaN and the infinities, which JSON has
no numbers for, are the strings "NaN", "Infinity" and "-Infinity".
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from dpsql.answers.results.cell_texts import plain, special
from dpsql.diagnostics.layout import escaped


def dumps(value: Any, ascii_only: bool = False) -> str:
    """`value` on one line. Mappings with text keys, sequences, and whatever a released row may hold."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else f'"{special(value)}"'
        case Decimal():
            return format(value, "f")
        case str():
            return escaped(json.dumps(value, ensure_ascii=ascii_only))
        case Mapping():
            items = (f"{dumps(k, ascii_only)}: {dumps(v, ascii_only)}" for k, v in value.items())
            return f"{{{', '.join(items)}}}"
        case Sequence() if not isinstance(value, bytes | bytearray):
            return f"[{', '.join(dumps(v, ascii_only) for v in value)}]"
        case _:
            return dumps(plain(value), ascii_only)


def document(parts: Mapping[str, Any], ascii_only: bool = False) -> str:
    """An object with one key a line; a list of rows (lists or objects) gets one line each."""
    lines = [f"  {dumps(key)}: {_spread(value, ascii_only)}" for key, value in parts.items()]
    return "{\n" + ",\n".join(lines) + "\n}"


def _spread(value: Any, ascii_only: bool) -> str:
    if not isinstance(value, list | tuple) or not value or not isinstance(value[0], list | tuple | dict):
        return dumps(value, ascii_only)
    return "[\n" + ",\n".join(f"    {dumps(row, ascii_only)}" for row in value) + "\n  ]"
