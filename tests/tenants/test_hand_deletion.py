"""A person deletes IPAllocations that a living cluster uses: what admission says, and what happens where it is off.

Nothing that a machine or a Service uses may go to another tenant, and the user who deletes learns what stands in the
way. Everything runs as processes, Butler with its webhooks. Tests that need them off take the configuration away, as an
administrator may.
"""

from __future__ import annotations

import os
import signal
import socket
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from controller_process import ControllerProcess
from tenants.estate import API, HOME, Estate, Site, Tenant, phase_of
from tenants.management import install_cluster_api, management_cluster
from tenants.witness import CLUSTER_API, OWN, Witness
from world_process import WorldProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane
    from tenants.witness import Json

QUICK = {"machine_seconds": 0.0, "machine_deletion_seconds": 0.0, "control_plane_seconds": 0.0, "addon_seconds": 0.0}
CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/butler.butlerlabs.dev"
FORCE = "butler.butlerlabs.dev/force-delete"
TENANT = "butler.butlerlabs.dev/tenant"
ALLOCATIONS = f"/apis/{API}/namespaces/{HOME}/ipallocations"


@pytest.fixture(scope="module", params=("embedded", "kubernetes"))
def control_plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A management cluster of its own: its home namespace does not outlive the tests."""
    directory = tmp_path_factory.mktemp(f"hand-{request.param}")
    with management_cluster(request.param, directory, request.config.rootpath) as server:
        yield server


@pytest.fixture(scope="module")
def world(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorldProcess]:
    install_cluster_api(control_plane)
    with WorldProcess(control_plane.kubeconfig, tmp_path_factory.mktemp("world"), **QUICK) as running:
        yield running


@pytest.fixture(scope="module")
def estate(
    control_plane: ControlPlane, world: WorldProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Estate]:
    """An estate with all processes running, admission included."""
    directory = tmp_path_factory.mktemp("estate")
    options = ("--webhook-port", str(_free_port()), "--clean-up-limit", "20")
    with (
        ControllerProcess(control_plane.kubeconfig, directory, options) as butler,
        Witness(control_plane, OWN | CLUSTER_API) as witness,
        closing(Estate(control_plane, witness, directory)) as found,
    ):
        yield found
        assert not butler.complaints(), "\n".join(butler.complaints()[:5]) + butler.log()[-6000:]


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def admission_off(estate: Estate) -> Iterator[None]:
    """No webhooks, as after an administrator took their configuration away."""
    configuration = estate.find(CONFIGURATION)
    assert configuration is not None
    estate.delete(CONFIGURATION)
    try:
        yield
    finally:
        meta = {"name": configuration["metadata"]["name"]}
        estate.send("POST", CONFIGURATION.rpartition("/")[0], {**configuration, "metadata": meta})


def allocation(tenant: Tenant, kind: str) -> Json:
    return dict(tenant.allocations(kind)[0])


def name_of(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def now(estate: Estate, obj: Json) -> Json | None:
    """The same object as it is now; None when it is gone."""
    found = estate.find(f"{ALLOCATIONS}/{name_of(obj)}")
    return found if found is not None and found["metadata"]["uid"] == obj["metadata"]["uid"] else None


def deleted(estate: Estate, obj: Json) -> None:
    """Delete it with admission off; the API server may ask for a moment longer."""
    path = f"{ALLOCATIONS}/{name_of(obj)}"
    estate.until(lambda: estate._desk.send("DELETE", path)[0] == 200, f"{name_of(obj)} can be deleted")


def deleting(estate: Estate, obj: Json) -> Json:
    """The condition that says what its deletion waits for."""
    conditions = ((now(estate, obj) or {}).get("status") or {}).get("conditions") or ()
    return next((dict(condition) for condition in conditions if condition["type"] == "Deleting"), {})


def waits(estate: Estate, obj: Json, reason: str) -> str:
    """Wait until the condition has this reason; its message. It holds its addresses all the while."""
    estate.until(lambda: deleting(estate, obj).get("reason") == reason, f"{name_of(obj)} waits for {reason}")
    found = now(estate, obj)
    assert found is not None
    assert phase_of(found) == "Allocated"
    assert found["metadata"]["deletionTimestamp"]
    return str(deleting(estate, obj)["message"])


def _pinned(site: Site, name: str, kind: str, first: str, last: str) -> Json:
    return {
        "apiVersion": API,
        "kind": "IPAllocation",
        "metadata": {"name": name, "namespace": HOME},
        "spec": {
            "poolRef": {"name": site.pool},
            "tenantClusterRef": {"name": "guest", "namespace": "elsewhere"},
            "type": kind,
            "pinnedRange": {"startAddress": first, "endAddress": last},
        },
    }


def another_asks_for(estate: Estate, site: Site, held: Json) -> Json:
    """Another tenant wants exactly these addresses."""
    status = held["status"]
    wanted = _pinned(site, f"guest-{name_of(held)}-{site.namespace}", held["spec"]["type"],
                     status["startAddress"], status["endAddress"])  # fmt: skip
    estate.apply(wanted)
    return wanted


def reason_of(estate: Estate, wanted: Json) -> str:
    conditions = ((estate.find(f"{ALLOCATIONS}/{name_of(wanted)}") or {}).get("status") or {}).get("conditions") or ()
    return next((str(condition["reason"]) for condition in conditions if condition["type"] == "Ready"), "")


def events(estate: Estate, name: str, reason: str) -> list[str]:
    found = estate.find(f"/api/v1/namespaces/{HOME}/events?fieldSelector=involvedObject.name={name},reason={reason}")
    return [item["message"] for item in (found or {}).get("items", ())]


def services_of(tenant: Tenant) -> int:
    return int((tenant.status.get("loadBalancers") or {}).get("inUse", 0))


def a_tenant(estate: Estate, **spec: Any) -> tuple[Site, Tenant]:
    """A cluster that runs, with a Service that has an address."""
    site = estate.site()
    web = site.cluster(**spec)
    web.ready()
    web.until(lambda: services_of(web) > 0, "a Service has an address")
    return site, web


# With admission.


def test_a_deletion_is_refused_with_the_names_of_those_who_use_the_addresses(estate: Estate) -> None:
    _, web = a_tenant(estate)
    for kind, uses in (("nodes", f"Machine {web.machines()[0]['metadata']['name']} ("), ("loadbalancer", "Service ")):
        held = allocation(web, kind)
        said = estate.plane.kubectl("delete", "ipallocation", name_of(held), "-n", HOME, check=False).stderr
        assert f"IPAllocation {name_of(held)} holds {held['status']['startAddress']}-" in said
        assert f"for TenantCluster {web.namespace}/web, which exists" in said
        assert uses in said
        assert f"kubectl annotate ipallocation {name_of(held)} -n {HOME} {FORCE}={name_of(held)}" in said
        found = now(estate, held)
        assert found is not None
        assert "deletionTimestamp" not in found["metadata"]


def test_the_clean_up_command_spares_a_living_namesake(estate: Estate) -> None:
    """Seed 002's own: all allocations of the tenant `web`, of which one team's is gone and another team's lives."""
    gone_site, gone = a_tenant(estate)
    _, lives = a_tenant(estate)
    records = gone.allocations()
    gone.delete()
    gone.gone()
    assert all(now(estate, record) for record in records), "records of what was released are kept"
    before = {name_of(obj): obj["status"] for obj in lives.allocations()}
    said = estate.plane.kubectl("delete", "ipallocation", "-n", HOME, "-l", f"{TENANT}=web", check=False).stderr
    assert f"for TenantCluster {lives.namespace}/web, which exists" in said
    estate.until(lambda: not any(now(estate, record) for record in records), "what has no owner is gone")
    code, answer = estate._desk.send("DELETE", f"{ALLOCATIONS}?labelSelector={TENANT}=web")
    assert code == 403, answer
    assert "which exists" in answer["message"]
    assert {name_of(obj): obj["status"] for obj in lives.allocations()} == before
    assert all("deletionTimestamp" not in obj["metadata"] for obj in lives.allocations())
    assert gone_site.held() == 0


def test_who_insists_gets_the_addresses_back_and_the_cluster_says_what_that_did(estate: Estate) -> None:
    site, web = a_tenant(estate)
    held = allocation(web, "nodes")
    machine = web.machines()[0]
    address = machine["status"]["addresses"][0]["address"]
    estate.kubectl("annotate", "ipallocation", name_of(held), "-n", HOME, f"{FORCE}=yes")
    assert "which exists" in estate.plane.kubectl("delete", "ipa", name_of(held), "-n", HOME, check=False).stderr
    estate.kubectl("annotate", "--overwrite", "ipallocation", name_of(held), "-n", HOME, f"{FORCE}={name_of(held)}")
    wanted = another_asks_for(estate, site, held)
    estate.kubectl("delete", "ipallocation", name_of(held), "-n", HOME, "--timeout=60s")
    estate.until(lambda: reason_of(estate, wanted) == "Allocated", "another tenant has the addresses")
    told = estate.until(lambda: events(estate, site.pool, "ReleaseForced"), "the pool has it on record")
    assert any("insisted on by annotation" in item for item in told)
    assert any("deletes IPAllocation" in item for item in told), "with the name of who did it"
    said = web.says("NetworkReady", "False", "MachineOutsideAllocation")
    assert f"machine {machine['metadata']['name']} has {address}, which this cluster does not hold" in said
    assert web.until(lambda: web.events("MachineOutsideAllocation"), "an event tells of it")
    assert web.condition("Ready")["status"] == "True", "it works until another machine has the address"


# Without.


def test_without_admission_a_node_range_waits_for_its_machines(estate: Estate) -> None:
    site, web = a_tenant(estate)
    held, machine = allocation(web, "nodes"), web.machines()[0]["metadata"]["name"]
    with admission_off(estate):
        deleted(estate, held)
    said = waits(estate, held, "InUse")
    assert f"machine {machine} (" in said
    assert f"kubectl annotate ipallocation {name_of(held)}" in said
    wanted = another_asks_for(estate, site, held)
    estate.until(lambda: reason_of(estate, wanted) == "PinnedRangeConflict", "another tenant does not get them")
    assert estate.until(lambda: events(estate, name_of(held), "DeletionWaits"), "an event tells of it")
    web.edit({"workers": {"replicas": 2}})
    web.ready()
    assert set(web.machine_addresses()) <= set(held["status"]["addresses"]), "it goes on with what it has"
    assert web.condition("NetworkReady")["status"] == "True"
    web.delete()
    web.gone()
    assert now(estate, held) is None
    estate.until(lambda: reason_of(estate, wanted) == "Allocated", "now they are free")


def test_without_admission_a_range_of_a_tenant_that_is_cut_off_stays(estate: Estate, world: WorldProcess) -> None:
    site, web = a_tenant(estate)
    held = allocation(web, "loadbalancer")
    assert world.pid is not None
    os.kill(world.pid, signal.SIGSTOP)
    try:
        with admission_off(estate):
            deleted(estate, held)
        estate.until(lambda: deleting(estate, held), "it says that it waits")
        wanted = another_asks_for(estate, site, held)
        estate.until(lambda: reason_of(estate, wanted) == "PinnedRangeConflict", "another tenant does not get them")
        found = now(estate, held)
        assert found is not None
        assert phase_of(found) == "Allocated"
    finally:
        os.kill(world.pid, signal.SIGCONT)
    web.until(lambda: services_of(web) > 0, "its Services have their addresses")
    assert reason_of(estate, wanted) == "PinnedRangeConflict"
    web.delete()
    web.gone()
    estate.until(lambda: reason_of(estate, wanted) == "Allocated", "now they are free")


def test_without_admission_a_node_range_that_no_machine_needs_goes(estate: Estate) -> None:
    """A cluster that grew beyond its first block, and shrank again."""
    _, web = a_tenant(estate)
    web.edit({"workers": {"replicas": 6}})
    web.ready()
    assert len(web.allocations("nodes")) == 2
    web.edit({"workers": {"replicas": 1}})
    web.ready()
    (address,) = web.machine_addresses()
    (idle,) = (obj for obj in web.allocations("nodes") if address not in obj["status"]["addresses"])
    with admission_off(estate):
        deleted(estate, idle)
    estate.until(lambda: now(estate, idle) is None, f"it is gone: {deleting(estate, idle)}")
    web.ready()
    assert web.machine_addresses() == [address]
    assert len(web.allocations("nodes")) == 1


def test_an_allocation_of_a_cluster_that_was_never_built_goes_at_once(estate: Estate) -> None:
    """Nothing can use its addresses."""
    site = estate.site()
    web = site.cluster(paused=True)
    held = _pinned(site, f"by-hand-{site.namespace}", "nodes", f"{site.network}.20", f"{site.network}.21")
    held["spec"]["tenantClusterRef"] = {"name": "web", "namespace": web.namespace}
    (stored,) = estate.apply(held)
    estate.until(lambda: reason_of(estate, held) == "Allocated", "it is granted")
    with admission_off(estate):
        deleted(estate, stored)
    estate.until(lambda: now(estate, stored) is None, "it is gone")


def test_the_home_namespace_does_not_take_addresses_with_it_that_are_in_use(estate: Estate) -> None:
    """The last test, as the namespace goes."""
    site, web = a_tenant(estate)
    mine = web.allocations()
    assert len(mine) == 2
    estate.kubectl("delete", "namespace", HOME, "--wait=false")
    estate.until(
        lambda: (estate.find(f"/api/v1/namespaces/{HOME}") or {})["status"]["phase"] == "Terminating", "it is going"
    )
    with admission_off(estate):
        for obj in mine:
            estate.until(lambda item=obj: deleting(estate, item), "the deletion waits")
        assert [phase_of(now(estate, obj) or {}) for obj in mine] == ["Allocated", "Allocated"]
        assert site.held() == sum(obj["status"]["allocatedCount"] for obj in mine)
        assert web.machine_addresses()
        assert services_of(web) > 0
        web.delete()
        web.gone()
        estate.until(lambda: not any(now(estate, obj) for obj in mine), "its allocations are gone")
