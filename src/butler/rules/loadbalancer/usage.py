"""How a tenant's Services and its addresses stand to each other. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from butler.api.ipallocation import IPAllocationPhase, IPAllocationType
from butler.api.labels import AllocationRole, Label
from butler.ipam.addresses import BadAddress, Family, Range, parse_range
from butler.rules.allocation.held import readable_range
from butler.rules.loadbalancer.demand import about_to_share, demand, in_use, ipv4_addresses, spoken_for, waits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.rules.loadbalancer.service import Balancer


@dataclass(frozen=True, slots=True)
class HeldBlock:
    """Addresses that the tenant holds: one allocation that was granted."""

    allocation: IPAllocation
    range: Range
    used: int
    """How many of them a Service has."""
    claimed: int
    """How many of them a Service has or asks for."""

    @property
    def uid(self) -> str:
        return self.allocation.metadata.uid

    @property
    def version(self) -> str:
        """Which allocation, and in which state: a mark that was taken off and put on again is another."""
        return f"{self.uid}/{self.allocation.metadata.resource_version}"

    @property
    def is_draining(self) -> bool:
        """Whether a drain of it began."""
        return self.allocation.status.draining_since is not None

    @property
    def is_going(self) -> bool:
        """Whether its allocation was deleted: it goes when no Service uses it, and the next Service gets another."""
        return self.allocation.metadata.deletion_timestamp is not None

    @property
    def may_go(self) -> bool:
        """Whether it was added for demand; what a cluster began with, or picked by hand, stays."""
        return is_growth(self.allocation)

    @property
    def free(self) -> int:
        """What MetalLB can give to the next Service: asking for an address by name does not reserve it."""
        return self.range.size - self.used


@dataclass(frozen=True, slots=True)
class Usage:
    """One look at a tenant."""

    blocks: tuple[HeldBlock, ...]
    requests: tuple[IPAllocation, ...]
    """What was asked for and not granted yet."""
    waiting: tuple[Balancer, ...]
    """Services without an address that MetalLB would serve."""
    demand: int
    """How many addresses these need."""
    about_to_share: int
    """Of these, Services that another one's address may be enough for; they need none for a moment."""
    services: int
    """Services that have one of the tenant's addresses."""
    platform_services: int

    @property
    def held(self) -> int:
        return sum(block.range.size for block in self.blocks)

    @property
    def in_use(self) -> int:
        return sum(block.used for block in self.blocks)

    @property
    def free(self) -> int:
        """Addresses that the next Service can have: those in blocks that are not being taken back."""
        return sum(block.free for block in self.blocks if not (block.is_draining or block.is_going))

    @property
    def going(self) -> tuple[HeldBlock, ...]:
        """Blocks whose allocations were deleted."""
        return tuple(block for block in self.blocks if block.is_going)

    def hands_out(self, *, more_comes: bool) -> bool:
        """Whether MetalLB may give addresses to Services that come.

        It cannot be told to leave out a block that goes: it would give those away to whom all others are not enough.
        So it waits for more, if more comes.
        """
        return hands_out(self.blocks) and not (self.going and more_comes and self.demand > self.free)

    @property
    def is_held_up(self) -> bool:
        """Whether a Service waits that could have an address if nothing were being taken back."""
        return self.demand > 0 and any(block.free for block in self.blocks if not block.is_going)

    @property
    def under_way(self) -> int:
        return sum(asked_count(request) for request in self.requests)

    def holds(self, texts: Iterable[str]) -> bool:
        """Whether all these addresses are the tenant's; IPv6 addresses never are Butler's to give."""
        return all(any(_within([value], block.range) for block in self.blocks) for value in ipv4_addresses(texts))

    @property
    def draining(self) -> tuple[HeldBlock, ...]:
        return tuple(block for block in self.blocks if block.is_draining)


def usage_of(own: Iterable[IPAllocation], services: Sequence[Balancer], now: datetime, served_class: str = "") -> Usage:
    """Put both sides together. `own` are the allocations that belong to this very cluster."""
    mine = [allocation for allocation in own if allocation.spec.type is IPAllocationType.LOAD_BALANCER]
    used, claimed = in_use(services), spoken_for(services)
    granted = [(allocation, addresses) for allocation in mine if (addresses := granted_range(allocation)) is not None]
    blocks = tuple(
        HeldBlock(allocation, addresses, _within(used, addresses), _within(claimed, addresses))
        for allocation, addresses in sorted(granted, key=lambda pair: pair[1])
    )
    waiting = tuple(service for service in services if waits(service, served_class))
    sharing = about_to_share(waiting, services, now)
    served = [service for service in services if _has_one_of(service, blocks)]
    return Usage(
        blocks=blocks,
        requests=tuple(sorted((allocation for allocation in mine if _is_asked(allocation)), key=_age)),
        waiting=waiting,
        demand=demand(service for service in waiting if service not in sharing),
        about_to_share=len(sharing),
        services=len(served),
        platform_services=sum(service.platform for service in served),
    )


def hands_out(blocks: Iterable[HeldBlock]) -> bool:
    """Whether MetalLB may give addresses of these blocks to Services that come: not if only those that go are free."""
    known = tuple(blocks)
    left = any(block.free for block in known if not (block.is_going or block.is_draining))
    return left or not any(block.is_going for block in known)


def users_of(block: HeldBlock, services: Iterable[Balancer]) -> list[Balancer]:
    """The Services that have, or ask for, an address of a block."""
    return [service for service in services if _within(spoken_for([service]), block.range)]


def granted_range(allocation: IPAllocation) -> Range | None:
    """The addresses of an allocation that was granted, also while it is being deleted; None for any other."""
    held = readable_range(allocation)  # nothing that cannot be read is announced; the pool's own controller says so
    return held[1] if held is not None and held[0] is Family.V4 else None


def asked_count(request: IPAllocation) -> int:
    """How many addresses a request is for."""
    pinned = request.spec.pinned_range
    if pinned is None:
        return request.spec.count or 0
    try:
        return parse_range(pinned.start_address, pinned.end_address)[1].size
    except BadAddress:
        return 0


def is_growth(allocation: IPAllocation) -> bool:
    """Whether it came later, to meet demand, and was not picked by hand."""
    role = allocation.metadata.labels.get(Label.ALLOCATION_ROLE)
    return role == AllocationRole.GROWTH and allocation.spec.pinned_range is None


def _is_asked(allocation: IPAllocation) -> bool:
    stays = allocation.metadata.deletion_timestamp is None
    return stays and allocation.status.phase in (IPAllocationPhase.PENDING, IPAllocationPhase.FAILED)


def _age(allocation: IPAllocation) -> tuple[str, str]:
    created = allocation.metadata.creation_timestamp
    return (created.isoformat() if created else "", allocation.metadata.name)


def _has_one_of(service: Balancer, blocks: Sequence[HeldBlock]) -> bool:
    return any(_within(in_use([service]), block.range) for block in blocks)


def _within(addresses: Sequence[int], bounds: Range) -> int:
    """How many of the addresses, which are in order, lie in a range."""
    return bisect_right(addresses, bounds.last) - bisect_left(addresses, bounds.first)
