"""`butleradm crds`: Butler's definitions, for kubectl apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from butler.cli.toolkit.output import Output


def _kinds(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from butler.api.kinds import KINDS

    return [
        CompletionItem(kind.__name__, help=kind.definition.description)
        for kind in KINDS
        if kind.__name__.lower().startswith(incomplete.lower())
    ]


@click.command(short_help="Print Butler's definitions, for kubectl apply.")
@click.option(
    "--kind",
    "kinds",
    metavar="KIND",
    multiple=True,
    shell_complete=_kinds,
    help="Only this kind, by any name that kubectl takes for it; may be repeated.",
)
@options.output("yaml", "json", "name", default="yaml")
def crds(kinds: tuple[str, ...], output: Output) -> None:
    """Print Butler's CustomResourceDefinitions as this version of the program has them.

    No API server is asked. They need Kubernetes 1.31 or newer. Apply them on the server's side: they are too long for
    the annotation that a plain `kubectl apply` writes.

    \b
    Examples:
      butleradm crds | kubectl apply --server-side -f -
      butleradm crds --kind networkpool
      butleradm crds -o json --kind np --kind ipa
    """
    from butler.api.crd import HEADER, custom_resource_definition, to_yaml
    from butler.api.kinds import KINDS
    from butler.cli.toolkit.output import structured

    wanted = list(dict.fromkeys(map(_named, kinds))) or list(KINDS)
    definitions = [custom_resource_definition(kind) for kind in wanted]
    if output.format == "name":
        for definition in definitions:
            click.echo(f"customresourcedefinition.apiextensions.k8s.io/{definition['metadata']['name']}")
    elif output.format == "json":
        listed = {"apiVersion": "v1", "kind": "List", "items": definitions}
        structured(definitions[0] if len(definitions) == 1 else listed, output)
    else:
        click.echo("---\n".join(to_yaml(definition).removeprefix(HEADER) for definition in definitions), nl=False)


def _named(text: str) -> type:
    from butler.api import GROUP
    from butler.api.kinds import KINDS
    from butler.cli.toolkit.exit_codes import Exit
    from butler.cli.toolkit.session import Failure

    for kind in KINDS:
        names = (kind.__name__.lower(), kind.definition.plural, kind.definition.singular, kind.definition.short_name)
        if text.lower().removesuffix(f".{GROUP}") in names:
            return kind
    known = ", ".join(kind.__name__ for kind in KINDS)
    raise Failure(f"Butler has no kind {text}: choose one of {known}", Exit.USAGE)
