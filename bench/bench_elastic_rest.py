"""What it costs to watch many tenants that do nothing: a part of `make bench-elastic`.

    python bench/bench_elastic_rest.py [--tenants 1000] [--services 3] [--rest 60]

One process serves the tenants: the embedded API server, with a logical cluster for each, in which there are a few load
balancers. Another one follows them all, as the controller does: one watch for each tenant through its own kubeconfig,
on uvloop. It tells how long it took until it had heard of all, what memory that takes beyond an idle process with the
same modules, and which share of one core it uses while nothing happens. Nothing here fails on a number.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import uvloop

sys.path[:0] = [
    str(Path(__file__).parent),
    str(Path(__file__).parents[1] / "tests"),
    str(Path(__file__).parents[1] / "tests/support"),
    str(Path(__file__).parents[1] / "tools"),
    str(Path(__file__).parents[1] / "kubeserver/tests/support"),
]

from ipam.report import Goal, heading, note, summary, table  # noqa: E402 - after the path is set

from butler.api.objects import Key  # noqa: E402
from butler.kube.client import Client  # noqa: E402
from butler.kube.config import from_text  # noqa: E402
from butler.kube.resource import SERVICES  # noqa: E402
from butler.tenant.clusters import TenantClients, TenantLimits  # noqa: E402
from butler.tenant.service_feed import TenantFeeds  # noqa: E402
from control_planes import ControlPlane, embedded  # noqa: E402

Json = dict[str, Any]
AT_ONCE = 8
WORKERS = 16
"""As many reconciles as a controller has under way: it asks for the feeds one after the other."""


def more_files() -> None:
    """Each tenant takes some sockets on either side, and the usual limit is 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


# The tenants.


async def build(plane: ControlPlane, folder: Path, tenants: int, services: int) -> None:
    """Make logical clusters, and leave the kubeconfig of each in a folder."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with turn:
            code, text = await asyncio.to_thread(plane.request, "PUT", f"/clusters/bench/t{number}")
            assert code == 201, text
            async with Client(
                from_text(text, source=f"t{number}", allow_plain_loopback=True), field_manager="bench"
            ) as client:
                await furnish(client, number, services)
            file = folder / f"t{number}"
            file.touch(mode=0o600)
            file.write_text(text)

    await asyncio.gather(*(one(number) for number in range(tenants)))


async def furnish(client: Client, number: int, services: int) -> None:
    net = f"10.{number // 200}.{number % 200}"
    for place in range(services):
        spec = {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80, "protocol": "TCP"}]}
        await client.create(SERVICES, {"metadata": {"name": f"web-{place}"}, "spec": spec}, "default")
        given = {"status": {"loadBalancer": {"ingress": [{"ip": f"{net}.{place}"}]}}}
        await client.patch(SERVICES, f"web-{place}", given, "default", subresource="status")


# The one who follows them.


async def follow(folder: Path, rest: float) -> Json:
    """Follow every kubeconfig in the folder; what that took."""
    files = sorted(folder.iterdir())
    changes: Counter[Key] = Counter()
    idle = memory()
    turn = asyncio.Semaphore(WORKERS)
    async with TenantClients() as clients, TenantFeeds(clients, lambda key: changes.update([key])) as feeds:

        async def start(file: Path) -> None:
            async def secret() -> Json:
                content = base64.b64encode(file.read_bytes()).decode()
                return {
                    "metadata": {"name": f"{file.name}-admin-kubeconfig", "namespace": "b", "resourceVersion": "1"},
                    "data": {"admin.conf": content},
                }

            async with turn:
                await feeds.follow(Key("b", file.name), file.name, "1", secret)

        began = time.monotonic()
        await asyncio.gather(*(start(file) for file in files))
        troubled: set[str] = set()
        while not all(feed.is_synced for feed in feeds):
            troubled |= {feed.key.name for feed in feeds if feed.trouble}
            await asyncio.sleep(0.1)
        synced = time.monotonic() - began
        right_away = memory()
        # Unused connections are kept for a while, for the next request, then closed.
        await asyncio.sleep(2 * TenantLimits().keep_idle)
        held, at_rest = memory(), connections()
        used, clock = time.process_time(), time.monotonic()
        await asyncio.sleep(rest)
        share = (time.process_time() - used) / (time.monotonic() - clock)
        return {
            "tenants": len(files),
            "services": sum(len(feed.services()) for feed in feeds),
            "synced": synced,
            "troubled": len(troubled),
            "idle": idle,
            "right_away": right_away,
            "held": held,
            "after": memory(),
            "connections": at_rest,
            "share": share,
        }


def memory() -> float:
    """Megabytes resident in this process."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def connections() -> int:
    found = 0
    for path in Path("/proc/self/fd").iterdir():
        try:
            found += str(path.readlink()).startswith("socket:")
        except OSError:
            continue
    return found


def report(seen: Json) -> None:
    tenants = seen["tenants"]
    each = (seen["held"] - seen["idle"]) * 1024 / tenants
    table(
        ["", "seen"],
        [
            ["tenants followed", f"{tenants:,}"],
            ["Services in their feeds", f"{seen['services']:,}"],
            ["seconds until all were heard", f"{seen['synced']:.1f}"],
            ["tenants with trouble meanwhile", f"{seen['troubled']:,}"],
            ["memory before, MB", f"{seen['idle']:.1f}"],
            ["memory when all were heard, MB", f"{seen['right_away']:.1f}"],
            ["memory at rest, MB", f"{seen['held']:.1f}"],
            ["memory after the rest, MB", f"{seen['after']:.1f}"],
            ["memory of one tenant, KB", f"{each:.1f}"],
            ["connections at rest", f"{seen['connections']:,}"],
            ["share of one core at rest", f"{seen['share']:.2%}"],
            ["the same for one tenant", f"{seen['share'] / tenants:.5%}"],
        ],
    )
    summary(
        [
            Goal("under 150 KB for a tenant", f"{each:.1f} KB", each < 150),
            Goal(
                "under 0.003 % of one core for a tenant",
                f"{seen['share'] / tenants:.5%}",
                seen["share"] / tenants < 0.00003,
            ),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Watch many tenants that do nothing.")
    parser.add_argument("--tenants", type=int, default=1000)
    parser.add_argument("--services", type=int, default=3, help="load balancers of each tenant")
    parser.add_argument("--rest", type=float, default=60.0, help="seconds at rest")
    parser.add_argument("--follow", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    more_files()  # also for the server, which inherits it
    if chosen.follow is not None:
        print(json.dumps(uvloop.run(follow(chosen.follow, chosen.rest))))
        return
    heading(f"{chosen.tenants:,} tenants at rest")
    with tempfile.TemporaryDirectory(prefix="butler-bench-") as scratch, embedded(Path(scratch)) as plane:
        folder = Path(scratch) / "kubeconfigs"
        folder.mkdir(mode=0o700)
        began = time.monotonic()
        asyncio.run(build(plane, folder, chosen.tenants, chosen.services))
        note(f"made in {time.monotonic() - began:.0f} s")
        command = [sys.executable, __file__, "--follow", str(folder), "--rest", str(chosen.rest)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        report(json.loads(done.stdout))


if __name__ == "__main__":
    main()
