"""Reading all that is told of one tenant cluster, as far as the reader may, and telling it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from butler.cli.drawings.tenant import screen
from butler.cli.estate.events import read_events
from butler.cli.estate.permissions import PermittedReads
from butler.cli.toolkit.session import HOME
from butler.cli.toolkit.terminal import say
from butler.reports.tenant.summary import tenant

if TYPE_CHECKING:
    from butler.api.tenantcluster import TenantCluster
    from butler.cli.toolkit.session import CommandSession


async def show_tenant(session: CommandSession, cluster: TenantCluster) -> None:
    """Print the screen of a cluster; what may not be read is left out, and named on stderr."""
    reads = PermittedReads(session)
    allocations, provider, events = await asyncio.gather(
        reads.allocations(),
        reads.provider(cluster),
        reads.allowed(read_events(session, cluster), "Events", cluster.metadata.namespace),
    )
    view = tenant(cluster, allocations, provider, HOME)
    click.echo(screen(cluster, view, [event.obj for event in events or ()], datetime.now(UTC)))
    if reads.note:
        say(reads.note)
