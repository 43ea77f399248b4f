"""Where the console is to browsers, and what follows from it: which Host and Origin are ours, and which cookies.

A page of another site whose name is made to point here (DNS rebinding) sends another Host; a page that posts to us
sends another Origin. Both are known by name alone, so names are all that is compared.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
_PORTS: Final = {"http": 80, "https": 443}


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True)
class PublicUrl:
    """The console's address. `url` is what people type, without a slash at its end."""

    url: str
    behind_proxy: bool = False
    origins: frozenset[str] = field(init=False)
    hosts: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        at = urlsplit(self.url)
        scheme, port = at.scheme, at.port or _PORTS[at.scheme]
        name = f"[{at.hostname}]" if ":" in (at.hostname or "") else at.hostname or ""
        names = {name, *LOOPBACK_NAMES} if is_loopback(name) else {name}
        hosts = {f"{name}:{port}" for name in names}
        if port == _PORTS[scheme]:
            hosts |= names
        object.__setattr__(self, "hosts", frozenset(hosts))
        object.__setattr__(self, "origins", frozenset(f"{scheme}://{host}" for host in hosts))

    @property
    def secure(self) -> bool:
        return self.url.startswith("https://")

    @property
    def session_cookie(self) -> str:
        """Browsers take a __Host- cookie only over https, only for this very host, and from no other."""
        return "__Host-butler-session" if self.secure else "butler-session"

    @property
    def login_cookie(self) -> str:
        return "__Host-butler-login" if self.secure else "butler-login"

    def is_own_origin(self, origin: str, host: str) -> bool:
        """Whether a page of ours sent this: one of our origins, and the one that was asked."""
        return origin in self.origins and origin.partition("://")[2] == host


def sent_by_another(where: PublicUrl, *, host: str, origin: str | None, site: str | None) -> bool:
    """Whether a browser says that the request comes from a page of another site. Programs say nothing."""
    if origin is not None and not where.is_own_origin(origin.lower(), host.lower()):
        return True
    return site is not None and site not in ("same-origin", "none")


def client_address(where: PublicUrl, peer: str, forwarded: str | None) -> str:
    """Who sends it, for limits: behind a proxy, whom the proxy names last; of IPv6 the network, as one has many."""
    found = forwarded.rpartition(",")[2].strip() if where.behind_proxy and forwarded else peer
    try:
        address = ipaddress.ip_address(found.strip("[]"))
    except ValueError:
        return peer
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)
