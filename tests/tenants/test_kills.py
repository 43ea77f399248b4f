"""Dozens of clusters come and go at once while those who look after them are killed, frozen and replaced.

Everyday in a short form; `make test-tenants-scale` creates 200 clusters at once and deletes 100 while 100 more come.
However it is disturbed, in the end each cluster is Ready or cleanly gone, every address is accounted for, and the
record of all revisions shows that no two clusters ever shared one.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from controller_process import ControllerProcess
from ipam.estate import Scale, scales
from ipam.history import POOL
from ipam.processes import Nursery
from tenants import witness as tenant_witness
from tenants.estate import Estate
from tenants.town import QUICK, Town
from world_process import WorldProcess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
    from pathlib import Path

    from control_planes import ControlPlane

REVISIONS_PER_TENANT = 40
"""About what the witness sees of a cluster's life, to spread faults over it."""


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as started:
        yield started


@pytest.fixture
async def town(
    control_plane: ControlPlane, cluster_api: None, nursery: Nursery, tmp_path: Path, scale: Scale
) -> AsyncIterator[Town]:
    async with Town(control_plane, nursery, tmp_path, scale) as built:
        yield built


async def faults(town: Town, apart: int) -> None:
    """One after the other, each when so much more has happened, or when nothing has for a while."""
    kinds: list[Callable[[], Coroutine[None, None, None]]] = [
        town.kill_leader,
        town.freeze_leader,
        town.kill_leader,
        town.restart_world,
        town.kill_leader,
        town.freeze_leader,
        town.kill_leader,
    ]
    for strike in kinds:
        mark = town.revisions() + town.rng.randint(apart // 2, apart)
        slow = town.scale.of(5, 20)
        await town.witness.until(lambda mark=mark: town.revisions() >= mark, slow)  # type: ignore[misc]
        print(f"at revision {town.revisions()}: {strike.__name__}")
        await strike()


@pytest.mark.timeout(1800)
@scales(long=1)
async def test_clusters_come_and_go_by_the_dozen_whichever_process_is_killed(town: Town) -> None:
    count = town.scale.of(16, 200)
    # Room for all that stay and a few more: some of the second wave have to wait for the first to go.
    await town.pool("pool", "10.40.0.0/16", count + count // 8)
    await town.provider("pool")
    first, second = ([f"{wave}{number:03}" for number in range(count)] for wave in ("a", "b"))
    striking = asyncio.create_task(faults(town, count * REVISIONS_PER_TENANT // 5))
    await town.create(first)
    await town.until(
        lambda: list(town.phases().values()).count("Ready") >= count // 4, lambda: f"a quarter Ready: {town.phases()}"
    )
    going = town.rng.sample(first, count // 2)
    await asyncio.gather(town.delete(going), town.create(second[: count // 2]))
    await striking
    await town.settle()
    town.report(f"{count} clusters, {count // 2} deleted while as many more came, seven faults")
    assert len(town.clusters) == count
    await town.verdict()
    assert sum(replica.lives for replica in town.replicas) == 6


@pytest.mark.timeout(1800)
@scales(long=1)
async def test_clusters_beyond_a_full_pool_wait_and_go_on_when_there_is_another(town: Town) -> None:
    count = town.scale.of(8, 100)
    room = count // 2
    await town.pool("first", "10.40.0.0/16", room)
    await town.provider("first")
    names = [f"c{number:03}" for number in range(count)]
    await town.create(names)

    def ready() -> list[str]:
        return [name for name, phase in town.phases().items() if phase == "Ready"]

    def full() -> bool:
        """No address is left, and each cluster is Ready or says what it waits for."""
        waiting = [name for name in town.clusters if _waits_with_a_reason(town, name)]
        free = [(pool.get("status") or {}).get("availableIPs") for pool in town.witness.state(POOL).values()]
        return free == [0] and len(ready()) + len(waiting) == len(town.wanted) == len(town.clusters)

    await town.until(full, lambda: f"the pool is full, and the others say so: {town.why_unsettled()}")
    served = ready()
    assert len(served) == room, "a cluster without its second block keeps another one out"
    await town.kill_leader()
    await town.delete([town.rng.choice(served)])
    await town.until(lambda: full() and set(ready()) >= set(served) & town.wanted, town.why_unsettled)
    await town.kill_leader()
    await town.pool("second", "10.41.0.0/16", count)
    both = [{"name": "first"}, {"name": "second", "gateway": "10.41.0.1"}]
    await town.homes.patch("providerconfigs", "lab", {"spec": {"network": {"poolRefs": both}}})
    await town.kill_leader()
    await town.settle()
    town.report(f"{count} clusters in a pool for {room}, then a second one")
    await town.verdict()


@pytest.mark.timeout(300)
def test_a_cluster_that_is_deleted_while_it_comes_up_goes_though_another_controller_deletes_it(
    control_plane: ControlPlane, cluster_api: None, tmp_path: Path
) -> None:
    """Where its API server is, only Cluster API says yet, and the controller that had heard of it is gone."""
    with (
        WorldProcess(control_plane.kubeconfig, tmp_path, **{**QUICK, "machine_seconds": 600.0}),
        tenant_witness.Witness(control_plane, tenant_witness.OWN | tenant_witness.CLUSTER_API) as witness,
        closing(Estate(control_plane, witness, tmp_path)) as estate,
    ):
        with ControllerProcess(control_plane.kubeconfig, tmp_path):
            web = estate.site().cluster("web")
            web.until(lambda: witness.list("tenantaddons", web.namespace), "its API server can be used")
        assert "controlPlaneEndpoint" not in web.status
        web.delete()
        with ControllerProcess(control_plane.kubeconfig, tmp_path):
            web.gone()


def _waits_with_a_reason(town: Town, name: str) -> bool:
    found = town.condition(name, "NetworkReady")
    told = found.get("status") == "False" and "pool" in found.get("message", "")
    return told and town.phases()[name] == "Pending"
