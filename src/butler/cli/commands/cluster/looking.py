"""`butlerctl cluster list` and `get`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.frame import options
from butler.cli.frame.names import names_of
from butler.cli.frame.session import Access, Session, run

if TYPE_CHECKING:
    from butler.cli.frame.output import Output

cluster_name = click.argument("name", shell_complete=names_of("tenantclusters", in_place=True))


@click.command("list", short_help="List clusters, where they stand and what they hold.")
@options.access(options.IN_PLACE, all_namespaces=True)
@options.selector
@options.watch
@options.output()
def list_(access: Access, selector: str | None, watch: bool, output: Output) -> None:
    """List clusters, where they stand and what they hold.

    VERSION is what the control plane runs, with an arrow to where it goes. WORKERS counts those that are ready and
    those that are wanted. LB IPS counts the load-balancer addresses that Services have and those that are held;
    WAITING the Services that have none yet. `-o wide` adds the endpoint, and what is wrong, in words.

    \b
    Examples:
      butlerctl cluster list
      butlerctl cluster list -A -o wide
      butlerctl cluster list --watch
      butlerctl cluster list -o custom-columns=NAME:.metadata.name,PHASE:.status.phase
    """
    from butler.cli.frame.following import follow_table
    from butler.cli.frame.reading import read_all
    from butler.cli.tables.clusters import clusters_table
    from butler.kube.kinds import CLUSTERS

    showing = clusters_table(namespaces=access.all_namespaces)

    async def work(session: Session) -> None:
        if watch:
            await follow_table(session, CLUSTERS, session.places, showing, output, selector=selector)
        found = await read_all(session, CLUSTERS, session.places, selector=selector)
        where = "any namespace" if access.all_namespaces else f"namespace {session.place}"
        more = "" if access.all_namespaces else ", -A looks everywhere"
        showing.many(
            found, output, empty=f"There are no clusters in {where}: `butlerctl cluster create` makes one{more}."
        )

    run(access, work)


@click.command("get", short_help="Tell all about one cluster, on one screen.")
@cluster_name
@options.access(options.IN_PLACE)
@options.output()
def get(name: str, access: Access, output: Output) -> None:
    """Tell all about one cluster, on one screen.

    First where it stands and why; then its conditions in the order in which they turned, its addresses,
    how many of them its Services use, its addons and what happened lately. Addresses are kept in Butler's own
    namespace; who may not read there sees their numbers only. Other formats give the object as the server has it.

    \b
    Examples:
      butlerctl cluster get web
      butlerctl cluster get web -n team-shop -o yaml
      butlerctl cluster get web -o jsonpath='{.status.controlPlaneEndpoint}'
    """
    from butler.cli.frame.reading import read_one
    from butler.cli.tables.clusters import clusters_table
    from butler.kube.kinds import CLUSTERS

    async def work(session: Session) -> None:
        found = await read_one(session, CLUSTERS, name, session.place)
        if not output.is_table:
            clusters_table().one(found, output)
            return
        from butler.cli.tenants import show_tenant

        await show_tenant(session, found.obj)

    run(access, work)
