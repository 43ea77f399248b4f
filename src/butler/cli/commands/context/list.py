"""`butlerctl context list`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from butler.cli.toolkit import options

if TYPE_CHECKING:
    from butler.cli.toolkit.output import Output, Showing
from butler.cli.commands.shared.kubeconfig_contexts import kubeconfig_option, open_kubeconfig


@click.command("list", short_help="List the contexts of the kubeconfig.")
@kubeconfig_option
@options.output("table", "json", "yaml", "name", "csv", "jsonpath")
def list_(kubeconfig: str | None, output: Output) -> None:
    """List the contexts of the kubeconfig.

    A context is a server, a user and a namespace under one name. The star marks the one that all commands use, unless
    --context names another.

    \b
    Examples:
      butlerctl context list
      butlerctl context list -o name
    """
    found = open_kubeconfig(kubeconfig)
    empty = f"There are no contexts in {found.where}: `butlerctl cluster kubeconfig --merge` adds that of a cluster."
    _table().many(found.contexts(), output, empty=empty)


def _table() -> Showing[Any]:
    from butler.cli.toolkit.output import Showing, TableColumn

    columns: list[TableColumn[Any]] = [
        TableColumn("Current", lambda context: "*" if context.current else " "),
        TableColumn("Name", lambda context: context.name),
        TableColumn("Namespace", lambda context: context.namespace),
        TableColumn("Server", lambda context: context.server),
        TableColumn("User", lambda context: context.user, spare=True),
    ]
    return Showing(columns, raw=lambda context: context.raw, name=lambda context: str(context.name))
