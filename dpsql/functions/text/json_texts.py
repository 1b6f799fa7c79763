"""The text of a value in JSON. A path is a literal, and is read when the query is planned.

A text that is no JSON has no values: NULL, as of a path that leads nowhere, or to null. A number is written as the
engine writes numbers, an object or a list as JSON.
"""

from __future__ import annotations

import re
from typing import Final

from dpsql.core.ir.types import VARCHAR, SqlType
from dpsql.core.values.value import Args
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.signature import constant_text, count, text

_PATH: Final = re.compile(r'\$(?:\.[A-Za-z_]\w*|\."[^"\\*]+"|\[\d{1,9}\])+')
_MOST_CHARACTERS: Final = 1000


def _type(args: Args) -> SqlType:
    count(args, 2, 2)
    text(args[0])
    path = constant_text(args[1], "the path")
    if len(path) > _MOST_CHARACTERS or not _PATH.fullmatch(path):
        raise SignatureError("expects a path such as '$.city' or '$.homes[0].city'")
    return VARCHAR


FUNCTIONS = (
    Function(
        ("json_extract_string",),
        "json_extract_string(x: text, path: literal) → text",
        "The text at a path in JSON, also x ->> path; NULL where there is none, or x is no JSON.",
        type=_type,
        nullable=lambda args: True,
        literal=frozenset({1}),
    ),
)
