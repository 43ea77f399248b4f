"""Telling, before anything is written, which addresses a cluster would get.

Best effort: who may not read pools and allocations is told so, and Butler decides all the same.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from butler.cli.estate.permissions import PermittedReads
from butler.cli.toolkit.objects import read_all
from butler.cli.toolkit.session import HOME, Failure
from butler.cli.toolkit.terminal import say
from butler.kube.kinds import CLUSTERS
from butler.providers.teams import as_placed
from butler.reports.estate import Estate
from butler.reports.plan.preview import of_a_change, of_a_new_cluster

if TYPE_CHECKING:
    from butler.api.tenantcluster import TenantCluster
    from butler.cli.toolkit.session import CommandSession
    from butler.reports.plan.preview import Preview

WORDS = {"nodes": "nodes", "loadbalancer": "load balancers"}


async def tell_preview(session: CommandSession, cluster: TenantCluster, *, new: bool) -> None:
    """Say on stderr what it would get; Failure where it could never work as it is written."""
    reads = PermittedReads(session)
    pools = await reads.pools()  # before the allocations: one that a pool speaks of and that is not there is gone
    allocations, providers, clusters = await asyncio.gather(
        reads.allocations(),
        reads.providers(),
        reads.allowed(read_all(session, CLUSTERS, ""), "TenantClusters", "all namespaces"),
    )
    if pools is None or allocations is None or providers is None:
        say(f"Which addresses it would get cannot be told in advance: you may not read {reads.hidden}.")
        return
    estate = Estate(
        HOME,
        tuple(pools),
        tuple(allocations),
        tuple(providers.values()),
        tuple(cluster.obj for cluster in clusters or ()),
    )
    foresee = of_a_new_cluster if new else of_a_change
    found = foresee(estate, await as_placed(session.client, cluster), datetime.now(UTC))
    if found.obstacle and not found.waits:
        raise Failure(f"{found.obstacle}; nothing was changed")
    for line in told(found, new=new):
        say(line)


def told(found: Preview, *, new: bool) -> list[str]:
    """What a preview says, in lines. Pure."""
    lines = [
        f"{WORDS[block.purpose.value] + ':':<16} {block.text} ({block.size} from pool {block.pool})"
        for block in found.gets
    ]
    if lines:
        lines.insert(0, f"As things are, it would get these addresses{f' on {found.provider}' if new else ' too'}:")
    elif new and not found.obstacle:
        lines.append(f"It would go to {found.provider}, which gives it addresses itself.")
    if found.obstacle:
        lines.append(f"It would have to wait: {found.obstacle}.")
    return lines
