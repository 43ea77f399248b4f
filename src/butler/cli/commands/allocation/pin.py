"""`butleradm allocation pin`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import ClusterAccess, Failure, run

if TYPE_CHECKING:
    from butler.cli.toolkit.output import Output
from butler.cli.commands.shared.allocation_request import ask, request_options


@click.command(short_help="Ask for exactly these addresses, for a tenant that uses them.")
@click.option("--range", "range_", metavar="START-END", required=True, help="Which; one address, a range or a network.")
@request_options
def pin(
    access: ClusterAccess,
    name: str,
    pool: str,
    tenant: str,
    type_: str,
    range_: str,
    wait: bool,
    timeout: float,
    dry_run: str,
    output: Output,
) -> None:
    """Ask for exactly these addresses, for a tenant that uses them.

    For addresses that are in use before Butler knows of them. They must lie in one window of the pool, outside what
    is reserved, and no tenant may hold any of them; otherwise the request stays, Failed with the reason, until that
    changes. Pinned addresses are never taken back because they are idle. Many at once: `butleradm ipam import`.

    \b
    Examples:
      butleradm allocation pin shop-lb --pool vlan40 --tenant team-web/shop --type loadbalancer \\
        --range 10.40.1.16-10.40.1.23 --wait
      butleradm allocation pin old-node --pool vlan40 --tenant team-web/old --type nodes --range 10.40.2.7
    """
    from butler.ipam.addresses import BadAddress, Family
    from butler.reports.address_lookup import read_asked

    try:
        family, wanted = read_asked(range_)
    except BadAddress as error:
        raise Failure(f"--range: {error}", Exit.USAGE) from None
    if family is not Family.V4:
        raise Failure("--range: pools hand out IPv4 only: say IPv4 addresses", Exit.USAGE)
    run(access, lambda session: ask(session, name, pool, tenant, type_, None, wanted, wait, timeout, dry_run, output))
