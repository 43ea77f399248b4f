"""What must be true of tenants and their addresses, checked from outside; shares no code with Butler.

S4, over everything that was recorded: a machine has only addresses that its own cluster holds at that moment, and what
is held stays held as long as a machine uses it. Machines and allocations live in one store, so the order of their
revisions is the order in which it happened.

S4 and S5, of tenants at rest: their Nodes and Services have addresses that the cluster holds, MetalLB may announce
nothing else, and no two tenants have an address in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ipam.history import ALLOCATION, History, Json, Revision
from ipam.oracle import Span, inside, meet, number, text
from ipam.story import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MACHINE, TENANT = "Machine", "TenantCluster"
TENANT_UID = "butler.butlerlabs.dev/tenant-uid"


class Held(NamedTuple):
    """What one allocation holds, and for whom."""

    home: str
    type: str
    span: Span
    revision: Revision


def home_of(name: str, uid: str) -> str:
    """The namespace of a cluster's objects."""
    return f"{name}-{uid[:8]}"


def held_by(allocation: Json) -> tuple[str, str, Span] | None:
    """Whose namespace, which type, and what range; None unless it is Allocated."""
    status = allocation.get("status") or {}
    if status.get("phase") != "Allocated":
        return None
    meta = allocation["metadata"]
    home = home_of(allocation["spec"]["tenantClusterRef"]["name"], (meta.get("labels") or {}).get(TENANT_UID, ""))
    return home, allocation["spec"]["type"], (number(status["startAddress"]), number(status["endAddress"]))


def machines_keep_their_addresses(history: History) -> list[Violation]:
    """S4 over a whole record."""
    held: dict[str, Held] = {}
    used: dict[str, tuple[Revision, list[int]]] = {}
    found: list[Violation] = []
    for revision in history.in_order():
        if revision.kind == ALLOCATION:
            found += _allocation(revision, held, used)
        elif revision.kind == MACHINE:
            found += _machine(revision, held, used, history.began)
    return found


def _allocation(
    revision: Revision, held: dict[str, Held], used: dict[str, tuple[Revision, list[int]]]
) -> Iterator[Violation]:
    now = held_by(revision.after) if revision.after is not None else None
    before = held.pop(revision.uid, None)
    if now is not None:
        held[revision.uid] = Held(*now, revision)
    elif before is not None:
        for machine, addresses in used.values():
            if any(meet((address, address), before.span) for address in addresses):
                what = f"{revision.name} gave up {text(before.span)}, which {machine.namespace}/{machine.name} uses"
                yield Violation("S4", what, (before.revision, machine, revision))


def _machine(
    revision: Revision, held: dict[str, Held], used: dict[str, tuple[Revision, list[int]]], began: int
) -> Iterator[Violation]:
    if revision.after is None:
        used.pop(revision.uid, None)
        return
    addresses = internal_addresses(revision.after)
    known = used.get(revision.uid)
    used[revision.uid] = (revision, addresses)
    if (known is not None and known[1] == addresses) or (revision.before is None and revision.version <= began):
        return  # as before, or from before the record
    for address in addresses:
        span = (address, address)
        own = [item for item in held.values() if item.home == revision.namespace and item.type == "nodes"]
        if not any(inside(span, item.span) for item in own):
            holders = [item.revision for item in held.values() if meet(span, item.span)]
            who = ", ".join(holder.name for holder in holders) or "no allocation"
            what = f"{revision.namespace}/{revision.name} runs with {text(span)}, held by {who}"
            yield Violation("S4", what, (revision, *(item.revision for item in own), *holders))
        for other, (machine, theirs) in used.items():
            if other != revision.uid and address in theirs:
                what = f"{revision.name} and {machine.name} both run with {text(span)}"
                yield Violation("S4", what, (machine, revision))


def internal_addresses(obj: Json) -> list[int]:
    """The addresses of a Machine or a Node."""
    listed = (obj.get("status") or {}).get("addresses") or ()
    return [number(item["address"]) for item in listed if item["type"] == "InternalIP"]


class Tenant(NamedTuple):
    """What one tenant says of itself."""

    home: str
    nodes: list[int]
    announced: list[Span]
    balancers: list[int]


def tenant_of(home: str, nodes: Iterable[Json], pools: Iterable[Json], services: Iterable[Json]) -> Tenant:
    announced = [_range(item) for pool in pools for item in pool["spec"]["addresses"]]
    ingress = [
        number(item["ip"])
        for service in services
        for item in ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    ]
    return Tenant(home, [address for node in nodes for address in internal_addresses(node)], announced, ingress)


def _range(entry: str) -> Span:
    """As MetalLB writes ranges: a-b, or a CIDR."""
    first, dash, last = entry.partition("-")
    if dash:
        return number(first.strip()), number(last.strip())
    address, _, length = entry.partition("/")
    return number(address), number(address) + (1 << (32 - int(length))) - 1


def wrong_tenants(tenants: Iterable[Tenant], allocations: Iterable[Json]) -> list[str]:
    """S4 and S5 of tenants at rest, a sentence for each broken rule."""
    held = [found for allocation in allocations if (found := held_by(allocation)) is not None]
    wrong: list[str] = []
    seen: dict[int, str] = {}
    for tenant in tenants:
        nodes = [span for home, kind, span in held if home == tenant.home and kind == "nodes"]
        balancers = [span for home, kind, span in held if home == tenant.home and kind == "loadbalancer"]
        claims = [("Node", (node, node), nodes) for node in tenant.nodes]
        claims += [("MetalLB", pair, balancers) for pair in tenant.announced]
        claims += [("Service", (balancer, balancer), balancers) for balancer in tenant.balancers]
        for who, span, allowed in claims:
            if not any(inside(span, pair) for pair in allowed):
                mine = ", ".join(map(text, allowed)) or "nothing"
                wrong.append(f"a {who} of {tenant.home} has {text(span)}, and the cluster holds {mine}")
        for address in {*tenant.nodes, *tenant.balancers}:
            if address in seen:
                wrong.append(f"{tenant.home} and {seen[address]} both have {text((address, address))}")
            seen[address] = tenant.home
    return wrong
