"""`butleradm pool overlaps`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import ClusterAccess, CommandSession, run

if TYPE_CHECKING:
    from butler.cli.toolkit.output import Output
    from butler.reports.pool.overlaps import OverlapFinding


@click.command(short_help="Look for addresses that two have, and for pools that overlap.")
@options.access(all_namespaces=True)
@options.output("table", "json", "yaml", "csv", "jsonpath")
def overlaps(access: ClusterAccess, output: Output) -> None:
    """Look for addresses that two have, and for pools that overlap.

    Butler lets none of this happen, but people who edit by hand, restore a backup or switch admission off can:

    \b
      PoolsOverlap   two pools share addresses
      HeldTwice      two allocations hold the same address
      OutsidePool    an allocation holds addresses that its pool does not hand out
      NoSuchPool     an allocation holds addresses of a pool that is not there
      Unreadable     an allocation holds what is no range of addresses

    Exit code 8 says that something was found, 0 that all is well.

    \b
    Examples:
      butleradm pool overlaps
      butleradm pool overlaps -A -o json
    """
    from butler.cli.toolkit.objects import read_addresses
    from butler.reports.pool.overlaps import overlaps as look

    async def work(session: CommandSession) -> tuple[int, int, list[OverlapFinding]]:
        estate = await read_addresses(session, session.homes)
        return len(estate.pools), len(estate.allocations), look(estate.pools, estate.allocations)

    pools, allocations, found = run(access, work)
    _show(found, output)
    if found:
        click.get_current_context().exit(Exit.FINDINGS)
    if output.format == "table":
        from butler.cli.toolkit.terminal import say, wrapped

        if pools or allocations:
            looked_at = f"{_counted(pools, 'pool')} and {_counted(allocations, 'allocation')}"
            click.echo(wrapped(f"All is well: {looked_at} share nothing."))
        else:
            say("There is nothing to look at yet: `butleradm pool create` makes a pool.")


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _show(found: list[OverlapFinding], output: Output) -> None:
    from butler.cli.toolkit.output import csv_text, structured
    from butler.cli.toolkit.terminal import painted, width

    if output.format == "csv":
        titles = ("trouble", "start", "end", "count", "subjects", "message")
        rows = [
            [finding.trouble, finding.start, finding.end, finding.count, " ".join(finding.subjects), finding.message]
            for finding in found
        ]
        click.echo(csv_text(titles, rows, output), nl=False)
    elif output.format != "table":
        structured({"findings": [finding.as_json() for finding in found]}, output)
    else:
        import textwrap

        for finding in found:
            addresses = finding.start if finding.start == finding.end else f"{finding.start}-{finding.end}"
            click.echo(f"{painted(finding.trouble, bold=True)}  {addresses}")
            click.echo(textwrap.fill(finding.message, width(), initial_indent="  ", subsequent_indent="  "))
