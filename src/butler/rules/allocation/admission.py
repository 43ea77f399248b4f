"""The rules for new IPAllocations, and for deleting them. Pure: plain values in, a verdict out.

Of new ones, little is refused. The schema has bounded the numbers and the texts already, and the spec of an allocation
never changes after creation (a rule of the schema too). What the pool could never grant, because the request itself
makes no sense, is refused with the field to blame. What the pool cannot grant *now* is legal: the request is kept,
becomes Failed and is tried again whenever something changes. Its author is warned, in the very words that the
allocation will show, because most often it is a slip of the pen.

One that holds addresses may not be deleted while its owner lives: its machines and Services use them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from butler.api.labels import AllocationReason
from butler.ipam import refusals
from butler.ipam.addresses import BadAddress, parse_range
from butler.ipam.free_space import FreeSpace
from butler.ipam.layout import FieldProblem, InvalidPool, pool_layout
from butler.ipam.refusals import RequestRefusal
from butler.ipam.requests import read_request
from butler.rules.admission_verdict import AdmissionVerdict
from butler.rules.allocation.held import named_addresses
from butler.rules.allocation.holders import held_in
from butler.rules.allocation.owner import how_to_insist, tenant_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.ipam.addresses import Range
    from butler.ipam.layout import PoolLayout
    from butler.ipam.requests import AddressRequest

SHOWN_USERS: Final = 5


def judge(
    new: IPAllocation, pool: NetworkPool | None, elsewhere: Iterable[str], allocations: Iterable[IPAllocation]
) -> AdmissionVerdict:
    """Whether an allocation may be created; `elsewhere` are namespaces that have a pool of the wanted name.

    Of the allocations only those matter that may stand in the way, see `in_the_way_of`.
    """
    wanted = new.spec.pool_ref.name
    if pool is None:
        return AdmissionVerdict(warnings=(_no_pool(new.metadata.namespace, wanted, sorted(elsewhere)),))
    if pool.metadata.deletion_timestamp is not None:
        return AdmissionVerdict(
            warnings=(f"NetworkPool {wanted} is being deleted and hands out nothing: use another pool",)
        )
    try:
        layout = pool_layout(pool)
    except InvalidPool as error:
        problem = error.problems[0]
        return AdmissionVerdict(
            warnings=(f"NetworkPool {wanted} hands out nothing: {problem.field}: {problem.message}",)
        )
    try:
        request = read_request(new, layout)
    except RequestRefusal as error:
        if error.refusal.reason is AllocationReason.INVALID_REQUEST:
            field = "spec.count" if new.spec.pinned_range is None else "spec.pinnedRange"
            return AdmissionVerdict((FieldProblem(field, error.refusal.message),))
        return AdmissionVerdict(warnings=(_will_fail(error.refusal.message),))
    return AdmissionVerdict(warnings=tuple(_cannot_be_met_now(request, layout, pool, allocations)) + _ignored(new))


def in_the_way_of(new: IPAllocation) -> Range | None:
    """The addresses whose holders alone could keep a request from being met now; None: any holder could."""
    if new.spec.pinned_range is None:
        return None
    try:
        return parse_range(new.spec.pinned_range.start_address, new.spec.pinned_range.end_address)[1]
    except BadAddress:
        return None


def _no_pool(namespace: str, name: str, elsewhere: Sequence[str]) -> str:
    found = f"; there is one in {', '.join(elsewhere[:3])}" if elsewhere else ""
    return f"there is no NetworkPool {name} in namespace {namespace}{found}: the request waits until it is created"


def _cannot_be_met_now(
    request: AddressRequest, layout: PoolLayout, pool: NetworkPool, allocations: Iterable[IPAllocation]
) -> list[str]:
    if request.pinned is not None:
        conflicts = held_in(pool, allocations, request.pinned)
        if not conflicts:
            return []
        taken = max(request.pinned.first, conflicts[0].addresses.first)
        at_fault = [held.name for held in conflicts if held.addresses.first <= taken <= held.addresses.last]
        others = [held.name for held in conflicts if held.name not in at_fault]
        return [_will_fail(refusals.held_conflict(request.pinned, taken, at_fault, others, layout)[1])]
    if request.count > max(piece.size for piece in layout.usable):
        # For a request of more than the whole pool, how much is free does not matter.
        held = held_in(pool, allocations) if request.count <= layout.total else ()
        free = FreeSpace.without(layout.usable, [holder.addresses for holder in held])
        return [_will_fail(refusals.no_room(request.count, free, layout, request.pool)[1])]
    return []


def _ignored(new: IPAllocation) -> tuple[str, ...]:
    if new.spec.pinned_range is None or new.spec.count is None:
        return ()
    return (f"spec.count: {new.spec.count} is not looked at, because spec.pinnedRange says which addresses are wanted",)


def _will_fail(message: str) -> str:
    return f"the request will be Failed for now: {message}"


# Deletion.


@dataclass(frozen=True, slots=True)
class AddressUsers:
    """What is known of who uses an allocation's addresses."""

    users: tuple[str, ...] = ()
    """Machines or Services, each with its address."""
    unknown: str = ""
    """What could not be found out, and why, as the rest of a sentence; empty when everything was."""


def why_not_deleted(allocation: IPAllocation, used: AddressUsers) -> str:
    """Why an allocation must stay whose owner lives, as a sentence with what to do instead."""
    meta, status = allocation.metadata, allocation.status
    held = named_addresses(status)
    if used.users:
        more = len(used.users) - SHOWN_USERS
        shown = ", ".join(used.users[:SHOWN_USERS]) + (f" and {more} more" if more > 0 else "")
        who = f"used by {shown}"
    elif used.unknown:
        who = f"and {used.unknown}"
    else:
        who = "though nothing is seen to use them at the moment"
    return (
        f"IPAllocation {meta.name} holds {held} for TenantCluster {tenant_key(allocation)}, which exists: the addresses"
        f" would go to another tenant, {who}; delete the TenantCluster to give them back, or insist:"
        f" {how_to_insist(allocation)}"
    )
