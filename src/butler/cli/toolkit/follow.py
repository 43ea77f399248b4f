"""`--watch` and `--wait`: following objects until the user stops it, or until something is done.

Both survive that the server ends a watch, as servers do every few minutes, and that it is away for a while. Progress
goes to stderr, so that stdout stays what the command is for: on a terminal one line that changes, elsewhere a line for
each change.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from butler.api.printable import one_line
from butler.api.resource import CustomResource
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.objects import LoadedObject, as_json, load_object
from butler.cli.toolkit.output import Output
from butler.cli.toolkit.session import Failure
from butler.cli.toolkit.streams import own
from butler.cli.toolkit.terminal import width
from butler.kube.client import Listed
from butler.kube.errors import Expired, Forbidden, KubeError, Unauthorized

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from butler.api.objects import Json
    from butler.cli.toolkit.output import Showing
    from butler.cli.toolkit.session import CommandSession
    from butler.kube.client import WatchEvent
    from butler.kube.resource import Resource

K = TypeVar("K", bound=CustomResource)
PAUSE = 1.0
"""Seconds before a watch that broke is begun again."""


async def follow_table(
    session: CommandSession,
    resource: Resource[K],
    namespace: str,
    showing: Showing[LoadedObject[K]],
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
    fields = f"metadata.name={only}" if only else where
    shown = Output(output.format, headers=output.headers)
    seen: set[str] = set()

    def broke(error: KubeError) -> None:
        click.echo(f"the watch broke ({error}); looking again", err=True)

    async for news in _followed(session, resource, namespace, selector, fields, broke):
        if isinstance(news, Listed):
            found = [load_object(resource, raw) for raw in news.items]
            found = [loaded for loaded in found if keep is None or keep(loaded.obj)]
            if found and shown.is_table:
                showing.many(found, shown)
            else:
                for loaded in found:
                    showing.one(loaded, shown)
        else:
            loaded = load_object(resource, news.object or {})
            if news.type == "DELETED":
                found = []
                if loaded.obj.metadata.uid in seen:  # who was never shown does not go either
                    click.echo(f"{loaded.name} is gone", err=True)
            elif found := [loaded] if keep is None or keep(loaded.obj) else []:
                showing.one(loaded, shown)
        if found:
            shown = Output(output.format, headers=False)
            seen.update(loaded.obj.metadata.uid for loaded in found)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far something is: what to say, and whether it is done or can never be."""

    says: str
    done: bool = False
    failed: bool = False


async def wait_until(
    session: CommandSession,
    resource: Resource[Any],
    name: str,
    namespace: str,
    judge: Callable[[Json | None], Progress],
    timeout: float,
) -> Progress:
    """Follow one object until it is done; `judge` gets None when it is gone. Failure when it failed or takes longer."""
    line = ProgressLine()
    last = Progress("")

    def broke(error: KubeError) -> None:
        line.show(f"the watch broke ({error}); looking again")

    try:
        async with asyncio.timeout(timeout):
            changes = _changes(session, resource, name, namespace, broke)
            async with aclosing(changes):
                async for raw in changes:
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


async def _changes(
    session: CommandSession, resource: Resource[Any], name: str, namespace: str, broke: Callable[[KubeError], None]
) -> AsyncGenerator[Json | None, None]:
    """The object as it is, and then every time it changes; None when it is not there."""
    followed = _followed(session, resource, namespace, None, f"metadata.name={name}", broke)
    async with aclosing(followed):
        async for news in followed:
            if isinstance(news, Listed):
                yield news.items[0] if news.items else None
            else:
                yield None if news.type == "DELETED" else news.object


async def _followed(
    session: CommandSession,
    resource: Resource[Any],
    namespace: str,
    selector: str | None,
    fields: str | None,
    broke: Callable[[KubeError], None],
) -> AsyncGenerator[Listed[Json] | WatchEvent[Json], None]:
    """A list, then every change, then a list again where changes may have been missed; without an end.

    Only the first list may fail, so that a server that is away or says no is told at once. Later a server may be
    away for a while: it is asked again after a pause. `broke` is told once each time.
    """
    client, kind, version, told = session.client, as_json(resource), "", True
    first = True
    while True:
        try:
            if not version:
                listed = await client.list(kind, namespace, label_selector=selector, field_selector=fields)
                version, first, told = listed.resource_version, False, False
                yield listed
            events = client.watch(
                kind, namespace, resource_version=version, label_selector=selector, field_selector=fields
            )
            async with aclosing(cast("Any", events)):
                async for event in events:
                    version = event.resource_version or version
                    if event.object is not None:
                        yield event
        except (Forbidden, Unauthorized):
            # A restarting server may say this of a list; of a watch right after a list it is meant.
            if first or version:
                raise
            await asyncio.sleep(PAUSE)
        except Expired:
            if first:
                raise
            if not version:
                await asyncio.sleep(PAUSE)
            version = ""
        except KubeError as error:
            if first:
                raise
            if not told:
                broke(error)
            version, told = "", True
            await asyncio.sleep(PAUSE)


class ProgressLine:
    """What is going on: one line that changes on a terminal, elsewhere a line for each change."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._began = time.monotonic()
        self._said = ""
        self._length = 0

    def show(self, text: str) -> None:
        if text == self._said:
            return
        self._said = text
        seconds = f"{time.monotonic() - self._began:5.1f} s  "
        if self._live:
            most = width() - len(seconds) - 1
            cut = one_line(text, most)
            shown = f"{seconds}{cut}"
            click.echo(own("\r") + shown.ljust(self._length), nl=False, err=True)  # without signs that NO_COLOR forbids
            self._length = len(shown)
        else:
            click.echo(f"{seconds}{text}", err=True)

    def end(self) -> None:
        if self._live and self._said:
            click.echo("", err=True)
        self._said = ""
