"""Which addresses the machines of a cluster may have, and which one a machine gets. Pure.

Each provider takes node addresses in a place of its own; where there is none, or it is empty, a network with DHCP is
assumed, from which every machine gets one that no other machine has. An address is held by one machine at a time.
"""

from __future__ import annotations

import ipaddress
import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from butler.api.objects import Json

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

DHCP: Final = ipaddress.IPv4Network("172.31.0.0/16")
_LARGEST: Final = 65536
"""A range is written out up to here; no cluster has more machines."""


def offered(cluster: Json, machine: Json) -> tuple[str, ...] | None:
    """The addresses that a provider's objects carry, in their order; None: DHCP.

    `cluster` is what the provider calls the Cluster; `machine` is a machine's, or its template's, own spec.
    """
    spec = cluster.get("spec") or {}
    if cluster.get("kind") == "ProxmoxCluster":
        config = spec.get("ipv4Config") or spec.get("ipv6Config") or {}
        return _listed(config.get("addresses") or ())
    if cluster.get("kind") == "HarvesterCluster":
        return _harvester(spec, machine)
    return None


def _harvester(spec: Json, machine: Json) -> tuple[str, ...] | None:
    own = (machine.get("networkConfig") or {}).get("address")
    if own:
        return _listed([own.partition("/")[0]])
    config = spec.get("vmNetworkConfig") or {}
    pool = config.get("ipPool") or {}
    ranges = [*(pool.get("ranges") or config.get("ranges") or ())]
    if pool.get("rangeStart"):
        ranges.append({"rangeStart": pool["rangeStart"], "rangeEnd": pool.get("rangeEnd")})
    return _listed(f"{span['rangeStart']}-{span.get('rangeEnd') or span['rangeStart']}" for span in ranges)


def _listed(entries: Iterable[str]) -> tuple[str, ...] | None:
    found = tuple(str(address) for entry in entries for address in _expanded(entry))
    return found or None


def _expanded(entry: str) -> Iterator[Address]:
    """Single addresses of `10.0.0.5`, `10.0.0.5-10.0.0.9` or `10.0.0.0/28`."""
    first, dash, last = entry.partition("-")
    if dash:
        yield from _between(ipaddress.ip_address(first.strip()), ipaddress.ip_address(last.strip()))
    elif "/" in entry:
        yield from ipaddress.ip_network(entry.strip(), strict=False).hosts()
    else:
        yield ipaddress.ip_address(entry.strip())


def _between(first: Address, last: Address) -> Iterator[Address]:
    for number in range(min(int(last) - int(first) + 1, _LARGEST)):
        yield first + number


def choose(offer: Sequence[str] | None, is_held: Callable[[str], bool], machine: str) -> str | None:
    """The first free address of the offer; without an offer, one of the DHCP range. None: all are held."""
    if offer is not None:
        return next((address for address in offer if not is_held(address)), None)
    size = DHCP.num_addresses - 2
    start = zlib.crc32(machine.encode()) % size
    in_turn = (str(DHCP[1 + (start + number) % size]) for number in range(size))
    return next((address for address in in_turn if not is_held(address)), None)
