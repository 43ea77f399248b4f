"""`butleradm pool free`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.commands.pool import pool_name
from butler.cli.toolkit import options
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import ClusterAccess, CommandSession, Failure, run

if TYPE_CHECKING:
    from butler.api.networkpool import NetworkPool
    from butler.cli.toolkit.output import Output
    from butler.ipam.addresses import Family, Range
    from butler.reports.pool.free_blocks import FreeBlocksReport
    from butler.reports.pool.summary import Standing


@click.command(short_help="Find free blocks, and the one that a request would get.")
@pool_name
@options.access()
@click.option("--size", type=click.IntRange(1, 65536), metavar="N", help="Only blocks with room for N addresses.")
@click.option("--align", is_flag=True, help="Only whole networks: beginning at a multiple of their size.")
@options.output("table", "json", "yaml", "csv", "jsonpath")
def free(access: ClusterAccess, name: str, size: int | None, align: bool, output: Output) -> None:
    """Find free blocks of a pool, and the one that a request would get.

    A block is a run of free addresses, as long as can be. With --size, FIT is where so many addresses would lie in
    it, and * marks the block that Butler would take them from now: the smallest that holds them, of equals the
    lowest. With --align, FIT is a network; Butler does not align by itself, so such a range has to be pinned.

    Exit code 8 says that nothing fits, and why.

    \b
    Examples:
      butleradm pool free vlan40
      butleradm pool free vlan40 --size 12
      butleradm pool free vlan40 --size 16 --align
      butleradm pool free vlan40 --size 8 -o jsonpath='{.bestFit.start}'
    """
    from butler.cli.toolkit.objects import read_all, read_one
    from butler.ipam.layout import InvalidPool
    from butler.kube.kinds import ALLOCATIONS, POOLS
    from butler.reports.pool.free_blocks import free_blocks
    from butler.reports.pool.summary import standing_of

    if align and size and size & (size - 1):
        raise click.UsageError(
            f"--align finds networks, and {size} is no size of one: ask for {1 << size.bit_length()}"
        )

    async def work(session: CommandSession) -> tuple[NetworkPool, Standing]:
        found = (await read_one(session, POOLS, name, session.home)).obj
        allocations = [allocation.obj for allocation in await read_all(session, ALLOCATIONS, session.home)]
        try:
            return found, standing_of(found, allocations)
        except InvalidPool as error:
            raise Failure(
                f"{name} hands out nothing, for it is not valid ({error}): `butleradm pool edit {name}`", Exit.FINDINGS
            ) from None

    found, standing = run(access, work)
    blocks = free_blocks(standing.free, size=size, align=align)
    _warn(found)
    _show(blocks, name, standing.layout.family, output)
    if not blocks.blocks:
        raise Failure(_why_none(blocks, name, standing), Exit.FINDINGS)


def _warn(pool: NetworkPool) -> None:
    from butler.api.conditions import find_condition
    from butler.cli.toolkit.terminal import say

    ready = find_condition(pool.status.conditions, "Ready")
    if ready is not None and ready.status != "True":
        say(f"{pool.metadata.name} hands out nothing at present: {ready.message}")


def _show(found: FreeBlocksReport, name: str, family: Family, output: Output) -> None:
    from butler.cli.toolkit.output import csv_text, structured, table
    from butler.cli.toolkit.terminal import say
    from butler.ipam.addresses import address_text
    from butler.reports.pool.free_blocks import free_blocks_json

    if output.format in ("json", "yaml", "jsonpath"):
        structured(free_blocks_json(found, name, family), output)
        return
    asked = found.size is not None or found.align
    titles = ["start", "end", "size", *(["fit"] if asked else []), *(["best fit"] if found.size else [])]
    rows = []
    for block in found.blocks:
        row = [address_text(block.hole.first, family), address_text(block.hole.last, family), str(block.hole.size)]
        if asked:
            row.append(_text(block.fit, family))
        if found.size:
            row.append("*" if block.chosen else "")
        rows.append(row)
    if output.format == "csv":
        click.echo(csv_text(titles, rows, output), nl=False)
        return
    if rows:
        click.echo(table(titles, rows, output, right=[title == "size" for title in titles]))
    if found.best_fit is not None and rows:
        say(f"A request for {found.size} would get {_text(found.best_fit, family)}.")
        aligned = found.align and found.best_fit.first % found.best_fit.size
        if aligned:
            say("That is not aligned: pin one of these, with `butleradm allocation pin`.")


def _text(addresses: Range, family: Family) -> str:
    from butler.ipam.addresses import range_cidr, range_text

    cidr = range_cidr(addresses, family)
    return cidr if cidr and addresses.size > 1 else range_text(addresses, family)


def _why_none(found: FreeBlocksReport, name: str, standing: Standing) -> str:
    from butler.ipam import refusals

    if found.size is not None and found.best_fit is None:
        return f"nothing fits: {refusals.no_room(found.size, standing.free, standing.layout, name)[1]}"
    if found.free:
        return f"no free block of {name} holds an aligned {found.size}: leave out --align, or ask for less"
    return f"all {standing.layout.total} addresses of {name} are taken: release an allocation or grow the pool"
