"""Which pool may hand out from which network: one ConfigMap, so that two pools can never both have an address.

Admission refuses pools that overlap, but admission can be off, and two pools can be created at the same moment. So
before a pool hands out anything its network is entered here, by compare-and-swap, and never beside one that
overlaps. An entry covers the pool's `claimedCIDR` at all times: to grow, the entry grows first and the pool's status
follows; to shrink, the status shrinks first and the entry follows.

Every change reads the ConfigMap first, then the pool, then swaps (`register`). An entry also names the pool's UID and
generation, so that a claim for a newer state of the pool always changes the ConfigMap: a process that is about to
write an entry for an older state of the pool then fails.

Changes for several pools may share one read of the ConfigMap and one swap. Each pool is still read after the
ConfigMap, and until the swap no other process has changed any entry, so each of them is as safe as alone; what the swap
enters for one pool counts as a rival for the next.

It is one object, so a write costs as much as it has entries, and the API server takes no more than 1 MiB of them:
enough for some 17,000 pools. A pool that no longer fits says so (`NotClaimed`) and hands out nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from butler.api.objects import Json, Key
from butler.ipam.addresses import BadAddress, Family, parse_network
from butler.ipam.range_index import RangeIndex

if TYPE_CHECKING:
    from collections.abc import Iterator

    from butler.api.networkpool import NetworkPool

CLAIMS = "butler-network-claims"


class NetworkClaim(NamedTuple):
    """One pool's entry."""

    cidr: str
    uid: str
    generation: int


class Moved(NamedTuple):
    """An entry that changed."""

    key: Key
    before: NetworkClaim | None
    after: NetworkClaim | None


def entry(key: Key, claim: NetworkClaim | None) -> tuple[str, str | None]:
    """How a claim stands in the ConfigMap; None takes it away."""
    # Namespaces have no dots, so the first one ends the namespace.
    return f"{key.namespace}.{key.name}", f"{claim.cidr} {claim.uid} {claim.generation}" if claim else None


def moved(before: Json | None, after: Json | None) -> list[Moved]:
    """The entries that differ between two states of the ConfigMap; whatever is no entry is left out."""
    old, new = _entries(before), _entries(after)
    found = []
    for name, text in old.items() ^ new.items():
        key = _key(name)
        if key is not None and new.get(name, text) == text:  # one that changed is in both: once is enough
            change = Moved(key, _claim(old.get(name)), _claim(new.get(name)))
            if change.before != change.after:
                found.append(change)
    return found


class ClaimTable:
    """The entries of the ConfigMap, findable by pool and by network; of a new version only what differs is read."""

    def __init__(self, config_map: Json | None = None) -> None:
        self._read: Json | None = None
        self._claims: dict[Key, NetworkClaim] = {}
        self._networks = {family: RangeIndex[Key]() for family in Family}
        self._touched: dict[Key, NetworkClaim | None] = {}
        self.take(config_map)

    def take(self, config_map: Json | None) -> None:
        """Become what the ConfigMap says, whatever was put in meanwhile."""
        for key, before in self._touched.items():
            self._set(key, before)
        self._touched.clear()
        for change in moved(self._read, config_map):
            self._set(change.key, change.after)
        self._read = config_map

    def put(self, key: Key, claim: NetworkClaim | None) -> None:
        """Change an entry until the next `take`, which tells whether that was written."""
        self._touched.setdefault(key, self._claims.get(key))
        self._set(key, claim)

    def get(self, key: Key) -> NetworkClaim | None:
        return self._claims.get(key)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._claims)

    def rival(self, key: Key, cidr: str) -> Key | None:
        """The pool whose claim stands in the way of this one."""
        family, network = parse_network(cidr)
        return next((other for _, other in self._networks[family].touching(network) if other != key), None)

    def _set(self, key: Key, claim: NetworkClaim | None) -> None:
        before = self._claims.pop(key, None)
        if before is not None:
            family, network = parse_network(before.cidr)
            self._networks[family].remove(network, key)
        if claim is not None:
            family, network = parse_network(claim.cidr)
            self._claims[key] = claim
            self._networks[family].add(network, key)


def _entries(config_map: Json | None) -> dict[str, str]:
    return (config_map or {}).get("data") or {}


def _key(name: str) -> Key | None:
    namespace, _, of = name.partition(".")
    return Key(namespace, of) if of else None


def _claim(text: str | None) -> NetworkClaim | None:
    if text is None:
        return None
    cidr, _, rest = text.partition(" ")
    uid, _, generation = rest.partition(" ")
    return NetworkClaim(cidr, uid, int(generation)) if generation.isdecimal() and is_network(cidr) else None


def is_network(cidr: str) -> bool:
    try:
        parse_network(cidr)
    except BadAddress:
        return False
    return True


def contains(outer: str, inner: str) -> bool:
    """Whether one network lies inside another."""
    (family, a), (other, b) = parse_network(outer), parse_network(inner)
    return family is other and a.contains(b)


def overlaps(one: str, other: str) -> bool:
    (family, a), (its_family, b) = parse_network(one), parse_network(other)
    return family is its_family and a.overlaps(b)


def claimed_network(pool: NetworkPool) -> str | None:
    """The network that a pool's status claims; a value that was edited into nonsense claims nothing."""
    claimed = pool.status.claimed_cidr
    return claimed if claimed is not None and is_network(claimed) else None
