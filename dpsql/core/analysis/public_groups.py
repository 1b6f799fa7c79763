"""How many groups a release with public keys has, and in how many of them the rows of one id can be.

Claim: P groups are released, whatever the data. The rows of one id lie in at most P′ of them: the different
    combinations of those keys that are no functions of the id.
Why: all listed keys are released, and rows that have others are dropped. All rows of an id agree on what is a function
    of the id. So two of its groups differ in the other keys, and each is one of the listed combinations.
When it would be false:
    - a list whose length depends on private data: keys that partition selection shows or an earlier release gave. The
      lists here are those of the plan, made of the policy, the query and public tables;
    - a column that is taken for a function of the id and is none (`Facts.by_id`).
Tested by: tests/deep/core/analysis/test_public_groups.py, tests/deep/core/analysis/test_contribution_bounding.py
"""

from __future__ import annotations

from math import prod

from dpsql.core.analysis.facts import Columns
from dpsql.core.ir.components import KeySource
from dpsql.core.ir.nodes import GroupKeys


def released_groups(keyed: GroupKeys) -> int | None:
    """P; None if keys are private, or no list is known, as when a public table has not been read. 1 without keys."""
    return None if keyed.sources is None else prod(len(s.keys) for s in keyed.sources) or None


def groups_of_an_id(keyed: GroupKeys, by_id: Columns) -> int | None:
    """P′; None where P is, unless all keys are functions of the id. by_id: columns that are such functions."""
    moving = frozenset(at for at, item in enumerate(keyed.items) if item.column.uid not in by_id)
    if not moving:
        return 1
    return None if keyed.sources is None else prod(_different(s, moving) for s in keyed.sources) or None


def _different(source: KeySource, moving: frozenset[int]) -> int:
    """How many combinations a list has of the keys at these positions; 0 if it is not known."""
    places = [place for place, at in enumerate(source.positions) if at in moving]
    if not places:
        return 1
    if len(places) == len(source.positions):
        return len(source.keys)
    return len({tuple(key[place] for place in places) for key in source.keys})
