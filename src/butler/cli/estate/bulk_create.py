"""Making many allocations at once, and waiting until their pools have granted them.

Requests are sent a few at a time, and the answers of the pools are followed in one watch that began before the first
of them, so that none is missed and the server is not polled. What was made stays made, whatever happens to the
rest: the same import, repeated, goes on where it stopped.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocationPhase
from butler.api.labels import ConditionType
from butler.cli.toolkit.follow import ProgressLine
from butler.cli.toolkit.terminal import say
from butler.kube.errors import AlreadyExists, ApiError, Forbidden, KubeError, Unauthorized
from butler.kube.kinds import ALLOCATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from butler.api.ipallocation import IPAllocation
    from butler.cli.toolkit.session import CommandSession
    from butler.kube.client import Listed

AT_ONCE = 16
PAUSE = 0.5
FINAL = (IPAllocationPhase.ALLOCATED, IPAllocationPhase.FAILED, IPAllocationPhase.RELEASED)


@dataclass(frozen=True, slots=True)
class Made:
    """What became of a request."""

    phase: str | None
    """Where the allocation stands; None where it was not even created."""
    why: str = ""
    ok: bool = False
    late: bool = False
    """The pool has not answered in time."""


async def make(
    session: CommandSession,
    requests: Sequence[IPAllocation],
    *,
    waiting: Iterable[str] = (),
    timeout: float,
    dry_run: bool,
) -> dict[str, Made]:
    """Create allocations and wait for their pools; what became of each, by name.

    `waiting` are names of allocations that exist and have no answer yet: they are waited for as well.
    """
    line, made = _Counter(len(requests)), dict[str, Made]()
    begun = await session.client.list(ALLOCATIONS, session.home)
    try:
        await _create(session, requests, made, line, dry_run=dry_run)
        if dry_run:
            return made
        asked = {name for name, result in made.items() if result.phase is not None} | set(waiting)
        try:
            async with asyncio.timeout(timeout):
                await _answers(session, asked, begun, made, line)
        except TimeoutError:
            for name in asked:
                if name not in made or not (made[name].ok or made[name].why):
                    made[name] = Made(IPAllocationPhase.PENDING, "its pool has not answered", late=True)
    except asyncio.CancelledError:
        line.end()
        say(f"Interrupted: {line.asked} of {len(requests)} were asked for. The same import goes on from there.")
        raise
    finally:
        line.end()
    return made


async def _create(
    session: CommandSession, requests: Sequence[IPAllocation], made: dict[str, Made], line: _Counter, *, dry_run: bool
) -> None:
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(request: IPAllocation) -> None:
        name = request.metadata.name
        async with turns:
            try:
                await session.client.create(ALLOCATIONS, request, session.home, dry_run=dry_run)
            except (Forbidden, Unauthorized):
                raise
            except AlreadyExists:
                made[name] = Made(None, "the name was taken meanwhile: import again")
            except ApiError as error:
                made[name] = Made(None, error.message or str(error))
            except KubeError as error:
                made[name] = Made(None, f"{error}: import again, which goes on where this stopped")
            else:
                made[name] = Made(str(IPAllocationPhase.PENDING), ok=dry_run)
            line.created()

    tasks = [asyncio.create_task(one(allocation)) for allocation in requests]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _answers(
    session: CommandSession, asked: set[str], seen: Listed[IPAllocation], made: dict[str, Made], line: _Counter
) -> None:
    """Follow the allocations until all of these have their answer."""
    open_, version = set(asked), seen.resource_version
    for allocation in seen.items:
        if allocation.metadata.name in open_:
            _hear(allocation, False, open_, made)
    while open_:
        line.granted(len(asked) - len(open_), len(asked))
        try:
            events = session.client.watch(ALLOCATIONS, session.home, resource_version=version)
            async with aclosing(cast("Any", events)):
                async for event in events:
                    version = event.resource_version or version
                    if event.object is not None and event.object.metadata.name in open_:
                        _hear(event.object, event.type == "DELETED", open_, made)
                        line.granted(len(asked) - len(open_), len(asked))
                        if not open_:
                            return
        except (Forbidden, Unauthorized):
            raise
        except KubeError:
            await asyncio.sleep(PAUSE)
        listed = await session.client.list(ALLOCATIONS, session.home)
        version = listed.resource_version
        present = {allocation.metadata.name: allocation for allocation in listed.items}
        for name in list(open_):
            if name in present:
                _hear(present[name], False, open_, made)
            else:
                open_.discard(name)
                made[name] = Made(None, "another user deleted it meanwhile")


def _hear(allocation: IPAllocation, deleted: bool, open_: set[str], made: dict[str, Made]) -> None:
    name, phase = allocation.metadata.name, allocation.status.phase
    if deleted:
        made[name] = Made(None, "another user deleted it meanwhile")
    elif phase in FINAL:
        ready = find_condition(allocation.status.conditions, ConditionType.READY)
        is_granted = phase is IPAllocationPhase.ALLOCATED
        made[name] = Made(str(phase), "" if is_granted or ready is None else ready.message, is_granted)
    else:
        return
    open_.discard(name)


class _Counter:
    """How far it is: counted on a terminal, elsewhere told in two lines."""

    def __init__(self, all_: int) -> None:
        self._line = ProgressLine()
        self._live = sys.stderr.isatty()
        self._all, self.asked = all_, 0

    def created(self) -> None:
        self.asked += 1
        if self._live or self.asked == self._all:
            self._line.show(f"{self.asked} of {self._all} asked for")

    def granted(self, done: int, all_: int) -> None:
        if all_ and (self._live or done == all_):
            self._line.show(f"{done} of {all_} answered by their pools")

    def end(self) -> None:
        self._line.end()
