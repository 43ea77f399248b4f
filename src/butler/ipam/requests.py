"""What an IPAllocation asks for, as numbers: how many addresses, or exactly which.

Reading a request settles everything that depends on the request and the pool's spec alone. What depends on who
holds what is settled in `decide`. A request that can be seen to be impossible is refused here with a reason; it is
read anew on every pass, so an edited pool gives it another chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from butler.api.ipallocation import IPAllocationType
from butler.api.labels import Annotation, Label
from butler.api.text import LARGEST_RANGE
from butler.ipam import refusals
from butler.ipam.addresses import BadAddress, Range, address_text, parse_address
from butler.ipam.granted import BadRecord, comes_back, is_from_another_life, wanted_range
from butler.ipam.refusals import Refusal, RequestRefusal, Why

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.api.ipallocation import IPAllocation, PinnedIPRange
    from butler.ipam.layout import PoolLayout

__all__ = [
    "AddressRequest",
    "RequestRefusal",
    "UnbuiltTenant",
    "in_turn",
    "objection",
    "read_request",
    "read_unbuilt_tenant",
]

_AGES_FROM_NOW = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class UnbuiltTenant:
    """A tenant that starts with all its blocks or with none."""

    uid: str
    created: datetime
    blocks: frozenset[IPAllocationType]
    """What it asks for in all, of this pool and of others."""


@dataclass(frozen=True, slots=True)
class AddressRequest:
    """A waiting request."""

    uid: str
    name: str
    pool: str
    created: datetime
    count: int
    """How many addresses, also when they are pinned."""
    pinned: Range | None = None
    """Exactly these addresses, in place of any."""
    type: IPAllocationType = IPAllocationType.NODES
    tenant: UnbuiltTenant | None = None
    """Whom it is granted together with: all requests of this tenant. None: it is granted by itself."""
    had: bool = False
    """Whether it had these addresses before, and comes back from a backup: no other request may get them."""
    unavailable: str = ""
    """Why the tenant cannot have another of its blocks, which is asked of another pool; empty: it may."""
    aged: bool = False
    """Whether it has waited for so long that the pool keeps its space for it."""


def read_request(allocation: IPAllocation, layout: PoolLayout) -> AddressRequest:
    """What the allocation asks of its pool. Raises `RequestRefusal` where the pool could never grant it."""
    meta, spec = allocation.metadata, allocation.spec
    pinned = None
    try:
        wanted = wanted_range(allocation)
        if wanted is not None:
            pinned = _read_pin(wanted, layout)
    except BadRecord as error:
        raise RequestRefusal(Refusal(meta.uid, meta.name, *refusals.unusable_record(str(error)))) from None
    except BadAddress as error:
        raise RequestRefusal(Refusal(meta.uid, meta.name, *refusals.unreadable_pin(str(error)))) from None
    if pinned is not None:
        count = pinned.size
    elif spec.count is not None:
        count = spec.count
    elif spec.type is IPAllocationType.NODES:
        count = layout.nodes_default
    else:
        count = layout.load_balancer_default
    request = AddressRequest(
        uid=meta.uid,
        name=meta.name,
        pool=spec.pool_ref.name,
        created=meta.creation_timestamp or _AGES_FROM_NOW,
        count=count,
        pinned=pinned,
        type=spec.type,
        tenant=read_unbuilt_tenant(allocation),
        had=comes_back(allocation),
    )
    why = objection(request, layout)
    if why is not None:
        raise RequestRefusal(Refusal(request.uid, request.name, *why))
    return request


def objection(request: AddressRequest, layout: PoolLayout) -> Why | None:
    """Why this pool could never grant the request, no matter what is held; None when it might."""
    pinned = request.pinned
    if pinned is None:
        return None if 1 <= request.count <= LARGEST_RANGE else refusals.invalid_count(request.count)
    if pinned.last < pinned.first:
        first, last = (address_text(value, layout.family) for value in pinned)
        return refusals.reversed_pin(first, last)
    if pinned.size > LARGEST_RANGE:
        return refusals.invalid_count(pinned.size)
    if not any(window.contains(pinned) for window in layout.windows):
        return refusals.out_of_pool(pinned, layout, request.pool)
    for block in layout.blocks:
        if block.addresses.overlaps(pinned):
            return refusals.reserved_conflict(pinned, block, layout)
    for address in layout.excluded:
        if address.addresses.overlaps(pinned):
            return refusals.excluded_conflict(pinned, address, layout)
    return None


def read_unbuilt_tenant(allocation: IPAllocation) -> UnbuiltTenant | None:
    """The tenant that must get this block together with others; None for all requests that do not say so.

    What was made by hand or by an older Butler says nothing, and what makes no sense counts as nothing said.
    """
    annotations, uid = allocation.metadata.annotations, allocation.metadata.labels.get(Label.TENANT_UID)
    blocks, created = annotations.get(Annotation.GRANTED_TOGETHER), annotations.get(Annotation.TENANT_CREATED)
    if not uid or not blocks or not created or is_from_another_life(allocation):
        return None
    try:
        born = datetime.fromisoformat(created)
        types = frozenset(IPAllocationType(block) for block in blocks.split(","))
    except ValueError:
        return None
    if born.tzinfo is None or allocation.spec.type not in types:
        return None
    return UnbuiltTenant(uid, born, types)


def in_turn(requests: Iterable[AddressRequest]) -> list[tuple[AddressRequest, ...]]:
    """What is granted together, in the order in which it is looked at.

    Pinned requests come first, because only one range can meet them, then the oldest. An unbuilt tenant has the place
    of its own age, and brings all its requests. Creation times have a resolution of a second; the UID settles ties,
    so that everyone who decides decides alike.
    """
    together: dict[str, list[AddressRequest]] = {}
    for request in requests:
        # A UID is that of a tenant or of an allocation, never of both.
        together.setdefault(request.tenant.uid if request.tenant else request.uid, []).append(request)
    units = [tuple(sorted(unit, key=_place_in_unit)) for unit in together.values()]
    return sorted(units, key=_turn)


def _place_in_unit(request: AddressRequest) -> tuple[bool, bool, datetime, str]:
    return request.pinned is None, request.type is not IPAllocationType.NODES, request.created, request.uid


def _turn(unit: tuple[AddressRequest, ...]) -> tuple[bool, datetime, str]:
    first = unit[0]
    if first.tenant is None:
        return first.pinned is None, first.created, first.uid
    return first.pinned is None, first.tenant.created, first.tenant.uid


def _read_pin(pin: PinnedIPRange, layout: PoolLayout) -> Range:
    """The pinned range, which may still be reversed."""
    ends: list[int] = []
    for text in (pin.start_address, pin.end_address):
        family, address = parse_address(text)
        if family is not layout.family:
            raise BadAddress(f"{text} is an IPv{family} address, but the pool hands out IPv{layout.family}")
        ends.append(address)
    return Range(*ends)
