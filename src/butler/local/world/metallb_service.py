"""What MetalLB's controller does about one Service: keep its address, take it away, or give it one. Pure.

`converge` is given the Service as it is and the allocator as it stands, changes the allocator, and says what the
Service should show and what people are told. In this order: a Service that wants no load balancer is cleared; one whose
address is not allowed any more (its pool went, the ports of another Service are in the way) is cleared and told; one
that asks for another pool or another address than it has is cleared; one that then has none gets one, or is told why
not and waits for the next change. Reasons and texts of events are MetalLB's own, because people and alerts match them.
Annotations are understood under the prefix metallb.io and, where that is not given, under the old one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from butler.api.objects import labels_of, name_of, namespace_of
from butler.local.world.metallb_allocator import AddressRefused, Allocator, Port, ServiceHolding, ServiceRequest, quoted
from butler.local.world.metallb_pools import Address, parse_address

if TYPE_CHECKING:
    from butler.api.objects import EventType, Json
    from butler.ipam.addresses import Family

PREFIX: Final = "metallb.io/"
OLD_PREFIX: Final = "metallb.universe.tf/"
FROM_POOL: Final = PREFIX + "ip-allocated-from-pool"
LOAD_BALANCER_IPS: Final = PREFIX + "loadBalancerIPs"


class ServiceEvent(NamedTuple):
    """An event about a Service."""

    type: EventType
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ServiceOutcome:
    """How a Service stands after MetalLB has looked at it."""

    patch: Json | None
    """What to change on it, through its status; None when it is as it should be."""
    notes: tuple[ServiceEvent, ...]
    concerns_others: bool = False
    """Whether all other Services are to be looked at again."""


def is_ours(service: Json) -> bool:
    """Whether MetalLB looks at a Service at all: one that names a load balancer class is another one's."""
    return not (service.get("spec") or {}).get("loadBalancerClass")


def service_key(service: Json) -> str:
    return f"{namespace_of(service)}/{name_of(service)}"


def converge(service: Json, allocator: Allocator) -> ServiceOutcome:
    """Bring one Service to where it should be."""
    passing = _Passing(service, allocator)
    before = allocator.held_by(service_key(service))
    try:
        passing.converge()
    except _Waits as waits:
        passing.notes += waits.notes
    patch = passing.patch()
    notes = [*passing.notes, *(_deprecations(service) if patch is not None else ())]
    after = allocator.held_by(service_key(service))
    return ServiceOutcome(patch, tuple(notes), _concerns_others(before, after, allocator))


def forget(service: str, allocator: Allocator) -> bool:
    """A Service that is gone gives back what it had; whether there was anything for others to have."""
    had = allocator.held_by(service) is not None
    allocator.unassign(service)
    return had


def _concerns_others(before: ServiceHolding | None, after: ServiceHolding | None, allocator: Allocator) -> bool:
    """Whether all Services are to be gone through again: someone may be able now to have what he waits for.

    MetalLB does not see everything that could matter: one that moves to another address, or gives up a port, frees
    something too, and who waits for that goes on waiting until the next pass.
    """
    if (before.key if before else "") != (after.key if after else ""):
        return True
    return before is not None and after is None and allocator.pool_of(before.addresses) is not None


def _deprecations(service: Json) -> list[ServiceEvent]:
    annotations = service["metadata"].get("annotations") or {}
    return [
        ServiceEvent("Warning", "deprecatedAnnotation", f"Service uses deprecated annotation {name}")
        for name in annotations
        if name.startswith(OLD_PREFIX.rstrip("/"))
    ]


class _Waits(Exception):
    """Nothing more can be done until something changes."""

    def __init__(self, *notes: ServiceEvent) -> None:
        super().__init__()
        self.notes = notes


@dataclass(slots=True)
class _Passing:
    """One look at one Service."""

    service: Json
    allocator: Allocator
    notes: list[ServiceEvent] = field(default_factory=list)
    shown: tuple[Address, ...] | None = None
    """What the status is to show; None: what it shows already."""
    pool: str | None = None

    def converge(self) -> None:
        spec = self.service.get("spec") or {}
        if spec.get("type") != "LoadBalancer":
            self.clear()
            return
        families = _families(spec)
        if not self.allocator.pools or not families:
            self.clear()
            raise _Waits
        if spec.get("ipFamilyPolicy") == "RequireDualStack" and len(families) < 2:
            self.clear()
            text = f"Service requires dual stack but not enough clusterips [{' '.join(spec.get('clusterIPs') or ())}]"
            raise _Waits(ServiceEvent("Warning", "not enough clusterips", text))
        request = _request(self.service, families)
        current = self.current(request)
        if not current:
            self.clear()
        else:
            current = self.kept(request, current)
        if len(current) == 1 and len(families) == 2 and request.policy == "PreferDualStack":
            current = self.with_other_family(request, current)
        if not current:
            current = self.allocated(request)
        holding = self.allocator.held_by(request.service)
        assert holding is not None
        self.shown, self.pool = current, holding.pool

    def clear(self) -> None:
        self.allocator.unassign(service_key(self.service))
        self.shown, self.pool = (), None

    def current(self, request: ServiceRequest) -> tuple[Address, ...]:
        """What it shows, if that can be its address at all: of the families of its cluster addresses."""
        try:
            shown = tuple(parse_address(text) for text in _ingress(self.service))
        except ValueError:
            return ()
        families = {address.family for address in shown}
        if len(families) != len(shown):
            return ()
        wanted = set(request.families)
        enough = families == wanted or (request.policy == "PreferDualStack" and bool(families) and families < wanted)
        return shown if enough else ()

    def kept(self, request: ServiceRequest, current: tuple[Address, ...]) -> tuple[Address, ...]:
        """Its address, when it may keep it."""
        try:
            holding = self.allocator.assign(request, current)
        except AddressRefused as why:
            text = (
                f'current IP for "{request.service}" not allowed by config, will attempt for new IP assignment: {why}'
            )
            self.notes.append(ServiceEvent("Normal", "ClearAssignment", text))
            self.clear()
            current = ()
        else:
            asked = _annotation(self.service, "address-pool")
            if asked and holding.pool != asked:
                self.clear()
                current = ()
        try:
            wanted = _wanted(self.service)
        except AddressRefused as why:
            text = f"invalid requested loadbalancer IPs: {why}"
            raise _Waits(ServiceEvent("Warning", "LoadBalancerFailed", text)) from None
        if wanted and set(wanted) != set(current):
            self.clear()
            return ()
        return current

    def with_other_family(self, request: ServiceRequest, current: tuple[Address, ...]) -> tuple[Address, ...]:
        try:
            added = self.allocator.add_other_family(request)
        except AddressRefused as why:
            text = f"cannot assign additional IP in PreferDualStack: {why}"
            self.notes.append(ServiceEvent("Normal", "AdditionalAssignFailed", text))
            return current
        self.notes.append(ServiceEvent("Normal", "IPAllocated", f'Assigned additional IP "{added}"'))
        return (*current, added)

    def allocated(self, request: ServiceRequest) -> tuple[Address, ...]:
        try:
            addresses = self.allocate(request)
        except AddressRefused as why:
            text = f'Failed to allocate IP for "{request.service}": {why}'
            raise _Waits(ServiceEvent("Warning", "AllocationFailed", text)) from None
        self.notes.append(ServiceEvent("Normal", "IPAllocated", f"Assigned IP {quoted(addresses)}"))
        return addresses

    def allocate(self, request: ServiceRequest) -> tuple[Address, ...]:
        wanted, asked = _wanted(self.service), _annotation(self.service, "address-pool")
        if not wanted:
            return (
                self.allocator.allocate_from(request, asked) if asked else self.allocator.allocate(request)
            ).addresses
        if {address.family for address in wanted} != set(request.families):
            raise AddressRefused(
                f"requested loadBalancer IP(s) {quoted(wanted)} does not match the ipFamily of the service"
            )
        holding = self.allocator.assign(request, wanted)
        if asked and holding.pool != asked:
            self.allocator.unassign(request.service)
            raise AddressRefused(
                f"requested loadBalancer IP(s) {quoted(wanted)} is not compatible with requested address pool {asked}"
            )
        return wanted

    def patch(self) -> Json | None:
        """The difference between the Service and what it should show."""
        if self.shown is None:
            return None
        annotations = self.service["metadata"].get("annotations") or {}
        wanted: dict[str, str | None] = {}
        if annotations.get(FROM_POOL) != self.pool:
            wanted[FROM_POOL] = self.pool
        shown = ((self.service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
        changed = [ingress.get("ip") for ingress in shown] != [str(address) for address in self.shown]
        patch: Json = {}
        if wanted:
            patch["metadata"] = {"annotations": wanted}
        if changed:
            ingress = [{"ip": str(address)} for address in self.shown] or None
            patch["status"] = {"loadBalancer": {"ingress": ingress}}
        return patch or None


def _request(service: Json, families: tuple[Family, ...]) -> ServiceRequest:
    spec = service["spec"]
    backend = ""
    if spec.get("externalTrafficPolicy") == "Local":
        # Traffic goes only to nodes with a backend, so two Services on one address need the same ones.
        backend = ",".join(f"{name}={value}" for name, value in sorted((spec.get("selector") or {}).items()))
    return ServiceRequest(
        service_key(service),
        namespace_of(service),
        labels_of(service),
        tuple(Port(port.get("protocol") or "TCP", int(port["port"])) for port in spec.get("ports") or ()),
        families,
        spec.get("ipFamilyPolicy") or "SingleStack",
        _annotation(service, "allow-shared-ip"),
        backend,
    )


def _families(spec: Json) -> tuple[Family, ...]:
    texts = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    try:
        return tuple(parse_address(text).family for text in texts)
    except ValueError:
        return ()


def _ingress(service: Json) -> list[str]:
    status = (service.get("status") or {}).get("loadBalancer") or {}
    return [ingress["ip"] for ingress in status.get("ingress") or () if ingress.get("ip")]


def _annotation(service: Json, name: str) -> str:
    """By its name of today, else by the old one."""
    annotations = service["metadata"].get("annotations") or {}
    return str(annotations.get(PREFIX + name, annotations.get(OLD_PREFIX + name, "")))


def _wanted(service: Json) -> tuple[Address, ...]:
    """The addresses that a Service asks for, by annotation or in its spec."""
    listed, single = _annotation(service, "loadBalancerIPs"), service["spec"].get("loadBalancerIP") or ""
    if listed and single:
        raise AddressRefused(f"service can not have both {LOAD_BALANCER_IPS} and svc.Spec.LoadBalancerIP")
    if single:
        try:
            return (parse_address(single),)
        except ValueError:
            raise AddressRefused(f'invalid spec.loadBalancerIP "{single}"') from None
    try:
        return tuple(parse_address(part.strip()) for part in listed.split(",")) if listed else ()
    except ValueError:
        raise AddressRefused(f'invalid {LOAD_BALANCER_IPS}: "{listed}"') from None
