"""`version`: of this program and of the API server. Shared by both programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from butler import __version__
from butler.cli.toolkit import options
from butler.cli.toolkit.session import ClusterAccess, CommandSession, Failure, run

if TYPE_CHECKING:
    from butler.cli.toolkit.output import Output


@click.command(short_help="Tell the versions of this program and of the server.")
@click.option("--client", is_flag=True, help="Only this program's: ask no server.")
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Which API server.  [default: $KUBECONFIG, else ~/.kube/config]",
)
@click.option("--context", metavar="NAME", help="Context of the kubeconfig.  [default: its current one]")
@options.output("table", "json", "yaml", "jsonpath")
def version(client: bool, kubeconfig: str | None, context: str | None, output: Output) -> None:
    """Tell the versions of this program and of the API server, and whether the server knows Butler's kinds.

    Without a server, or one that does not answer, it tells its own and says why on stderr; the exit code is 0.

    \b
    Examples:
      butleradm version
      butlerctl version --client -o json
    """
    import platform

    from butler.cli.toolkit.output import structured
    from butler.cli.toolkit.screen import facts
    from butler.cli.toolkit.terminal import say

    said: dict[str, Any] = {"client": {"version": __version__, "python": platform.python_version()}}
    told = [("Client", f"{__version__} (Python {platform.python_version()})")]
    trouble = ""
    if not client:
        try:
            said["server"] = server = run(ClusterAccess(kubeconfig, context), _server)
            told.append(("Server", f"{server['version']} ({server['address']})"))
            served = ", ".join(server["butler"]) or "not served: `butleradm crds | kubectl apply --server-side -f -`"
            told.append(("Butler's kinds", served))
        except Failure as failure:
            said["server"], trouble = None, failure.message
            told.append(("Server", "unknown"))
    if output.format == "table":
        click.echo(facts(told))
    else:
        structured(said, output)
    if trouble:
        say(f"The server was not asked: {trouble}")


async def _server(session: CommandSession) -> dict[str, Any]:
    from butler.cli.estate.diagnosis import group_versions, server_version

    return {
        "version": (await server_version(session)).get("gitVersion", "unknown"),
        "address": session.client.connection.server,
        "butler": await group_versions(session),
    }
