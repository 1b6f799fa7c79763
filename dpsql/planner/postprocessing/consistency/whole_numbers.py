"""Whole numbers near estimates that add up, which add up as well."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import floor
from typing import Any

import numpy as np

from dpsql.planner.postprocessing.consistency.groupings import Groupings
from dpsql.planner.postprocessing.consistency.least_squares import Numbers


def whole_numbers(groupings: Groupings, estimates: Sequence[Numbers]) -> list[list[int]]:
    """An integer for each estimate, of which every total is the sum of its parts.

    Along a chain of sets that ends with the finest, the parts of a total are rounded down, and what is missing goes to
    those that lost most; a number moves by less than 2 there. Numbers of other sets are sums of the finest set's.
    """
    order = groupings.chain()
    found: dict[int, list[int]] = {order[0]: [floor(x + Fraction(1, 2)) for x in _column(estimates[order[0]])]}
    for above, at in pairwise(order):
        found[at] = _divided(found[above], groupings.within(at, above).tolist(), _column(estimates[at]))
    finest = np.array(found[groupings.finest], dtype=object)
    for at in range(len(estimates)):
        if at not in found:
            sums: Any = np.zeros(len(estimates[at]), dtype=object)
            np.add.at(sums, groupings.group_of[at], finest)
            found[at] = sums.tolist()
    return [found[at] for at in range(len(estimates))]


def _column(estimates: Numbers) -> list[Fraction]:
    return [Fraction(x) for x in estimates[:, 0].tolist()]


def _divided(totals: Sequence[int], of: Sequence[int], parts: Sequence[Fraction]) -> list[int]:
    """The parts as integers whose sums are the totals. of: the total of each part; -1: of none, and it is 0."""
    found = [floor(part) if total >= 0 else 0 for part, total in zip(parts, of, strict=True)]
    members: list[list[int]] = [[] for _ in totals]
    for place, total in enumerate(of):
        if total >= 0:
            members[total].append(place)
    for total, own in zip(totals, members, strict=True):
        if not own:
            continue
        each, more = divmod(total - sum(found[place] for place in own), len(own))
        ahead = sorted(own, key=lambda place: found[place] - parts[place])  # of equal ones in the order of keys
        for n, place in enumerate(ahead):
            found[place] += each + (n < more)
    return found
