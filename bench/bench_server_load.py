"""Asks the console's server for what a pool page shows, as a process of its own; for bench_server.

    python bench_server_load.py < ORDER

ORDER is JSON: url, cookies, paths, seconds, connections, rate (requests a second; 0 asks again as soon as there is an
answer) and etags (whether to send If-None-Match). Prints JSON: what came, and how long each took. At a rate, the time
runs from when a request was due: waiting for a free connection counts.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from collections import Counter
from typing import Any

import aiohttp
import uvloop

WARM_UP = 1.0
PATIENCE = 10.0
"""Seconds after the last request was due: what is not answered then has failed."""


class Load:
    """Requests, one path after the other, and what came of them."""

    def __init__(self, session: aiohttp.ClientSession, order: dict[str, Any]) -> None:
        self._session = session
        self._url = order["url"]
        self._paths = itertools.cycle(order["paths"])
        self._etags: dict[str, str] | None = {} if order["etags"] else None
        self.statuses: Counter[int] = Counter()
        self.taken: list[tuple[str, float]] = []
        self.bytes = 0
        self.begins = time.perf_counter() + WARM_UP

    async def ask(self, due: float) -> None:
        path = next(self._paths)
        known = self._etags.get(path) if self._etags is not None else None
        headers = {"If-None-Match": known} if known else {}
        async with self._session.get(self._url + path, headers=headers) as answer:
            body = await answer.read()
            if self._etags is not None and "ETag" in answer.headers:
                self._etags[path] = answer.headers["ETag"]
        if due >= self.begins:
            self.statuses[answer.status] += 1
            self.bytes += len(body)
            self.taken.append((path, time.perf_counter() - due))

    async def closed(self, until: float) -> None:
        while time.perf_counter() < until:
            await self.ask(time.perf_counter())

    async def at_rate(self, rate: float, until: float) -> None:
        asked: set[asyncio.Task[None]] = set()
        due = time.perf_counter()
        while due < until:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            task = asyncio.create_task(self.ask(due))
            asked.add(task)
            task.add_done_callback(asked.discard)
            due += 1 / rate
        late = (await asyncio.wait(asked, timeout=PATIENCE))[1] if asked else ()
        for task in late:
            task.cancel()
            self.statuses[0] += 1
            self.taken.append(("", time.perf_counter() - until))


async def run(order: dict[str, Any]) -> dict[str, Any]:
    connector = aiohttp.TCPConnector(limit=order["connections"])
    # What comes packed stays packed: unpacking is the browser's work, and here it would be the server's rival.
    async with aiohttp.ClientSession(connector=connector, cookies=order["cookies"], auto_decompress=False) as session:
        load = Load(session, order)
        until = load.begins + order["seconds"]
        if order["rate"]:
            await load.at_rate(order["rate"], until)
        else:
            await asyncio.gather(*(load.closed(until) for _ in range(order["connections"])))
    return {"statuses": load.statuses, "taken": load.taken, "bytes": load.bytes, "seconds": order["seconds"]}


if __name__ == "__main__":
    json.dump(uvloop.run(run(json.load(sys.stdin))), sys.stdout)
