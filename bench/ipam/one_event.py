"""Run as a program: what one event costs a controller that looks after so many pools and allocations.

    python bench/ipam/one_event.py POOLS ALLOCATIONS [--profile]

Butler's own controllers and rules of admission over a server in memory. Prints one line of JSON: processor time of
the start until all pools are settled, of one request from created to granted and settled, of one release, of one
question about a pinned request, and resident memory. With `--profile` it says where the time of the events went.
"""

from __future__ import annotations

import asyncio
import cProfile
import gc
import json
import pstats
import sys
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [
    str(Path(__file__).parents[1]),
    str(Path(__file__).parents[2] / "tests"),
    str(Path(__file__).parents[2] / "tests/support"),
    str(Path(__file__).parents[2] / "kubeserver/tests/support"),
]

from butler.api.codec import from_json  # noqa: E402
from butler.api.ipallocation import IPAllocation  # noqa: E402
from butler.api.networkpool import NetworkPool  # noqa: E402
from butler.api.objects import Key  # noqa: E402
from butler.controllers.networkpool.setup import add_ipam, without_address_list  # noqa: E402
from butler.ipam.addresses import Family, address_text  # noqa: E402
from butler.kube.operator import Operator  # noqa: E402
from butler.webhooks import admission, review  # noqa: E402
from ipam import objects  # noqa: E402
from ipam.memory_client import MemoryClient  # noqa: E402 - after the path is set

EVENTS = 200
WARM_UP = 20
BORN = "2026-01-01T00:00:00Z"


def network(number: int) -> str:
    """A /22 of its own for each pool."""
    return f"{address_text((10 << 24) + (number << 10), Family.V4)}/22"


def pool(number: int) -> NetworkPool:
    return from_json(
        NetworkPool,
        {
            "metadata": {
                "name": f"pool-{number:05}",
                "namespace": objects.HOME,
                "uid": f"pool-{number}",
                "generation": 1,
                "creationTimestamp": BORN,
                "finalizers": ["butler.butlerlabs.dev/networkpool"],
            },
            "spec": {"cidr": network(number)},
        },
    )


def request(name: str, number: int, **more: Any) -> dict[str, Any]:
    body = objects.allocation(name, tenant_number=number)
    body["metadata"] |= {"namespace": objects.HOME, "uid": name, "generation": 1, "creationTimestamp": BORN}
    body["spec"] |= {"poolRef": {"name": f"pool-{number:05}"}, **more}
    return body


def held(number: int, of: int) -> IPAllocation:
    """The allocation of five addresses that a pool has at this place."""
    body = request(f"held-{of:05}-{number:04}", of)
    first = (10 << 24) + (of << 10) + 1 + 5 * number
    body["status"] = {
        "phase": "Allocated",
        "startAddress": address_text(first, Family.V4),
        "endAddress": address_text(first + 4, Family.V4),
        "allocatedCount": 5,
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "reason": "Allocated",
                "message": "",
                "lastTransitionTime": BORN,
            }
            for kind in ("Ready", "TenantFound")
        ],
    }
    return from_json(IPAllocation, body)


class Estate:
    def __init__(self, pools: int, allocations: int) -> None:
        self.client = MemoryClient()
        self.pools, self.allocations = pools, allocations
        for number in range(pools):
            self.client.put("networkpools", pool(number))
        for number in range(allocations):
            self.client.put("ipallocations", held(number // pools, number % pools))
        self.operator = Operator(self.client)  # type: ignore[arg-type]
        add_ipam(self.operator)
        caches = [
            self.operator.cache(admission.POOLS),
            self.operator.cache(admission.ALLOCATIONS, transform=without_address_list),
        ]
        self.admission = admission.AdmissionWebhook(self.client, *caches)  # type: ignore[arg-type]

    def at_rest(self) -> bool:
        return all(len(controller.queue) == controller.queue.busy == 0 for controller in self.operator._controllers)

    async def settle(self) -> None:
        """Until nothing is left to do: everything here takes a turn of the loop, and nothing takes time."""
        quiet = 0
        while quiet < 20:
            await asyncio.sleep(0)
            quiet = quiet + 1 if self.at_rest() else 0

    async def until(self, holds: Any) -> None:
        async with asyncio.timeout(600):
            while not holds():  # noqa: ASYNC110 - the server has no events
                await asyncio.sleep(0)

    def cost(self) -> float:
        return time.process_time() - self.client.spent


async def measured(pools: int, allocations: int, profile: bool) -> dict[str, Any]:
    estate = Estate(pools, allocations)
    client = estate.client
    gc.collect()
    began = estate.cost()
    running = asyncio.create_task(estate.operator.run(handle_signals=False))

    def all_ready() -> bool:
        known = client.objects["networkpools"].values()
        return all(item.status.claimed_cidr is not None for item in known)

    while not all_ready():  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    await estate.settle()
    start = estate.cost() - began
    profiler = cProfile.Profile() if profile else None
    grants, releases = [], []
    for number in range(WARM_UP + EVENTS):
        if number == WARM_UP and profiler is not None:
            profiler.enable()
        name, of = f"new-{number:05}", number * 7 % pools
        before = estate.cost()
        made = client.put("ipallocations", from_json(IPAllocation, request(name, of)))
        key = Key(objects.HOME, name)
        await estate.until(lambda key=key: client.objects["ipallocations"][key].status.phase == "Allocated")
        await estate.settle()
        grants.append(estate.cost() - before)
        before = estate.cost()
        client.put("ipallocations", client.objects["ipallocations"][key], "DELETED")
        await estate.settle()
        releases.append(estate.cost() - before)
        assert made is not None
    if profiler is not None:
        profiler.disable()
        pstats.Stats(profiler, stream=sys.stderr).sort_stats("cumulative").print_stats(45)
    questions = []
    for number in range(EVENTS):
        of = number * 7 % pools
        pinned = {"startAddress": network(of).replace(".0/22", ".1"), "endAddress": network(of).replace(".0/22", ".2")}
        body = request(f"pin-{number}", of, pinnedRange=pinned)
        del body["spec"]["count"]
        question = review.read(json.dumps(_question(body)).encode())
        before = time.process_time()
        answer = await estate.admission.decide(question)
        questions.append(time.process_time() - before)
        assert answer.warnings, "its addresses are held"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return {
        "pools": pools,
        "allocations": allocations,
        "start": start,
        "grant": _mean(grants[WARM_UP:]),
        "release": _mean(releases[WARM_UP:]),
        "pinned question": _mean(questions),
        "memory": _resident(),
    }


def _question(body: dict[str, Any]) -> dict[str, Any]:
    group, version = objects.API.split("/")
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "question",
            "kind": {"group": group, "version": version, "kind": "IPAllocation"},
            "resource": {"group": group, "version": version, "resource": "ipallocations"},
            "name": body["metadata"]["name"],
            "namespace": objects.HOME,
            "operation": "CREATE",
            "userInfo": {"username": "bench"},
            "object": body,
            "oldObject": None,
        },
    }


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _resident() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


if __name__ == "__main__":
    import logging

    logging.basicConfig(level=logging.WARNING)
    print(json.dumps(asyncio.run(measured(int(sys.argv[1]), int(sys.argv[2]), "--profile" in sys.argv))))
