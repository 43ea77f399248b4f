"""How many status writes a second the server takes: nothing but them, by the client that the controller uses.

    python raw_writes.py KUBECONFIG NAMESPACE TEMPLATE

Run as a process of its own, as the controller is. TEMPLATE holds the status of an allocation that the controller has
really granted; every waiting allocation of the namespace gets one like it, with addresses of its own, by the same
merge patch with the same preconditions and as many at a time. Bodies are made before the clock starts. Prints how
many were written, in how many seconds, and with how much processor time here.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import uvloop

from butler.api.ipallocation import IPAllocation, IPAllocationPhase
from butler.ipam.addresses import Family, Range, address_text, addresses_of
from butler.kube import config
from butler.kube.client import Client
from butler.kube.resource import resource_of
from butler.rules.pool.settings import IpamSettings

ALLOCATIONS = resource_of(IPAllocation)
FIRST = 172 << 24


def granted(template: dict[str, Any], number: int) -> dict[str, Any]:
    count = template["allocatedCount"]
    block = Range(FIRST + number * count, FIRST + number * count + count - 1)
    return {
        **template,
        "startAddress": address_text(block.first, Family.V4),
        "endAddress": address_text(block.last, Family.V4),
        "addresses": list(addresses_of(block, Family.V4)),
    }


async def write_all(kubeconfig: str, namespace: str, template: dict[str, Any]) -> None:
    async with Client(config.load(kubeconfig, None), field_manager="butler-controller") as client:
        listed = await client.list(ALLOCATIONS, namespace)
        waiting = [
            allocation.metadata for allocation in listed.items if allocation.status.phase is IPAllocationPhase.PENDING
        ]
        patches = [
            (
                meta.name,
                {
                    "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
                    "status": granted(template, number),
                },
            )
            for number, meta in enumerate(waiting)
        ]
        queue = iter(patches)

        async def work() -> None:
            for name, patch in queue:
                await client.patch(ALLOCATIONS, name, patch, namespace, subresource="status", timeout=120.0)

        began, used = time.perf_counter(), time.process_time()
        await asyncio.gather(*(work() for _ in range(IpamSettings().commit_concurrency)))
        seconds, processor = time.perf_counter() - began, time.process_time() - used
        print(json.dumps({"written": len(patches), "seconds": seconds, "processor": processor}))


if __name__ == "__main__":
    uvloop.run(write_all(sys.argv[1], sys.argv[2], json.loads(Path(sys.argv[3]).read_text())))
