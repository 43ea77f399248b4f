"""`butleradm allocation list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.completion_names import names_of
from butler.cli.toolkit.session import ClusterAccess, CommandSession, run

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.cli.toolkit.output import Output

TYPES = ["nodes", "loadbalancer"]
PHASES = ["Pending", "Allocated", "Draining", "Failed", "Releasing", "Released"]
"""As the column says them."""


@click.command("list", short_help="List allocations: who holds which addresses.")
@click.option("--pool", metavar="POOL", help="Only those of this pool.", shell_complete=names_of("networkpools"))
@click.option("--tenant", metavar="[NS/]NAME", help="Only those of this tenant cluster.")
@click.option("--type", "type_", type=click.Choice(TYPES), help="Only those for this.")
@click.option("--phase", type=click.Choice(PHASES, case_sensitive=False), help="Only those that stand here.")
@click.option("--all", "everything", is_flag=True, help="Also those that were released, kept on record for a day.")
@options.selector
@options.access(all_namespaces=True)
@options.watch
@options.output()
def list_(
    access: ClusterAccess,
    pool: str | None,
    tenant: str | None,
    type_: str | None,
    phase: str | None,
    everything: bool,
    selector: str | None,
    watch: bool,
    output: Output,
) -> None:
    """List allocations: who holds which addresses.

    RANGE is what a tenant holds, ROLE whether it began with it (initial) or got it later because its Services needed
    it (growth). -o wide adds the network where the range is one, since when it is held, since when none of it is in
    use, and of those without addresses, why not.

    \b
    PHASE is
      Pending    asked for; the pool has not looked at it yet
      Allocated  granted
      Draining   granted, and being taken back from the tenant
      Failed     refused for now, and tried again whenever the pool changes
      Releasing  deleted; the addresses are on their way back
      Released   given back, and kept on record (shown with --all or --phase Released)

    \b
    Examples:
      butleradm allocation list
      butleradm allocation list --pool vlan40 --type loadbalancer -o wide
      butleradm allocation list --tenant team-web/shop --all
      butleradm allocation list --phase Failed --watch
    """
    from butler.cli.tables.allocations import allocations_table, phase_text
    from butler.cli.toolkit.follow import follow_table
    from butler.cli.toolkit.objects import read_all
    from butler.kube.kinds import ALLOCATIONS

    def is_wanted(allocation: IPAllocation) -> bool:
        reference = allocation.spec.tenant_cluster_ref
        return (
            (pool is None or allocation.spec.pool_ref.name == pool)
            and (tenant is None or tenant in (reference.name, f"{reference.namespace}/{reference.name}"))
            and (type_ is None or allocation.spec.type == type_)
            and (phase_text(allocation) == phase if phase else everything or allocation.status.phase != "Released")
        )

    showing = allocations_table(namespaces=access.all_namespaces)

    async def work(session: CommandSession) -> None:
        if watch:
            await follow_table(session, ALLOCATIONS, session.homes, showing, output, selector=selector, keep=is_wanted)
        every = await read_all(session, ALLOCATIONS, session.homes, selector=selector)
        found = [allocation for allocation in every if is_wanted(allocation.obj)]
        showing.many(found, output, empty=_empty(access, session, bool(every)))

    run(access, work)


def _empty(access: ClusterAccess, session: CommandSession, others: bool) -> str:
    where = "any namespace" if access.all_namespaces else f"namespace {session.home}"
    if others:
        return f"No allocation in {where} is like that; leave out an option, or see released ones with --all."
    return f"There are no allocations in {where}. Tenant clusters ask for them, or `butleradm allocation create`."
