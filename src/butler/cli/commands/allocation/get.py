"""`butleradm allocation get`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.commands.allocation import allocation_name
from butler.cli.toolkit import options
from butler.cli.toolkit.session import ClusterAccess, CommandSession, run

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.cli.estate.events import Event
    from butler.cli.toolkit.output import Output


@click.command(short_help="Tell all about one allocation on one screen.")
@allocation_name
@options.access()
@options.output()
def get(access: ClusterAccess, name: str, output: Output) -> None:
    """Tell all about one allocation on one screen.

    What was asked for and what was granted, by which pool and since when; whether the tenant cluster is there;
    whether the addresses are idle or being taken back; what the conditions say, and what happened to it lately.

    \b
    Examples:
      butleradm allocation get shop-lb
      butleradm allocation get shop-lb -o yaml
      butleradm allocation get shop-lb -o jsonpath='{.status.startAddress}'
    """
    from butler.cli.tables.allocations import allocations_table
    from butler.cli.toolkit.objects import read_one
    from butler.kube.kinds import ALLOCATIONS

    async def work(session: CommandSession) -> None:
        found = await read_one(session, ALLOCATIONS, name, session.home)
        if not output.is_table:
            allocations_table().one(found, output)
            return
        from datetime import UTC, datetime

        from butler.cli.drawings.allocation import screen

        click.echo(screen(found.obj, await _events(session, found.obj), datetime.now(UTC)))

    run(access, work)


async def _events(session: CommandSession, allocation: IPAllocation) -> list[Event]:
    """What happened to it, oldest first, as far as the server keeps it and we may read it."""
    from butler.cli.estate.events import TOLD
    from butler.kube.errors import Forbidden

    meta = allocation.metadata
    about = f"involvedObject.kind=IPAllocation,involvedObject.uid={meta.uid}"
    try:
        listed = await session.client.list(TOLD, meta.namespace, field_selector=about)
    except Forbidden:
        return []
    return sorted(listed.items, key=lambda event: str(event.last))
