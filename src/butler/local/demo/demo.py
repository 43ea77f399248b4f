"""The demo as part of a process: a beat of the story, a pause, the next beat, until told to stop.

It is a guest: whatever happens to it, the control plane goes on without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from butler.kube.client import Client
from butler.kube.errors import KubeError
from butler.local.demo.player import NoStage, Player
from butler.local.demo.story import Cursor, Turn, turn
from butler.tenant.clusters import TenantClients

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from butler.kube.config import Connection

NAME: Final = "butler-demo"
PATIENCE: Final = 5.0
"""Seconds until the next attempt where the control plane did not answer, or the pool is being deleted."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DemoSettings:
    home: str = "butler-system"
    seed: int = 1
    pace: float = 1.0
    """How long pauses are: 0.5 is twice as fast."""


@contextlib.asynccontextmanager
async def running_demo(
    connection: Connection, settings: DemoSettings, tell: Callable[[str], None]
) -> AsyncIterator[None]:
    """Play until the block ends. `tell` is given a sentence for each act of the first wave."""
    playing = asyncio.create_task(_play(connection, settings, tell))
    try:
        yield
    finally:
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)


async def _play(connection: Connection, settings: DemoSettings, tell: Callable[[str], None]) -> None:
    async with (
        Client(connection, field_manager=NAME, user_agent=NAME) as client,
        TenantClients() as tenants,
    ):
        player = Player(client, tenants, settings.home, settings.seed)
        try:
            await _beats(player, settings, tell)
        except NoStage as error:
            tell(f"The demo is left out: {error}. Another --data-dir has room for it.")
        except Exception:
            log.exception("the demo has ended; everything else goes on")


async def _beats(player: Player, settings: DemoSettings, tell: Callable[[str], None]) -> None:
    began = False
    while True:
        try:
            pause = await _beat(player, settings, tell, began=began)
            began = True
        except KubeError as error:
            log.debug("the demo waits: %s", error)
            pause = PATIENCE
        await asyncio.sleep(pause * settings.pace)


async def _beat(player: Player, settings: DemoSettings, tell: Callable[[str], None], *, began: bool) -> float:
    """One step of the story; the seconds until the next."""
    cursor, imported = await player.read_cursor()
    await player.set_stage()
    if not imported:
        await player.import_estate()
    scene = await player.look()
    if scene is None:
        return PATIENCE
    now = turn(scene, cursor, settings.seed)
    if told := said(cursor, now, began=began):
        tell(told)
    await player.do(now.step)
    await player.write_cursor(now.cursor)
    return now.pause


def said(before: Cursor, now: Turn, *, began: bool) -> str | None:
    """What the terminal is told: the acts of the first wave, then one line for each wave."""
    if not began and before != Cursor():
        return "The demo goes on where it was."
    if now.title is None:
        return None
    if now.cursor.wave == 0:
        return now.title[0].upper() + now.title[1:] + "."
    return f"Wave {now.cursor.wave + 1} begins." if now.cursor.wave != before.wave else None
