"""`butleradm pool get`: one pool on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from butler.cli.commands.pool import pool_name
from butler.cli.toolkit import options
from butler.cli.toolkit.session import ClusterAccess, CommandSession, run

if TYPE_CHECKING:
    from butler.api.networkpool import NetworkPool
    from butler.cli.toolkit.output import Output


@click.command(short_help="Tell all about one pool on one screen.")
@pool_name
@options.access()
@options.output()
def get(access: ClusterAccess, name: str, output: Output) -> None:
    """Tell all about one pool on one screen.

    Its network, windows and reserved blocks; how many addresses are held, and how many more to each capacity tier;
    the free blocks by size; who holds most; conditions and recent events. The numbers are counted anew from the
    allocations: where the pool's status says something else, that stands under Doubtful. What should not be, such
    as addresses that two hold, stands under Wrong.

    -o json and yaml give the pool as the server has it. `butleradm pool map` draws it.

    \b
    Examples:
      butleradm pool get vlan40
      butleradm pool get vlan40 -o yaml
      butleradm pool get vlan40 -o jsonpath='{.status.largestFreeBlock}'
    """
    from butler.cli.tables.pools import pools_table
    from butler.cli.toolkit.objects import read_all, read_one
    from butler.kube.kinds import ALLOCATIONS, POOLS

    async def work(session: CommandSession) -> None:
        found = await read_one(session, POOLS, name, session.home)
        if not output.is_table:
            pools_table().one(found, output)
            return
        allocations = await read_all(session, ALLOCATIONS, session.home)
        _show(found.obj, [allocation.obj for allocation in allocations], await _events(session, found.obj))

    run(access, work)


async def _events(session: CommandSession, pool: NetworkPool) -> list[Any] | None:
    """The Events about exactly this pool, oldest first; None where they may not be read."""
    from datetime import UTC, datetime

    from butler.cli.estate.events import TOLD
    from butler.cli.toolkit.objects import load_object
    from butler.kube.errors import Forbidden
    from butler.kube.resource import EVENTS

    about = f"involvedObject.kind=NetworkPool,involvedObject.uid={pool.metadata.uid}"
    try:
        listed = await session.client.list(EVENTS, pool.metadata.namespace, field_selector=about)
    except Forbidden:
        return None
    long_ago = datetime.min.replace(tzinfo=UTC)
    return sorted((load_object(TOLD, raw).obj for raw in listed.items), key=lambda event: event.last or long_ago)


def _show(pool: NetworkPool, allocations: list[Any], events: list[Any] | None) -> None:
    from datetime import UTC, datetime

    from butler.cli.drawings.pool_screen import screen
    from butler.cli.toolkit.terminal import has_unicode, width
    from butler.reports.pool.summary import summary_of

    summary = summary_of(pool, allocations)
    click.echo(screen(pool, summary, events, now=datetime.now(UTC), width=width(), unicode=has_unicode()))
