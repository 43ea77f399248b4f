"""Which IPAllocations a cluster needs. Pure.

In ipam mode a cluster gets one block for its machines and one for its load balancers, each from the first pool (by
priority) whose longest free run can hold it. That is a guess: the pool decides, and others ask at the same time. A
request that was refused is therefore looked at again whenever a pool changes, and moved to another pool as soon as
one can hold it; until then it waits where it is, and is met there by itself when that pool gains room.

What was granted is never given back here, and never asked for twice: what is missing is what is wanted less what is
held or under way. Machines that are added later get a further block, so does a load-balancer pool that is enlarged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butler.api.conditions import condition_holds, find_condition
from butler.api.ipallocation import IPAllocation, IPAllocationPhase, IPAllocationSpec, IPAllocationType, PinnedIPRange
from butler.api.labels import AllocationRole, ConditionType, Finalizer, Label, NetworkReason, TenantClusterReason
from butler.api.meta import LocalObjectReference, NamespacedObjectReference, ObjectMeta
from butler.api.providerconfig import AllocationMode, NetworkMode
from butler.capi.blueprint import NodeNetwork
from butler.controllers.tenantcluster.blocked import Blocked
from butler.ipam.addresses import Range, parse_address, parse_network, parse_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from butler.api.networkpool import NetworkPool
    from butler.api.providerconfig import ProviderConfig, ProviderNetwork
    from butler.api.tenantcluster import TenantCluster

LABEL_LENGTH = 63
NAMES = {IPAllocationType.NODES: "nodes", IPAllocationType.LOAD_BALANCER: "lb"}


@dataclass(frozen=True, slots=True)
class Addresses:
    """What a cluster has, and what it still needs."""

    create: tuple[IPAllocation, ...] = ()
    drop: tuple[IPAllocation, ...] = ()
    """Refused requests that another pool can meet: deleted here, and asked for there when they are gone."""
    blocked: Blocked | None = None
    nodes: NodeNetwork | None = None
    load_balancers: tuple[Range, ...] = ()
    node_allocation: str | None = None
    load_balancer_allocation: str | None = None


NO_ADDRESSES = Addresses()


def plan(
    cluster: TenantCluster,
    provider: ProviderConfig,
    pools: Mapping[str, NetworkPool],
    own: Iterable[IPAllocation],
    is_taken: Callable[[str], bool],
    home: str,
) -> Addresses:
    """What to ask for and what there is. `own` are the allocations that belong to this very cluster, by its UID;
    `is_taken` says whether any IPAllocation has a name."""
    network, networking = provider.spec.network, cluster.spec.networking
    if network.mode is NetworkMode.CLOUD:
        for field, value in (
            ("lbPoolSize", networking.lb_pool_size),
            ("loadBalancerPool", networking.load_balancer_pool),
        ):
            if value is not None:
                return Addresses(
                    blocked=_invalid(f"spec.networking.{field}: the provider is in cloud mode, which has no pools")
                )
        return NO_ADDRESSES
    alive = [each for each in own if each.status.phase is not IPAllocationPhase.RELEASED]
    try:
        wanted = [_node_wish(cluster, network, pools), _load_balancer_wish(cluster, network, pools)]
    except _Refused as refused:
        return Addresses(blocked=refused.blocked)
    create: list[IPAllocation] = []
    drop: list[IPAllocation] = []
    blocked: Blocked | None = None
    for wish in wanted:
        step = _next_step(wish, cluster, pools, [each for each in alive if each.spec.type is wish.type], is_taken, home)
        create += step.create
        drop += step.drop
        blocked = blocked or step.blocked
    granted = [each for each in alive if each.status.phase is IPAllocationPhase.ALLOCATED]
    nodes = _in_order(each for each in granted if each.spec.type is IPAllocationType.NODES)
    balancers = _in_order(each for each in granted if each.spec.type is IPAllocationType.LOAD_BALANCER)
    return Addresses(
        create=tuple(create),
        drop=tuple(drop),
        blocked=blocked,
        nodes=_node_network(nodes, network, pools),
        load_balancers=tuple(_range(each) for each in balancers),
        node_allocation=nodes[0].metadata.name if nodes else None,
        load_balancer_allocation=balancers[0].metadata.name if balancers else None,
    )


# What is wanted.


@dataclass(frozen=True, slots=True)
class _Wish:
    """Addresses of one type, from one of these pools, in this order."""

    type: IPAllocationType
    pools: tuple[str, ...]
    first: Callable[[NetworkPool | None], int]
    """How many to start with, which depends on the pool's defaults; 0: none."""
    least: int
    """How many there have to be in any case, later too."""
    pinned: PinnedIPRange | None = None


class _Refused(Exception):
    def __init__(self, blocked: Blocked) -> None:
        super().__init__(blocked.message)
        self.blocked = blocked


def _pools_for(type_: IPAllocationType, network: ProviderNetwork) -> tuple[str, ...]:
    fitting = [ref for ref in network.pool_refs if not ref.types or type_ in ref.types]
    return tuple(ref.name for ref in sorted(fitting, key=lambda ref: ref.priority))


def _node_wish(cluster: TenantCluster, network: ProviderNetwork, pools: Mapping[str, NetworkPool]) -> _Wish:
    replicas = cluster.spec.workers.replicas
    most = network.quota_per_tenant.max_node_ips if network.quota_per_tenant else None
    names = _pools_for(IPAllocationType.NODES, network)
    if not names:
        return _Wish(IPAllocationType.NODES, (), lambda _: 0, 0)
    if most is not None and replicas > most:
        raise _Refused(_over_quota(f"{replicas} workers need as many node addresses, and one tenant may hold {most}"))
    if network.gateway is None:
        raise _Refused(
            _invalid(
                "the ProviderConfig has no spec.network.gateway, which machines with addresses from a pool need; if the"
                " network itself gives them addresses, let poolRefs[].types be [loadbalancer]"
            )
        )
    around = tuple(name for name in names if name not in pools or _holds(pools[name], network.gateway))
    if not around:
        raise _Refused(
            _invalid(
                f"the gateway {network.gateway} of the ProviderConfig lies in none of its pools for nodes"
                f" ({', '.join(f'{name} {pools[name].spec.cidr}' for name in names)})"
            )
        )

    def first(pool: NetworkPool | None) -> int:
        return _cut(max(replicas, _defaults(pool)[0]), most)

    return _Wish(IPAllocationType.NODES, around, first, replicas)


def _load_balancer_wish(cluster: TenantCluster, network: ProviderNetwork, pools: Mapping[str, NetworkPool]) -> _Wish:
    networking, sizes = cluster.spec.networking, network.load_balancer
    most = network.quota_per_tenant.max_load_balancer_ips if network.quota_per_tenant else None
    names = _pools_for(IPAllocationType.LOAD_BALANCER, network)
    picked, asked = networking.load_balancer_pool, networking.lb_pool_size
    if not names:
        if picked or asked:
            field = "loadBalancerPool" if picked else "lbPoolSize"
            raise _Refused(_invalid(f"spec.networking.{field}: no pool of the provider is for load balancers"))
        return _Wish(IPAllocationType.LOAD_BALANCER, (), lambda _: 0, 0)
    if picked is not None:
        _, wanted = parse_range(picked.start, picked.end)
        if most is not None and wanted.size > most:
            raise _Refused(_over_quota(f"loadBalancerPool has {wanted.size} addresses, and one tenant may hold {most}"))
        around = tuple(name for name in names if name in pools and _network(pools[name]).contains(wanted))
        if not around and all(name in pools for name in names):
            where = ", ".join(f"{name} {pools[name].spec.cidr}" for name in names)
            raise _Refused(
                _invalid(f"spec.networking.loadBalancerPool: {picked.start}-{picked.end} lies in no pool ({where})")
            )
        pinned = PinnedIPRange(start_address=picked.start, end_address=picked.end)
        return _Wish(IPAllocationType.LOAD_BALANCER, around or names, lambda _: wanted.size, 0, pinned)
    if asked is not None:
        if most is not None and asked > most:
            raise _Refused(
                _over_quota(f"lbPoolSize is {asked}, and one tenant may hold {most} load-balancer addresses")
            )
        return _Wish(IPAllocationType.LOAD_BALANCER, names, lambda _: asked, asked)

    def first(pool: NetworkPool | None) -> int:
        if sizes is None:
            return _cut(_defaults(pool)[1], most)
        elastic = sizes.allocation_mode is AllocationMode.ELASTIC
        return _cut(sizes.initial_pool_size if elastic else sizes.default_pool_size, most)

    return _Wish(IPAllocationType.LOAD_BALANCER, names, first, 0)


def _defaults(pool: NetworkPool | None) -> tuple[int, int]:
    wanted = pool.spec.tenant_allocation if pool else None
    return (wanted.defaults.nodes_per_tenant, wanted.defaults.lb_pool_per_tenant) if wanted else (5, 8)


def _cut(count: int, most: int | None) -> int:
    return count if most is None else min(count, most)


# What to do about it.


@dataclass(frozen=True, slots=True)
class _Step:
    create: tuple[IPAllocation, ...] = ()
    drop: tuple[IPAllocation, ...] = ()
    blocked: Blocked | None = None


def _next_step(
    wish: _Wish,
    cluster: TenantCluster,
    pools: Mapping[str, NetworkPool],
    alive: Sequence[IPAllocation],
    is_taken: Callable[[str], bool],
    home: str,
) -> _Step:
    if not wish.pools:
        return _Step()
    going = [each for each in alive if each.metadata.deletion_timestamp is not None]
    if going:
        return _Step(blocked=_waiting(f"IPAllocation {going[0].metadata.name} is being deleted"))
    waiting = [each for each in alive if each.status.phase is not IPAllocationPhase.ALLOCATED]
    if waiting:
        return _about_waiting(wish, pools, waiting[0], held=sum(_size(each) for each in alive if each not in waiting))
    held = sum(_size(each) for each in alive)
    pool = _choose(wish, pools, lambda candidate: wish.first(candidate) if not alive else wish.least - held)
    count = wish.first(pools.get(pool)) if not alive else wish.least - held
    if count <= 0:
        return _Step()
    name = _name(cluster, wish.type, len(alive), is_taken)
    return _Step(
        create=(_allocation(wish, cluster, pool, count, name, home, grown=bool(alive)),),
        blocked=_waiting(f"{count} {_words(wish.type)} are being asked for from pool {pool}"),
    )


def _about_waiting(wish: _Wish, pools: Mapping[str, NetworkPool], waiting: IPAllocation, held: int) -> _Step:
    """A request that has no addresses yet: wait for it, or take it elsewhere."""
    ready = find_condition(waiting.status.conditions, ConditionType.READY)
    here = waiting.spec.pool_ref.name
    if waiting.status.phase is not IPAllocationPhase.FAILED or ready is None:
        return _Step(blocked=_waiting(f"IPAllocation {waiting.metadata.name} waits for pool {here}"))

    def count(pool: NetworkPool | None) -> int:
        return wish.least - held if held else wish.first(pool)

    better = _choose(wish, pools, count)
    elsewhere = better != here and _can_hold(pools.get(better), count(pools.get(better)))
    resized = wish.pinned is None and waiting.spec.count != count(pools.get(here))
    if elsewhere or resized or here not in wish.pools:
        return _Step(drop=(waiting,), blocked=_waiting(f"IPAllocation {waiting.metadata.name} is asked for anew"))
    others = "".join(f"; pool {name} {_why_not(pools.get(name))}" for name in wish.pools if name != here)
    return _Step(
        blocked=Blocked(
            ConditionType.NETWORK_READY,
            ready.reason,
            f"no {_words(wish.type)}: pool {here}: {ready.message}{others}",
            waits=True,
        )
    )


def _choose(wish: _Wish, pools: Mapping[str, NetworkPool], count: Callable[[NetworkPool | None], int]) -> str:
    """The first pool that can hold it; where none can, the first that exists, to wait there."""
    for name in wish.pools:
        pool = pools.get(name)
        if _can_hold(pool, count(pool)):
            return name
    return next((name for name in wish.pools if name in pools), wish.pools[0])


def _can_hold(pool: NetworkPool | None, count: int) -> bool:
    return (
        pool is not None
        and condition_holds(pool.status.conditions, ConditionType.READY)
        and (pool.status.largest_free_block or 0) >= count
    )


def _why_not(pool: NetworkPool | None) -> str:
    if pool is None:
        return "does not exist"
    if not condition_holds(pool.status.conditions, ConditionType.READY):
        return "is not ready"
    return f"has no run of free addresses longer than {pool.status.largest_free_block or 0}"


def _allocation(
    wish: _Wish, cluster: TenantCluster, pool: str, count: int, name: str, home: str, *, grown: bool
) -> IPAllocation:
    labels = {
        Label.NETWORK_POOL: pool,
        Label.TENANT: cluster.metadata.name,
        Label.TENANT_UID: cluster.metadata.uid,
        Label.ALLOCATION_TYPE: str(wish.type),
        Label.ALLOCATION_ROLE: str(AllocationRole.GROWTH if grown else AllocationRole.INITIAL),
    }
    if cluster.spec.team_ref is not None:
        labels[Label.TEAM] = cluster.spec.team_ref.name
    return IPAllocation(
        metadata=ObjectMeta(
            name=name,
            namespace=home,
            labels={str(key): value for key, value in labels.items() if len(value) <= LABEL_LENGTH},
            finalizers=(Finalizer.IP_ALLOCATION.value,),
        ),
        spec=IPAllocationSpec(
            pool_ref=LocalObjectReference(name=pool),
            tenant_cluster_ref=NamespacedObjectReference(
                name=cluster.metadata.name, namespace=cluster.metadata.namespace
            ),
            type=wish.type,
            count=None if wish.pinned else count,
            pinned_range=wish.pinned,
        ),
    )


def _name(cluster: TenantCluster, type_: IPAllocationType, present: int, is_taken: Callable[[str], bool]) -> str:
    """`<cluster>-lb`, then `<cluster>-lb-2`; with a piece of the UID where the name is another's."""
    stem = f"{cluster.metadata.name}-{NAMES[type_]}"
    plain = stem if not present else f"{stem}-{present + 1}"
    if not is_taken(plain):
        return plain
    suffixed, number = f"{plain}-{cluster.metadata.uid[:8]}", 2
    while is_taken(suffixed):  # a retained record of this very cluster
        suffixed, number = f"{plain}-{cluster.metadata.uid[:8]}-{number}", number + 1
    return suffixed


# What there is.


def _in_order(granted: Iterable[IPAllocation]) -> list[IPAllocation]:
    """First the one that the cluster began with, then by age; equal ages by name, so that the order never changes."""
    return sorted(
        granted,
        key=lambda each: (
            each.metadata.labels.get(Label.ALLOCATION_ROLE) == AllocationRole.GROWTH,
            each.metadata.creation_timestamp.isoformat() if each.metadata.creation_timestamp else "",
            each.metadata.name,
        ),
    )


def _node_network(
    nodes: Sequence[IPAllocation], network: ProviderNetwork, pools: Mapping[str, NetworkPool]
) -> NodeNetwork | None:
    pool = pools.get(nodes[0].spec.pool_ref.name) if nodes else None
    if pool is None or network.gateway is None:
        return None
    return NodeNetwork(
        ranges=tuple(_range(each) for each in nodes),
        prefix_length=int(pool.spec.cidr.partition("/")[2]),
        gateway=network.gateway,
        dns_servers=network.dns_servers,
    )


def _range(granted: IPAllocation) -> Range:
    assert granted.status.start_address is not None
    assert granted.status.end_address is not None
    return parse_range(granted.status.start_address, granted.status.end_address)[1]


def _size(allocation: IPAllocation) -> int:
    return _range(allocation).size if allocation.status.start_address else allocation.spec.count or 0


def _network(pool: NetworkPool) -> Range:
    return parse_network(pool.spec.cidr)[1]


def _holds(pool: NetworkPool, address: str) -> bool:
    value = parse_address(address)[1]
    return _network(pool).contains(Range(value, value))


def _words(type_: IPAllocationType) -> str:
    return "node addresses" if type_ is IPAllocationType.NODES else "load-balancer addresses"


def _waiting(message: str) -> Blocked:
    return Blocked(ConditionType.NETWORK_READY, NetworkReason.RECONCILING, message, waits=True)


def _invalid(message: str) -> Blocked:
    return Blocked(ConditionType.NETWORK_READY, TenantClusterReason.INVALID_CONFIGURATION, message)


def _over_quota(message: str) -> Blocked:
    return Blocked(ConditionType.QUOTA_SATISFIED, TenantClusterReason.QUOTA_EXCEEDED, f"{message} (quotaPerTenant)")
