"""A whole tenant that comes back from a backup with new UIDs and without status, while its machines run on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenants.estate import API, HOME
from tenants.flows.alongside import alongside

if TYPE_CHECKING:
    from tenants.estate import Estate

BUILT_AS = "butler.butlerlabs.dev/built-as"
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
    estate.patch(tenant, {"metadata": {"finalizers": None}})
    estate.delete(tenant)
    estate.until(lambda: estate.find(tenant) is None, f"{tenant} is gone")
    for path in allocations:
        estate.delete(path)
        estate.patch(path, {"metadata": {"finalizers": None}})  # machines use it, so Butler would not let it go
        estate.until(lambda path=path: estate.find(path) is None, f"{path} is gone")


@alongside
def test_it_keeps_its_addresses_and_is_not_built_twice(estate: Estate) -> None:
    site = estate.site()
    tenant = site.cluster("comeback")
    tenant.ready()
    first_home, machines = tenant.home, sorted(tenant.machine_addresses())
    held = {kind: tenant.addresses(kind) for kind in ("nodes", "loadbalancer")}
    paths = [f"/apis/{API}/namespaces/{HOME}/ipallocations/{each['metadata']['name']}" for each in tenant.allocations()]
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
    cluster = ("clusters.cluster.x-k8s.io", "comeback", "-n", first_home)
    estate.kubectl("patch", *cluster, "--type=merge", "-p", '{"spec":{"paused":false}}')
    estate.kubectl("delete", *cluster, "--timeout=60s")
    estate.kubectl("delete", "namespace", first_home, "--timeout=60s")
    tenant.ready()
    assert {kind: tenant.addresses(kind) for kind in held} == held
    assert set(tenant.machine_addresses()) <= set(held["nodes"])
