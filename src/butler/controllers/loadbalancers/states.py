"""What is remembered of a tenant between two looks: four states, each of which one class alone changes.

All of it can be lost: a process that starts anew waits a little longer here and asks once more there, and does nothing
wrong. What must survive stands on the objects themselves.

Moments without a date are of the monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from butler.controllers.loadbalancers.draining import DrainProgress
from butler.controllers.loadbalancers.publisher import PublishedPool
from butler.controllers.loadbalancers.status_writer import StatusProgress

if TYPE_CHECKING:
    from datetime import datetime

    from butler.rules.loadbalancer.foreign_addresses import Sighting
    from butler.rules.loadbalancer.status import AllocationTrouble


@dataclass(slots=True)
class LastLook:
    """What the last look found. `LoadBalancerController` alone changes it."""

    idle_since: dict[str, datetime] = field(default_factory=dict)
    """Since when each block has been seen to be idle, by the UID of its allocation."""
    is_short: bool = False
    """Whether Services waited for whom no more addresses will come by themselves."""
    trouble: AllocationTrouble | None = None
    """What the management cluster did not do; None when all went well."""
    foreign: dict[int, Sighting] | None = None
    """Addresses of pools that the tenant's Services show and it does not hold; None before the first look."""


@dataclass(frozen=True, slots=True)
class TenantStates:
    """One tenant."""

    pool: PublishedPool = field(default_factory=PublishedPool)
    """What MetalLB was told and answered; `Publisher` changes it."""
    drain: DrainProgress = field(default_factory=DrainProgress)
    """The drain under way; `Draining` changes it."""
    status: StatusProgress = field(default_factory=StatusProgress)
    """What the status said, and when; `LoadBalancerStatusWriter` changes it."""
    look: LastLook = field(default_factory=LastLook)
