"""`butleradm pool reserve`."""

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


@click.command(short_help="Keep addresses back, or hand them out again.")
@pool_name
@click.argument("cidr")
@options.access()
@click.option("--description", metavar="TEXT", help="What the block is kept back for.")
@click.option("--remove", is_flag=True, help="Hand the block out again.")
@options.wait()
@options.dry_run
@options.output("table", "json", "yaml", "name", "jsonpath")
def reserve(
    access: ClusterAccess,
    name: str,
    cidr: str,
    description: str | None,
    remove: bool,
    wait: bool,
    timeout: float,
    dry_run: str,
    output: Output,
) -> None:
    """Keep a block of a pool back, and show first how the pool stands before and after.

    CIDR is a network inside the pool, or one address. A block with addresses that a tenant holds is refused, with
    the names of those who hold them. A block that is reserved already gets the new description. --remove takes the
    block out of spec.reserved again; it is named as it was written.

    \b
    Examples:
      butleradm pool reserve vlan40 10.40.0.0/28 --description "Switches and gateways"
      butleradm pool reserve vlan40 10.40.0.99
      butleradm pool reserve vlan40 10.40.0.0/28 --remove
    """
    if remove and description is not None:
        raise click.UsageError("--remove needs no --description")
    block = _block(cidr)

    def edit(spec: NetworkPoolSpec) -> NetworkPoolSpec:
        from butler.reports.pool.edits import with_reserved, without_reserved

        return without_reserved(spec, block) if remove else with_reserved(spec, block, description)

    async def work(session: CommandSession) -> None:
        from butler.cli.commands.shared.pool_change import change_pool, wait_ready

        verb = "no longer reserves" if remove else "reserves"
        made = await change_pool(session, name, edit, verb=f"{verb} {cidr}", dry_run=dry_run, output=output)
        if made and wait and dry_run == "none":
            await wait_ready(session, name, session.home, timeout)

    run(access, work)


def _block(text: str) -> Range:
    from butler.ipam.addresses import BadAddress, Family, parse_network

    try:
        family, block = parse_network(text if "/" in text else f"{text}/32")
    except BadAddress as error:
        raise Failure(str(error), Exit.USAGE) from None
    if family is not Family.V4:
        raise Failure(f"{text} is no IPv4 network: pools hand out IPv4", Exit.USAGE)
    return block
