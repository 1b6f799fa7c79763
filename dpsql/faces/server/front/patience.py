"""Wrong passwords cost time: after five, each further try of a name from an address waits, longer each time.

*Claim.* Who guesses from one address gets a bounded number of guesses an hour for all names together, and nobody can
keep somebody else's name out from an address of his own. *Why.* Failures are counted for the pair of name and address,
and, with a larger allowance, for the address. A try counts as failed when its proof has come, before it is looked at,
so that tries side by side do not share an allowance, and is taken back when it succeeds. Who leaves without a proof, as
psql does to ask for a password, has learned nothing. *When it would be false.* If one guesser had many addresses;
passwords have to stand that. *Tested by* tests/faces/server/front/test_patience.py.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

FREE: Final = 5
FREE_OF_ADDRESS: Final = 20
LONGEST: Final = 30.0
_FORGOTTEN_AFTER: Final = 3600.0
_MOST_KEPT: Final = 10_000


@dataclass(slots=True)
class _Failures:
    count: int
    last: float


class Patience:
    """Counts failed logins, in memory. clock: seconds that never go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[tuple[str, ...], _Failures] = OrderedDict()

    def try_begins(self, name: str, address: str) -> float:
        """Seconds to wait before this try may show its proof."""
        now, wait = self._clock(), 0.0
        for key, free in self._keys(name, address):
            kept = self._kept.pop(key, None)
            if kept is None or now - kept.last > _FORGOTTEN_AFTER:
                kept = _Failures(0, now)
            if kept.count >= free:
                wait = max(wait, min(2.0 ** min(kept.count - free, 10), LONGEST))
            kept.count, kept.last = kept.count + 1, now
            self._kept[key] = kept
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return wait

    def try_succeeded(self, name: str, address: str) -> None:
        """The name's failures from there are forgotten; of the address this one try is taken back."""
        (pair, _), (place, _) = self._keys(name, address)
        self._kept.pop(pair, None)
        if (kept := self._kept.get(place)) is not None:
            kept.count = max(kept.count - 1, 0)

    def _keys(self, name: str, address: str) -> Iterator[tuple[tuple[str, ...], int]]:
        place = network(address)
        yield (name[:100], place), FREE
        yield (place,), FREE_OF_ADDRESS


def network(address: str) -> str:
    """The address; of IPv6 the 64 bits that one customer has."""
    found = parsed_address(address)
    if found is None:
        return address
    return str(found) if found.version == 4 else str(ipaddress.ip_network((found, 64), strict=False))


def parsed_address(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address of IPv4 also where it is written as one of IPv6; None for what is none."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
