"""`butlerctl cluster kubeconfig`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.completion_names import names_of
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import ClusterAccess, CommandSession, Failure, run

if TYPE_CHECKING:
    from butler.api.objects import Json


@click.command("kubeconfig", short_help="Get the administrator's kubeconfig of a cluster.")
@click.argument("name", shell_complete=names_of("tenantclusters", in_place=True))
@click.option(
    "-f",
    "--filename",
    "file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write it there, for you alone.",
)
@click.option("--merge", is_flag=True, help="Add it to your kubeconfig, as a context of its own.")
@click.option("--context-name", metavar="NAME", help="With --merge: what the context is called.  [default: NAME]")
@click.option("--set-context", is_flag=True, help="With --merge: make it the current context.")
@options.access(options.IN_PLACE)
@options.yes
def kubeconfig(
    name: str,
    file: str | None,
    merge: bool,
    context_name: str | None,
    set_context: bool,
    access: ClusterAccess,
    yes: bool,
) -> None:
    """Get the administrator's kubeconfig of a cluster.

    Printed, written to a file that only you may read, or merged into your own kubeconfig. Its holder is
    administrator of the cluster: give people kubeconfigs of their own.

    --merge edits the file that kubectl config would edit. Everything else in it stays; comments do not. A name under
    which the file has something else, or a user that another context uses, is refused.

    \b
    Examples:
      butlerctl cluster kubeconfig web -f web.kubeconfig
      butlerctl cluster kubeconfig web --merge --set-context
      kubectl --kubeconfig <(butlerctl cluster kubeconfig web) get nodes
    """
    if file and merge:
        raise click.UsageError("-f writes a file of its own, and --merge edits yours: give one of the two")
    if (context_name or set_context) and not merge:
        raise click.UsageError("--context-name and --set-context need --merge")

    async def work(session: CommandSession) -> str:
        from butler.cli.toolkit.objects import read_one
        from butler.kube.kinds import CLUSTERS
        from butler.kube.resource import SECRETS
        from butler.tenant.clusters import kubeconfig_from

        cluster = (await read_one(session, CLUSTERS, name, session.place)).obj
        status = cluster.status
        endpoint = status.control_plane_endpoint
        if status.kubeconfig_secret_ref is None or status.tenant_namespace is None or endpoint is None:
            raise Failure(f"cluster {name} has no kubeconfig yet ({status.phase.value}): get it when it is Ready")
        secret = await session.client.get(SECRETS, status.kubeconfig_secret_ref.name, status.tenant_namespace)
        # It comes from the tenant: what would run commands or read files here is refused, and nothing of it is quoted.
        return kubeconfig_from(secret, endpoint, name)

    text = run(access, work)
    if merge:
        _merge(text, context_name or name, access, use=set_context)
    elif file:
        _write(text, file, yes=yes)
    else:
        click.echo(text, nl=not text.endswith("\n"))


def _write(text: str, file: str, *, yes: bool) -> None:
    from pathlib import Path

    from butler.cli.toolkit.kubeconfig_file import write_private
    from butler.cli.toolkit.terminal import confirm

    path = Path(file)
    if path.exists():
        confirm(f"{path} exists. Replace it?", yes=yes)
    write_private(path, text)
    click.echo(f"written to {path}, readable by you alone")


def _merge(text: str, name: str, access: ClusterAccess, *, use: bool) -> None:
    from butler.cli.toolkit.kubeconfig_file import KubeconfigFiles, files

    cluster, user = _entries(text)
    mine = KubeconfigFiles(files(access.kubeconfig))
    if taken := mine.in_the_way(name, cluster["server"]):
        raise Failure(f"{mine.where} has {taken}: choose another name with --context-name", Exit.CONFLICT)
    path = mine.merge(name, cluster, user, use=use)
    now = "is the current context now" if use else f"is a context now; butlerctl context use {name} makes it yours"
    click.echo(f"{name} {now} (in {path})")


def _entries(text: str) -> tuple[Json, Json]:
    """The one cluster and the one user of a kubeconfig that was written anew."""
    from butler.kube import untrusted_kubeconfig as foreign

    document = foreign.parse(text, "the kubeconfig")
    return document["clusters"][0]["cluster"], document["users"][0]["user"]
