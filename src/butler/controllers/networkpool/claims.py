"""Which pool may hand out from which network: one ConfigMap, so that two pools can never both have an address.

Admission refuses pools that overlap, but admission can be off, and two pools can be created at the same moment. So
before a pool hands out anything its network is entered here, by compare-and-swap, and never beside one that
overlaps. An entry covers the pool's `claimedCIDR` at all times: to grow, the entry grows first and the pool's status
follows; to shrink, the status shrinks first and the entry follows.

Every change reads the ConfigMap first, then the pool, then swaps. An entry also names the pool's UID and generation,
so that a claim for a newer state of the pool always changes the ConfigMap: whoever is about to write an entry for
what the pool looked like a moment ago then fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from butler.controllers import absence
from butler.controllers.kinds import ALLOCATIONS, POOLS
from butler.controllers.networkpool.holdings import holding_of
from butler.ipam.addresses import BadAddress, parse_network
from butler.kube.errors import AlreadyExists, KubeError, NotFound
from butler.kube.objects import key_of
from butler.kube.resource import CONFIGMAPS, Json, Key

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.kube.client import Client

CLAIMS = "butler-network-claims"
_PURPOSE = "Which NetworkPool may hand out from which network; kept by Butler, not for editing."


class Claim(NamedTuple):
    """One pool's entry."""

    cidr: str
    uid: str
    generation: int


class PoolMoved(KubeError):
    """The pool is no longer what the claim was for: look again."""


class StillHeld(KubeError):
    """A claim cannot be given up: look again when the addresses are released."""

    def __init__(self, pool: Key, holder: str, cidr: str) -> None:
        super().__init__(f"NetworkPool {pool}: {holder} still holds addresses in {cidr}")
        self.holder = holder
        self.cidr = cidr


Claims = dict[Key, Claim]


def read_claims(config_map: Json | None) -> Claims:
    """The entries of the ConfigMap; whatever is none is left out."""
    claims: Claims = {}
    for key, text in ((config_map or {}).get("data") or {}).items():
        namespace, _, name = key.partition(".")
        cidr, _, rest = text.partition(" ")
        uid, _, generation = rest.partition(" ")
        if name and generation.isdecimal() and is_network(cidr):
            claims[Key(namespace, name)] = Claim(cidr, uid, int(generation))
    return claims


def entry(key: Key, claim: Claim | None) -> tuple[str, str | None]:
    """How a claim stands in the ConfigMap; None takes it away."""
    # Namespaces have no dots, so the first one ends the namespace.
    return f"{key.namespace}.{key.name}", f"{claim.cidr} {claim.uid} {claim.generation}" if claim else None


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
    """The network that a pool's status claims; what somebody edited into nonsense claims nothing."""
    claimed = pool.status.claimed_cidr
    return claimed if claimed is not None and is_network(claimed) else None


def rival(claims: Claims, key: Key, cidr: str) -> Key | None:
    """The pool whose claim stands in the way of this one."""
    return next((other for other, claim in claims.items() if other != key and overlaps(claim.cidr, cidr)), None)


class ClaimRegister:
    """Changes the ConfigMap. Every change is a fresh read and a compare-and-swap; Conflict is for the caller."""

    def __init__(self, client: Client, home: str, scope: str = "") -> None:
        self._client = client
        self._home = home
        self._scope = scope

    async def claim(self, pool: NetworkPool) -> Key | None:
        """Enter the pool's network; the rival's key when that is not possible."""
        key = key_of(pool)
        config_map = await self._read()
        now = await self._client.get(POOLS, key.name, key.namespace)
        if (now.metadata.uid, now.metadata.generation) != (pool.metadata.uid, pool.metadata.generation):
            raise PoolMoved(f"NetworkPool {key} was changed meanwhile")
        if (claimed := claimed_network(now)) is not None and not contains(now.spec.cidr, claimed):
            raise PoolMoved(f"NetworkPool {key} has not yet given up {claimed}")
        claims = read_claims(config_map)
        if (other := rival(claims, key, now.spec.cidr)) is not None:
            return other
        wanted = Claim(now.spec.cidr, now.metadata.uid, now.metadata.generation)
        if claims.get(key) != wanted:  # it stands already where a process died between this and the pool's status
            await self._replace(config_map, key, wanted)
        return None

    async def shrink(self, key: Key) -> None:
        """Give back what a pool's status no longer claims."""
        config_map = await self._read()
        pool = await self._client.get(POOLS, key.name, key.namespace)
        claimed = claimed_network(pool)
        if claimed is None or claimed != pool.spec.cidr:
            return
        claim = read_claims(config_map).get(key)
        if claim is not None and claim.cidr != claimed and contains(claim.cidr, claimed):
            await self._replace(config_map, key, Claim(claimed, pool.metadata.uid, pool.metadata.generation))

    async def drop(self, key: Key) -> None:
        """Forget the claim of a pool that is gone, unless somebody still holds addresses from it."""
        config_map = await self._read()
        if key not in read_claims(config_map):
            return
        if await absence.read(self._client, POOLS, key) is not None:
            return
        await self._replace(config_map, key, None)

    async def _replace(self, config_map: Json, key: Key, claim: Claim | None) -> None:
        """Swap an entry, unless somebody still holds addresses from this pool in what would be given up."""
        before = read_claims(config_map).get(key)
        if before is not None and not (claim is not None and contains(claim.cidr, before.cidr)):
            for allocation in (await self._client.list(ALLOCATIONS, key.namespace)).items:
                if allocation.spec.pool_ref.name == key.name and _holds_in(allocation, before.cidr, claim):
                    raise StillHeld(key, allocation.metadata.name, before.cidr)
        meta = config_map["metadata"]
        patch = {
            "metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
            "data": dict([entry(key, claim)]),
        }
        await self._client.patch(CONFIGMAPS, CLAIMS, patch, self._home)

    async def _read(self) -> Json:
        """The ConfigMap as it is now; made first, with what pools claim already, where there is none."""
        try:
            return await self._client.get(CONFIGMAPS, CLAIMS, self._home)
        except NotFound:
            pass
        pools = await self._client.list(POOLS, self._scope)
        data = dict(
            entry(key_of(pool), Claim(claimed, pool.metadata.uid, pool.metadata.generation))
            for pool in pools.items
            if (claimed := claimed_network(pool)) is not None
        )
        metadata = {"name": CLAIMS, "namespace": self._home, "annotations": {"kubernetes.io/description": _PURPOSE}}
        try:
            return await self._client.create(CONFIGMAPS, {"metadata": metadata, "data": data})
        except AlreadyExists:
            return await self._client.get(CONFIGMAPS, CLAIMS, self._home)


def _holds_in(allocation: IPAllocation, before: str, after: Claim | None) -> bool:
    """Whether an allocation is live in one network and outside the other."""
    try:
        holding = holding_of(allocation)
    except BadAddress:
        return False  # nobody can tell what it holds
    if holding is None:
        return False
    family, old = parse_network(before)
    new = parse_network(after.cidr)[1] if after is not None else None
    return holding.family is family and old.overlaps(holding.range) and not (new and new.contains(holding.range))
