"""Fair bits from the operating system: the only place in the package where noise can come from.

*No seed, no buffer*: every call asks the kernel, so a forked child or another thread can never see the same bytes, and
no setting of Python's or numpy's generators has an influence.
"""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Words = NDArray[Any]

_CONTAINERS = ((8, np.uint8), (16, np.uint16), (32, np.uint32), (64, np.uint64))


class BitSource(Protocol):
    """Independent fair bits. Private: only tests give another source than the kernel, to enumerate every bit string."""

    def words(self, count: int, bits: int) -> Words:
        """`count` independent uniform unsigned integers of `bits` bits, 1 ≤ bits ≤ 64."""
        ...


class Kernel:
    """os.urandom: getrandom(2) on Linux. Nothing is kept between calls, which makes it safe under fork and threads."""

    def words(self, count: int, bits: int) -> Words:
        """As BitSource.words, from the upper bits of machine words. Raises ValueError for other numbers of bits."""
        if bits > 0:
            for size, kind in _CONTAINERS:
                if bits <= size:
                    fetched: Words = np.frombuffer(os.urandom(count * size // 8), kind)
                    return fetched if bits == size else fetched >> (size - bits)
        raise ValueError(f"no words of {bits} bits")
