"""What the core is handed: this module, as `core/values/meaning.py` asks for it. No call of ours stands between."""

from __future__ import annotations

from dpsql.core.ir.types import SqlType
from dpsql.core.values.value import Args
from dpsql.functions.cast import cast
from dpsql.functions.expression_values import call, evaluate
from dpsql.functions.registry import REGISTRY
from dpsql.functions.signature import comparison_types

__all__ = ["call", "cast", "compared_as", "evaluate", "first_name"]


def first_name(name: str) -> str:
    """See `Meaning.first_name`."""
    return REGISTRY[name].name


def compared_as(args: Args) -> SqlType | None:
    """See `Meaning.compared_as`."""
    return comparison_types(args)
