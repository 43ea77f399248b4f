"""The world is killed at the worst moments: what counts is in the API server, so nothing is lost or doubled."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from local.world.estate import Tenant, address_of, internal_ips
from world_process import WorldProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from control_planes import ControlPlane


@pytest.fixture
def world(control_plane: ControlPlane, definitions: None, tmp_path: Path) -> Iterator[WorldProcess]:
    with WorldProcess(control_plane.kubeconfig, tmp_path, machine_seconds=1.0, machine_deletion_seconds=1.0) as process:
        yield process


def test_killed_while_clusters_come_and_go(world: WorldProcess, control_plane: ControlPlane, tmp_path: Path) -> None:
    web = Tenant(control_plane)
    web.create(replicas=3, addresses=["10.77.0.10-10.77.0.12"])
    world.restart()  # with nothing done, or a little
    web.until(lambda: web.machines("Provisioning"), "machines are being made")
    world.restart()
    web.ready(3)
    nodes = json.loads(web.kubectl(tmp_path, "get", "nodes", "-o", "json"))["items"]
    assert internal_ips(nodes) == ["10.77.0.10", "10.77.0.11", "10.77.0.12"]
    before = {machine["metadata"]["name"]: address_of(machine) for machine in web.machines()}

    world.restart()  # at rest
    assert len(web.kubectl(tmp_path, "get", "nodes", "-o", "name").split()) == 3
    assert {machine["metadata"]["name"]: address_of(machine) for machine in web.machines()} == before

    web.delete("clusters", "web")
    web.until(lambda: web.machines("Deleting"), "machines are going")
    world.restart()
    web.gone()
    left = ("machines", "machinesets", "machinedeployments", "stewardcontrolplanes", "proxmoxmachines")
    assert {plural: web.list(plural) for plural in left} == {plural: [] for plural in left}


def test_killed_in_the_middle_of_an_update(world: WorldProcess, control_plane: ControlPlane, tmp_path: Path) -> None:
    web = Tenant(control_plane)
    web.create(replicas=2, addresses=["10.77.0.10-10.77.0.11"], surge=0, unavailable=1)
    web.ready(2)
    web.template("workers-b", numCores=2)
    machine = {"version": "v1.34.0", "infrastructureRef": {"name": "workers-b"}}
    web.patch("machinedeployments", "workers", json.dumps({"spec": {"template": {"spec": machine}}}))
    web.until(lambda: len(web.list("machinesets")) == 2, "the update has begun")
    world.restart()
    web.until(lambda: {item["spec"]["version"] for item in web.machines("Running")} == {"v1.34.0"}, "updated")
    web.ready(2)
    nodes = json.loads(web.kubectl(tmp_path, "get", "nodes", "-o", "json"))["items"]
    assert internal_ips(nodes) == ["10.77.0.10", "10.77.0.11"]
    web.delete("clusters", "web")
    web.gone()


def test_it_stops_when_told_to(world: WorldProcess) -> None:
    assert world.terminate() == 0
    assert "Traceback" not in world.log()
    world.start()
