"""`butleradm pool delete`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.commands.pool import pool_name
from butler.cli.toolkit import options
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import ClusterAccess, CommandSession, Failure, run

if TYPE_CHECKING:
    from butler.api.networkpool import NetworkPool
    from butler.api.objects import Json


@click.command(short_help="Delete a pool of which no tenant holds addresses.")
@pool_name
@options.access()
@options.yes
@options.wait()
@options.dry_run
def delete(access: ClusterAccess, name: str, yes: bool, wait: bool, timeout: float, dry_run: str) -> None:
    """Delete a pool of which no tenant holds addresses.

    A pool with addresses in use is not deleted; the refusal names who holds them. Allocations that wait for
    addresses of the pool go on waiting, and fail as long as there is no pool of that name.

    \b
    Examples:
      butleradm pool delete vlan40
      butleradm pool delete vlan40 --yes --wait
      butleradm pool delete vlan40 --dry-run=server
    """
    from butler.cli.toolkit.follow import Progress, wait_until
    from butler.cli.toolkit.output import done
    from butler.cli.toolkit.terminal import confirm
    from butler.kube.kinds import POOLS

    async def work(session: CommandSession) -> None:
        found, waiting = await _deletable(session, name)
        if dry_run == "client":
            done(POOLS, name, "deleted", dry_run)
            return
        if dry_run == "none":
            more = f" {waiting} allocations wait for addresses of it." if waiting else ""
            confirm(f"Delete pool {name} ({found.spec.cidr})?{more}", yes=yes)
        await _delete(session, found, dry_run=dry_run == "server")
        done(POOLS, name, "deleted", dry_run)
        if wait and dry_run == "none":
            await wait_until(session, POOLS, name, session.home, judge, timeout)

    def judge(raw: Json | None) -> Progress:
        return Progress(f"{name} is gone", done=True) if raw is None else Progress(f"{name} is being deleted")

    run(access, work)


async def _deletable(session: CommandSession, name: str) -> tuple[NetworkPool, int]:
    """A pool without granted addresses, and how many requests wait; Failure where a tenant holds some."""
    from butler.cli.toolkit.objects import pool_of, read_addresses
    from butler.rules.pool.admission import why_not_deleted

    estate = await read_addresses(session)
    found = pool_of(estate, name)
    why_not = why_not_deleted(found, estate.allocations)
    if why_not:
        raise Failure(why_not)
    return found, sum(allocation.status.phase in ("Pending", "Failed") for allocation in estate.of_pool(name))


async def _delete(session: CommandSession, found: NetworkPool, *, dry_run: bool) -> None:
    """Delete exactly this pool, in the version that had no granted addresses: every grant makes a new one."""
    from butler.cli.commands.shared.pool_change import ATTEMPTS
    from butler.kube.errors import Conflict
    from butler.kube.kinds import POOLS

    name, uid = found.metadata.name, found.metadata.uid
    for _ in range(ATTEMPTS):
        version = found.metadata.resource_version
        try:
            await session.client.delete(POOLS, name, session.home, uid=uid, resource_version=version, dry_run=dry_run)
        except Conflict:
            found, _waiting = await _deletable(session, name)
        else:
            return
    raise Failure(f"{name} is another one by now, or changes all the time: look at it and repeat", Exit.CONFLICT)
