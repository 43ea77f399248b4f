"""`butleradm ipam forecast`: in how many days a pool is full."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.completion_names import names_of
from butler.cli.toolkit.session import ClusterAccess, CommandSession, run

if TYPE_CHECKING:
    from butler.cli.toolkit.output import Output


@click.command(short_help="Tell in how many days a pool is full.")
@click.argument("pool", required=False, shell_complete=names_of("networkpools"))
@click.option(
    "--size",
    type=click.IntRange(1, 65536),
    metavar="N",
    help="Of blocks with so many addresses.  [default: 1, 2, 4, 8 and so on]",
)
@options.access()
@options.output("table", "json", "yaml", "jsonpath")
def forecast(pool: str | None, size: int | None, access: ClusterAccess, output: Output) -> None:
    """Tell in how many days a pool is full.

    For each tier (70, 85, 95 % allocated) and each block size: in how many days it is reached, or the first request
    of that size refused. The answer is a band, in which the truth lies in 80 of 100 cases if things go on as they
    were, and its middle. Without POOL, all pools.

    It rests on when the allocations on record were granted and released, in the last 90 days at most. Released ones
    are kept for 24 hours only (unless the controller is told otherwise), and those that people delete not at all; so
    how many tenants leave is estimated, and the band shows how badly that is known. Many futures are played through
    on the allocator's own free space: days of the record come again in random order, so a rollout long ago counts
    as much as yesterday. The same record always gives the same answer. With fewer than 5 arrivals or 7 days on record
    the answer is that there is too little to tell.

    On the axis [ and ] are the ends of the band and | is its middle; > goes on beyond the axis.

    \b
    Examples:
      butleradm ipam forecast
      butleradm ipam forecast rack-12 --size 24
      butleradm ipam forecast rack-12 -o jsonpath='{.pools[0].tiers[1].days.low}'
    """
    from datetime import UTC, datetime

    from butler.cli.toolkit.objects import pool_of, read_estate
    from butler.cli.toolkit.output import structured
    from butler.cli.toolkit.terminal import say
    from butler.reports.forecast.forecast import forecast as about
    from butler.reports.forecast.forecast_json import forecast_json

    async def work(session: CommandSession) -> None:
        estate = await read_estate(session)
        pools = [pool_of(estate, pool)] if pool is not None else list(estate.pools)
        now = datetime.now(UTC)
        found = [about(chosen, estate, now, size=size) for chosen in pools]
        if not output.is_table:
            structured({"pools": [forecast_json(estimate) for estimate in found]}, output)
        elif found:
            from butler.cli.drawings.forecast import forecast_text

            click.echo("\n\n".join(map(forecast_text, found)))
        else:
            say(f"There are no pools in namespace {session.home}. `butleradm pool create` makes one.")

    run(access, work)
