"""What the client costs: CPU per PATCH and per watch event, against any API server.

    python bench/bench_client.py --kubeconfig DIR/kubeconfig [--objects 200] [--rounds 10] [--concurrency 32]

Rates depend on the server and the machine; the CPU columns are this process's own and are what to compare. The
watch is measured by resuming from before all the patches, so that the server sends them as fast as we read.
"""

import argparse
import asyncio
import resource as process
import secrets
import time
from contextlib import aclosing

import msgspec

from butler.api.meta import ObjectMeta
from butler.kube import config
from butler.kube.cache import Cache
from butler.kube.client import Client
from butler.kube.resource import CONFIGMAPS, NAMESPACES, Resource


class Map(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    data: dict[str, str] = {}


MAPS = Resource("", "v1", "configmaps", "ConfigMap", Map)


class Measured:
    """Wall and CPU time of a block, per operation."""

    def __init__(self, what: str, operations: int) -> None:
        self.what, self.operations = what, operations

    def __enter__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        micro = cpu / self.operations * 1e6
        print(f"{self.what:34} {self.operations:7} ops {self.operations / wall:9.0f}/s {micro:8.1f} CPU us/op")


async def main(options: argparse.Namespace) -> None:
    async with Client(config.load(options.kubeconfig), pool=options.concurrency) as client:
        namespace = f"bench-{secrets.token_hex(3)}"
        await client.create(NAMESPACES, {"metadata": {"name": namespace}})
        gate = asyncio.Semaphore(options.concurrency)

        async def create(number: int) -> None:
            async with gate:
                body = {"metadata": {"name": f"m{number}"}, "data": {"text": "x" * 600}}
                await client.create(CONFIGMAPS, body, namespace)

        async def patch(number: int, round_: int) -> None:
            async with gate:
                await client.patch(MAPS, f"m{number}", {"data": {"round": str(round_)}}, namespace)

        with Measured("create", options.objects):
            await asyncio.gather(*(create(number) for number in range(options.objects)))
        start = (await client.list(MAPS, namespace)).resource_version
        patches = options.objects * options.rounds
        with Measured("merge patch", patches):
            for round_ in range(options.rounds):
                await asyncio.gather(*(patch(number, round_) for number in range(options.objects)))
        for name, kind in (("typed", MAPS), ("dict", CONFIGMAPS)):
            with Measured(f"watch events, {name}", patches):
                async with aclosing(client.watch(kind, namespace, resource_version=start)) as events:  # type: ignore[type-var]
                    for _ in range(patches):
                        await anext(events)
        cache = Cache(client, MAPS, namespace=namespace)
        with Measured("cache, first list", options.objects):
            following = asyncio.create_task(cache.run())
            await cache.wait_synced()
        following.cancel()
        await client.delete(NAMESPACES, namespace)
    print(f"peak memory {process.getrusage(process.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", help="default: as kubectl would find it")
    parser.add_argument("--objects", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--concurrency", type=int, default=32)
    asyncio.run(main(parser.parse_args()))
