"""What the commands of `butlerctl context` share: the option, the file, and a context by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import Failure

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from butler.cli.toolkit.kubeconfig_file import Context, KubeconfigFiles


kubeconfig_option = click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="The file to read and edit.  [default: $KUBECONFIG, else ~/.kube/config]",
)


def complete_contexts(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    try:
        names = [context.name for context in open_kubeconfig(ctx.params.get("kubeconfig")).contexts()]
    except Exception:  # a shell has no place for an error
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def open_kubeconfig(given: str | None) -> KubeconfigFiles:
    from butler.cli.toolkit.kubeconfig_file import KubeconfigFiles, files

    found = KubeconfigFiles(files(given))
    if not found.exists:
        raise Failure(
            f"there is no kubeconfig at {found.where}: start a server with butleradm local up, or name a file with"
            " --kubeconfig",
            Exit.UNREACHABLE,
        )
    return found


def context_named(found: KubeconfigFiles, name: str) -> Context:
    from difflib import get_close_matches

    known = {context.name: context for context in found.contexts()}
    if name in known:
        return known[name]
    close = get_close_matches(name, list(known), 3, 0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else "butlerctl context list shows those there are"
    raise Failure(f"there is no context {name} in {found.where}: {hint}", Exit.NOT_FOUND)
