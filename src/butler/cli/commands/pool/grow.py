"""`butleradm pool grow`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.commands.pool import pool_name
from butler.cli.toolkit import options
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import ClusterAccess, CommandSession, Failure, run

if TYPE_CHECKING:
    from butler.api.networkpool import NetworkPoolSpec
    from butler.cli.toolkit.output import Output
    from butler.ipam.addresses import Range
    from butler.reports.pool.edits import Change


@click.command(short_help="Hand out more addresses.")
@pool_name
@options.access()
@click.option("--cidr", metavar="CIDR", help="The new network, which holds the old one.")
@click.option("--window", metavar="START-END", help="Hand out these addresses as well.")
@click.option(
    "--by", type=click.IntRange(1), metavar="N", help="At least so many more: Butler chooses which, and asks."
)
@options.yes
@options.wait()
@options.dry_run
@options.output("table", "json", "yaml", "name", "jsonpath")
def grow(
    access: ClusterAccess,
    name: str,
    cidr: str | None,
    window: str | None,
    by: int | None,
    yes: bool,
    wait: bool,
    timeout: float,
    dry_run: str,
    output: Output,
) -> None:
    """Hand out more addresses of a pool, and show first how it stands before and after.

    No address that is held moves. --cidr makes the network larger; a pool with windows then needs a --window in the
    new part too, as it hands out its windows only. --window adds a window, and melts it with those that it touches.
    --by takes the addresses after the last window, and where there are none, the next larger network.

    \b
    Examples:
      butleradm pool grow vlan40 --cidr 10.40.0.0/20
      butleradm pool grow vlan40 --window 10.40.8.0-10.40.9.255
      butleradm pool grow vlan40 --cidr 10.40.0.0/20 --window 10.40.8.0-10.40.15.254 --wait
      butleradm pool grow vlan40 --by 200 --dry-run=client
    """
    if not (cidr or window or by):
        raise click.UsageError("say by how much: --cidr, --window or --by")
    if by and (cidr or window):
        raise click.UsageError("--by chooses the addresses itself: leave out --cidr and --window")
    added = _window(window) if window else None

    def edit(spec: NetworkPoolSpec) -> NetworkPoolSpec:
        return _grown(name, spec, cidr, added, by)

    def question(change: Change) -> str | None:
        _insist_on_growth(name, change)
        return f"Grow {name} like this? Make sure that nothing else uses the new addresses." if by else None

    async def work(session: CommandSession) -> None:
        from butler.cli.commands.shared.pool_change import change_pool, wait_ready

        made = await change_pool(
            session, name, edit, verb="grown", dry_run=dry_run, output=output, question=question, yes=yes
        )
        if made and wait and dry_run == "none":
            await wait_ready(session, name, session.home, timeout)

    run(access, work)


def _window(text: str) -> Range:
    from butler.cli.commands.pool.create import window_ends
    from butler.ipam.addresses import BadAddress, Family, parse_range

    try:
        family, window = parse_range(*window_ends(text))
    except BadAddress as error:
        raise Failure(str(error), Exit.USAGE) from None
    if family is not Family.V4:
        raise Failure(f"{text} is no IPv4 window: pools hand out IPv4", Exit.USAGE)
    return window


def _grown(name: str, spec: NetworkPoolSpec, cidr: str | None, window: Range | None, by: int | None) -> NetworkPoolSpec:
    from butler.ipam.layout import InvalidPool
    from butler.reports.pool.edits import grown_by, with_cidr, with_window

    try:
        if by:
            return grown_by(spec, by)
        grown = with_window(spec, window) if window else spec
        return with_cidr(grown, cidr) if cidr else grown
    except InvalidPool as error:
        raise Failure(f"{name} is not valid ({error}): put it right first, with `butleradm pool edit {name}`") from None


def _insist_on_growth(name: str, change: Change) -> None:
    from butler.ipam.addresses import Family, range_cidr

    before, after = change.before, change.after
    if before is None or after is None:
        return
    old, new = before.layout.network, after.layout.network
    if not new.contains(old):
        texts = [range_cidr(span, Family.V4) for span in (new, old)]
        raise Failure(
            f"{texts[0]} does not hold {texts[1]}, so {name} would not grow but move: choose a network around it"
        )
    if after.capacity.total > before.capacity.total:
        return
    if after.capacity.total == before.capacity.total and after.layout.network.size > before.layout.network.size:
        raise Failure(
            f"{name} hands out its windows only, so a larger network alone adds nothing: add --window START-END"
        )
    raise Failure(f"that does not make {name} hand out more: `butleradm pool edit {name}` changes it in other ways")
