"""`butlerctl context namespace`."""

from __future__ import annotations

import click

from butler.cli.commands.shared.kubeconfig_contexts import (
    complete_contexts,
    context_named,
    kubeconfig_option,
    open_kubeconfig,
)
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import Failure


@click.command("namespace", short_help="Show or set the namespace of a context.")
@click.argument("name", metavar="[NAMESPACE]", required=False)
@click.option(
    "--context",
    "context_name",
    metavar="NAME",
    shell_complete=complete_contexts,
    help="Which context.  [default: the current one]",
)
@kubeconfig_option
def namespace(name: str | None, context_name: str | None, kubeconfig: str | None) -> None:
    """Show the namespace that commands look into, or set it, in the current context.

    Whether the namespace exists is not checked: not every user may ask.

    \b
    Examples:
      butlerctl context namespace
      butlerctl context namespace team-shop
    """
    found = open_kubeconfig(kubeconfig)
    chosen = context_name or found.current
    if not chosen:
        raise Failure(f"{found.where} has no current context: choose one with butlerctl context use", Exit.NOT_FOUND)
    known = context_named(found, chosen)
    if name is None:
        click.echo(known.namespace)
        return
    _check_name(name)
    path = found.set_namespace(known, name)
    click.echo(f"context {known.name} looks into namespace {name} now (in {path})")


def _check_name(name: str) -> None:
    import re

    if len(name) > 63 or not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name):
        raise click.UsageError(f"{name!r} is no name of a namespace: use lower-case letters, digits and hyphens")
