"""The end of a cluster when it does not go smoothly: what is waited for, for how long, and what is never given up."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

from tenants.estate import HOME, phase_of
from tenants.flows.alongside import alongside, alongside_early

if TYPE_CHECKING:
    from tenants.estate import Estate, Tenant

FORCE = "butler.butlerlabs.dev/force-delete"
HOLD = "example.com/hold"


def _hold(tenant: Tenant) -> str:
    """Keep one machine from going, as one does whose provider does not answer; its name."""
    machine = tenant.machines()[0]
    finalizers = [*machine["metadata"].get("finalizers", ()), HOLD]
    tenant.estate.patch(tenant.part("machines", machine["metadata"]["name"]), {"metadata": {"finalizers": finalizers}})
    return str(machine["metadata"]["name"])


def _let_go(tenant: Tenant, machine: str) -> None:
    tenant.estate.patch(tenant.part("machines", machine), {"metadata": {"finalizers": None}})


def _only_one_left(tenant: Tenant, machine: str) -> bool:
    """Whether all machines are gone but the one that cannot."""
    return [obj["metadata"]["name"] for obj in tenant.machines()] == [machine]


@alongside
def test_addresses_stay_while_a_machine_does(estate: Estate) -> None:
    site = estate.site()
    web = site.cluster(replicas=2)
    web.ready()
    held = web.addresses("nodes") + web.addresses("loadbalancer")
    machine = _hold(web)
    web.delete()
    web.until(lambda: _only_one_left(web, machine), "one machine is left")
    said = web.says("Deleting", "True", "Waiting")
    web.until(lambda: web.status["deletion"]["stage"] == "ClusterAPI", "it waits for Cluster API")
    assert web.message("Deleting") == f"ClusterAPI: waits for Cluster API to delete Cluster {web.home}/web", said
    assert web.phase == "Deleting"
    # Another cluster that could use the addresses does not get them.
    estate.apply(site.describe_pool(size=4))
    late = site.cluster("late")
    late.says("NetworkReady", "False", "PoolExhausted")
    assert web.addresses("nodes") + web.addresses("loadbalancer") == held
    assert {phase_of(allocation) for allocation in web.allocations()} == {"Allocated"}
    _let_go(web, machine)
    web.gone()
    late.ready()


@alongside
def test_machines_are_waited_for_though_the_cluster_is_gone(estate: Estate) -> None:
    """A user removed the Cluster's finalizer: the machines count all the same."""
    site = estate.site()
    web = site.cluster(replicas=2)
    web.ready()
    machine = _hold(web)
    web.delete()
    web.until(lambda: _only_one_left(web, machine), "one machine is left")
    web.until(lambda: web.status["deletion"]["stage"] == "ClusterAPI", "it waits for Cluster API")
    estate.patch(web.part("clusters", "web"), {"metadata": {"finalizers": None}})
    web.until(lambda: web.status["deletion"]["stage"] == "Machines", "it waits for machines")
    assert web.message("Deleting") == f"Machines: waits for 1 machine ({machine})"
    assert {phase_of(allocation) for allocation in web.allocations()} == {"Allocated"}
    assert len(web.allocations()) == 2
    _let_go(web, machine)
    web.gone()


@alongside
def test_force_is_heeded_and_on_record(estate: Estate) -> None:
    site = estate.site()
    web = site.cluster(replicas=2)
    web.ready()
    machine = _hold(web)
    web.delete()
    web.until(lambda: _only_one_left(web, machine), "one machine is left")
    web.until(lambda: web.status["deletion"]["stage"] == "ClusterAPI", "it waits for Cluster API")
    # A value other than the name is a habit, not a decision.
    web.edit(annotations={FORCE: "true"})
    web.edit(annotations={"example.com/note": "looked at again"})
    assert web.phase == "Deleting"
    assert {phase_of(allocation) for allocation in web.allocations()} == {"Allocated"}
    assert not web.events("ForcedDeletion")
    web.edit(annotations={FORCE: "web"})
    web.until(lambda: web.find() is None, "it is gone")
    # No webhook asked who that was, and a machine still runs: its address is not given away.
    assert {phase_of(allocation) for allocation in web.allocations()} == {"Allocated"}
    told = [item["message"] for item in web.until(lambda: web.events("ForcedDeletion"), "an event tells of it")]
    assert f"ClusterAPI: by annotation {FORCE}, not waiting for Cluster API to delete Cluster {web.home}/web" in told
    assert {event["type"] for event in web.events("ForcedDeletion")} == {"Warning"}
    assert _only_one_left(web, machine)
    _let_go(web, machine)
    web.until(lambda: web.witness.get("namespaces", "", web.home) is None, "the namespace goes after all")
    web.until(lambda: not web.allocations(), "and then the addresses are given back")


@alongside_early
def test_a_dead_tenant_is_not_waited_for_for_ever(estate: Estate) -> None:
    """Its kubeconfig leads nowhere: load balancers get a while, then it goes on, and says so."""
    site = estate.site()
    web = site.cluster()
    web.ready()
    secret = f"/api/v1/namespaces/{web.home}/secrets/web-admin-kubeconfig"
    found = estate.find(secret)
    assert found is not None
    web.edit({"paused": True})  # so that the world does not put the kubeconfig right
    web.until(lambda: (web.witness.get("clusters", web.home, "web") or {})["spec"].get("paused"), "Cluster API is told")
    estate.patch(secret, {"data": {"admin.conf": _leading_nowhere(found["data"]["admin.conf"])}})
    web.delete()
    web.edit({"paused": False})
    web.until(lambda: web.status.get("deletion", {}).get("stage") == "LoadBalancers", "it waits for load balancers")
    assert web.message("Deleting").startswith(
        "LoadBalancers: waits for the tenant's API server to delete its load balancers"
    )
    assert {phase_of(allocation) for allocation in web.allocations()} == {"Allocated"}
    told = web.until(lambda: web.events("DeletionStage"), "an event tells that it goes on")[0]
    assert told["type"] == "Warning"
    assert re.match(r"LoadBalancers: waited \d+ (seconds|minutes) for the tenant's API server", told["message"])
    assert told["message"].endswith("; going on without")
    assert "object at 0x" not in told["message"]
    # The world was told to leave this Cluster alone; a person lets it go on.
    web.until(lambda: _is_going(web), "Cluster API is told")
    estate.patch(f"/apis/cluster.x-k8s.io/v1beta1/namespaces/{web.home}/clusters/web", {"spec": {"paused": False}})
    web.gone()


def _is_going(tenant: Tenant) -> bool:
    found = tenant.witness.get("clusters", tenant.home, tenant.name)
    return found is None or "deletionTimestamp" in found["metadata"]


def _leading_nowhere(kubeconfig: str) -> str:
    text = base64.b64decode(kubeconfig).decode()
    return base64.b64encode(re.sub(r"https://127\.0\.0\.1:\d+", "https://127.0.0.1:9", text).encode()).decode()


@alongside
def test_deletion_while_machines_come(estate: Estate) -> None:
    site = estate.site()
    web = site.cluster(replicas=2)
    web.until(web.deployment, "workers are asked for")
    web.annotate("machinedeployments", "web-workers", machine_seconds="600")
    web.delete()
    web.gone()
    assert site.held() == 0


@alongside
def test_deletion_in_the_first_moment(estate: Estate) -> None:
    """Before Butler could put a finalizer on them: what was asked for in their name is swept up."""
    site = estate.site()
    names = [f"moth-{number}" for number in range(6)]
    for name in names:
        web = site.cluster(name)
        estate.delete(web.path)
    for name in names:
        estate.until(lambda name=name: estate.witness.get("tenantclusters", site.namespace, name) is None, "gone")  # type: ignore[misc]
    estate.until(lambda: site.held() == 0, "nothing is held")
    estate.until(lambda: not _moths(estate), "no namespace is left")


def _moths(estate: Estate) -> list[str]:
    names = [obj["metadata"]["name"] for obj in estate.witness.list("namespaces")]
    return [name for name in names if name.startswith("moth-")]


@alongside
def test_deletion_while_it_waits_for_addresses(estate: Estate) -> None:
    site = estate.site(size=3)
    web = site.cluster()
    web.until(lambda: web.condition("NetworkReady").get("reason") in ("PoolExhausted", "PoolFragmented"), "it waits")
    assert web.phase == "Pending"
    web.delete()
    web.gone()
    assert site.held() == 0
    estate.until(lambda: _allocated(estate, site.pool) == 0, "the pool counts none")


def _allocated(estate: Estate, pool: str) -> int:
    return int((estate.witness.get("networkpools", HOME, pool) or {})["status"]["allocatedIPs"])


@alongside
def test_a_paused_cluster_goes_when_it_is_no_longer_paused(estate: Estate) -> None:
    site = estate.site()
    web = site.cluster()
    web.ready()
    web.edit({"paused": True})
    web.says("Paused", "True", "Paused")
    web.delete()
    web.until(lambda: "deletionTimestamp" in web.get()["metadata"], "it is to go")
    # Another one comes and goes meanwhile: whatever were to happen would have happened.
    other = site.cluster("other")
    other.ready()
    other.delete()
    other.gone()
    assert "deletion" not in web.status
    assert len(web.machines()) == 1
    assert {phase_of(allocation) for allocation in web.allocations()} == {"Allocated"}
    web.edit({"paused": False})
    web.gone()


@alongside
def test_a_provider_outlives_its_clusters(estate: Estate) -> None:
    site = estate.site()
    web = site.cluster()
    web.ready()
    estate.delete(f"/apis/butler.butlerlabs.dev/v1alpha1/namespaces/{HOME}/providerconfigs/{site.provider}")
    estate.until(lambda: _is_blocked(estate, site.provider, f"{site.namespace}/web"), "it says whom it waits for")
    assert web.phase == "Ready"
    web.delete()
    web.gone()
    estate.until(lambda: estate.witness.get("providerconfigs", HOME, site.provider) is None, "now it goes")


def _is_blocked(estate: Estate, provider: str, user: str) -> bool:
    found = estate.witness.get("providerconfigs", HOME, provider) or {"status": {}}
    said = f"it is being deleted, and goes once no cluster uses it: TenantCluster {user}"
    return said in [condition["message"] for condition in found["status"].get("conditions", ())]
