"""Repairs name columns as SQL reads them, so that they work when pasted, whatever a column is called."""

from __future__ import annotations

import json

import pytest

import dpsql
from dpsql.core.ir.short_text import identifier
from tests.support.planning import policy

NAMES = ["2B", "price per cd", "order", "Straße", 'a "b"', "x.y", "plain", "CASE"]


def of(name: str, bounds: str = ", bounds: [0, 9]") -> dpsql.Policy:
    return policy(f"t:\n  unit: {{rows: 1}}\n  columns: {{{json.dumps(name)}: {{type: bigint{bounds}}}}}\n")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@pytest.mark.parametrize("name", NAMES)
def test_repairs_work_when_pasted(name: str) -> None:
    (found,) = dpsql.check(f"SELECT MAX({quoted(name)}) FROM t", of(name))
    repair = found.help[0].partition(":  ")[2]
    assert dpsql.check(f"SELECT {repair} FROM t", of(name)) == []
    for written in (quoted(name), f"{quoted(name)} * {quoted(name)}"):
        (found, *_) = dpsql.check(f"SELECT SUM({written}) FROM t", of(name, ""))
        clips = [text.partition(":  ")[2] for text in found.help if "in this query" in text or "in the query" in text]
        for clip in clips:
            changed = written.replace(quoted(name), clip.replace("lower, upper", "0, 9"))
            assert dpsql.check(f"SELECT SUM({changed}) FROM t", of(name, "")) == []
        assert clips


def test_names_stand_in_quotes_only_where_they_have_to() -> None:
    assert [identifier(n) for n in ("plain", "Straße", "date", "count(*)")] == ["plain", "Straße", "date", "count(*)"]
    assert [identifier(n) for n in ("2B", "ORDER", 'a"b')] == ['"2B"', '"ORDER"', '"a""b"']
