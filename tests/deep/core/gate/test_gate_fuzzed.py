"""Spoiled texts, a hundred thousand a case: what the gate admits, DuckDB's own parser reads as one scalar expression.

Without other columns, subqueries, windows, names and functions than those that are listed, and bound to nothing around
it: read in `1 + text * 2`. `make exhaustive` tries a million.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from dpsql.core.gate import grammar, scalar_tokens
from dpsql.core.gate.grammar import is_scalar
from dpsql.core.gate.vocabularies import DUCKDB as VOCABULARY
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.support.scalar_texts import ScalarText, texts
from tests.support.spoiled_texts import spoiled

duckdb = pytest.importorskip("duckdb")

TEXTS = 100_000
FEW = 20_000
CLASSES = {
    "OPERATOR",
    "CONSTANT",
    "FUNCTION",
    "CASE",
    "CAST",
    "COLUMN_REF",
    "CONJUNCTION",
    "COMPARISON",
    "BETWEEN",
    "TYPE",
}
OPERATORS = {
    *"+-*/%&|",
    "//",
    "||",
    *(f"{n}{like}" for n in ("", "!") for like in ("~~", "~~*")),
    "list_value",
    "nullif",
}
OPERATORS |= {f"{n}{like}_escape" for n in ("", "not_") for like in ("like", "ilike")}


def foreign(tree: Any, columns: set[tuple[str, ...]]) -> str:
    """What is in an expression that no scalar text may hold; empty if there is nothing."""
    if isinstance(tree, list):
        return next((found for part in tree if (found := foreign(part, columns))), "")
    if not isinstance(tree, dict):
        return ""
    if tree.get("alias"):
        return f"the name {tree['alias']}"
    if "class" in tree and tree["class"] not in CLASSES:
        return str(tree["class"])
    if tree.get("class") == "COLUMN_REF" and tuple(tree["column_names"]) not in columns:
        return f"the column {tree['column_names']}"
    if tree.get("class") == "FUNCTION":
        name = tree["function_name"]
        if name not in VOCABULARY.functions | OPERATORS:
            return f"the function {name}"
        if tree["distinct"] or tree["filter"] or tree["order_bys"]["orders"] or tree["schema"]:
            return f"a form of {name}"
    return next((found for part in tree.values() if (found := foreign(part, columns))), "")


def complaint(connection: Any, text: ScalarText) -> str:
    """Why an admitted text is not one scalar expression; empty if it is."""
    (answer,) = connection.execute("SELECT json_serialize_sql(?)", [f"SELECT 1 + {text.text} * 2"]).fetchone()
    found = json.loads(answer)
    if found["error"]:
        return str(found["error_message"])
    (statement,) = found["statements"]
    node = statement["node"]
    if (
        node["type"] != "SELECT_NODE"
        or node["from_table"]["type"] != "EMPTY"
        or node["modifiers"]
        or node["cte_map"]["map"]
    ):
        return "more than a list"
    if any(node[part] for part in ("where_clause", "group_expressions", "having", "qualify", "sample")):
        return "more than a list"
    if len(node["select_list"]) != 1:
        return f"{len(node['select_list'])} expressions"
    (tree,) = node["select_list"]
    one, product = _arguments(tree, "+") or (None, None)
    inner, two = _arguments(product, "*") or (None, None)
    if _number(one) != "1" or _number(two) != "2":
        return "it binds to what stands around it"
    return foreign(inner, {_names(atom) for atom in text.atoms})


def _arguments(tree: Any, name: str) -> list[Any] | None:
    if not isinstance(tree, dict) or tree.get("function_name") != name or len(tree["arguments"]) != 2:
        return None
    return [a["expression"] for a in tree["arguments"]]


def _number(tree: Any) -> str | None:
    return tree["literal"]["text"] if isinstance(tree, dict) and tree.get("class") == "CONSTANT" else None


def _names(atom: str) -> tuple[str, ...]:
    return tuple(part.strip('"') for part in re.findall(r'\w+|"[^"]*"', atom))


def tried(seed: int, wanted: int) -> tuple[int, list[tuple[str, str]]]:
    """How many of so many texts were admitted, and those that should not have been."""
    rng, connection = random.Random(seed), duckdb.connect()
    given = list(texts(DUCKDB, 6, seed))
    found, admitted = [], 0
    for text in spoiled(given, rng, wanted):
        if is_scalar.__wrapped__(text.text, text.atoms, VOCABULARY):
            admitted += 1
            why = complaint(connection, text)
            found += [(text.text, why)] if why else []
    return admitted, found


@pytest.mark.one_in(10)
@pytest.mark.parametrize("seed", range(10))
def test_what_is_admitted_is_one_scalar_expression(seed: int) -> None:
    admitted, found = tried(seed, TEXTS)
    assert found == []
    assert admitted > TEXTS / 20


TWINS: dict[str, tuple[object, str, object]] = {
    "not in brackets": (grammar._Parser, "whole", lambda self: self.expression()),
    "signs by signs": (
        scalar_tokens, "_TOKEN",
        re.compile(scalar_tokens._TOKEN.pattern.replace(r"`\0$]+", r"`\0$]"), re.ASCII | re.VERBOSE),
    ),
    "any function": (grammar._Parser, "other", None),
}  # fmt: skip


@pytest.mark.parametrize("name", TWINS)
def test_a_gate_with_a_hole_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, attribute, changed = TWINS[name]
    monkeypatch.setattr(place, attribute, changed or _any_function(grammar._Parser.other))
    assert tried(77, FEW)[1]


def _any_function(other: Callable[[grammar._Parser], None]) -> Callable[[grammar._Parser], None]:
    def changed(self: grammar._Parser) -> None:
        if re.fullmatch(r"[a-z_]+", self.token) and self.text[self.end : self.end + 1] == "(":
            self.step()
            self.step()
            if not self.took(")"):
                self.listed(")")
        else:
            other(self)

    return changed
