"""`--watch` and `--wait`: following objects until somebody has seen enough, or until something is done.

Both survive that the server ends a watch, as servers do every few minutes. Progress goes to stderr, so that stdout
stays what the command is for: on a terminal one line that changes, elsewhere a line for each change.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from butler.api.resource import CustomResource
from butler.cli.frame.exits import Exit
from butler.cli.frame.output import Output
from butler.cli.frame.reading import Item, as_json, item
from butler.cli.frame.session import Failure
from butler.cli.frame.terminal import width
from butler.kube.errors import ApiError, Expired, Forbidden, KubeError, NotFound, Unauthorized

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.cli.frame.output import Showing
    from butler.cli.frame.session import Session
    from butler.kube.resource import Json, Resource

K = TypeVar("K", bound=CustomResource)
PAUSE = 1.0
"""Seconds before a watch that broke is begun again."""


async def follow_table(
    session: Session,
    resource: Resource[K],
    namespace: str,
    showing: Showing[Item[K]],
    output: Output,
    *,
    selector: str | None = None,
    only: str | None = None,
    where: str | None = None,
    keep: Callable[[K], bool] | None = None,
) -> None:
    """Print what is there, then a row for every change, until Ctrl-C. `only`: the object of this name.

    `where`: only those with these fields, as a field selector says it.
    """
    if not output.is_table and output.format not in ("json", "name"):
        raise Failure("--watch shows tables, json or name: leave out -o, or use one of these", Exit.USAGE)
    client, fields = session.client, f"metadata.name={only}" if only else where
    shown = Output(output.format, headers=output.headers)
    while True:
        listed = await client.list(as_json(resource), namespace, label_selector=selector, field_selector=fields)
        found = [item(resource, raw) for raw in listed.items]
        found = [each for each in found if keep is None or keep(each.obj)]
        if found and shown.is_table:
            showing.many(found, shown)
            shown = Output(output.format, headers=False)
        else:
            for each in found:
                showing.one(each, shown)
        version = listed.resource_version
        try:
            while True:
                events = client.watch(
                    as_json(resource),
                    namespace,
                    resource_version=version,
                    label_selector=selector,
                    field_selector=fields,
                )
                async with aclosing(cast("Any", events)):
                    async for event in events:
                        version = event.resource_version or version
                        if event.object is None:
                            continue
                        each = item(resource, event.object)
                        if event.type != "DELETED" and (keep is None or keep(each.obj)):
                            showing.one(each, shown)
                            shown = Output(output.format, headers=False)
                        elif event.type == "DELETED":
                            click.echo(f"{each.name} is gone", err=True)
        except Expired:
            continue
        except (Forbidden, Unauthorized, NotFound):
            raise
        except KubeError as error:
            click.echo(f"the watch broke ({error}); looking again", err=True)
            await asyncio.sleep(PAUSE)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far something is: what to say, and whether it is done or can never be."""

    says: str
    done: bool = False
    failed: bool = False


async def wait_until(
    session: Session,
    resource: Resource[Any],
    name: str,
    namespace: str,
    judge: Callable[[Json | None], Progress],
    timeout: float,
) -> Progress:
    """Follow one object until it is done; `judge` gets None when it is gone. Failure when it failed or takes longer."""
    line = ProgressLine()
    last = Progress("")
    try:
        async with asyncio.timeout(timeout):
            async for raw in _changes(session, resource, name, namespace):
                last = judge(raw)
                if last.failed:
                    raise Failure(last.says)
                line.show(last.says)
                if last.done:
                    return last
    except TimeoutError:
        raise Failure(f"not done after {timeout:g} s: {last.says}", Exit.TIMED_OUT) from None
    finally:
        line.end()
    raise AssertionError("a watch has no end")


async def _changes(session: Session, resource: Resource[Any], name: str, namespace: str) -> Any:
    """The object as it is, and then every time it changes; None when it is not there."""
    client, untyped, fields = session.client, as_json(resource), f"metadata.name={name}"
    while True:
        listed = await client.list(untyped, namespace, field_selector=fields)
        yield listed.items[0] if listed.items else None
        try:
            events = client.watch(untyped, namespace, resource_version=listed.resource_version, field_selector=fields)
            async with aclosing(cast("Any", events)):
                async for event in events:
                    if event.object is not None:
                        yield None if event.type == "DELETED" else event.object
        except (Forbidden, Unauthorized):
            raise
        except ApiError:
            pass
        except KubeError:
            await asyncio.sleep(PAUSE)


class ProgressLine:
    """What is going on: one line that changes on a terminal, elsewhere a line for each change."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._began = time.monotonic()
        self._said = ""

    def show(self, text: str) -> None:
        if text == self._said:
            return
        self._said = text
        seconds = f"{time.monotonic() - self._began:5.1f} s  "
        if self._live:
            most = width() - len(seconds) - 1
            cut = text if len(text) <= most else text[: most - 1] + "…"
            click.echo(f"\r\x1b[2K{seconds}{cut}", nl=False, err=True)
        else:
            click.echo(f"{seconds}{text}", err=True)

    def end(self) -> None:
        if self._live and self._said:
            click.echo("", err=True)
        self._said = ""
