"""What is remembered of a tenant between two looks.

All of it can be lost: a process that starts anew waits a little longer here and asks once more there, and does nothing
wrong. What must survive stands on the objects themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from butler.api.labels import LoadBalancerReason
    from butler.api.tenantcluster import LoadBalancerUse, PoolChange
    from butler.rules.loadbalancer.foreign_addresses import Sighting
    from butler.rules.loadbalancer.service import Balancer
    from butler.rules.loadbalancer.status import Trouble, Verdict
    from butler.rules.loadbalancer.usage import Survey


@dataclass(slots=True)
class Memory:
    """One tenant. Moments without a date are of the monotonic clock."""

    idle_since: dict[str, datetime] = field(default_factory=dict)
    """Since when each block has been seen to be idle, by the UID of its allocation."""
    held_back: float | None = None
    """When this process made MetalLB hand out no more addresses."""
    in_drain: bool | None = None
    """Whether MetalLB's pool carries the mark of a drain; None before it was asked."""
    token: str = ""
    """What was last written to the pool for no other reason than to change it."""
    read_at: str | None = None
    """When MetalLB, by its own word, last read its pools before that; None where it does not say."""
    steady: tuple[str | None, float] | None = None
    """The same, as it was when last looked at, and since when it has been so."""
    sign_due: float = math.inf
    """When to look whether MetalLB accepts its configuration."""
    refusal: str = ""
    """Why MetalLB does not accept its configuration."""
    in_vain: float | None = None
    """Since when Services wait though there are free addresses for all of them."""
    lost: int = 0
    """How many addresses that no Service has MetalLB takes for used, by its own count, while Services wait in vain."""
    withdrawn: dict[str, float] = field(default_factory=dict)
    """When MetalLB's pool was written without each block, by the version of its allocation that carries the mark."""
    no_drain_before: float = 0.0
    published_at: float | None = None
    """When MetalLB was last seen to have what it should have, its advertisement included."""
    entries: tuple[str, ...] | None = None
    """What MetalLB's pool held when it was last told, in order; None before that."""
    hands_out: bool = True
    """Whether it was told to give addresses to Services that come."""
    announced: set[str] = field(default_factory=set)
    """The allocations that were published, by UID; one that comes back after a drain was broken off is no growth."""
    shown: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The addresses that each Service has, by its UID."""
    doubt: bool = False
    """Whether something happened to a Service that MetalLB would not do with the pool that it was told, or somebody
    asked for a look."""
    asked: str = ""
    """What the cluster's annotation for that said when it was last heeded."""
    problem: str | None = None
    """Why MetalLB does not have its addresses: empty when it has; None before it was asked."""
    problem_reason: LoadBalancerReason | None = None
    tries: int = 0
    """How often in a row it could not be told."""
    unsettled: tuple[str, float] | None = None
    """What passes by itself, mostly, and since when it did not."""
    first_word: tuple[Verdict, LoadBalancerUse] | None = None
    """What to say when the cluster can first be used; None unless all is well."""
    settles_until: float | None = None
    """Until when a cluster that comes up is held at most, for its Services to get their first addresses."""
    told: float | None = None
    """When the status was last written, or first seen to say what there is to say."""
    unsaid: float | None = None
    """Since when there is something to say that it does not say yet."""
    is_short: bool = False
    """Whether Services waited, when last looked at, for whom no more addresses will come by themselves."""
    trouble: Trouble | None = None
    """What the management cluster did not do; None when the last look went well."""
    deletions_told: dict[str, float] = field(default_factory=dict)
    """When each allocation that was deleted last said what it waits for, by its UID."""
    foreign: dict[int, Sighting] | None = None
    """Addresses of pools that its Services show and it does not hold; None before the first look."""
    last_growth: PoolChange | None = None
    last_shrink: PoolChange | None = None
    """Changes that the status does not tell of yet."""

    def look(self, found: Survey, services: Sequence[Balancer], now: datetime) -> None:
        """Take in which blocks are idle, and what became of Services; and forget what is gone."""
        shown = {service.uid: service.addresses for service in services}
        gained = {text for uid, texts in shown.items() for text in texts if text not in self.shown.get(uid, ())}
        lost = any(uid in shown and not set(texts) <= set(shown[uid]) for uid, texts in self.shown.items())
        self.doubt = self.doubt or lost or not found.holds(gained)
        self.shown = shown
        idle = {block.uid for block in found.blocks if not block.claimed}
        self.idle_since = {uid: self.idle_since.get(uid, now) for uid in idle}
        there = {block.uid for block in found.blocks}
        self.announced &= there
        self.deletions_told = {uid: at for uid, at in self.deletions_told.items() if uid in there}
        draining = {block.version for block in found.draining}
        self.withdrawn = {version: since for version, since in self.withdrawn.items() if version in draining}
        if not draining:
            self.held_back = None
