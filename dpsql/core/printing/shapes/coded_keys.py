"""Public texts of keys, written as their places in a list: a form of fewer bytes to group by."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.ir.nodes import Release, key_sources
from dpsql.core.ir.types import Kind
from dpsql.core.printing.dialect import Dialect

MOST_LISTED = 1000
"""Texts of a key list up to which they are written once more."""


def coded_keys(node: Release, dialect: Dialect) -> list[Sequence[str]]:
    """Of each key the texts whose places stand for it; none: it is written as it is. An order of groups needs texts."""
    found: list[Sequence[str]] = [()] * len(node.keys)
    for source in key_sources(node) or ():
        for place, at in enumerate(source.positions):
            # Rows outside of a list that covers them are not filtered, and must not pass for its NULL.
            if node.keys[at].type.kind is Kind.VARCHAR and not source.covers and len(source.keys) <= MOST_LISTED:
                texts = list(dict.fromkeys(str(key[place]) for key in source.keys if key[place] is not None))
                found[at] = texts if dialect.listed("", texts) is not None else ()
    return found
