"""The rules for ProviderConfigs: what the schema cannot say. Pure: plain values in, a verdict out.

Refused is what no provider could use (an address that is no URL, a name where a UUID is wanted), what would leak (a
Secret of another namespace), a gateway that no machine could reach, and the deletion of a ProviderConfig that
clusters are on. Everything that time may put right is a warning only: a pool that does not exist yet, because tools
apply files in any order, and an edit that clusters will feel, because the author may mean it.

An edit is judged by what it makes worse: what was wrong before stays editable, and is warned about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from butler.api.ipallocation import IPAllocationPhase
from butler.api.networkpool import NetworkPool
from butler.api.providerconfig import NetworkMode, ScopeType
from butler.ipam.addresses import BadAddress, Family, parse_address
from butler.ipam.estimate import LOAD_BALANCER, NODES, first_load_balancer_size, serves
from butler.ipam.layout import FieldProblem, InvalidPool, pool_layout
from butler.rules.admission_verdict import NAMED, AdmissionVerdict
from butler.rules.author_rights import SECRETS, Right, resource_name
from butler.rules.provider.settings import destination, foreign_secret, gateway_of, secret_key, settings_problems

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from butler.api.ipallocation import IPAllocation
    from butler.api.providerconfig import ProviderConfig, ProviderNetwork
    from butler.api.tenantcluster import TenantCluster
    from butler.ipam.layout import PoolLayout


_POOLS: Final = resource_name(NetworkPool)


class Surroundings(NamedTuple):
    """What a ProviderConfig is judged against."""

    home: str
    """The namespace of pools, and of the administrators."""
    pools: Mapping[str, NetworkPool]
    """The pools that it names, as far as they exist, by name."""
    clusters: Sequence[TenantCluster] = ()
    """The clusters that are on it."""
    allocations: Sequence[IPAllocation] = ()


def judge(old: ProviderConfig | None, new: ProviderConfig, around: Surroundings) -> AdmissionVerdict:
    """Whether a ProviderConfig may be created (no old) or changed into `new`."""
    before = set() if old is None else set(_problems(old, around))
    problems = _problems(new, around)
    known = [f"{field}: {message}" for field, message in problems if (field, message) in before]
    warnings = [*known, *_about_network(new.spec.network, around)]
    if old is not None:
        warnings += [*_given_up_pools(old, new, around), *_shut_out_teams(old, new, around.clusters)]
    return AdmissionVerdict(tuple(problem for problem in problems if problem not in before), tuple(warnings))


def rights(old: ProviderConfig | None, new: ProviderConfig, home: str) -> Iterator[Right]:
    """What the author of a ProviderConfig must be allowed to do: Butler does it for them.

    Who says where credentials are sent could have them sent to a server of theirs, so they must be allowed to read
    them. Who names a pool has its addresses handed out, so they must be allowed to read the pool.
    """
    secret = secret_key(new)
    if secret is not None and (old is None or _destination(old) != _destination(new)):
        yield Right(
            "get",
            SECRETS,
            secret.namespace,
            secret.name,
            f"spec.credentialsRef: you may not read Secret {secret}, and what is in it goes to the server that this"
            " ProviderConfig names: ask an administrator who may read the Secret to make this change",
        )
    known = {reference.name for reference in old.spec.network.pool_refs} if old is not None else set()
    for reference in new.spec.network.pool_refs:
        if reference.name not in known:
            yield Right(
                "get",
                _POOLS,
                home,
                reference.name,
                f"spec.network.poolRefs: you may not read NetworkPool {home}/{reference.name}, whose addresses this"
                " ProviderConfig would hand out: ask an administrator who may to make this change",
            )


def _destination(config: ProviderConfig) -> object:
    return destination(config.spec, config.metadata.namespace)


def why_not_deleted(config: ProviderConfig, users: Sequence[TenantCluster]) -> str:
    """Why a ProviderConfig must stay, as a sentence; empty when it may go."""
    if not users:
        return ""
    return (
        f"ProviderConfig {config.metadata.name} is used by {_clusters(users)}:"
        " delete these clusters first, as Butler needs the ProviderConfig to take their machines away"
    )


def gives_up(old: ProviderConfig, new: ProviderConfig) -> bool:
    """Whether an edit takes something away that clusters may use, so that it is worth finding out which do."""
    return bool(removed(old, new)) or _narrows(old, new)


def _problems(config: ProviderConfig, around: Surroundings) -> list[FieldProblem]:
    found = settings_problems(config.spec)
    foreign = foreign_secret(config.spec, config.metadata.namespace, around.home)
    if foreign is not None:
        found.append(foreign)
    return [*found, *_gateway_problems(config.spec.network, around), *_server_problems(config.spec.network)]


# Gateway and name servers.


def _gateway_problems(network: ProviderNetwork, around: Surroundings) -> Iterator[FieldProblem]:
    """Each gateway has to be an address that machines could reach, in one of the pools that it is for."""
    for_nodes = [reference.name for reference in network.pool_refs if serves(reference, NODES)]
    if network.gateway is not None:
        own = {reference.name for reference in network.pool_refs if reference.gateway is not None}
        left = [name for name in for_nodes if name not in own]
        yield from _reachable("spec.network.gateway", network.gateway, left, around)
    for index, reference in enumerate(network.pool_refs):
        if reference.gateway is not None:
            field = f"spec.network.poolRefs[{index}].gateway"
            yield from _reachable(field, reference.gateway, [reference.name], around)


def _reachable(field: str, gateway: str, names: list[str], around: Surroundings) -> Iterator[FieldProblem]:
    try:
        family, address = parse_address(gateway)
    except BadAddress as error:
        yield FieldProblem(field, str(error))
        return
    if _is_special(family, address):
        yield FieldProblem(field, f"{gateway} is no address that a gateway can have")
        return
    layouts = {name: _layout(around.pools.get(name)) for name in names}
    around_it = [layout for layout in layouts.values() if layout is not None and _contains(layout, family, address)]
    if names and not around_it and all(layout is not None for layout in layouts.values()):
        shown = ", ".join(f"{name} {around.pools[name].spec.cidr}" for name in names)
        yield FieldProblem(
            field,
            f"{gateway} lies in none of the pools for nodes ({shown}), so no machine could reach it: give the"
            " gateway of their network",
        )
    edges = {edge for layout in around_it if layout.network.size >= 4 for edge in layout.network}
    if address in edges:
        yield FieldProblem(field, f"{gateway} is the first or last address of its network, which no machine has")


def _server_problems(network: ProviderNetwork) -> Iterator[FieldProblem]:
    for index, text in enumerate(network.dns_servers):
        field = f"spec.network.dnsServers[{index}]"
        try:
            family, address = parse_address(text)
        except BadAddress as error:
            yield FieldProblem(field, str(error))
            continue
        if _is_special(family, address):
            yield FieldProblem(field, f"{text} is no address of a server that machines could ask")


def _is_special(family: Family, address: int) -> bool:
    """Unspecified, loopback and multicast addresses, and what is left of the old class E."""
    if family is Family.V4:
        return address >> 24 in (0, 127) or address >> 28 >= 14
    return address <= 1 or address >> 120 == 0xFF


def _about_network(network: ProviderNetwork, around: Surroundings) -> Iterator[str]:
    if network.mode is not NetworkMode.IPAM:
        return
    for index, reference in enumerate(network.pool_refs):
        if reference.name not in around.pools:
            yield (
                f"spec.network.poolRefs[{index}]: there is no NetworkPool {reference.name} in namespace"
                f" {around.home} yet: nothing comes from it until it is created"
            )
    if any(serves(pool_ref, NODES) and gateway_of(network, pool_ref.name) is None for pool_ref in network.pool_refs):
        yield (
            "spec.network.gateway is not set, but machines with addresses from a pool need it: set it, or let types"
            " of all poolRefs be [loadbalancer] where the network itself gives machines their addresses"
        )
    if network.load_balancer is not None and not any(serves(pool_ref, LOAD_BALANCER) for pool_ref in network.pool_refs):
        yield "spec.network.loadBalancer is not looked at, because no pool is for load balancers"
    quota, first = network.quota_per_tenant, first_load_balancer_size(network)
    if quota is not None and quota.max_load_balancer_ips is not None and (first or 0) > quota.max_load_balancer_ips:
        yield (
            f"spec.network.quotaPerTenant.maxLoadBalancerIPs: tenants get {quota.max_load_balancer_ips} addresses and"
            f" not the {first} that spec.network.loadBalancer gives them"
        )
    for field, text in [
        ("gateway", network.gateway),
        *((f"poolRefs[{i}].gateway", e.gateway) for i, e in enumerate(network.pool_refs)),
        *((f"dnsServers[{i}]", e) for i, e in enumerate(network.dns_servers)),
    ]:
        for reference in network.pool_refs:
            if text is not None and _hands_out(around.pools.get(reference.name), text):
                yield (
                    f"spec.network.{field}: {text} is among the addresses that NetworkPool {reference.name} hands out:"
                    " it is left out from now on; if an allocation holds it already, the pool's Ready condition says"
                    " which"
                )


def _layout(pool: NetworkPool | None) -> PoolLayout | None:
    try:
        return pool_layout(pool) if pool is not None else None
    except InvalidPool:
        return None


def _contains(layout: PoolLayout, family: Family, address: int) -> bool:
    return family is layout.family and layout.network.first <= address <= layout.network.last


def _hands_out(pool: NetworkPool | None, text: str) -> bool:
    layout = _layout(pool)
    try:
        family, address = parse_address(text)
    except BadAddress:
        return False
    if layout is None or family is not layout.family:
        return False
    return any(piece.first <= address <= piece.last for piece in layout.usable)


# What clusters would feel.


def removed(old: ProviderConfig, new: ProviderConfig) -> list[str]:
    """The pools that an edit takes from a provider."""
    kept = {reference.name for reference in new.spec.network.pool_refs}
    return [reference.name for reference in old.spec.network.pool_refs if reference.name not in kept]


def _narrows(old: ProviderConfig, new: ProviderConfig) -> bool:
    return new.spec.scope.type is ScopeType.TEAM and new.spec.scope != old.spec.scope


def _given_up_pools(old: ProviderConfig, new: ProviderConfig, around: Surroundings) -> Iterator[str]:
    ours = {(cluster.metadata.namespace, cluster.metadata.name) for cluster in around.clusters}
    for name in removed(old, new):
        held = sorted(
            allocation.metadata.name
            for allocation in around.allocations
            if allocation.spec.pool_ref.name == name
            and allocation.metadata.namespace == around.home
            and allocation.status.phase is IPAllocationPhase.ALLOCATED
            and (allocation.spec.tenant_cluster_ref.namespace, allocation.spec.tenant_cluster_ref.name) in ours
        )
        if held:
            yield (
                f"spec.network.poolRefs: clusters on this provider hold addresses of NetworkPool {name}"
                f" ({_listed(held)}): they keep them, and get no more from it"
            )


def _shut_out_teams(old: ProviderConfig, new: ProviderConfig, clusters: Iterable[TenantCluster]) -> Iterator[str]:
    team = new.spec.scope.team_ref
    if not _narrows(old, new) or team is None:
        return
    others = [cluster for cluster in clusters if (cluster.status.team or "") != team.name]
    if others:
        yield (
            f"spec.scope: {_clusters(others)} will no longer have access, not being of team {team.name}:"
            " they keep running, and cannot be changed"
        )


def _clusters(clusters: Sequence[TenantCluster]) -> str:
    names = sorted(f"TenantCluster {cluster.metadata.namespace}/{cluster.metadata.name}" for cluster in clusters)
    return _listed(names)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
