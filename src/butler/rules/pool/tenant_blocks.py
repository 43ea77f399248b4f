"""Which requests of a pool can be decided on, and what the other blocks of their tenants mean for them. Pure.

A tenant that is not built yet starts with all its blocks or with none. Each of its requests says which blocks there are
in all, so a pool knows when one is still to come:

    not asked for yet     the request is left alone; if it was not answered so far, it is told after a moment what it
                          waits for
    asked of this pool    they are decided on together, see `decide`
    granted elsewhere     there is nothing to wait for
    waiting elsewhere     granted here, unless the other pool cannot grant it: then what fits here stays free for
                          others, and the request says so (OtherBlockUnavailable). The other pool reads this as
                          "would fit", so the two never wait for each other

Two pools that decide at the same moment may still leave a tenant with one block: then the tenant gives it back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocation, IPAllocationPhase, IPAllocationType
from butler.api.labels import AllocationReason, ConditionType, Finalizer
from butler.ipam.granted import was_released
from butler.ipam.refusals import Refusal
from butler.ipam.requests import AddressRequest, RequestRefusal, read_request, read_unbuilt_tenant
from butler.rules.pool.quota import objection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from butler.ipam.layout import PoolLayout
    from butler.ipam.requests import UnbuiltTenant
    from butler.rules.pool.quota import Quota, QuotaOf

    BlocksOf = Callable[[str], Sequence[IPAllocation]]

WAITING = (IPAllocationPhase.PENDING, IPAllocationPhase.FAILED)
OTHER_BLOCK_WITHIN: Final = 3.0
"""Seconds in which a tenant's other block is expected to be asked for; it is not spoken of before."""
_WOULD_FIT: Final = (AllocationReason.OTHER_BLOCK_UNAVAILABLE, AllocationReason.OTHER_BLOCK_NOT_REQUESTED)
"""Refusals that say nothing against the pool that they come from."""


@dataclass(frozen=True, slots=True)
class ReadRequests:
    """What is to be decided on, what cannot be met whatever is free, and when to look again at the rest."""

    requests: list[AddressRequest]
    refusals: list[Refusal]
    next_refusal: float | None
    quotas: dict[str, Quota]
    """What bounds each request, by UID."""


def is_waiting(allocation: IPAllocation) -> bool:
    """Whether a grant may be made: never before the finalizer is there, which is what returns the addresses."""
    return (
        allocation.status.phase in WAITING
        and allocation.metadata.deletion_timestamp is None
        and Finalizer.IP_ALLOCATION in allocation.metadata.finalizers
        and not was_released(allocation)
    )


def is_block_of_a_tenant(allocation: IPAllocation) -> bool:
    """Whether an allocation is one of those that an unbuilt tenant gets together, and waits or was granted."""
    present = is_waiting(allocation) or (
        allocation.status.phase is IPAllocationPhase.ALLOCATED and allocation.metadata.deletion_timestamp is None
    )
    return present and read_unbuilt_tenant(allocation) is not None


def read_requests(
    asking: Iterable[IPAllocation], layout: PoolLayout, blocks_of: BlocksOf, quota_of: QuotaOf, now: datetime
) -> ReadRequests:
    """Sort the waiting allocations of a pool."""
    quotas: dict[str, Quota] = {}
    requests: list[AddressRequest] = []
    refusals: list[Refusal] = []
    waits: list[float] = []
    refused_tenants: dict[str, str] = {}
    for allocation in asking:
        tenant = read_unbuilt_tenant(allocation)
        try:
            request = read_request(allocation, layout)
            _insist_on_quota(request, quota_of(allocation), quotas)
        except RequestRefusal as refused:
            refusals.append(refused.refusal)
            if tenant is not None:
                refused_tenants[tenant.uid] = f"{refused.refusal.name} {refused.refusal.message}"
            continue
        others = _other_blocks(allocation, tenant, blocks_of) if tenant else {}
        missing = [type_ for type_, blocks in others.items() if not blocks]
        if missing:
            if allocation.status.phase is IPAllocationPhase.FAILED:
                continue  # what it was told still stands, and its tenant relies on it when it asks for the other again
            left = OTHER_BLOCK_WITHIN - (now - request.created).total_seconds()
            if left > 0:
                waits.append(left)
            else:
                refusals.append(_not_requested(request, missing))
            continue
        unavailable = _unavailable(request.pool, others)
        requests.append(replace(request, unavailable=unavailable) if unavailable else request)
    return ReadRequests(
        [_with_refused_tenant(request, refused_tenants) for request in requests],
        refusals,
        min(waits, default=None),
        quotas,
    )


def _insist_on_quota(request: AddressRequest, quota: Quota | None, quotas: dict[str, Quota]) -> None:
    """Note what bounds a request. Raises `RequestRefusal` where that leaves too little.

    What comes back was granted before, and machines or Services may be using it: it counts, and is not refused.
    """
    if quota is None:
        return
    why = None if request.had else objection(request.count, quota)
    if why is not None:
        raise RequestRefusal(Refusal(request.uid, request.name, *why))
    quotas[request.uid] = quota


def _other_blocks(
    allocation: IPAllocation, tenant: UnbuiltTenant, blocks_of: BlocksOf
) -> dict[IPAllocationType, list[IPAllocation]]:
    """What there is of each other block that the tenant gets together with this one."""
    present = blocks_of(tenant.uid)
    return {
        type_: [block for block in present if block.spec.type is type_]
        for type_ in sorted(tenant.blocks)
        if type_ is not allocation.spec.type
    }


def _unavailable(pool: str, others: dict[IPAllocationType, list[IPAllocation]]) -> str:
    """Why one of the other blocks cannot be had, as far as another pool has said so."""
    for blocks in others.values():
        if any(block.status.phase is IPAllocationPhase.ALLOCATED for block in blocks):
            continue
        for block in blocks:
            if block.spec.pool_ref.name != pool and block.status.phase is IPAllocationPhase.FAILED:
                ready = find_condition(block.status.conditions, ConditionType.READY)
                if ready is not None and ready.reason not in _WOULD_FIT:
                    return f"{block.metadata.name} waits for pool {block.spec.pool_ref.name} ({ready.reason})"
    return ""


def _with_refused_tenant(request: AddressRequest, refused_tenants: dict[str, str]) -> AddressRequest:
    """The request, which cannot be granted if this pool can never grant another block of its tenant."""
    if request.tenant is None or request.unavailable or request.tenant.uid not in refused_tenants:
        return request
    return replace(request, unavailable=refused_tenants[request.tenant.uid])


def without_other_blocks(
    requests: dict[str, AddressRequest], tenant: str, unavailable: str
) -> dict[str, AddressRequest]:
    """The requests, of which those of an unbuilt tenant cannot be granted, because one of its blocks is refused."""
    return {uid: _with_refused_tenant(request, {tenant: unavailable}) for uid, request in requests.items()}


def _not_requested(request: AddressRequest, missing: Sequence[IPAllocationType]) -> Refusal:
    kinds = " and ".join(missing)
    return Refusal(
        request.uid,
        request.name,
        AllocationReason.OTHER_BLOCK_NOT_REQUESTED,
        f"a tenant starts with all its blocks or with none, and has not asked for its block of type {kinds} yet:"
        " Butler asks for it as soon as nothing stands in the way, see the TenantCluster",
    )
