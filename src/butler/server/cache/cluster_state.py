"""Everything that Butler keeps in the management cluster: read once, followed from then on, and shared by all requests.

A request never lists anything. It takes what it needs as it stands, and asks a view. What was made of one pool is kept
beside it, with the version of the pool that it was made of; what depends on everything is kept until anything changes
(`of_all`).

A pool is concerned by an allocation that asks it, and by one that holds addresses of its network, whatever pool that
one names: so a map shows what is held twice.

The stream hears of changes as they come: it registers with `on_change`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, cast

from butler.api.ipallocation import IPAllocation
from butler.api.networkpool import NetworkPool
from butler.api.objects import Change, Json, Key, key_of
from butler.ipam.addresses import BadAddress, Family, Range, parse_network
from butler.kube.cache import Cache
from butler.kube.kinds import ALLOCATIONS, CLUSTERS, POOLS, PROVIDERS
from butler.kube.operator import Operator
from butler.kube.resource import EVENTS
from butler.rules.allocation.held import readable_range

T = TypeVar("T")
KindName = Literal["pool", "allocation", "tenant", "provider", "activity"]
KIND_NAMES: Final[tuple[KindName, ...]] = ("pool", "allocation", "tenant", "provider", "activity")
MOST_EVENTS: Final = 5_000
"""How many of the newest Events are thought of."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """Something that changed: an object of a kind came, changed or went."""

    kind: KindName
    change: Change[Any]
    pools: frozenset[str]
    """Pools that it concerns."""
    tenants: frozenset[str]
    """Tenants that it concerns, as `namespace/name`."""


class ClusterState:
    """What is known at this moment. Build it before the operator runs."""

    def __init__(self, operator: Operator, home: str) -> None:
        self.home = home
        self.pools = operator.cache(POOLS, namespace=home)
        self.allocations = operator.cache(ALLOCATIONS, namespace=home)
        self.providers = operator.cache(PROVIDERS)
        self.clusters = operator.cache(CLUSTERS)
        self.events: Cache[Json] = operator.cache(EVENTS)
        self.caches: dict[KindName, Cache[Any]] = {
            "pool": self.pools,
            "allocation": self.allocations,
            "tenant": self.clusters,
            "provider": self.providers,
            "activity": self.events,
        }
        self._networks: dict[str, tuple[Family, Range]] = {}
        self._members: dict[str, dict[Key, IPAllocation]] = {}
        self._beside: dict[str, dict[str, Any]] = {}
        self._kept: dict[Hashable, Any] = {}
        self._versions: dict[str, int] = {}
        self._listeners: list[Callable[[StateChange], None]] = []
        self.pools.on_change(self._pool_changed)
        self.allocations.on_change(self._allocation_changed)
        self.clusters.on_change(lambda change: self._object_changed("tenant", change))
        self.providers.on_change(lambda change: self._object_changed("provider", change))
        self.events.on_change(lambda change: self._object_changed("activity", change))

    def on_change(self, listener: Callable[[StateChange], None]) -> None:
        """Call `listener` for every change from now on."""
        self._listeners.append(listener)

    # Reading.

    def pool(self, namespace: str, name: str) -> NetworkPool | None:
        return self.pools.get(Key(namespace, name))

    def concerning(self, pool: str) -> list[IPAllocation]:
        """The allocations that ask a pool or hold addresses of its network."""
        return list(self._members.get(pool, {}).values())

    def count(self, pool: str) -> int:
        """How many allocations concern a pool."""
        return len(self._members.get(pool, ()))

    def version(self, pool: str) -> int:
        """A number that is another one after each change that concerns a pool."""
        return self._versions.get(pool, 0)

    def beside(self, pool: str) -> dict[str, Any]:
        """A place for what is made of a pool. It goes with the pool."""
        return self._beside.setdefault(pool, {}) if self.pool(self.home, pool) is not None else {}

    def forget_counts(self) -> None:
        """Nothing that was made of a pool is good any more."""
        self._beside.clear()

    def versions(self) -> dict[KindName, int]:
        """Up to which resourceVersion each source has been heard."""
        return {kind: number_of(cache.position) for kind, cache in self.caches.items()}

    def of_all(self, what: Hashable, compute: Callable[[], T]) -> T:
        """What `compute` says of everything, kept until anything but Events changes."""
        if what not in self._kept:
            self._kept[what] = compute()
        return cast("T", self._kept[what])

    # Following.

    def _pool_changed(self, change: Change[NetworkPool]) -> None:
        name = change.key.name
        if change.new is None:
            self._networks.pop(name, None)
            self._members.pop(name, None)
            self._beside.pop(name, None)
        elif change.old is None or change.old.spec.cidr != change.new.spec.cidr:
            network = _network(change.new)
            if network is None:
                self._networks.pop(name, None)
            else:
                self._networks[name] = network
            every = self.allocations.values()
            self._members[name] = {
                key_of(allocation): allocation for allocation in every if _concerns(name, network, allocation)
            }
        self._forget({name})
        self._tell(StateChange("pool", change, frozenset({name}), frozenset()))

    def _allocation_changed(self, change: Change[IPAllocation]) -> None:
        concerned: set[str] = set()
        for allocation in (change.old, change.new):
            if allocation is None:
                continue
            for pool in self._concerned(allocation):
                concerned.add(pool)
                members = self._members.setdefault(pool, {})
                if allocation is change.new:
                    members[change.key] = allocation
                else:
                    members.pop(change.key, None)
        self._forget(concerned)
        tenants = {
            f"{allocation.spec.tenant_cluster_ref.namespace}/{allocation.spec.tenant_cluster_ref.name}"
            for allocation in (change.old, change.new)
            if allocation is not None
        }
        self._tell(StateChange("allocation", change, frozenset(concerned), frozenset(tenants)))

    def _object_changed(self, kind: KindName, change: Change[Any]) -> None:
        if kind != "activity":
            self._forget(())
        tenants = frozenset({str(change.key)}) if kind == "tenant" else frozenset[str]()
        self._tell(StateChange(kind, change, frozenset(), tenants))

    def _concerned(self, allocation: IPAllocation) -> Iterator[str]:
        asked = allocation.spec.pool_ref.name
        yield asked
        held = readable_range(allocation)
        if held is not None:
            for name, (family, network) in self._networks.items():
                if name != asked and family is held[0] and network.overlaps(held[1]):
                    yield name

    def _forget(self, pools: set[str] | tuple[()]) -> None:
        self._kept.clear()
        for name in pools:
            self._versions[name] = self._versions.get(name, 0) + 1

    def _tell(self, moved: StateChange) -> None:
        for listener in self._listeners:
            listener(moved)


def number_of(version: str | None) -> int:
    """A resourceVersion as a number, which it is wherever Kubernetes runs; 0 for none."""
    return int(version) if version and version.isdecimal() else 0


def _concerns(pool: str, network: tuple[Family, Range] | None, allocation: IPAllocation) -> bool:
    if allocation.spec.pool_ref.name == pool:
        return True
    held = readable_range(allocation) if network is not None else None
    return network is not None and held is not None and held[0] is network[0] and held[1].overlaps(network[1])


def _network(pool: NetworkPool) -> tuple[Family, Range] | None:
    try:
        return parse_network(pool.spec.cidr)
    except BadAddress:
        return None
