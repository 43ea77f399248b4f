"""`butlerctl context use`."""

from __future__ import annotations

import click

from butler.cli.commands.shared.kubeconfig_contexts import (
    complete_contexts,
    context_named,
    kubeconfig_option,
    open_kubeconfig,
)


@click.command("use", short_help="Make a context the current one.")
@click.argument("name", shell_complete=complete_contexts)
@kubeconfig_option
def use(name: str, kubeconfig: str | None) -> None:
    """Make a context the current one, as `kubectl config use-context` does.

    Everything else in the file stays, except for comments.

    \b
    Examples:
      butlerctl context use production
    """
    found = open_kubeconfig(kubeconfig)
    context_named(found, name)
    path = found.use(name)
    click.echo(f"{name} is the current context now (in {path})")
