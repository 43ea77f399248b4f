"""Tenants at rest on both sides, and controllers that a test starts, kills, freezes and cuts off as it likes.

`Drill` is built once: a plain controller brings some tenants up and goes. Each test takes a tenant of its own and
starts its own controllers, through lines that it may disturb. In the end the record of both sides is judged: the
tenant's, with all its Services, and the pools'.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from elastic.butler_process import Butler
from elastic.faults.lines import Lines
from ipam.processes import ButlerProcess, Nursery, kubeconfig_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from elastic.estate import Elastic, ElasticTenant, Place
    from elastic.faults.lines import Switchboard
    from fault_proxy import Asked, Moment

GRACE, SETTLE = 0.6, 0.2
QUICK = (
    "--shrink-after",
    str(GRACE),
    "--drain-settle",
    str(SETTLE),
    "--check-tenants-every",
    "1",
    "--sweep-every",
    "2",
    "--sighting-gap",
    "2",
)
LEASE = ("--lease-seconds", "1")
TENANTS = 8
"""Brought up at a time. A test that fails keeps its own, to look at."""
PATIENCE = 90.0
WITHOUT_INGRESS = {"ingress": {"enabled": False}}
POOLS = "ipaddresspools"


class Ward(Nursery):
    """A nursery that may be asked from several threads: tests start processes, and proxies kill them."""

    def __init__(self) -> None:
        self._turn = threading.Lock()

    def _ask(self, command: dict[str, Any]) -> Any:
        with self._turn:
            return super()._ask(command)

    def __enter__(self) -> Ward:
        super().__enter__()
        return self


class Replica(ButlerProcess):
    """A controller process with lines of its own."""

    lines: Lines


class Drill:
    """All processes run but the controllers."""

    def __init__(self, estate: Elastic, place: Place, nursery: Ward, board: Switchboard) -> None:
        self.estate = estate
        self.place = place
        self._nursery = nursery
        self._board = board
        self._free: list[ElasticTenant] = []
        self._numbers = itertools.count(1)

    def tenant(self) -> ElasticTenant:
        """One that no other test has, with one address and at most one Service, `first`. Take it before a replica."""
        if not self._free:
            self._bring_up()
        return self._free.pop(0)

    def _bring_up(self) -> None:
        names = [f"t{next(self._numbers)}" for _ in range(TENANTS)]
        with Butler(self.estate.plane.kubeconfig, self.estate.directory, QUICK):
            for name in names:
                self.place.cluster(name, addons=WITHOUT_INGRESS)
            for name in names:
                fresh = self.place.followed(name)
                fresh.ready()
                self._free.append(fresh)

    @contextmanager
    def replica(self, name: str = "one", *, lease: bool = False, starts: bool = True) -> Iterator[Replica]:
        """A controller, until the block ends."""
        planes = {tenant.name: tenant.inside() for tenant in self.place.tenants}
        lines = Lines(self._board, self.estate.plane, planes)
        lines.open()
        number = next(self._numbers)
        folder = self.estate.directory
        kubeconfig = kubeconfig_for(lines.management.url, folder / f"{name}-{number}.kubeconfig")
        options = (*QUICK, *(LEASE if lease else ("--no-lease",)))
        replica = Replica(self._nursery, name, kubeconfig, folder / f"{name}-{number}.log", options)
        replica.lines = lines
        try:
            if starts:
                replica.start()
            yield replica
            replica.insist_alive()
        except BaseException:
            print(f"--- {name}, {replica.lives} lives:\n{replica.tail(40)}")
            raise
        finally:
            replica.kill()
            lines.close()

    def grow(self, tenant: ElasticTenant, *names: str) -> list[str]:
        """Use up what the tenant has, and more: the addresses of `names`, all of them in growth allocations."""
        if not tenant.service("first"):
            tenant.add("first")
            tenant.gets("first")
        tenant.add(*names)
        return tenant.gets(*names)

    def verdict(self, *tenants: ElasticTenant, but: str = "") -> None:
        """Judge some tenants and the pools over the whole record, by all rules but one."""
        self.place.judged = list(tenants)
        self.place.verdict(but=but)
        for tenant in tenants:
            tenant.remove(*(name for name in tenant.names() if name != "first"))
        for tenant in tenants:
            tenant.shrinks_to(1)
        if not but:  # else its record would tell of that for ever
            self._free += tenants


class Moments:
    """Calls back at the n-th write of some kind, of one tenant or of the management cluster.

    `hold` keeps that write on the line until `let_go`; everything happens in the proxies' loop, and `struck` tells
    the test's own thread that it has come to this.
    """

    def __init__(
        self,
        wanted: Callable[[Asked], bool],
        *,
        number: int = 1,
        moment: Moment = "before",
        then: Callable[[], None] | None = None,
        hold: bool = False,
    ) -> None:
        self._wanted = wanted
        self._number = number
        self._moment = moment
        self._then = then
        self._hold = hold
        self._seen = 0
        self._released = threading.Event()
        self.struck = threading.Event()
        self.passed = threading.Event()

    async def __call__(self, asked: Asked, moment: Moment) -> None:
        if not self._wanted(asked):
            return
        if moment == "after" and self.struck.is_set():
            self.passed.set()
        if moment != self._moment or self.struck.is_set():
            return
        self._seen += 1
        if self._seen != self._number:
            return
        self.struck.set()
        if self._then is not None:
            await asyncio.to_thread(self._then)
        if self._hold:
            await asyncio.to_thread(self._released.wait, PATIENCE)

    def comes(self) -> None:
        """Wait for it."""
        assert self.struck.wait(PATIENCE), "that write never came"

    def let_go(self) -> None:
        self._released.set()


def writes_pool(asked: Asked) -> bool:
    """A write of MetalLB's pool, which the controller does by server-side apply, creation or deletion."""
    return asked.plural == POOLS


def writes_allocation(*names: str) -> Callable[[Asked], bool]:
    return lambda asked: asked.plural == "ipallocations" and asked.name in names
