"""`butleradm ipam export`: all allocations as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.completion_names import names_of
from butler.cli.toolkit.session import ClusterAccess, CommandSession, run

if TYPE_CHECKING:
    from butler.cli.toolkit.output import Output


@click.command(short_help="Write all allocations as CSV, JSON or YAML.")
@click.option("--pool", metavar="POOL", help="Only those of this pool.", shell_complete=names_of("networkpools"))
@click.option("--all", "everything", is_flag=True, help="Also those that hold nothing: Pending, Failed, Released.")
@options.access()
@options.output("csv", "json", "yaml", default="csv")
def export(access: ClusterAccess, pool: str | None, everything: bool, output: Output) -> None:
    """Write all allocations as CSV, JSON or YAML, in a form that stays, for other programs and for `ipam import`.

    One row for each allocation, by pool and address. The columns of CSV, in this order for ever:

    \b
      pool              the NetworkPool
      tenant_namespace  namespace of the TenantCluster
      tenant            its name
      type              nodes or loadbalancer
      start, end        first and last address, both included
      count             how many these are
      phase             Allocated; with --all also Pending, Failed and Released
      allocated_at      when they were granted, in UTC: 2026-05-17T09:30:00Z
      name              the IPAllocation

    JSON and YAML have the same fields in camelCase (tenantNamespace, allocatedAt), in a list `allocations` beside
    `format: butler-allocations/v1`; what an allocation has not is null there, and empty in CSV. What was granted to a
    Released one stays in its row, though it is no longer its own.

    \b
    Examples:
      butleradm ipam export > addresses.csv
      butleradm ipam export --pool vlan40 -o json | jq '.allocations[].start'
      butleradm ipam export --all -o yaml > audit.yaml
    """
    from butler.cli.toolkit.objects import read_all, read_one
    from butler.cli.toolkit.output import csv_text, structured
    from butler.cli.toolkit.terminal import say
    from butler.kube.kinds import ALLOCATIONS, POOLS
    from butler.reports.exchange.rows import FIELDS, document, in_order, record
    from butler.rules.allocation.held import readable_range

    async def work(session: CommandSession) -> None:
        if pool is not None:
            await read_one(session, POOLS, pool, session.home)
        found = [allocation.obj for allocation in await read_all(session, ALLOCATIONS, session.home)]
        rows = in_order(
            allocation
            for allocation in found
            if (pool is None or allocation.spec.pool_ref.name == pool)
            and (everything or readable_range(allocation) is not None)
        )
        if output.format == "csv":
            cells = [["" if cell is None else cell for cell in record(row).values()] for row in rows]
            click.echo(csv_text(FIELDS, cells, output), nl=False)
        else:
            structured(document(rows), output)
        if not rows:
            where = f"pool {pool}" if pool else f"namespace {session.home}"
            more = "" if everything else "; --all writes those that hold nothing, too"
            say(f"There are no allocations with addresses in {where}{more}.")

    run(access, work)
