"""Which IPAllocations a cluster needs. Pure.

In ipam mode a cluster gets one block for its machines and one for its load balancers, each from the first pool (by
priority) whose longest free run can hold it. That is a guess: the pool decides, and others ask at the same time. A
request that was refused is therefore looked at again whenever a pool changes, and moved to another pool as soon as
one can hold it; until then it waits where it is, and is met there by itself when that pool gains room.

A cluster that is not built yet starts with both blocks or with none. Its requests say so, and pools see to it; where
two pools could not know of each other's decision, the cluster gives back what it cannot use (`give_back`).

What was granted to a cluster that is built is never given back here, unless a person deletes it and the cluster can do
without (see `node_addresses`), and never asked for twice: what is missing is what is wanted less what is
held or under way. Machines that are added later get a further block, so does a load-balancer pool that is enlarged.
A limit that was lowered refuses what would be added, and leaves alone what is there.

Where load balancers follow demand (elastic), requests beyond what the cluster itself names are made by the controller
of load balancers: they are neither waited for nor touched here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocation, IPAllocationPhase, IPAllocationType
from butler.api.labels import (
    AllocationReason,
    AllocationRole,
    Annotation,
    ConditionType,
    Label,
    NetworkReason,
    TenantClusterReason,
)
from butler.api.providerconfig import NetworkMode
from butler.api.providers import Provider
from butler.ipam.addresses import BadAddress, Range, parse_range
from butler.ipam.granted import comes_back
from butler.rules.allocation.held import granted_range
from butler.rules.blocked import Blocked
from butler.rules.pool.excluded_addresses import special_addresses
from butler.rules.pool.room import why_not
from butler.rules.provider.settings import gateway_of
from butler.rules.tenant.address_requests import free_name, new_request
from butler.rules.tenant.blueprint import NodeNetwork
from butler.rules.tenant.node_addresses import NO_FLEET, NOTHING_GIVEN_UP, Fleet, GivenUp, give_up, strays
from butler.rules.tenant.pool_choice import Choice, choose, choose_together
from butler.rules.tenant.requested_addresses import (
    AddressesRefused,
    Wish,
    invalid,
    lies_in,
    load_balancer_wish,
    node_wish,
    over_quota,
    waiting,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from butler.api.networkpool import NetworkPool
    from butler.api.providerconfig import ProviderConfig, ProviderNetwork
    from butler.api.tenantcluster import TenantCluster

_OF_OTHERS = (AllocationReason.OTHER_BLOCK_UNAVAILABLE, AllocationReason.OTHER_BLOCK_NOT_REQUESTED)
"""Refusals that say nothing against the pool that they come from."""
_FOLLOWS = (*_OF_OTHERS, AllocationReason.OTHER_BLOCK_DOES_NOT_FIT, NetworkReason.RECONCILING)
"""Reasons that only say that something else is in the way, or that all goes its way."""
_NO_ROOM = (AllocationReason.POOL_EXHAUSTED, AllocationReason.POOL_FRAGMENTED)
"""Reasons that no longer hold where the pool says that it has room: then the request is granted in a moment."""
_ANYWHERE = (AllocationReason.QUOTA_EXCEEDED, AllocationReason.INVALID_REQUEST)
"""Reasons that another pool would have as well."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """What a cluster has, and what it still needs."""

    create: tuple[IPAllocation, ...] = ()
    drop: tuple[IPAllocation, ...] = ()
    """Refused requests that another pool can meet: deleted here, and asked for there when they are gone."""
    give_back: tuple[IPAllocation, ...] = ()
    """Blocks that are of no use to a cluster that is not built, because it cannot get its other block."""
    missing_in: str | None = None
    """The pool that the other block waits for."""
    blocks: tuple[IPAllocation, ...] = ()
    """All that the cluster holds."""
    blocked: Blocked | None = None
    nodes: NodeNetwork | None = None
    load_balancers: tuple[Range, ...] = ()
    given_up: GivenUp = NOTHING_GIVEN_UP
    """Node allocations that a person deletes, and that are released as soon as no machine can use them."""
    strays: tuple[str, ...] = ()
    """Machines with an address that the cluster does not hold, each as a sentence."""
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
    fleet: Fleet = NO_FLEET,
) -> Addresses:
    """What to ask for and what there is. `own` are the allocations that belong to this very cluster, by its UID;
    `is_taken` says whether any IPAllocation has a name; `fleet` are the machines, which may keep what is deleted."""
    network = provider.spec.network
    if network.mode is NetworkMode.CLOUD:
        return _no_pools(cluster)
    mine = _in_order(own)
    given_up = give_up(filter(_is_granted, mine), fleet, cluster.spec.workers.replicas)
    going = [allocation for allocation in mine if allocation.metadata.uid in given_up.uids or _is_going(allocation)]
    mine = [allocation for allocation in mine if allocation.metadata.uid not in given_up.uids]
    held = replace(NO_ADDRESSES, given_up=given_up)
    try:
        held = replace(
            _what_there_is([allocation for allocation in mine if _is_granted(allocation)], network, pools),
            given_up=given_up,
        )
        leaving = [_range(allocation) for allocation in given_up.once_withdrawn]
        held = replace(held, strays=strays(provider, held.nodes, leaving, fleet.machines, pools))
        _refuse_a_second_block(cluster, provider, held)
        settled_in = next(
            (
                allocation.spec.pool_ref.name
                for allocation in mine
                if _is_granted(allocation) and allocation.spec.type is IPAllocationType.NODES
            ),
            None,
        )
        wishes = (node_wish(cluster, network, pools, settled_in), load_balancer_wish(cluster, network, pools))
        needs = [_Need(wish, mine, going) for wish in wishes if wish.pools]
        together = _asked_together(cluster, needs, pools)
        steps = [
            _next_step(need, choice, cluster, pools, is_taken, home, together)
            for need, choice in zip(needs, _choices(needs, pools, together), strict=True)
        ]
    except AddressesRefused as refused:
        # Nothing by halves: a cluster that cannot have its one block does not take the other.
        return replace(held, blocked=refused.blocked)
    except BadAddress as error:
        return replace(held, blocked=invalid(str(error)))
    give_back = tuple(_of_no_use(cluster, steps, mine))
    return replace(
        held,
        # A cluster that gives back asks for nothing meanwhile: it would only have more to give back.
        create=() if give_back else tuple(request for step in steps for request in step.create),
        drop=tuple(allocation for step in steps for allocation in step.drop),
        blocked=_most_telling([step.blocked for step in steps if step.blocked]) or _on_a_special_address(held, network),
        give_back=give_back,
        missing_in=next((step.refused_by for step in steps if step.refused_by), None),
    )


def _asked_together(
    cluster: TenantCluster, needs: Sequence[_Need], pools: Mapping[str, NetworkPool]
) -> tuple[IPAllocationType, ...]:
    """The blocks that the cluster gets all or none of: those that it starts with, as long as nothing is built."""
    if cluster.status.tenant_namespace is not None:
        return ()
    return tuple(need.wish.type for need in needs if need.granted or need.missing(_some_pool(need.wish, pools)) > 0)


def _some_pool(wish: Wish, pools: Mapping[str, NetworkPool]) -> NetworkPool | None:
    return next((pools[name] for name in wish.pools if name in pools), None)


def _choices(
    needs: Sequence[_Need], pools: Mapping[str, NetworkPool], together: Sequence[IPAllocationType]
) -> list[Choice]:
    """Which pool each block is asked of."""
    if len(together) == 2 and not any(need.granted for need in needs):
        one, other = needs
        refused_in = one.refused_in | other.refused_in
        return [*choose_together((one.wish, other.wish), pools, (one.missing, other.missing), refused_in)]
    return [choose(need.wish, pools, need.missing) for need in needs]


def _most_telling(blocked: Sequence[Blocked]) -> Blocked | None:
    """What to tell of several things in the way: rather a cause than that a block waits for the other one."""
    causes = [item for item in blocked if item.reason not in _FOLLOWS]
    return next(iter((*causes, *blocked)), None)


def _on_a_special_address(held: Addresses, network: ProviderNetwork) -> Blocked | None:
    """A gateway or DNS server in the cluster's own blocks: pools leave these out, unless it was named too late."""
    for text, what in special_addresses(network):
        try:
            address = parse_range(text, text)[1]
        except BadAddress:
            continue
        block = next((block for block in held.blocks if _range(block).contains(address)), None)
        if block is not None:
            return Blocked(
                ConditionType.NETWORK_READY,
                TenantClusterReason.INVALID_CONFIGURATION,
                f"{text}, the {what} of the ProviderConfig, lies in the cluster's own IPAllocation"
                f" {block.metadata.name}: correct the ProviderConfig, or replace the cluster",
                waits=True,
            )
    return None


def _of_no_use(cluster: TenantCluster, steps: Sequence[_Step], mine: Sequence[IPAllocation]) -> Iterator[IPAllocation]:
    """What Butler asked for on behalf of a cluster that is not built, and cannot be now."""
    if cluster.status.tenant_namespace is not None or not any(step.refused_by for step in steps):
        return
    if any(step.drop for step in steps):
        return
    for allocation in mine:
        is_ours = allocation.metadata.labels.get(Label.TENANT_UID) == cluster.metadata.uid
        follows_demand = _is_growth(allocation) and allocation.spec.type is IPAllocationType.LOAD_BALANCER
        if _is_granted(allocation) and is_ours and not follows_demand:
            yield allocation


def _refuse_a_second_block(cluster: TenantCluster, provider: ProviderConfig, held: Addresses) -> None:
    """Harvester's machines get their addresses from one block that is fixed when the cluster is made."""
    wanted = cluster.spec.workers.replicas
    if provider.spec.provider is Provider.HARVESTER and held.nodes is not None and wanted > held.nodes.size:
        raise AddressesRefused(
            invalid(
                f"spec.workers.replicas: {wanted} workers need as many node addresses; Harvester takes one block, and"
                f" this cluster's has {held.nodes.size} (new clusters get more by the pool's nodesPerTenant)"
            )
        )


def _no_pools(cluster: TenantCluster) -> Addresses:
    networking = cluster.spec.networking
    for field, value in (("lbPoolSize", networking.lb_pool_size), ("loadBalancerPool", networking.load_balancer_pool)):
        if value is not None:
            return Addresses(
                blocked=invalid(f"spec.networking.{field}: the provider is in cloud mode, which has no pools")
            )
    return NO_ADDRESSES


# What to do about it.


@dataclass(frozen=True, slots=True)
class _Step:
    create: tuple[IPAllocation, ...] = ()
    drop: tuple[IPAllocation, ...] = ()
    blocked: Blocked | None = None
    refused_by: str | None = None
    """The pool that refused the request, where no other can meet it."""


class _Need:
    """What a cluster wants of one type, and what there is of it."""

    def __init__(self, wish: Wish, mine: Sequence[IPAllocation], going: Sequence[IPAllocation]) -> None:
        self.wish = wish
        of_type = [allocation for allocation in mine if allocation.spec.type is wish.type]
        self.granted = [allocation for allocation in of_type if _is_granted(allocation)]
        self.under_way = [allocation for allocation in of_type if _is_under_way(allocation)]
        self.going = [allocation for allocation in going if allocation.spec.type is wish.type]
        self.held = sum(_range(allocation).size for allocation in self.granted)
        self.refused_in = {
            allocation.spec.pool_ref.name
            for allocation in self.under_way
            if allocation.status.phase is IPAllocationPhase.FAILED and _reason(allocation) not in _OF_OTHERS
        }
        """Pools that have said no for a reason of their own."""

    def missing(self, pool: NetworkPool | None) -> int:
        """How many addresses to ask a pool for."""
        wish = self.wish
        if wish.pinned is not None and any(_range(allocation).contains(_pinned(wish)) for allocation in self.granted):
            return 0
        if not self.granted or wish.pinned is not None:
            return wish.first(pool)
        lacking = wish.least - self.held
        if lacking <= 0:
            return 0
        return max(lacking, wish.step if wish.most is None else min(wish.step, wish.most - self.held))


def _next_step(
    need: _Need,
    choice: Choice,
    cluster: TenantCluster,
    pools: Mapping[str, NetworkPool],
    is_taken: Callable[[str], bool],
    home: str,
    together: Sequence[IPAllocationType],
) -> _Step:
    wish, granted, held, pool, going = need.wish, need.granted, need.held, choice.pool, need.going
    count = need.missing(pools.get(pool))
    if need.under_way and not (wish.elastic and count <= 0):
        return _about(need.under_way[0], need, choice, pools, together)
    if count <= 0:
        return _Step()
    if wish.most is not None and held + count > wish.most:
        raise AddressesRefused(
            over_quota(
                f"{wish.field}: {held + count} {_words(wish.type)} are needed,"
                f" and one tenant may hold {wish.most} (quotaPerTenant)"
            )
        )
    if going:
        # Its name comes free with it. Asked for now, under another name, it might be asked for twice: once more by a
        # process that sees the old one gone before it sees the new one.
        return _Step(blocked=waiting(f"IPAllocation {going[0].metadata.name} is being deleted"))
    name = free_name(cluster, wish.type, len(granted), is_taken)
    return _Step(
        create=(
            new_request(
                cluster,
                wish.type,
                pool,
                count,
                name,
                home,
                grown=bool(granted),
                pinned=wish.pinned,
                together=() if granted else together,
            ),
        ),
        blocked=waiting(f"{count} {_words(wish.type)} are being asked for from pool {pool}"),
    )


def _about(
    request: IPAllocation,
    need: _Need,
    choice: Choice,
    pools: Mapping[str, NetworkPool],
    together: Sequence[IPAllocationType],
) -> _Step:
    """A request that has no addresses yet: wait for it, or take it elsewhere."""
    wish, here, name = need.wish, request.spec.pool_ref.name, request.metadata.name
    if request.status.phase is not IPAllocationPhase.FAILED:
        return _Step(blocked=waiting(f"IPAllocation {name} waits for pool {here}"))
    if comes_back(request):
        # It had addresses before, which its machines may use: it waits for these and no others.
        ready = find_condition(request.status.conditions, ConditionType.READY)
        why = ready.message if ready else "refused without a word"
        reason = ready.reason if ready else AllocationReason.POOL_NOT_READY
        message = f"IPAllocation {name} comes from a backup and waits for the addresses that it had: {why}"
        return _Step(blocked=Blocked(ConditionType.NETWORK_READY, reason, message, waits=True))
    elsewhere = choice.fits and choice.pool != here and _reason(request) not in _ANYWHERE
    changed = _is_another(request, wish, need.missing(pools.get(here))) or _is_asked_otherwise(request, together)
    if elsewhere or here not in wish.pools or changed:
        return _Step(drop=(request,), blocked=waiting(f"IPAllocation {name} is asked for anew"))
    ready = find_condition(request.status.conditions, ConditionType.READY)
    why = ready.message if ready else "refused without a word"
    others = "".join(f"; pool {other} {why_not(pools.get(other))}" for other in wish.pools if other != here)
    return _Step(
        blocked=Blocked(
            ConditionType.NETWORK_READY,
            ready.reason if ready else AllocationReason.POOL_NOT_READY,
            f"no {_words(wish.type)}: pool {here}: {why}{others}",
            waits=True,
        ),
        refused_by=None if choice.fits and ready and ready.reason in _NO_ROOM else here,
    )


def _is_asked_otherwise(request: IPAllocation, together: Sequence[IPAllocationType]) -> bool:
    """Whether the request says that it is granted with others than it is by now; one that says nothing may stay."""
    told = request.metadata.annotations.get(Annotation.GRANTED_TOGETHER)
    return told is not None and bool(together) and told != ",".join(together)


def _reason(request: IPAllocation) -> str:
    ready = find_condition(request.status.conditions, ConditionType.READY)
    return ready.reason if ready else ""


def _is_another(request: IPAllocation, wish: Wish, count: int) -> bool:
    """Whether something else would be asked for by now; what an elastic tenant asks for beyond is not ours to judge."""
    if request.spec.pinned_range != wish.pinned:
        return True
    return wish.pinned is None and request.spec.count != count and not (wish.elastic and _is_growth(request))


# What there is.


def _is_granted(each: IPAllocation) -> bool:
    """Whether it holds addresses: one that is being deleted holds them until it is Released."""
    return each.status.phase is IPAllocationPhase.ALLOCATED


def _is_going(each: IPAllocation) -> bool:
    return each.metadata.deletion_timestamp is not None and not _is_granted(each)


def _is_under_way(each: IPAllocation) -> bool:
    asked = each.status.phase in (IPAllocationPhase.PENDING, IPAllocationPhase.FAILED)
    return asked and each.metadata.deletion_timestamp is None


def _is_growth(each: IPAllocation) -> bool:
    return each.metadata.labels.get(Label.ALLOCATION_ROLE) == AllocationRole.GROWTH


def _in_order(own: Iterable[IPAllocation]) -> list[IPAllocation]:
    """First the one that the cluster began with, then by age; equal ages by name, so that the order never changes."""
    return sorted(
        own,
        key=lambda allocation: (
            _is_growth(allocation),
            allocation.metadata.creation_timestamp.isoformat() if allocation.metadata.creation_timestamp else "",
            allocation.metadata.name,
        ),
    )


def _what_there_is(
    granted: Sequence[IPAllocation], network: ProviderNetwork, pools: Mapping[str, NetworkPool]
) -> Addresses:
    nodes = [allocation for allocation in granted if allocation.spec.type is IPAllocationType.NODES]
    balancers = [allocation for allocation in granted if allocation.spec.type is IPAllocationType.LOAD_BALANCER]
    return Addresses(
        nodes=_node_network(nodes, network, pools),
        load_balancers=tuple(_range(balancer) for balancer in balancers),
        node_allocation=nodes[0].metadata.name if nodes else None,
        load_balancer_allocation=balancers[0].metadata.name if balancers else None,
        blocks=tuple(granted),
    )


def _node_network(
    nodes: Sequence[IPAllocation], network: ProviderNetwork, pools: Mapping[str, NetworkPool]
) -> NodeNetwork | None:
    """How machines use their addresses. None means that they have none, and would replace every machine that has one:
    so a pool that cannot be seen, or a gateway that does not fit, is a refusal."""
    gateway = gateway_of(network, nodes[0].spec.pool_ref.name) if nodes else None
    if not nodes or gateway is None:
        return None
    for name in dict.fromkeys(node.spec.pool_ref.name for node in nodes):
        pool = pools.get(name)
        if pool is None:
            raise AddressesRefused(invalid(f"pool {name}, which the cluster's node addresses are from, does not exist"))
        if not lies_in(gateway, pool):
            raise AddressesRefused(
                invalid(
                    f"the gateway {gateway} of the ProviderConfig does not lie in pool {name}"
                    f" ({pool.spec.cidr}), which the cluster's node addresses are from"
                )
            )
    return NodeNetwork(
        ranges=tuple(_range(node) for node in nodes),
        prefix_length=int(pools[nodes[0].spec.pool_ref.name].spec.cidr.partition("/")[2]),
        gateway=gateway,
        dns_servers=network.dns_servers,
    )


def _range(granted: IPAllocation) -> Range:
    held, status = granted_range(granted), granted.status
    if held is None:
        name, start, end = granted.metadata.name, status.start_address, status.end_address
        raise AddressesRefused(invalid(f"IPAllocation {name} is Allocated, but from {start} to {end} is no range"))
    return held[1]


def _pinned(wish: Wish) -> Range:
    assert wish.pinned is not None
    return parse_range(wish.pinned.start_address, wish.pinned.end_address)[1]


def _words(type_: IPAllocationType) -> str:
    return "node addresses" if type_ is IPAllocationType.NODES else "load-balancer addresses"
