"""What the deletion of an allocation waits for that holds addresses: those who may be using them.

A person can delete any allocation, and admission refuses it only where it is on. So an allocation that is being
deleted stays Allocated, held by its finalizer, for as long as something may use its addresses:

    its owner lives      node ranges wait until no machine can have one of their addresses: the controller of tenant
                         clusters releases them then. Load-balancer ranges are drained, and released, by the
                         controller of load balancers. Of a cluster that was never built, nothing can use any
    its owner goes       the teardown of the cluster releases them, once its machines are gone
    its owner is gone    released at once, unless machines of it are left in its namespace
    never seen           released at once
    from a backup        besides all that, it waits for machines where it was used before

An annotation with the allocation's own name puts an end to the waiting. Pure: `controllers/ipallocation/deletion.py`
reads what is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from butler.api.ipallocation import IPAllocationPhase, IPAllocationType
from butler.api.labels import Annotation, DeletionReason
from butler.ipam.granted import was_released
from butler.rules.allocation.held import addresses_in
from butler.rules.allocation.owner import how_to_insist, is_insisted, tenant_key
from butler.rules.allocation.release import DELETED_BY_REQUEST, Grounds
from butler.rules.machines import MachineAddresses, in_range, may_have, named

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.api.tenantcluster import TenantCluster

RELEASE_FORCED: Final = "ReleaseForced"
RELEASED_BEFORE: Final = Grounds("it comes from a backup, and had been released before", "released")


class DeletionObstacle(NamedTuple):
    """Why an allocation is not released yet."""

    reason: DeletionReason
    message: str
    others_know_better: bool = False
    """Another controller says what is waited for; this is for as long as it has not."""


class Home(NamedTuple):
    """A namespace that exists, and in which machines may use the addresses."""

    namespace: str
    machines: tuple[MachineAddresses, ...] | None
    """None: they cannot be read."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What is there of an allocation's owner, and of clusters that it belonged to before."""

    owner: TenantCluster | None
    """The very cluster that the allocation belongs to; None when it surely does not exist, or was never seen."""
    namespace: str | None = None
    """Where its machines are; None when there is no such namespace, so that nothing of it can exist."""
    machines: tuple[MachineAddresses, ...] | None = ()
    """None: they cannot be read."""
    left_behind: tuple[Home, ...] = ()
    """Of clusters that it names and that are gone, or of the owner's earlier life."""
    another_first: bool = False
    """The owner is not built, and gives another of its blocks back just now."""


def is_wish(allocation: IPAllocation) -> bool:
    """Whether an allocation that holds addresses is being deleted."""
    return allocation.metadata.deletion_timestamp is not None and allocation.status.phase is IPAllocationPhase.ALLOCATED


def grounds(allocation: IPAllocation) -> Grounds:
    """Why an allocation is released that is being deleted, or that comes from a backup."""
    if was_released(allocation):
        return RELEASED_BEFORE
    if not is_wish(allocation) or not is_insisted(allocation):
        return DELETED_BY_REQUEST
    because = f"its deletion was insisted on by annotation {Annotation.FORCE_DELETE}, whatever uses its addresses"
    return Grounds(because, "deleted", RELEASE_FORCED, "Warning")


def judge(allocation: IPAllocation, seen: Observed) -> DeletionObstacle | None:
    """What stands in the way of releasing an allocation that is being deleted; None: nothing does."""
    if not is_wish(allocation) or is_insisted(allocation):
        return None
    obstacles = (_left_behind(allocation, home, seen.owner) for home in seen.left_behind)
    left_behind = next((obstacle for obstacle in obstacles if obstacle is not None), None)
    if left_behind is not None or seen.owner is None:
        return left_behind
    cluster = f"TenantCluster {tenant_key(allocation)}"
    if seen.another_first:
        return DeletionObstacle(
            DeletionReason.DRAINING, f"{cluster} is not built, and gives another block back first: this one is next"
        )
    if seen.namespace is None and seen.owner.status.tenant_namespace is None:
        return None
    if seen.owner.metadata.deletion_timestamp is not None:
        return DeletionObstacle(
            DeletionReason.IN_USE,
            f"{cluster} is being deleted: the addresses go back to the pool once its machines are gone",
        )
    what_to_do = f"; delete the TenantCluster to give its addresses back, or insist: {how_to_insist(allocation)}"
    if allocation.spec.type is IPAllocationType.LOAD_BALANCER:
        return DeletionObstacle(
            DeletionReason.UNKNOWN,
            f"{cluster} exists, and its Services may use these addresses: they go back to the pool when they are"
            f" drained{what_to_do}",
            others_know_better=True,
        )
    if seen.machines is None:
        return DeletionObstacle(
            DeletionReason.UNKNOWN,
            f"{cluster} exists, and its machines cannot be listed to see who uses them{what_to_do}",
        )
    users = users_of(allocation, seen.machines)
    if users:
        return DeletionObstacle(DeletionReason.IN_USE, f"{cluster} exists, and {users}{what_to_do}")
    return DeletionObstacle(
        DeletionReason.DRAINING,
        f"{cluster} exists; no machine of it has one of these addresses, and they go back to the pool as soon as none"
        f" can be given one, which takes other node addresses for its machines{what_to_do}",
    )


def users_of(allocation: IPAllocation, machines: tuple[MachineAddresses, ...]) -> str:
    """The machines that may have an address of a node range, as a sentence; empty when none may."""
    family, held, _ = addresses_in(allocation.status)
    having = [f"{name} ({address})" for name, address in in_range(machines, family, held)]
    if having:
        return f"machine {named(having)} has one of these addresses"
    booting = may_have(machines, family, held)
    return f"machine {named(booting)} does not say yet which address it has" if booting else ""


def _left_behind(allocation: IPAllocation, home: Home, owner: TenantCluster | None) -> DeletionObstacle | None:
    """A cluster is gone, and machines may be left: the finalizer was taken away, or all but machines was lost."""
    gone = "no longer exists" if owner is None else "comes from a backup"
    where = f"TenantCluster {tenant_key(allocation)} {gone}, but its earlier namespace {home.namespace} exists"
    what_to_do = f": delete the namespace once its machines are gone, or insist: {how_to_insist(allocation)}"
    if home.machines is None:
        return DeletionObstacle(DeletionReason.UNKNOWN, f"{where}, and machines in it cannot be listed{what_to_do}")
    if allocation.spec.type is IPAllocationType.LOAD_BALANCER:
        left = named([machine.name for machine in home.machines])
        users = f"machine {left} may announce these addresses" if left else ""
    else:
        users = users_of(allocation, home.machines)
    return DeletionObstacle(DeletionReason.IN_USE, f"{where}, and {users}{what_to_do}") if users else None
