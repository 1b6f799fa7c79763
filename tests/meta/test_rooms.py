"""The rooms: none of them crowded, and no name that means two things."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from docs.rooms import below, modules

MOST = 20
"""Modules in one folder."""

SAME_FILES = {
    "on each engine": "connecting copies engine engine_types opening reading relations scratch settings synthetic",
    "in each database of ledgers and stored answers": "memory postgres sqlite refusals",
    "a measure and the aggregate that is made of it": "count largest mode quantile sum",
    "declared, and read from a file": "budgets policy serving tables units",
    "bound, analysed, rewritten, printed, and worked out afterwards": "cells components computed coverage expressions "
    "group_by key_lists literals membership nodes octaves privacy_clause public_facts searched_clips "
    "unnest values windows",
    "a command, a page or a protocol over what it is named after": "check diff login policy prepare query",
    "at several doors": "completion hints markup",
    "true and made up, or of the data and of the policy": "catalogue ledger policy_catalogue service",
}
"""Why files of these names, in several folders, mean one thing."""

SAME_CLASSES = {
    "on each engine": "Read Relation Schema Wanted",
    "in each database of ledgers": "StoredEntries",
    "SET and SHOW, in Python and at a server": "Set Show",
    "as it is planned, and as users hold it": "Policy Release",
    "part of the hash of each policy, and so of the address of each stored answer": "Budgets Column",
}


def shared(names: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Names that stand in several places: name → places."""
    places: defaultdict[str, set[str]] = defaultdict(set)
    for name, place in names:
        places[name].add(place)
    return {name: found for name, found in places.items() if len(found) > 1}


def words(reasons: dict[str, str]) -> set[str]:
    return {word for text in reasons.values() for word in text.split()}


def test_no_room_is_crowded(root: Path) -> None:
    folders = [root / "dpsql", *(path for path in (root / "dpsql").rglob("*") if path.is_dir())]
    assert {str(path): len(modules(path)) for path in folders if len(modules(path)) > MOST} == {}


def test_files_of_one_name_mean_one_thing(root: Path) -> None:
    found = shared((path.stem, str(path)) for path in below(root / "dpsql") if not path.stem.startswith("__"))
    assert {name: places for name, places in found.items() if name not in words(SAME_FILES)} == {}


def test_classes_of_one_name_mean_one_thing(root: Path) -> None:
    found = shared(
        (name, str(path))
        for path in below(root / "dpsql")
        for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert {name: places for name, places in found.items() if name not in words(SAME_CLASSES)} == {}


def test_a_name_in_two_places_is_noticed() -> None:
    assert shared([("a", "x"), ("a", "y"), ("b", "x"), ("b", "x")]) == {"a": {"x", "y"}}
