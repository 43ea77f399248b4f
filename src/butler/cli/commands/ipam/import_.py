"""`butleradm ipam import`: addresses that are in use already, written down as pinned allocations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import ClusterAccess, CommandSession, Failure, run

if TYPE_CHECKING:
    from butler.api.objects import Key
    from butler.cli.estate.bulk_create import Made
    from butler.cli.toolkit.output import Output
    from butler.reports.estate import Estate
    from butler.reports.exchange.adoption import Adoption
    from butler.reports.exchange.import_check import Difference
    from butler.reports.exchange.rows import Contents


@click.command("import", short_help="Take over addresses that are in use already, moving none.")
@click.argument("file", required=False, type=click.Path(dir_okay=False, allow_dash=True))
@click.option(
    "--format", "format_", type=click.Choice(["csv", "json", "yaml"]), help="Of FILE.  [default: by its name]"
)
@click.option(
    "--from-tenant", metavar="NS/NAME", help="Read what this running tenant cluster uses, in place of a FILE."
)
@click.option(
    "--from-kubeconfig",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="The same for a cluster that Butler does not know; needs --tenant.",
)
@click.option("--tenant", metavar="NS/NAME", help="With --from-kubeconfig: whose the addresses will be.")
@click.option("--skip-conflicts", is_flag=True, help="Leave out rows that the estate does not allow; make the others.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    metavar="S",
    show_default=True,
    help="How many seconds to wait for the pools.",
)
@options.dry_run
@options.yes
@options.access()
@options.output("table", "json", "yaml", "jsonpath")
def import_(
    access: ClusterAccess,
    file: str | None,
    format_: str | None,
    from_tenant: str | None,
    from_kubeconfig: str | None,
    tenant: str | None,
    skip_conflicts: bool,
    timeout: float,
    dry_run: str,
    yes: bool,
    output: Output,
) -> None:
    """Take over addresses that are in use already, moving none.

    Reads rows from FILE (`-`: stdin), shows how they differ from the estate, asks, and makes a pinned allocation for
    each that is missing: exactly these addresses, for that tenant. Then it waits until the pools have granted them.
    What is there already is left alone, so the same import can be repeated, and goes on where it was interrupted.

    \b
      +   to be made, and the name that the allocation will have
      =   there already: the tenant holds these addresses for this purpose
      -   passed over: the row says itself that it is not Allocated
      !   in conflict with the estate: who has the address, or which rule of which pool is against it
      ?   makes no sense in itself, with the line

    Nothing is written while there is any ! or ?. --skip-conflicts leaves out what has a !, and makes the rest; rows
    with a ? have to be mended. The form of FILE is that of `butleradm ipam export`. Of its columns, tenant_namespace,
    tenant, type and start are needed; without a pool, the one that has the addresses is taken. Single addresses of one
    tenant and type that are neighbours become one allocation. Names are those of the rows where they are free, else
    TENANT-nodes or TENANT-lb, then TENANT-lb-2 and so on.

    --from-tenant asks a running cluster instead: all that its MetalLB may announce (every IPAddressPool), and the
    InternalIPs of its Nodes. --from-kubeconfig does so for a cluster that Butler does not know yet.

    Exit codes beside the usual: 1 when a row makes no sense or a pool refused one, 7 when a pool did not answer in
    time, 8 when rows are in conflict.

    \b
    Examples:
      butleradm ipam import addresses.csv --dry-run=client
      butleradm ipam import addresses.csv --yes
      butleradm ipam export | ssh other butleradm ipam import - --format csv --yes
      butleradm ipam import --from-tenant team-web/shop
      butleradm ipam import --from-kubeconfig old.conf --tenant team-web/legacy --dry-run=client
    """
    from butler.cli.toolkit.row_files import read_rows

    given = [source for source in (file, from_tenant, from_kubeconfig) if source is not None]
    if len(given) != 1:
        raise click.UsageError("say one of FILE (- is stdin), --from-tenant and --from-kubeconfig")
    if (from_kubeconfig is None) != (tenant is None):
        raise click.UsageError("--from-kubeconfig and --tenant belong together: say both")
    if format_ and file is None:
        raise click.UsageError("--format is that of a FILE: leave it out, a cluster is read as it is")
    contents = None if file is None else read_rows(file, format_)
    whose = None if file is not None else _tenant(from_tenant or tenant or "")

    async def work(session: CommandSession) -> None:
        from butler.cli.toolkit.objects import read_estate
        from butler.cli.toolkit.terminal import say

        estate = await read_estate(session)
        found = contents
        if whose is not None:
            adopted = await _adopted(session, estate.clusters, whose, from_kubeconfig)
            found = adopted.contents
            for note in adopted.notes:
                say(f"Note: {note}.")
        assert found is not None
        await _import(session, estate, found, skip_conflicts, timeout, dry_run, yes, output)

    run(access, work)


async def _import(
    session: CommandSession,
    estate: Estate,
    contents: Contents,
    skip_conflicts: bool,
    timeout: float,
    dry_run: str,
    yes: bool,
    output: Output,
) -> None:
    from datetime import UTC, datetime

    from butler.cli.drawings.difference import as_json, drawn
    from butler.cli.estate.bulk_create import make
    from butler.cli.toolkit.output import structured
    from butler.cli.toolkit.terminal import confirm
    from butler.reports.exchange.import_check import RowVerdict, compare

    difference = compare(estate, contents, datetime.now(UTC))
    making = [item.request for item in difference.of(RowVerdict.MAKE) if item.request is not None]
    made: dict[str, Made] = {}
    if output.is_table and (shown := drawn(difference)):
        click.echo(shown)
    try:
        _refuse(difference, skip_conflicts)
        waiting = _waiting(difference, estate) if dry_run == "none" else []
        if waiting or (making and dry_run != "client"):
            if making and dry_run == "none":
                tenants = len({allocation.spec.tenant_cluster_ref for allocation in making})
                confirm(f"Make {_counted(len(making), 'allocation')} for {_counted(tenants, 'tenant')}?", yes=yes)
            made = await make(session, making, waiting=waiting, timeout=timeout, dry_run=dry_run == "server")
    finally:
        if not output.is_table:
            structured(as_json(difference, made, dry_run=dry_run), output)
    if output.is_table:
        click.echo(_summary(difference, made, dry_run))
    _judge(made)


def _waiting(difference: Difference, estate: Estate) -> list[str]:
    """Allocations of an earlier import that have not been granted yet."""
    from butler.reports.exchange.import_check import RowVerdict
    from butler.rules.pool.tenant_blocks import WAITING

    named = {name for item in difference.of(RowVerdict.THERE) for name in item.names}
    return [
        allocation.metadata.name
        for allocation in estate.allocations
        if allocation.metadata.name in named and allocation.status.phase in WAITING
    ]


def _refuse(difference: Difference, skip_conflicts: bool) -> None:
    """Do not begin what could not be finished."""
    from butler.reports.exchange.import_check import RowVerdict

    conflicts, bad = len(difference.of(RowVerdict.CONFLICT)), len(difference.contents.bad)
    if bad:
        also = f", and {_counted(conflicts, 'conflict')}" if conflicts else ""
        raise Failure(f"{_counted(bad, 'row')} cannot be understood{also}; nothing was written: mend what has a ?")
    if conflicts and not skip_conflicts:
        raise Failure(
            f"{_counted(conflicts, 'conflict')}; nothing was written: put right what has a !,"
            " or make only the others with --skip-conflicts",
            Exit.FINDINGS,
        )


def _summary(difference: Difference, made: dict[str, Made], dry_run: str) -> str:
    from butler.reports.exchange.import_check import RowVerdict

    new = {item.names[0] for item in difference.of(RowVerdict.MAKE)}
    granted = sum(result.ok for name, result in made.items() if name in new)
    making, there = len(difference.of(RowVerdict.MAKE)), len(difference.of(RowVerdict.THERE))
    left_out = len(difference.of(RowVerdict.CONFLICT))
    done = f"{making} would be made" if dry_run != "none" else f"{granted} made"
    if not making:
        done = "Nothing to do"
    parts = [done, f"{there} there already", f"{left_out} left out" if left_out else ""]
    failed = [f"! {name}: {result.why}" for name, result in sorted(made.items()) if not result.ok]
    return "\n".join([*failed, f"{', '.join(part for part in parts if part)}."])


def _judge(made: dict[str, Made]) -> None:
    failed = [name for name, result in made.items() if not result.ok]
    late = [name for name, result in made.items() if result.late]
    if failed:
        raise Failure(
            f"{_counted(len(failed), 'allocation')} of {len(made)} did not get the addresses:"
            " `butleradm allocation list --phase Failed` shows them; repeat the import when the reason is gone",
            Exit.TIMED_OUT if len(late) == len(failed) else Exit.FAILED,
        )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


# What is read.


def _tenant(text: str) -> Key:
    from butler.api.objects import Key

    namespace, slash, name = text.partition("/")
    if not namespace or not slash or not name or "/" in name:
        raise click.UsageError(f"{text!r} is no tenant: write NAMESPACE/NAME, as in team-web/shop")
    return Key(namespace, name)


async def _adopted(session: CommandSession, clusters: Any, whose: Key, kubeconfig: str | None) -> Adoption:
    """What a running cluster uses, as rows."""
    from butler.api.objects import key_of
    from butler.cli.estate.inventories import inventories, inventory_by
    from butler.reports.exchange.adoption import adopt

    if kubeconfig is not None:
        return adopt(whose, await inventory_by(kubeconfig))
    cluster = next((cluster for cluster in clusters if key_of(cluster) == whose), None)
    if cluster is None:
        raise Failure(
            f"there is no TenantCluster {whose}: for a cluster that Butler does not know,"
            f" say --from-kubeconfig FILE --tenant {whose}",
            Exit.NOT_FOUND,
        )
    (answer,) = (await inventories(session, [cluster])).values()
    if isinstance(answer, str):
        raise Failure(
            f"{whose} was not asked: {answer}; try again, or read it with --from-kubeconfig", Exit.UNREACHABLE
        )
    return adopt(whose, answer)
