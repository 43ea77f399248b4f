"""An API server restored from a snapshot under running controllers: versions go back, and no address is held twice.

The witness polls what is there: a history in the order of versions cannot be told when versions repeat.
"""

from __future__ import annotations

import itertools
import time
from contextlib import closing
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

import pytest

import restorable as servers
from ipam.estate import QUICK
from ipam.processes import ButlerProcess
from ipam_operator import ALLOCATIONS, Desk, RunningOperator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ipam.processes import Nursery
    from restorable import Restorable

LEASE = ("--lease-seconds", "2")
POOLS = "networkpools"


@pytest.fixture(params=["embedded", "kubernetes"])
def restorable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Restorable]:
    """A server of this test's own: the restore would break other tests on it."""
    start = servers.embedded if request.param == "embedded" else servers.kubernetes
    with start(tmp_path) as server:
        yield server


class World:
    """A namespace with a pool, controller processes, and a look at who holds what."""

    def __init__(self, server: Restorable, nursery: Nursery, folder: Path) -> None:
        self.server = server
        self.desk = Desk(server.plane, server.plane.fresh_namespace("restore"))
        self._nursery = nursery
        self._folder = folder
        self.processes: list[ButlerProcess] = []

    def butler(self, name: str, *options: str, lease: bool = False) -> ButlerProcess:
        namespace = self.desk.namespace
        scope = ("--namespace", namespace, "--home-namespace", namespace, *(() if lease else ("--no-lease",)))
        log_file, kubeconfig = self._folder / f"{name}.log", self.server.plane.kubeconfig
        process = ButlerProcess(self._nursery, name, kubeconfig, log_file, [*scope, *QUICK, *options])
        self.processes.append(process)
        process.start()
        return process

    def snapshot(self) -> None:
        self.server.snapshot()
        self.desk.close()  # it calls again when it is needed

    def restore(self) -> None:
        self.server.restore()
        self.desk.close()

    def close(self) -> None:
        for process in self.processes:
            process.kill()
        self.desk.close()

    def grant(self, *names: str) -> None:
        """Ask for two addresses each, and wait until all have them."""
        for name in names:
            self.desk.ask(name, 2)
        for name in names:
            self.desk.granted(name)
        self.insist()

    def insist(self) -> None:
        """No address has two holders."""
        code, answer = self.desk.send("GET", self.desk.path(ALLOCATIONS))
        assert code == 200, answer
        held = sorted(
            (
                int(IPv4Address(status["startAddress"])),
                int(IPv4Address(status["endAddress"])),
                found["metadata"]["name"],
            )
            for found in answer["items"]
            if (status := found.get("status", {})).get("phase") == "Allocated"
        )
        twice = [(one[2], other[2]) for one, other in itertools.pairwise(held) if other[0] <= one[1]]
        logs = "\n".join(f"--- {process.name}\n{process.tail(40)}" for process in self.processes)
        assert not twice, f"held twice: {twice}\n{logs}"


@pytest.fixture
def world(restorable: Restorable, nursery: Nursery, tmp_path: Path) -> Iterator[World]:
    with closing(World(restorable, nursery, tmp_path)) as built:
        yield built


def names(stem: str, count: int) -> list[str]:
    return [f"{stem}{number}" for number in range(count)]


def test_two_controllers_of_which_one_lived_through_a_restore_grant_nothing_twice(world: World) -> None:
    world.butler("survivor")
    world.desk.pool("pool", "10.40.0.0/24")
    world.grant(*names("a", 2))
    world.snapshot()
    world.server.advance(100)
    world.grant("lost")
    world.restore()
    newcomer = world.butler("newcomer")
    world.grant(*names("b", 6))  # at versions that the survivor has seen already
    world.server.advance(150)
    world.grant("c")
    newcomer.kill()
    world.grant(*names("d", 6))
    # Two views of one pool would write it in turns, for ever.
    world.butler("newcomer-again")
    time.sleep(3)
    found = world.desk.get(POOLS, "pool")
    time.sleep(2)
    assert world.desk.get(POOLS, "pool") == found, "nothing happens, and the pool is written"
    world.insist()


@pytest.mark.slow
def test_a_survivor_alone_goes_on_at_once(world: World) -> None:
    world.butler("survivor")
    world.desk.pool("pool", "10.40.0.0/24")
    world.grant("a")
    world.snapshot()
    world.grant(*names("lost", 6))
    world.restore()
    world.grant(*names("b", 3))
    assert world.desk.get(ALLOCATIONS, "lost0") is None


@pytest.mark.slow
def test_a_standby_that_slept_through_a_restore_leads_after_the_server_passed_its_position(world: World) -> None:
    """What it last saw has a version that the server has reached again: only that it was out of touch tells."""
    leader = world.butler("leader", *LEASE, lease=True)
    world.desk.pool("pool", "10.40.0.0/24")
    world.grant("a")
    standby = world.butler("standby", *LEASE, lease=True)
    world.snapshot()
    world.grant(*names("lost", 5))
    world.server.advance(40)
    time.sleep(2)
    standby.freeze()
    leader.kill()
    world.restore()
    fresh = world.butler("fresh", *LEASE, lease=True)
    world.grant(*names("b", 9))
    world.server.advance(300)
    fresh.kill()
    standby.thaw()
    world.grant(*names("c", 4))
    standby.insist_alive()


def test_a_pool_with_a_status_from_another_life_says_so_and_heals(world: World) -> None:
    world.desk.pool("healthy", "10.41.0.0/24")
    for number in range(9):  # more than there are workers
        name = f"pool{number}"
        world.desk.pool(name, f"10.40.{number}.0/24")
        world.desk.edit(POOLS, name, {"status": {"allocationsSeen": "999999999999"}}, "status")
    with RunningOperator(world.server.plane, world.desk.namespace):
        world.desk.ask("elsewhere", 2, of="healthy")
        world.desk.granted("elsewhere")
        for number in range(9):
            world.desk.ask(f"a{number}", 2, of=f"pool{number}")
        for number in range(9):
            world.desk.granted(f"a{number}")
            told = world.desk.until(lambda pool=f"pool{number}": world.desk.events("NetworkPool", pool), "an event")
            assert any(reason == "VersionsWentBack" and "999999999999" in text for _, reason, text in told), told
            assert int(world.desk.status(POOLS, f"pool{number}")["allocationsSeen"]) < 999999999999
            world.desk.ready(f"pool{number}")
        world.desk.edit(POOLS, "pool8", {"status": {"allocationsSeen": "999999999999"}}, "status")
        world.desk.delete(ALLOCATIONS, "a8")
        world.desk.delete(POOLS, "pool8")
        world.desk.gone(POOLS, "pool8")
