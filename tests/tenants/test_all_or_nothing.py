"""More tenants than fit: exactly as many become Ready as there is room for, and the others hold nothing.

Each round has pools, a provider and tenants of its own, chosen by the seed: how many fit, whether both blocks come from
one pool or from two that fill at different points, whether the pools have room first or gain it later, and whether the
leading controller is killed on the way. Everyday in a few rounds; `make test-tenants-scale` plays fifty.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from ipam.estate import Scale, named, scales
from ipam.history import ALLOCATION
from ipam.processes import Nursery
from tenants.town import LOGIN, Town

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path
    from random import Random

    from control_planes import ControlPlane
    from ipam.history import Json

TENANT_UID = "butler.butlerlabs.dev/tenant-uid"
NODES, BALANCERS = 5, 8
WAITS = 1.0
"""Seconds that a state must last to be called one."""


@dataclass(frozen=True)
class Round:
    """What is played: so many tenants, and room for so many node and load-balancer blocks."""

    number: int
    tenants: int
    nodes: int
    balancers: int
    pools: int
    pools_first: bool
    kill: bool
    apart: float
    """Seconds over which the tenants come."""

    @property
    def fit(self) -> int:
        return min(self.nodes, self.balancers, self.tenants)

    def __str__(self) -> str:
        return (
            f"round {self.number}: room for {self.nodes} and {self.balancers} of {self.tenants} in {self.pools} pools,"
            f" {'there first' if self.pools_first else 'later'}, over {self.apart:.1f} s{' with a kill' * self.kill}"
        )


def rounds(rng: Random, scale: Scale) -> Iterator[Round]:
    """The shapes in turn, the rest by chance; the first rounds have each shape once."""
    for number in range(scale.of(4, 50)):
        shape, crowd = number % 4, scale.of(12, 50)
        tenants, nodes, balancers, pools = (8, 3, 3, 1) if shape in (0, 3) else (crowd, crowd // 5, crowd // 5, 1)
        if shape == 2:
            tenants, nodes, balancers, pools = 8, rng.randint(2, 4), rng.randint(2, 4), 2
            nodes += nodes == balancers
        yield Round(
            number,
            tenants,
            nodes,
            balancers,
            pools,
            pools_first=shape == 3 or (number >= 4 and rng.random() < 0.5),
            kill=number >= 4 and rng.random() < 0.2,
            apart=rng.choice([0.0, 0.0, 1.5]),
        )


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


@pytest.mark.timeout(3600)
@scales(long=1)
async def test_as_many_tenants_become_ready_as_fit_and_the_others_hold_nothing(town: Town) -> None:
    await _login(town)
    for played in rounds(town.rng, town.scale):
        print(played)
        await _play(town, played)
    await town.settle()
    town.report(f"{played.number + 1} rounds")
    await town.verdict()


async def _play(town: Town, played: Round) -> None:
    await _provider(town, played)
    names = [f"r{played.number}-{number:02}" for number in range(played.tenants)]
    for name, spec in _pools(played, full=played.pools_first):
        await town.homes.create("networkpools", named("NetworkPool", {"name": name}, spec))
    await _create(town, played, names)
    if not played.pools_first:
        await town.until(lambda: all(_waits(town, name) for name in names), lambda: f"all wait: {_story(town, names)}")
        for name, spec in _pools(played):
            await town.homes.patch("networkpools", name, {"spec": spec})
    if played.kill:
        await town.kill_leader()
    await town.until(lambda: _is_settled(town, played, names), lambda: f"{played}: {_story(town, names)}")
    await _insist_it_lasts(town, played, names)
    ready = {name for name in names if town.phases()[name] == "Ready"}
    if played.pools == 1 and not played.pools_first:
        assert ready == set(_oldest(town, names)[: played.fit]), f"{played}: the oldest go first, but Ready are {ready}"
    await town.delete(names)
    await town.until(lambda: not set(names) & town.clusters.keys(), lambda: f"all are gone: {_story(town, names)}")
    for pool in _pool_names(played):
        await town.homes.delete("networkpools", pool)


def _is_settled(town: Town, played: Round, names: list[str]) -> bool:
    phases = town.phases()
    ready = [name for name in names if phases.get(name) == "Ready"]
    waiting = [name for name in names if _waits(town, name) and not _held(town, name)]
    return len(ready) == played.fit and len(ready) + len(waiting) == played.tenants


async def _insist_it_lasts(town: Town, played: Round, names: list[str]) -> None:
    """Nothing moves any more: who waits does not take and give back in turns. Figures in messages may follow later."""
    await asyncio.sleep(WAITS)
    before = _answers(town)
    await asyncio.sleep(WAITS)
    assert _answers(town) == before, f"{played}: requests are still made or answered: {_story(town, names)}"
    assert _is_settled(town, played, names), f"{played}: {_story(town, names)}"


def _answers(town: Town) -> dict[str, str]:
    """What became of every request; records of what was given back go by themselves."""
    found = town.witness.state(ALLOCATION).values()
    phases = {pair["metadata"]["uid"]: str((pair.get("status") or {}).get("phase")) for pair in found}
    return {uid: phase for uid, phase in phases.items() if phase != "Released"}


def _waits(town: Town, name: str) -> bool:
    """Whether a tenant says that it waits, and for which pool."""
    if town.phases().get(name) != "Pending":
        return False
    found = town.condition(name, "NetworkReady")
    return found.get("status") == "False" and "addresses: pool" in found.get("message", "")


def _held(town: Town, name: str) -> list[Json]:
    uid = town.clusters[name]["metadata"]["uid"]
    return [
        pair
        for pair in town.witness.state(ALLOCATION).values()
        if pair["metadata"].get("labels", {}).get(TENANT_UID) == uid
        and (pair.get("status") or {}).get("phase") == "Allocated"
    ]


def _oldest(town: Town, names: list[str]) -> list[str]:
    def age(name: str) -> tuple[str, str]:
        meta = town.clusters[name]["metadata"]
        return meta["creationTimestamp"], meta["uid"]

    return sorted(names, key=age)


def _story(town: Town, names: list[str]) -> str:
    told = []
    for name in names:
        if name in town.clusters:
            held = [obj["metadata"]["name"] for obj in _held(town, name)]
            said = town.condition(name, "NetworkReady").get("message", "")
            told.append(f"{name} is {town.phases()[name]}, holds {held}: {said[:300]}")
    return "\n".join(told)


# What users do.


def _pool_names(played: Round) -> list[str]:
    return [f"r{played.number}-a", f"r{played.number}-b"][: played.pools]


def _reference(name: str, network: str, **more: object) -> Json:
    return {"name": name, "gateway": f"{network}.0.1", **more}


def _pools(played: Round, *, full: bool = True) -> Iterator[tuple[str, Json]]:
    """The pools by name, with room for as many as the round says, or for nothing."""
    sizes = [played.nodes * NODES, played.balancers * BALANCERS]
    if played.pools == 1:
        sizes = [sum(sizes)]
    for place, (name, size) in enumerate(zip(_pool_names(played), sizes, strict=True)):
        network, last = _network(played, place), 16 + (size if full else 1) - 1
        spec = {
            "cidr": f"{network}.0.0/16",
            "tenantAllocation": {
                "start": f"{network}.0.16",
                "end": f"{network}.{last // 256}.{last % 256}",
                "defaults": {"nodesPerTenant": NODES, "lbPoolPerTenant": BALANCERS},
            },
        }
        yield name, spec


def _network(played: Round, place: int) -> str:
    return f"10.{40 + 2 * played.number + place}"


async def _login(town: Town) -> None:
    data = {key: base64.b64encode(value).decode() for key, value in LOGIN.items()}
    secret = {"metadata": {"name": "login", "namespace": town.home}, "data": data}
    status, answer = await town.homes.send("POST", f"/api/v1/namespaces/{town.home}/secrets", secret)
    assert status == 201, answer


async def _provider(town: Town, played: Round) -> None:
    references = [_reference(name, _network(played, place)) for place, name in enumerate(_pool_names(played))]
    if played.pools == 2:
        references[0]["types"], references[1]["types"] = ["nodes"], ["loadbalancer"]
    spec = {
        "provider": "proxmox",
        "credentialsRef": {"name": "login"},
        "proxmox": {"endpoint": "https://127.0.0.1:9", "nodes": ["pve1"], "storage": "local", "templateID": 100},
        "network": {"mode": "ipam", "poolRefs": references, "dnsServers": ["192.0.2.53"]},
    }
    await town.homes.create("providerconfigs", named("ProviderConfig", {"name": f"r{played.number}"}, spec))


async def _create(town: Town, played: Round, names: list[str]) -> None:
    spec = {
        "kubernetesVersion": "v1.33.2",
        "providerConfigRef": {"name": f"r{played.number}", "namespace": town.home},
        "workers": {"replicas": 1},
    }
    town.wanted |= set(names)

    async def one(name: str) -> None:
        await asyncio.sleep(town.rng.uniform(0, played.apart))
        await town.api.create("tenantclusters", named("TenantCluster", {"name": name}, spec))

    await asyncio.gather(*map(one, names))
