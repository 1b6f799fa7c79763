"""Opens the listeners of the web beside the wire's: one for analysts, one for custodians."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dpsql.diagnostics.errors import reject
from dpsql.faces.server.front.listen import Front, require_tls
from dpsql.faces.server.refusal_counts import Refusals
from dpsql.faces.server.web.console import Console
from dpsql.faces.server.web.custodian import Custodian
from dpsql.faces.server.web.guard import Guard
from dpsql.faces.server.web.listener import Listener, WebLimits
from dpsql.faces.server.web.pages.reference import WireAddress
from dpsql.faces.server.web.site import House, Site


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. port: 0 takes a free one."""

    host: str
    port: int

    @property
    def shown(self) -> str:
        """As in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_address(text: str, option: str) -> Address:
    """`127.0.0.1:8080`, `[::1]:8080`, `8080`. Raises Rejected DP903."""
    host, colon, port = text.rpartition(":")
    host = (host if colon else "127.0.0.1").removeprefix("[").removesuffix("]") or "0.0.0.0"
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65_536):
        raise reject("DP903", f"{option}: {text!r} is no address and port", help=[f"{option} 127.0.0.1:8080"])
    return Address(host, int(port))


class Web:
    """What listens. analysts, custodians: where, None for nowhere."""

    def __init__(self, house: House, front: Front, place: WireAddress, refusals: Refusals) -> None:
        self._house = house
        self._console = Console(house, place)
        self._custodian = Custodian(house, refusals, [front, self._console.sessions])
        self._listeners: list[Listener] = []

    async def start(self, analysts: Address | None, custodians: Address | None) -> Sequence[tuple[str, str]]:
        """Whose they are, and their URLs. Raises Rejected DP903."""
        urls = []
        wanted = ((self._console, analysts, "--http"), (self._custodian, custodians, "--custodian-http"))
        for site, address, option in wanted:
            if address is not None:
                whose = "analysts'" if site is self._console else "custodian's"
                urls.append((whose, await self._listen(site, address, option)))
        return urls

    async def _listen(self, site: Site, address: Address, option: str) -> str:
        tls, is_proxy = self._house.door.tls, self._house.door.is_proxy
        require_tls(address.host, tls)
        limits = WebLimits(self._house.limits.connections, max(self._house.limits.connections // 2, 1))
        listener = Listener(Guard(site.app(), site.secure, is_proxy), tls, limits, is_proxy)
        try:
            port = await listener.start(address.host, address.port)
        except OSError as error:
            reason = (error.strerror or "unknown reason").lower()
            raise reject(
                "DP903", f"{address.shown} cannot be listened at: {reason}", help=[f"{option} 127.0.0.1:8081"]
            ) from None
        self._listeners.append(listener)
        return f"http{'s' * site.secure}://{Address(address.host, port).shown}/"

    def let_go(self, names: Collection[str]) -> None:
        """See `reload.Holding`."""
        for site in (self._console, self._custodian):
            site.sessions.let_go(names)

    async def stop(self, seconds: float | None = None) -> None:
        """No new requests; what runs comes to its end. seconds: after which nobody is waited for."""
        for listener in self._listeners:
            await listener.stop(seconds)
