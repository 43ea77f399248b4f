"""`butlerctl context`: which API server and namespace commands talk to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from butler.cli.frame import options
from butler.cli.frame.exits import Exit
from butler.cli.frame.lazy import CONTEXT
from butler.cli.frame.session import Failure

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from butler.cli.frame.output import Output, Showing
    from butler.cli.kubeconfig_file import Context, Kubeconfig

kubeconfig_option = click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="The file to read and edit.  [default: $KUBECONFIG, else ~/.kube/config]",
)


def _complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    try:
        names = [item.name for item in _open(ctx.params.get("kubeconfig")).contexts()]
    except Exception:  # a shell has no place for an error
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@click.group(context_settings=CONTEXT)
def context() -> None:
    """Which API server and namespace commands talk to."""


@context.command("list", short_help="List the contexts of the kubeconfig.")
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
    found = _open(kubeconfig)
    empty = f"There are no contexts in {found.where}: `butlerctl cluster kubeconfig --merge` adds that of a cluster."
    _table().many(found.contexts(), output, empty=empty)


@context.command("use", short_help="Make a context the current one.")
@click.argument("name", shell_complete=_complete)
@kubeconfig_option
def use(name: str, kubeconfig: str | None) -> None:
    """Make a context the current one, as `kubectl config use-context` does.

    Everything else in the file stays, except for comments.

    \b
    Examples:
      butlerctl context use production
    """
    found = _open(kubeconfig)
    _named(found, name)
    path = found.use(name)
    click.echo(f"{name} is the current context now (in {path})")


@context.command("namespace", short_help="Show or set the namespace of a context.")
@click.argument("name", metavar="[NAMESPACE]", required=False)
@click.option(
    "--context",
    "context_name",
    metavar="NAME",
    shell_complete=_complete,
    help="Which context.  [default: the current one]",
)
@kubeconfig_option
def namespace(name: str | None, context_name: str | None, kubeconfig: str | None) -> None:
    """Show the namespace that commands look into, or set it, in the current context.

    Whether the namespace exists is not checked: not everybody may ask.

    \b
    Examples:
      butlerctl context namespace
      butlerctl context namespace team-shop
    """
    found = _open(kubeconfig)
    chosen = context_name or found.current
    if not chosen:
        raise Failure(f"{found.where} has no current context: choose one with butlerctl context use", Exit.NOT_FOUND)
    known = _named(found, chosen)
    if name is None:
        click.echo(known.namespace)
        return
    _check_name(name)
    path = found.set_namespace(known, name)
    click.echo(f"context {known.name} looks into namespace {name} now (in {path})")


def _open(given: str | None) -> Kubeconfig:
    from butler.cli.kubeconfig_file import Kubeconfig, files

    found = Kubeconfig(files(given))
    if not found.exists:
        raise Failure(
            f"there is no kubeconfig at {found.where}: start a server with butleradm local up, or name a file with"
            " --kubeconfig",
            Exit.UNREACHABLE,
        )
    return found


def _named(found: Kubeconfig, name: str) -> Context:
    from difflib import get_close_matches

    known = {item.name: item for item in found.contexts()}
    if name in known:
        return known[name]
    close = get_close_matches(name, list(known), 3, 0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else "butlerctl context list shows those there are"
    raise Failure(f"there is no context {name} in {found.where}: {hint}", Exit.NOT_FOUND)


def _check_name(name: str) -> None:
    import re

    if len(name) > 63 or not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name):
        raise click.UsageError(f"{name!r} is no name of a namespace: use lower-case letters, digits and hyphens")


def _table() -> Showing[Any]:
    from butler.cli.frame.output import Column, Showing

    columns: list[Column[Any]] = [
        Column("Current", lambda item: "*" if item.current else " "),
        Column("Name", lambda item: item.name),
        Column("Namespace", lambda item: item.namespace),
        Column("Server", lambda item: item.server),
        Column("User", lambda item: item.user, spare=True),
    ]
    return Showing(columns, raw=lambda item: item.raw, name=lambda entry: str(entry.name))
