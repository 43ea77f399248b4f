"""What a pool may hand out and what is left of it, worked out the slow and obvious way.

Shares nothing with Butler: addresses are read with the standard library, free space is one byte per address, and
a search is a scan. The checker leans on it wherever it has to say what a counter should be or whether a request
would have fitted. Only IPv4, and only pools small enough to write down address by address.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

Json = dict[str, Any]
Span = tuple[int, int]
"""First and last address as numbers, both included."""

FALLBACK = {"nodes": ("nodesPerTenant", 5), "loadbalancer": ("lbPoolPerTenant", 8)}


def number(text: str) -> int:
    return int(ipaddress.IPv4Address(text))


def text(span: Span) -> str:
    first, last = (str(ipaddress.IPv4Address(end)) for end in span)
    return first if first == last else f"{first}-{last}"


def network(cidr: str) -> Span:
    """The addresses of a network; raises ValueError on host bits and nonsense."""
    read = ipaddress.IPv4Network(cidr, strict=True)
    return int(read.network_address), int(read.broadcast_address)


def meet(one: Span, other: Span) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def inside(inner: Span, outer: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def cidr_of(span: Span) -> str | None:
    """The range as one network, where it is one."""
    nets = list(ipaddress.summarize_address_range(ipaddress.IPv4Address(span[0]), ipaddress.IPv4Address(span[1])))
    return str(nets[0]) if len(nets) == 1 else None


@dataclass(frozen=True)
class Rules:
    """What a spec says about addresses: the network, the windows, and what is kept back."""

    network: Span
    windows: tuple[Span, ...]
    reserved: tuple[Span, ...]
    defaults: Json

    def why_not(self, span: Span) -> str:
        """Why a range may not be handed out under these rules; empty when it may."""
        if not any(inside(span, window) for window in self.windows):
            return f"{text(span)} lies in no window ({', '.join(text(window) for window in self.windows)})"
        for block in self.reserved:
            if meet(span, block):
                return f"{text(span)} meets what is reserved, {text(block)}"
        return ""

    def size_of(self, allocation: Json) -> int:
        """How many addresses a request asks for."""
        spec = allocation["spec"]
        if spec.get("pinnedRange"):
            first, last = pinned(allocation) or (0, -1)
            return last - first + 1
        name, fallback = FALLBACK[spec["type"]]
        return int(spec.get("count") or self.defaults.get(name) or fallback)


def pinned(allocation: Json) -> Span | None:
    wanted = allocation["spec"].get("pinnedRange")
    return (number(wanted["startAddress"]), number(wanted["endAddress"])) if wanted else None


def rules_of(spec: Json) -> Rules | None:
    """Read a pool's spec; None when a careful reader would hand out nothing from it."""
    try:
        whole = network(spec["cidr"])
        reserved = tuple(network(block["cidr"]) for block in spec.get("reserved") or ())
        wanted = spec.get("tenantAllocation") or {}
        pairs = wanted.get("ranges") or ([wanted] if wanted.get("start") or wanted.get("end") else [])
        windows = tuple(sorted((number(pair["start"]), number(pair["end"])) for pair in pairs))
    except (ValueError, KeyError):
        return None
    if not windows:
        edge = 1 if ipaddress.IPv4Network(spec["cidr"]).prefixlen <= 30 else 0
        windows = ((whole[0] + edge, whole[1] - edge),)
    sound = (
        all(first <= last and inside((first, last), whole) for first, last in windows)
        and all(inside(block, whole) for block in reserved)
        and all(one[1] < two[0] for one, two in pairwise(windows))
        and not any(meet(one, two) for i, one in enumerate(reserved) for two in reserved[:i])
        and not any(meet(b, w) and not inside(b, w) and bool(pairs) for b in reserved for w in windows)
    )
    rules = Rules(whole, windows, reserved, wanted.get("defaults") or {})
    return rules if sound and any(runs(rules, ())) else None


def rules_of_pool(pool: Json) -> Rules | None:
    """The same of a pool, less the gateways and DNS servers that its status lists."""
    rules = rules_of(pool["spec"])
    listed = (pool.get("status") or {}).get("excludedAddresses") or ()
    addresses = [number(entry["address"]) for entry in listed]
    inside_it = tuple(
        (address, address) for address in addresses if rules and rules.network[0] <= address <= rules.network[1]
    )
    return replace(rules, reserved=(*rules.reserved, *inside_it)) if rules else None


def runs(rules: Rules, held: Iterable[Span]) -> list[Span]:
    """The free runs, lowest first, by writing every address down."""
    taken = [*rules.reserved, *held]
    found: list[Span] = []
    for first, last in rules.windows:
        free = bytearray(b"\x01") * (last - first + 1)
        for one, two in taken:
            low, high = max(one, first), min(two, last)
            if low <= high:
                free[low - first : high - first + 1] = bytes(high - low + 1)
        start = free.find(1)
        while start >= 0:
            end = free.find(0, start)
            end = len(free) if end < 0 else end
            found.append((first + start, first + end - 1))
            start = free.find(1, end)
    return found


def recount(rules: Rules, held: Iterable[Span]) -> dict[str, int]:
    """The counters of a pool's status when exactly these ranges are held."""
    pieces = [last - first + 1 for first, last in runs(rules, ())]
    total = sum(pieces)
    sizes = [last - first + 1 for first, last in runs(rules, held)]
    free, largest = sum(sizes), max(sizes, default=0)
    return {
        "totalIPs": total,
        "allocatedIPs": total - free,
        "availableIPs": free,
        "largestFreeBlock": largest,
        "fragmentationPercent": 100 - largest * 100 // min(free, max(pieces)) if free else 0,
    }


def would_fit(rules: Rules, held: Iterable[Span], allocation: Json) -> bool:
    """Whether a plain search finds room for a request."""
    held = list(held)
    wanted = pinned(allocation)
    if wanted is not None:
        first, last = wanted
        return first <= last and not rules.why_not(wanted) and any(inside(wanted, run) for run in runs(rules, held))
    size = rules.size_of(allocation)
    return size >= 1 and any(last - first + 1 >= size for first, last in runs(rules, held))
