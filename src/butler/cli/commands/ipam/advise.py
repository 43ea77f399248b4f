"""`butleradm ipam advise`: fragmentation explained, and what would open the largest hole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.completion_names import names_of
from butler.cli.toolkit.session import ClusterAccess, CommandSession, run

if TYPE_CHECKING:
    from butler.cli.toolkit.output import Output


@click.command(short_help="Explain fragmentation, and what would open the largest hole.")
@click.argument("pool", required=False, shell_complete=names_of("networkpools"))
@options.access()
@options.output("table", "json", "yaml", "jsonpath")
def advise(pool: str | None, access: ClusterAccess, output: Output) -> None:
    """Explain fragmentation, and what would open the largest hole.

    Tells how much of a pool is free and in which holes, the largest request that fits, and which requests wait. Then
    which blocks stand between holes, so that a longer run would be there without them: first what is not in use
    (growth that is idle or being taken back, blocks of tenants that are gone or never came), then blocks in use, by
    what they gain for each live address that would have to move, and last what is reserved. Without POOL, all pools.

    LIVE MOVED is how many addresses may be in use in these blocks; 0 means that Butler knows of none. LONGEST RUN
    THEN is the hole exactly as the allocator would have it. Nothing is changed by this command, and what is in use
    is always called IN USE.

    \b
    Examples:
      butleradm ipam advise
      butleradm ipam advise rack-12
      butleradm ipam advise rack-12 -o jsonpath='{.pools[0].openings[0].release[*].name}'
    """
    from datetime import UTC, datetime

    from butler.cli.toolkit.objects import pool_of, read_estate
    from butler.cli.toolkit.output import structured
    from butler.cli.toolkit.terminal import say
    from butler.reports.pool.advice import advise as about
    from butler.reports.pool.advice_json import advice_json

    async def work(session: CommandSession) -> None:
        estate = await read_estate(session)
        pools = [pool_of(estate, pool)] if pool is not None else list(estate.pools)
        found = [about(chosen, estate) for chosen in pools]
        if not output.is_table:
            structured({"pools": [advice_json(advice) for advice in found]}, output)
        elif found:
            from butler.cli.drawings.advice import advice_text

            now = datetime.now(UTC)
            click.echo("\n\n".join(advice_text(advice, now) for advice in found))
        else:
            say(f"There are no pools in namespace {session.home}. `butleradm pool create` makes one.")

    run(access, work)
