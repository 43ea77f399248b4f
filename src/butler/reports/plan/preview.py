"""The addresses that a cluster would get, were it made or changed this very moment. Pure.

Played through on a `Rehearsal`, by the functions that decide in production, after all requests that wait already. It is
a look ahead and no promise: a request made in the meantime comes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butler.api.objects import key_of
from butler.reports.plan.simulation import Rehearsal
from butler.reports.tenant.summary import blocks
from butler.rules.blocked import Blocked
from butler.rules.tenant.provider import resolve

if TYPE_CHECKING:
    from datetime import datetime

    from butler.api.tenantcluster import TenantCluster
    from butler.reports.estate import Estate
    from butler.reports.tenant.summary import TenantBlock


@dataclass(frozen=True, slots=True)
class Preview:
    """What would become of a cluster's addresses."""

    provider: str
    """Where it would go; empty when it may go nowhere."""
    gets: tuple[TenantBlock, ...]
    """What it would be granted now, beyond what it has."""
    obstacle: str
    """Why it would not have all it needs; empty when it would."""
    waits: bool
    """Whether it would go on by itself, as soon as there is room; else a user has to change something."""


def of_a_new_cluster(estate: Estate, cluster: TenantCluster, now: datetime) -> Preview:
    """What a cluster would get that does not exist yet."""
    stage = Rehearsal(estate, now)
    stage.settle()
    stage.later()
    outcome = stage.admit(cluster)
    return _told(stage, stage.clusters[key_of(cluster)], outcome, frozenset())


def of_a_change(estate: Estate, changed: TenantCluster, now: datetime) -> Preview:
    """What a cluster would get beyond what it has, were it changed into this."""
    stage = Rehearsal(estate, now)
    stage.settle()
    stage.later()
    key = key_of(changed)
    had = frozenset(allocation.metadata.name for allocation in stage.allocations_of(key))
    stage.clusters[key] = changed
    return _told(stage, changed, stage.look_after(changed), had)


def _told(stage: Rehearsal, cluster: TenantCluster, outcome: object, had: frozenset[str]) -> Preview:
    provider = resolve(cluster, stage.providers, stage.home, cluster.status.team or "")
    blocked = outcome if isinstance(outcome, Blocked) else getattr(outcome, "blocked", None)
    mine = blocks(cluster, stage.allocations_of(key_of(cluster)))
    return Preview(
        provider="" if isinstance(provider, Blocked) else provider.metadata.name,
        gets=tuple(block for block in mine if block.allocation not in had and block.range is not None),
        obstacle=blocked.message if blocked else "",
        waits=blocked.waits if blocked else True,
    )
