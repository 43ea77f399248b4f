"""A program: the embedded control plane with the world inside it, and no controllers. One store for both sides.

    python one_store.py DIRECTORY

`butleradm local up` is this with Butler's controllers in the same process, and `butleradm local world` has the tenants
in a store of their own. Here the tenants are logical clusters of the management cluster's own server, so one counter
numbers what is written on both sides, and the controllers are a process that a test may kill.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from pathlib import Path

import uvloop

from butler.kube import config
from butler.local.control_plane import start
from butler.local.world.settings import WorldSettings
from butler.processes.open_files import allow_many_connections
from butler.processes.world import running_world

READY = "both sides are up"


async def main(directory: Path) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    plane = await start(directory, port=0)
    quick = WorldSettings(machine_seconds=0, machine_deletion_seconds=0, control_plane_seconds=0, addon_seconds=0)
    try:
        async with running_world(config.load(plane.kubeconfig), plane, quick, stop):
            print(READY, flush=True)
            await stop.wait()
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            await plane.stop()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    allow_many_connections()
    uvloop.run(main(Path(sys.argv[1])))
