"""Which cases of a long test a commit runs."""

from __future__ import annotations

import hashlib


def is_chosen(seed: str, test: str, at: int, n: int) -> bool:
    """Whether case `at` (from 0) is the one that a seed chooses of its n neighbours; the same on every machine."""
    block = hashlib.sha256(f"{seed} {test} {at // n}".encode()).digest()
    return int.from_bytes(block[:8], "big") % n == at % n
