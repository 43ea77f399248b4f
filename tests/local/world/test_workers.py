"""Machines in numbers: scaling, rolling updates within the addresses, failures, pauses, and people who interfere."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from local.world.estate import Json, Tenant, address_of, internal_ips

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FAIL = "world.butler.butlerlabs.dev/fail-machines"


def scale(web: Tenant, replicas: int) -> None:
    web.patch("machinedeployments", "workers", json.dumps({"spec": {"replicas": replicas}}))


def new_template(web: Tenant, name: str, version: str = "v1.34.0") -> None:
    web.template(name, numCores=8)
    machine = {"version": version, "infrastructureRef": {"name": name}}
    web.patch("machinedeployments", "workers", json.dumps({"spec": {"template": {"spec": machine}}}))


def held(web: Tenant) -> dict[str, str]:
    """Address by machine, of all that have one."""
    return {machine["metadata"]["name"]: address for machine in web.machines() if (address := address_of(machine))}


def test_scaling_keeps_the_addresses_of_those_who_stay(tenant: Callable[..., Tenant], tmp_path: Path) -> None:
    web = tenant()
    web.create(replicas=1, addresses=["10.77.0.10-10.77.0.12"])
    web.ready(1)
    first = held(web)
    scale(web, 3)
    web.ready(3)
    assert sorted(held(web).values()) == ["10.77.0.10", "10.77.0.11", "10.77.0.12"]
    assert first.items() <= held(web).items()
    three = held(web)
    scale(web, 1)
    web.ready(1)
    assert held(web).items() <= three.items()
    nodes = json.loads(web.kubectl(tmp_path, "get", "nodes", "-o", "json"))["items"]
    assert internal_ips(nodes) == list(held(web).values())


def test_an_update_without_a_spare_address_replaces_one_after_the_other(
    tenant: Callable[..., Tenant], tmp_path: Path
) -> None:
    web = tenant()
    web.create(replicas=3, addresses=["10.77.0.10-10.77.0.12"], surge=0, unavailable=1)
    web.ready(3)
    before = set(held(web))
    new_template(web, "workers-b")
    inside = web.inside(tmp_path)
    least = 3

    def replaced() -> bool:
        nonlocal least
        nodes = inside.request("GET", "/api/v1/nodes")[1]["items"]
        found = internal_ips(nodes)
        assert len(found) == len(set(found)), f"an address is on two nodes: {found}"
        shown = list(held(web).values())
        assert len(shown) == len(set(shown)), f"an address is on two machines: {shown}"
        least = min(least, len(nodes))
        return not before & {machine["metadata"]["name"] for machine in web.machines()}

    web.until(replaced, "all machines are new")
    web.ready(3)
    assert least >= 1
    assert sorted(held(web).values()) == ["10.77.0.10", "10.77.0.11", "10.77.0.12"]
    nodes = json.loads(web.kubectl(tmp_path, "get", "nodes", "-o", "json"))["items"]
    assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes} == {"v1.34.0"}
    assert {node["status"]["capacity"]["cpu"] for node in nodes} == {"8"}
    assert sorted(obj["spec"]["replicas"] for obj in web.list("machinesets")) == [0, 3]


def test_an_update_that_needs_an_address_too_many_waits_and_says_so(tenant: Callable[..., Tenant]) -> None:
    web = tenant()
    web.create(replicas=2, addresses=["10.77.0.10-10.77.0.11"], surge=1, unavailable=0)
    web.ready(2)
    new_template(web, "workers-b")

    def waiting() -> list[Json]:
        found = [machine for machine in web.machines("Provisioning") if address_of(machine) is None]
        return [item for item in found if "NoFreeAddress" in json.dumps(item["status"]["conditions"])]

    web.until(waiting, "a machine waits for an address")
    assert web.workers()["readyReplicas"] == 2
    wider = {"spec": {"ipv4Config": {"addresses": ["10.77.0.10-10.77.0.12"]}}}
    web.patch("proxmoxclusters", "web", json.dumps(wider))
    web.ready(2)
    assert {machine["spec"]["version"] for machine in web.machines()} == {"v1.34.0"}


def test_going_back_reuses_the_set_of_the_old_template(tenant: Callable[..., Tenant]) -> None:
    web = tenant()
    web.create(replicas=1, addresses=["10.77.0.10-10.77.0.11"])
    web.ready(1)
    (first,) = web.list("machinesets")
    new_template(web, "workers-b")
    web.until(lambda: {machine["spec"]["version"] for machine in web.machines("Running")} == {"v1.34.0"}, "updated")
    web.ready(1)
    back = {"version": "v1.33.2", "infrastructureRef": {"name": "workers-a"}}
    web.patch("machinedeployments", "workers", json.dumps({"spec": {"template": {"spec": back}}}))
    web.until(lambda: {machine["spec"]["version"] for machine in web.machines("Running")} == {"v1.33.2"}, "back again")
    web.ready(1)
    assert first["metadata"]["uid"] in {obj["metadata"]["uid"] for obj in web.list("machinesets")}
    assert len(web.list("machinesets")) == 2


def test_machines_fail_as_many_as_were_told_to(tenant: Callable[..., Tenant]) -> None:
    web = tenant()
    web.create(replicas=3, fail_machines="1")
    web.until(lambda: web.workers().get("readyReplicas") == 2, "the others come up")
    (failed,) = web.until(lambda: web.machines("Failed"), "one failed")
    assert FAIL in failed["status"]["failureMessage"]
    assert failed["status"]["failureReason"] == "CreateError"
    (clone,) = [obj for obj in web.list("proxmoxmachines") if (obj.get("status") or {}).get("failureMessage")]
    assert clone["metadata"]["name"] == failed["metadata"]["name"]
    web.patch("machinedeployments", "workers", json.dumps({"metadata": {"annotations": {FAIL: None}}}))
    web.delete("machines", failed["metadata"]["name"])
    web.ready(3)


def test_a_failed_machine_goes_first_when_there_are_too_many(tenant: Callable[..., Tenant]) -> None:
    web = tenant()
    web.create(replicas=2, fail_machines="1")
    (failed,) = web.until(lambda: web.machines("Failed"), "one failed")
    web.until(lambda: web.workers().get("readyReplicas") == 1, "the other comes up")
    scale(web, 1)
    web.ready(1)
    assert failed["metadata"]["name"] not in held(web)


def test_a_paused_cluster_is_left_alone(tenant: Callable[..., Tenant]) -> None:
    web = tenant()
    web.create(replicas=1)
    web.ready(1)
    web.patch("clusters", "web", '{"spec": {"paused": true}}')
    time.sleep(0.3)  # let it be heard: the two writes reach different watches
    scale(web, 2)
    time.sleep(1.0)
    assert len(web.machines()) == 1
    web.patch("clusters", "web", '{"spec": {"paused": false}}')
    web.ready(2)


def test_a_machine_that_a_user_deletes_is_replaced(tenant: Callable[..., Tenant], tmp_path: Path) -> None:
    web = tenant()
    web.create(replicas=2, addresses=["10.77.0.10-10.77.0.11"])
    web.ready(2)
    gone = web.machines()[0]["metadata"]["name"]
    web.delete("machines", gone)
    web.until(lambda: web.get("machines", gone) is None, "it is gone")
    web.ready(2)
    nodes = json.loads(web.kubectl(tmp_path, "get", "nodes", "-o", "json"))["items"]
    assert internal_ips(nodes) == ["10.77.0.10", "10.77.0.11"]
    assert gone not in {node["metadata"]["name"] for node in nodes}


def test_slow_machines_can_be_hurried(tenant: Callable[..., Tenant]) -> None:
    web = tenant()
    web.create(replicas=1, machine_seconds="3600")
    web.until(lambda: web.machines("Provisioning"), "it takes its time")
    hurry = {"metadata": {"annotations": {"world.butler.butlerlabs.dev/machine-seconds": "0"}}}
    web.patch("machinedeployments", "workers", json.dumps(hurry))
    web.ready(1)


def test_kubectl_scale_works(tenant: Callable[..., Tenant]) -> None:
    web = tenant()
    web.create(replicas=1)
    web.ready(1)
    web.plane.kubectl("-n", web.namespace, "scale", "machinedeployment", "workers", "--replicas=2")
    web.ready(2)
