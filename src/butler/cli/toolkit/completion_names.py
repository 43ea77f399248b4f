"""Names from the cluster, for shells that complete them: in a moment, and never with an error."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import click
    from click.shell_completion import CompletionItem

PATIENCE = 2.0


def names_of(
    plural: str, *, in_place: bool = False, everywhere: bool = False, whole: bool = False
) -> Callable[[click.Context, click.Parameter, str], Any]:
    """What completes the names of a kind: those of the home namespace, or with `in_place` of the kubeconfig's,
    with `everywhere` of all; with `whole`, of all namespaces as `namespace/name`, whatever -n says."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        try:
            found = _names(ctx.params, plural, in_place=in_place, everywhere=everywhere, whole=whole)
        except Exception:  # a shell has no place for an error
            return []
        return [CompletionItem(name) for name in found if name.startswith(incomplete)]

    return complete


def _names(params: dict[str, Any], plural: str, *, in_place: bool, everywhere: bool, whole: bool) -> list[str]:
    from butler.api import GROUP, VERSION
    from butler.cli.toolkit.session import HOME, ClusterAccess
    from butler.kube.client import Client
    from butler.kube.resource import untyped

    access = ClusterAccess(params.get("kubeconfig"), params.get("context"), params.get("namespace"))
    connection = access.connection()
    here = "" if everywhere else connection.namespace if in_place else HOME
    namespace = "" if whole else access.namespace or here

    async def read() -> list[str]:
        async with asyncio.timeout(PATIENCE), Client(connection, attempts=1) as client:
            listed = await client.list(untyped(GROUP, VERSION, plural, ""), namespace)
            metas = [obj["metadata"] for obj in listed.items]
            return sorted({f"{meta['namespace']}/{meta['name']}" if whole else meta["name"] for meta in metas})

    return asyncio.run(read())
