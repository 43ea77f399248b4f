"""Listens to the live stream many times over, and changes an object again and again; for bench_server.

    python bench_server_streams.py < ORDER

ORDER is one line of JSON: url, cookies, streams, changes, pause (seconds between them), and for the changes kubernetes
(its url), path (of an IPAllocation), ca, cert and key. Prints JSON: for each stream and change, the seconds from
sending the write to Kubernetes until the frame about it was here, and those from Kubernetes' answer.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import sys
import time
from typing import Any

import aiohttp
import uvloop

VERSION = re.compile(r'"resourceVersion":"(\d+)"')


async def listen(
    session: aiohttp.ClientSession, url: str, heard: list[tuple[str, float]], ready: asyncio.Event
) -> None:
    address = f"{url}/api/v1/stream?kinds=pool,allocation"
    async with session.ws_connect(address, headers={"Origin": url}, max_msg_size=0) as connected:
        async for message in connected:
            at = time.perf_counter()
            ready.set()
            if '"kind":"allocation"' in message.data and (found := VERSION.search(message.data)):
                heard.append((found[1], at))


async def change(order: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """When each version was sent, and when it was answered."""
    tls = ssl.create_default_context(cafile=order["ca"])
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    tls.load_cert_chain(order["cert"], order["key"])
    headers = {"Content-Type": "application/merge-patch+json"}
    made: dict[str, tuple[float, float]] = {}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls), headers=headers) as session:
        for number in range(order["changes"]):
            body = json.dumps({"metadata": {"annotations": {"bench": str(number)}}})
            sent = time.perf_counter()
            async with session.patch(order["kubernetes"] + order["path"], data=body) as answer:
                shown = await answer.json()
            made[shown["metadata"]["resourceVersion"]] = (sent, time.perf_counter())
            await asyncio.sleep(order["pause"])
    return made


async def run(order: dict[str, Any]) -> dict[str, Any]:
    heard: list[list[tuple[str, float]]] = [[] for _ in range(order["streams"])]
    ready = [asyncio.Event() for _ in heard]
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, cookies=order["cookies"]) as session:
        tasks = [asyncio.create_task(listen(session, order["url"], *pair)) for pair in zip(heard, ready, strict=True)]
        await asyncio.gather(*(event.wait() for event in ready))
        made = await change(order)
        await asyncio.sleep(1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    since = [(at - made[version][0], at - made[version][1]) for row in heard for version, at in row if version in made]
    return {"since": since, "wanted": len(made) * order["streams"]}


if __name__ == "__main__":
    print(json.dumps(uvloop.run(run(json.loads(sys.stdin.readline())))), flush=True)
