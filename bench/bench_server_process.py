"""The console's server as a process of its own, for bench_server: says where it is and how to come in, ends with stdin.

    python bench_server_process.py KUBECONFIG [PROFILE]

With PROFILE, where the time went is written to that file.
"""

from __future__ import annotations

import asyncio
import cProfile
import json
import logging
import sys

import uvloop

from butler.kube import config
from butler.server.process import Settings, running


async def serve(kubeconfig: str) -> None:
    # Here all requests come from one address, so no client is told to wait.
    settings = Settings(world=True, local=True, requests_per_second=1_000_000)
    async with running(config.load(kubeconfig), settings) as up:
        print(json.dumps({"url": up.url, "link": await up.one_time_link()}), flush=True)
        await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    logging.getLogger("butler.audit").setLevel(logging.WARNING)
    kubeconfig, *profile = sys.argv[1:]
    if not profile:
        uvloop.run(serve(kubeconfig))
        return
    watching = cProfile.Profile()
    watching.runcall(uvloop.run, serve(kubeconfig))
    watching.dump_stats(profile[0])


if __name__ == "__main__":
    main()
