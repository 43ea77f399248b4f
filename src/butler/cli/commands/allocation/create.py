"""`butleradm allocation create`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit.session import ClusterAccess, run

if TYPE_CHECKING:
    from butler.cli.toolkit.output import Output
from butler.cli.commands.shared.allocation_request import ask, request_options


@click.command(short_help="Ask a pool for addresses, for a tenant.")
@click.option(
    "--count", type=click.IntRange(1, 65536), metavar="N", help="How many.  [default: the pool's, for the type]"
)
@request_options
def create(
    access: ClusterAccess,
    name: str,
    pool: str,
    tenant: str,
    type_: str,
    count: int | None,
    wait: bool,
    timeout: float,
    dry_run: str,
    output: Output,
) -> None:
    """Ask a pool for addresses, for a tenant.

    The pool grants one block: the smallest free one that is large enough, from its start. Where it cannot, the
    request stays, Failed with the reason, and is tried again whenever the pool changes; `allocation release` takes it
    back. The tenant cluster need not exist yet: the addresses are kept for it.

    --wait returns when the addresses are there, or with the pool's own words why not. --dry-run tells which addresses
    it would be, as things stand.

    \b
    Examples:
      butleradm allocation create shop-extra --pool vlan40 --tenant team-web/shop --type loadbalancer --count 4 --wait
      butleradm allocation create shop-extra --pool vlan40 --tenant team-web/shop --type nodes --dry-run=client
    """
    run(access, lambda session: ask(session, name, pool, tenant, type_, count, None, wait, timeout, dry_run, output))
