"""`butleradm pool map`: a pool drawn in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from butler.cli.commands.pool import pool_name
from butler.cli.toolkit import options
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import ClusterAccess, CommandSession, Failure, run

if TYPE_CHECKING:
    from butler.cli.toolkit.output import Output
    from butler.ipam.addresses import Family, Range
    from butler.reports.pool.segments import PoolSegments


@click.command("map", short_help="Draw a pool: who holds which addresses, in true positions.")
@pool_name
@options.access()
@click.option("--from", "first", metavar="ADDRESS", help="Begin here.  [default: where the pool begins]")
@click.option("--to", "last", metavar="ADDRESS", help="End here.  [default: where the pool ends]")
@click.option("--zoom", metavar="CIDR", help="Show this part, in place of --from and --to.")
@options.output("table", "json", "yaml", "csv", "jsonpath")
def map_(
    access: ClusterAccess, name: str, first: str | None, last: str | None, zoom: str | None, output: Output
) -> None:
    """Draw a pool: who holds which addresses, in true positions.

    Rows of cells, each row labelled with its first address. A cell is one address, or a power of two of them where
    the pool is large; what it shows is in the legend below:

    \b
      A B C ...   addresses of a tenant, the largest holder first; & the rest
      .           free                      #   reserved
      -           in no window, so never handed out
      +           being granted             ~   being taken back
      0 to 9      mixed: so many tenths of it are held
      *           mixed, and nothing free   :   mixed, and nothing held
      !           wrong: held twice, or held although it is not handed out

    Where the terminal can, · and ▒ stand for . and #. Colour repeats what the letters say. A width other than that
    of the terminal is set by COLUMNS. -o json, yaml and csv give the segments that the map is drawn from.

    \b
    Examples:
      butleradm pool map vlan40
      butleradm pool map vlan40 --zoom 10.40.1.0/24
      butleradm pool map vlan40 --from 10.40.1.200 --to 10.40.2.31
      butleradm pool map vlan40 -o csv > vlan40.csv
    """
    from butler.cli.toolkit.objects import read_all, read_one
    from butler.kube.kinds import ALLOCATIONS, POOLS
    from butler.reports.pool.segments import segments_of

    if zoom and (first or last):
        raise click.UsageError("--zoom stands in place of --from and --to: give one or the other")

    async def work(session: CommandSession) -> PoolSegments:
        found = await read_one(session, POOLS, name, session.home)
        allocations = await read_all(session, ALLOCATIONS, session.home)
        return segments_of(found.obj, [allocation.obj for allocation in allocations])

    shown = run(access, work)
    if shown.network is None and output.format == "table":
        why = "; ".join(f"{problem.field}: {problem.message}" for problem in shown.problems)
        raise Failure(f"{name} cannot be drawn, for its network cannot be told ({why}): `butleradm pool edit {name}`")
    part = None if shown.network is None else _part(shown, first, last, zoom)
    _show(shown if part is None else shown.within(part), shown, output)


def _part(shown: PoolSegments, first: str | None, last: str | None, zoom: str | None) -> Range | None:
    """The part that was asked for; None for all of it."""
    from butler.ipam.addresses import BadAddress, Range, parse_address, parse_network

    assert shown.network is not None
    if not (first or last or zoom):
        return None
    try:
        if zoom:
            family, part = parse_network(zoom)
            _insist_on_family(shown, family, zoom)
        else:
            ends = [parse_address(end) for end in (first, last) if end]
            for (family, _), text in zip(ends, [end for end in (first, last) if end], strict=True):
                _insist_on_family(shown, family, text)  # before they are compared: two families have no order
            begin = ends[0][1] if first else shown.network.first
            part = Range(begin, ends[-1][1] if last else shown.network.last)
    except BadAddress as error:
        raise Failure(str(error), Exit.USAGE) from None
    if first and last and part.last < part.first:
        raise Failure(f"--to {last} comes before --from {first}: swap the two", Exit.USAGE)
    if part.last < part.first or not part.overlaps(shown.network):
        raise _outside(shown, zoom or first or last or "")
    return Range(max(part.first, shown.network.first), min(part.last, shown.network.last))


def _insist_on_family(shown: PoolSegments, family: Family, text: str) -> None:
    if family is not shown.family:
        raise _outside(shown, text)


def _outside(shown: PoolSegments, asked: str) -> Failure:
    return Failure(f"{asked} is no part of {shown.pool} ({shown.cidr}): name addresses inside it", Exit.USAGE)


def _show(part: PoolSegments, whole: PoolSegments, output: Output) -> None:
    from butler.cli.toolkit.output import csv_text, structured
    from butler.reports.pool.segments import segment_json, segments_json

    if output.format == "table":
        _draw(part, whole)
    elif output.format == "csv":
        titles = ("start", "end", "count", "kind", "allocation", "tenant", "type", "role", "description")
        rows: list[list[Any]] = []
        for segment in part.segments:
            made = segment_json(segment, part.family)
            rows.append([made.get(title, "") for title in titles])
        click.echo(csv_text(titles, rows, output), nl=False)
    else:
        structured(segments_json(part), output)


def _draw(part: PoolSegments, whole: PoolSegments) -> None:
    from butler.cli.drawings.pool_map import draw, headline
    from butler.cli.toolkit.terminal import has_colour, has_unicode, say, width

    click.echo(headline(part, whole, width()))
    click.echo(draw(part, width(), unicode=has_unicode(), colour=has_colour()))
    for problem in whole.problems:
        say(f"{whole.pool} hands out nothing: {problem.field}: {problem.message}")
    for lost in whole.elsewhere:
        say(f"not on the map, or not all of it: {lost.allocation} of {lost.tenant} holds {lost.start}-{lost.end}")
