"""A whole tenant that comes back from a backup with new UIDs and without status, while its machines run on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tenants.estate import API, HOME
from tenants.flows.alongside import alongside

if TYPE_CHECKING:
    from tenants.estate import Estate, Tenant

BUILT_AS = "butler.butlerlabs.dev/built-as"
TENANT_UID = "butler.butlerlabs.dev/tenant-uid"
GRANTED = "butler.butlerlabs.dev/granted"


def _saved(found: dict[str, Any]) -> dict[str, Any]:
    meta = found["metadata"]
    kept = {key: meta[key] for key in ("name", "namespace", "labels", "annotations") if key in meta}
    return {"apiVersion": API, "kind": found["kind"], "metadata": kept, "spec": found["spec"]}


def _held(estate: Estate, path: str) -> tuple[str, str]:
    status = (estate.find(path) or {}).get("status", {})
    return status.get("phase", ""), status.get("startAddress", "")


def _lose(estate: Estate, tenant: str, allocations: list[str]) -> None:
    """Take the objects away as a lost cluster does: without a word to the machines."""
    estate.delete(tenant)
    estate.patch(tenant, {"metadata": {"finalizers": None}})  # now no controller can put it back, and it is paused
    estate.until(lambda: estate.find(tenant) is None, f"{tenant} is gone")
    for path in allocations:
        estate.delete(path)
        estate.patch(path, {"metadata": {"finalizers": None}})  # machines use it, so Butler would not let it go
        estate.until(lambda path=path: estate.find(path) is None, f"{path} is gone")


class Lost(NamedTuple):
    """A tenant of which nothing is left but its machines, and a backup."""

    tenant: Tenant
    home: str
    """The namespace that its machines are in."""
    cluster: dict[str, Any]
    allocations: list[dict[str, Any]]
    paths: list[str]
    ranges: list[tuple[str, str]]


def _lost(estate: Estate, name: str) -> Lost:
    tenant = estate.site().cluster(name)
    tenant.ready()
    home, paths = tenant.home, [_path(allocation["metadata"]["name"]) for allocation in tenant.allocations()]
    _recorded(estate, paths)
    cluster, allocations = _saved(tenant.get()), [_saved(estate.find(path) or {}) for path in paths]
    ranges = [_held(estate, path) for path in paths]
    tenant.edit({"paused": True})
    _lose(estate, tenant.path, paths)
    return Lost(tenant, home, cluster, allocations, paths, ranges)


def _path(name: str) -> str:
    return f"/apis/{API}/namespaces/{HOME}/ipallocations/{name}"


def _recorded(estate: Estate, paths: list[str]) -> None:
    def is_recorded(path: str) -> bool:
        meta = (estate.find(path) or {})["metadata"]
        return bool(meta.get("annotations", {}).get(GRANTED, "").endswith(meta["uid"]))

    estate.until(lambda: all(map(is_recorded, paths)), "the grants are recorded")


def _tear_down(estate: Estate, name: str, home: str) -> None:
    """Take the machines of an earlier life away."""
    cluster = ("clusters.cluster.x-k8s.io", name, "-n", home)
    estate.kubectl("patch", *cluster, "--type=merge", "-p", '{"spec":{"paused":false}}')
    estate.kubectl("delete", *cluster, "--timeout=60s")
    estate.kubectl("delete", "namespace", home, "--timeout=60s")


def _condition(estate: Estate, path: str, kind: str) -> dict[str, Any]:
    conditions = (estate.find(path) or {}).get("status", {}).get("conditions", ())
    return next((dict(condition) for condition in conditions if condition["type"] == kind), {})


@pytest.mark.parametrize("cluster_too", [True, False])
@alongside
def test_what_came_back_is_not_released_while_machines_of_its_earlier_life_run(
    estate: Estate, cluster_too: bool
) -> None:
    lost = _lost(estate, "undead")
    estate.apply(*([lost.cluster] if cluster_too else []), *lost.allocations)
    estate.until(lambda: [_held(estate, path) for path in lost.paths] == lost.ranges, "they hold what they held")
    for path in lost.paths:
        estate.delete(path)
    for path in lost.paths:
        estate.until(lambda path=path: _condition(estate, path, "Deleting").get("reason") == "InUse", "it waits")
        assert lost.home in _condition(estate, path, "Deleting")["message"]
    assert [_held(estate, path) for path in lost.paths] == lost.ranges
    _tear_down(estate, "undead", lost.home)
    estate.until(lambda: not any(map(estate.find, lost.paths)), "they are gone")


@alongside
def test_a_cluster_that_came_back_and_is_deleted_gives_back_what_no_machine_uses(estate: Estate) -> None:
    lost = _lost(estate, "regret")
    estate.apply(lost.cluster, *lost.allocations)
    estate.until(lambda: [_held(estate, path) for path in lost.paths] == lost.ranges, "they hold what they held")
    lost.tenant.says("InfrastructureReady", "False", "Restored")
    lost.tenant.delete()
    estate.until(lambda: lost.home in lost.tenant.message("Deleting"), "it waits for the machines")
    assert [_held(estate, path) for path in lost.paths] == lost.ranges
    _tear_down(estate, "regret", lost.home)
    estate.until(lambda: lost.tenant.find() is None, "it is gone")
    assert {_held(estate, path)[0] for path in lost.paths} <= {"Released", ""}


@alongside
def test_what_came_back_is_not_published_while_machines_of_its_earlier_life_announce_it(estate: Estate) -> None:
    """The cluster came first, from Git, where nothing is noted, and was built; its allocations have other names."""
    lost = _lost(estate, "early")
    (balancers,) = (saved for saved in lost.allocations if saved["spec"]["type"] == "loadbalancer")
    kept = {**balancers, "metadata": {"name": f"kept-{lost.tenant.namespace}", "namespace": HOME}}
    (_, first), size = lost.ranges[lost.allocations.index(balancers)], balancers["spec"]["count"]
    network, _, number = first.rpartition(".")
    pinned = {"startAddress": first, "endAddress": f"{network}.{int(number) + size - 1}"}
    reference = {"name": "no-tenant", "namespace": "nowhere"}
    spec = {key: value for key, value in balancers["spec"].items() if key != "count"}
    kept["spec"] = {**spec, "pinnedRange": pinned, "tenantClusterRef": reference}
    estate.apply(kept)  # so that the new cluster gets others
    kept_path, path = _path(kept["metadata"]["name"]), _path(f"old-{lost.tenant.namespace}")
    estate.until(lambda: _held(estate, kept_path)[0] == "Allocated", "they are kept")
    tenant = lost.tenant.site.cluster("early")
    tenant.ready()
    held = tenant.until(lambda: (tenant.status.get("loadBalancers") or {}).get("held"), "it has addresses")
    balancers["metadata"]["name"] = f"old-{lost.tenant.namespace}"
    estate.delete(kept_path)
    estate.apply(balancers)
    estate.until(lambda: _held(estate, path) == ("Allocated", first), "it holds what it held")
    assert lost.home in tenant.says("InfrastructureReady", "False", "Restored")
    time.sleep(4)  # what is published shows in the status after a moment
    assert tenant.status["loadBalancers"]["held"] == held
    _tear_down(estate, "early", lost.home)
    tenant.until(lambda: tenant.status["loadBalancers"]["held"] == held + size, "it uses them")


@alongside
def test_an_old_record_that_is_applied_again_takes_nothing_from_a_living_cluster(estate: Estate) -> None:
    tenant = estate.site().cluster("again")
    tenant.ready()
    paths = [_path(allocation["metadata"]["name"]) for allocation in tenant.allocations()]
    _recorded(estate, paths)
    ranges = [_held(estate, path) for path in paths]

    def apply_old_records() -> None:
        for path, (_, first) in zip(paths, ranges, strict=True):
            estate.patch(path, {"metadata": {"annotations": {GRANTED: f"{first}-{first} of-another-life"}}})

    apply_old_records()
    _recorded(estate, paths)
    assert [_held(estate, path) for path in paths] == ranges
    tenant.edit({"paused": True})
    apply_old_records()
    _recorded(estate, paths)
    tenant.edit({"paused": False})
    tenant.delete()
    apply_old_records()
    tenant.gone()
    assert {_held(estate, path)[0] for path in paths} <= {"Released", ""}


@alongside
def test_a_slip_of_the_label_that_names_the_owner_takes_nothing_from_a_living_cluster(estate: Estate) -> None:
    tenant = estate.site().cluster("slip")
    tenant.ready()
    tenant.until(lambda: (tenant.status.get("loadBalancers") or {}).get("inUse"), "a Service has an address")
    before = tenant.status["loadBalancers"]
    nodes, paths = tenant.addresses("nodes"), [_path(found["metadata"]["name"]) for found in tenant.allocations()]
    for path in paths:
        estate.patch(path, {"metadata": {"labels": {"butler.butlerlabs.dev/tenant-uid": "slip"}}})
    tenant.edit({"workers": {"replicas": 2}})
    tenant.ready()
    assert set(tenant.machine_addresses()) <= set(nodes)
    assert tenant.status["loadBalancers"] == before
    assert {_held(estate, path)[0] for path in paths} == {"Allocated"}
    tenant.delete()
    tenant.gone()
    assert {_held(estate, path)[0] for path in paths} <= {"Released", ""}


@alongside
def test_it_keeps_its_addresses_and_is_not_built_twice(estate: Estate) -> None:
    site = estate.site()
    tenant = site.cluster("comeback")
    tenant.ready()
    first_home, machines = tenant.home, sorted(tenant.machine_addresses())
    held = {kind: tenant.addresses(kind) for kind in ("nodes", "loadbalancer")}
    paths = [
        f"/apis/{API}/namespaces/{HOME}/ipallocations/{allocation['metadata']['name']}"
        for allocation in tenant.allocations()
    ]
    estate.until(
        lambda: all(GRANTED in (estate.find(path) or {})["metadata"].get("annotations", {}) for path in paths),
        "the grants are recorded",
    )
    backup = [_saved(tenant.get()), *(_saved(estate.find(path) or {}) for path in paths)]
    assert backup[0]["metadata"]["annotations"][BUILT_AS].startswith(first_home)
    ranges = [_held(estate, path) for path in paths]
    tenant.edit({"paused": True})
    _lose(estate, tenant.path, paths)
    estate.apply(*backup)
    assert tenant.home != first_home
    said = tenant.says("InfrastructureReady", "False", "Restored")
    assert first_home in said
    estate.until(lambda: [_held(estate, path) for path in paths] == ranges, f"they hold {ranges} again")
    tenant.edit(annotations={BUILT_AS: None})
    estate.until(lambda: "exists" in tenant.says("InfrastructureReady", "False", "Restored"), "its machines are there")
    assert estate.find(f"/api/v1/namespaces/{tenant.home}") is None, "a second set of machines"
    assert machines
    _tear_down(estate, "comeback", first_home)
    tenant.ready()
    assert {kind: tenant.addresses(kind) for kind in held} == held
    assert set(tenant.machine_addresses()) <= set(held["nodes"])


@alongside
def test_a_cluster_from_git_is_not_built_beside_the_machines_that_its_restored_allocations_tell_of(
    estate: Estate,
) -> None:
    """In another management cluster, where nothing is left of the namespace that its machines were made in."""
    lost, elsewhere = _lost(estate, "fromgit"), "7c9b3d52-6c1e-4d0b-9a53-0f6f1e2d3c4b"
    for saved in lost.allocations:
        saved["metadata"]["labels"][TENANT_UID] = elsewhere
    estate.apply(*lost.allocations)
    estate.until(lambda: [_held(estate, path) for path in lost.paths] == lost.ranges, "they hold what they held")
    meta = {key: value for key, value in lost.cluster["metadata"].items() if key != "annotations"}
    estate.apply({**lost.cluster, "metadata": meta})
    assert f"fromgit-{elsewhere[:8]}" in lost.tenant.says("InfrastructureReady", "False", "Restored")
    assert estate.find(f"/api/v1/namespaces/{lost.tenant.home}") is None, "a second set of machines"
    assert [_held(estate, path) for path in lost.paths] == lost.ranges
    _tear_down(estate, "fromgit", lost.home)
    lost.tenant.edit(annotations={BUILT_AS: None})
    lost.tenant.ready()
    assert [_held(estate, path) for path in lost.paths] == lost.ranges
