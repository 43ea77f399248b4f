"""`butleradm allocation release`."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.completion_names import names_of
from butler.cli.toolkit.session import ClusterAccess, CommandSession, Failure, missing, run

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Sequence

    from butler.api.ipallocation import IPAllocation
    from butler.api.objects import Json
    from butler.api.tenantcluster import TenantCluster
    from butler.cli.toolkit.follow import Progress
    from butler.cli.toolkit.output import Output
    from butler.reports.estate import Estate
    from butler.reports.release_impact import Impact
    from butler.reports.tenant.address_use import AddressUse

T = TypeVar("T")


@click.command(short_help="Give addresses back to their pool.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=names_of("ipallocations"))
@click.option("--force", is_flag=True, help="Insist, also on what a living cluster may use. It is on record who did.")
@options.yes
@options.wait()
@options.dry_run
@options.access()
@options.output("table", "json", "yaml", "jsonpath")
def release(
    access: ClusterAccess,
    names: tuple[str, ...],
    force: bool,
    yes: bool,
    wait: bool,
    timeout: float,
    dry_run: str,
    output: Output,
) -> None:
    """Give addresses back to their pool, or take requests back that wait.

    First it shows what hangs on each: whose it is, which addresses, and which Machines, Nodes and Services have them
    now, as far as the management cluster and the tenant itself can tell. Then it asks. Releasing is for what is left
    over: what a living cluster has is refused, unless --force insists. Of a cluster that Butler has never seen, such as
    one whose addresses were imported, it cannot see whether they are in use, so the name has to be typed.

    -o json prints what was shown, in place of the words.

    \b
    Examples:
      butleradm allocation release old-nodes old-lb
      butleradm allocation release old-nodes --yes --wait
      butleradm allocation release old-nodes --dry-run=client
      butleradm allocation release web-nodes --force
    """

    async def work(session: CommandSession) -> None:
        from butler.cli.drawings.allocation import impact_text
        from butler.cli.toolkit.objects import read_estate
        from butler.cli.toolkit.output import structured
        from butler.cli.toolkit.terminal import confirm, confirm_by_name, say
        from butler.reports.release_impact import impact_json

        estate = await read_estate(session)
        chosen = [_found(estate, name) for name in dict.fromkeys(names)]
        impacts = await _impacts(session, estate, chosen)
        if output.is_table:
            for impact in impacts:
                say(impact_text(impact))
        else:
            structured(
                {"dryRun": dry_run != "none", "allocations": [impact_json(impact) for impact in impacts]}, output
            )
        refused = [impact for impact in impacts if impact.refused]
        if refused and not force:
            raise Failure(_refusal(refused))
        if dry_run == "none":
            by_name = [impact for impact in impacts if impact.refused or impact.unknown]
            for impact in by_name:
                confirm_by_name("IPAllocation", impact.name, yes=yes, verb="release")
            if len(by_name) < len(impacts):
                confirm(_question([impact for impact in impacts if impact not in by_name]), yes=yes)
        insists = {impact.name for impact in refused}
        await _release(session, chosen, insists, dry_run, quiet=not output.is_table)
        if wait and dry_run == "none":
            await _wait(session, chosen, timeout)

    run(access, work)


def _found(estate: Estate, name: str) -> IPAllocation:
    found = estate.allocation(name)
    if found is None:
        raise missing(
            "IPAllocation", name, estate.home, [allocation.metadata.name for allocation in estate.allocations]
        )
    return found


async def _impacts(session: CommandSession, estate: Estate, chosen: Sequence[IPAllocation]) -> list[Impact]:
    """Ask the management cluster and the tenants what uses the addresses."""
    from butler.api.objects import key_of
    from butler.cli.estate.inventories import inventories
    from butler.reports.release_impact import impact
    from butler.reports.tenant.address_use import within
    from butler.rules.allocation.held import readable_range
    from butler.rules.allocation.owner import tenant_key

    holding = {tenant_key(allocation) for allocation in chosen if readable_range(allocation) is not None}
    clusters = [cluster for cluster in estate.clusters if key_of(cluster) in holding]
    told, machines = await asyncio.gather(
        inventories(session, clusters), asyncio.gather(*(_machines(session, cluster) for cluster in clusters))
    )
    known = {key_of(cluster): found for cluster, found in zip(clusters, machines, strict=True)}
    found = []
    for allocation in chosen:
        tenant, held = tenant_key(allocation), readable_range(allocation)
        using = within(known.get(tenant, ()), *held) if held else []
        found.append(impact(allocation, estate, using, told.get(tenant)))
    return found


async def _machines(session: CommandSession, cluster: TenantCluster) -> list[AddressUse]:
    """The Machines of a cluster with the addresses that they report, as far as they may be read."""
    from butler.api.objects import key_of
    from butler.capi.naming import MACHINE
    from butler.kube.errors import Forbidden, NotFound
    from butler.kube.resource import untyped
    from butler.reports.tenant.address_use import machine_uses
    from butler.rules.tenant_namespace import tenant_namespace

    resource = untyped(MACHINE.group, MACHINE.version, MACHINE.plural, MACHINE.kind)
    try:
        listed = await session.client.list(resource, tenant_namespace(cluster))
    except (NotFound, Forbidden):
        return []
    return machine_uses(key_of(cluster), listed.items)


def _refusal(refused: Sequence[Impact]) -> str:
    names = ", ".join(f"{impact.name} of TenantCluster {impact.tenant}" for impact in refused)
    return (
        f"nothing was changed: {names} belongs to a cluster that exists and may use it; delete the TenantCluster to"
        " give its addresses back, or say --force"
    )


def _question(impacts: Sequence[Impact]) -> str:
    addresses = sum(impact.addresses.size for impact in impacts if impact.addresses)
    used = len({use.address for impact in impacts for use in impact.uses})
    what = impacts[0].name if len(impacts) == 1 else f"these {len(impacts)} allocations"
    many = f"{addresses} address{'' if addresses == 1 else 'es'}"
    danger = f", {used} of them IN USE and yet free for other tenants at once" if used else ""
    return f"Release {what} ({many}{danger})?"


async def _release(
    session: CommandSession, chosen: Sequence[IPAllocation], insists: Collection[str], dry_run: str, *, quiet: bool
) -> None:
    """Delete them, each only if it is still as it was shown: one that held nothing may hold addresses by now."""
    from butler.cli.toolkit.output import done
    from butler.kube.errors import NotFound
    from butler.kube.kinds import ALLOCATIONS

    async def delete(allocation: IPAllocation) -> None:
        meta = allocation.metadata
        await session.client.delete(
            ALLOCATIONS,
            meta.name,
            meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            dry_run=dry_run == "server",
        )

    async def insist(allocation: IPAllocation) -> IPAllocation:
        return await _insist(session, allocation)

    for allocation in chosen:
        name, shown = allocation.metadata.name, allocation
        if name in insists and dry_run == "none":
            shown = await _as_shown(session, shown, insist)
        if dry_run != "client":
            with suppress(NotFound):  # another client was quicker: it is gone, as it should be
                await _as_shown(session, shown, delete)
        if not quiet:
            done(ALLOCATIONS, name, "released", dry_run)


async def _as_shown(
    session: CommandSession, shown: IPAllocation, write: Callable[[IPAllocation], Coroutine[Any, Any, T]]
) -> T:
    """Write in the version that was shown, or in a later one that says the same."""
    from butler.kube.errors import Conflict
    from butler.kube.kinds import ALLOCATIONS
    from butler.reports.release_impact import says_the_same

    now, attempts = shown, 3
    while True:
        attempts -= 1
        try:
            return await write(now)
        except Conflict:
            now = await session.client.get(ALLOCATIONS, shown.metadata.name, shown.metadata.namespace)
            if not attempts or not says_the_same(shown, now):
                raise


async def _insist(session: CommandSession, allocation: IPAllocation) -> IPAllocation:
    """Put the annotation on it that admission and the controllers ask for, if it is still as it was shown."""
    from butler.api.labels import Annotation
    from butler.kube.kinds import ALLOCATIONS

    meta = allocation.metadata
    patch = {
        "metadata": {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "annotations": {Annotation.FORCE_DELETE.value: meta.name},
        }
    }
    return await session.client.patch(ALLOCATIONS, meta.name, patch, meta.namespace)


async def _wait(session: CommandSession, chosen: Sequence[IPAllocation], timeout: float) -> None:
    from butler.cli.toolkit.follow import Progress, wait_until
    from butler.kube.kinds import ALLOCATIONS

    for allocation in chosen:
        name, uid = allocation.metadata.name, allocation.metadata.uid

        def judge(raw: Json | None, name: str = name, uid: str = uid) -> Progress:
            if raw is None or raw["metadata"]["uid"] != uid:
                return Progress(f"{name} is gone, its addresses are back in the pool", done=True)
            phase = (raw.get("status") or {}).get("phase")
            return Progress(f"{name} is {phase}; waiting for its pool to take note")

        await wait_until(session, ALLOCATIONS, name, session.home, judge, timeout)
