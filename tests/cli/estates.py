"""Pools, allocations and one tenant, made by plain requests: tests of commands should spend their time on commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from cli.terminal import eventually

if TYPE_CHECKING:
    from control_planes import ControlPlane

API = "butler.butlerlabs.dev/v1alpha1"
HOME = "butler-system"
EXAMPLES = Path(__file__).parents[2] / "examples" / "eight-tenants"
Json = dict[str, Any]


def pool_body(name: str, cidr: str, **spec: Any) -> Json:
    meta = {"name": name, "namespace": HOME}
    return {"apiVersion": API, "kind": "NetworkPool", "metadata": meta, "spec": {"cidr": cidr, **spec}}


def allocation_body(name: str, pool: str, tenant: str, **spec: Any) -> Json:
    namespace, _, cluster = tenant.partition("/")
    asked = {"poolRef": {"name": pool}, "tenantClusterRef": {"name": cluster, "namespace": namespace}, "type": "nodes"}
    meta = {"name": name, "namespace": HOME}
    return {"apiVersion": API, "kind": "IPAllocation", "metadata": meta, "spec": {**asked, **spec}}


def _path(plural: str, name: str = "") -> str:
    return f"/apis/{API}/namespaces/{HOME}/{plural}" + (f"/{name}" if name else "")


def create(plane: ControlPlane, plural: str, body: Json) -> None:
    status, answer = plane.request("POST", _path(plural), body)
    assert status == 201, answer


def read(plane: ControlPlane, plural: str, name: str) -> Json:
    status, answer = plane.request("GET", _path(plural, name))
    return answer if status == 200 else {}


def names(plane: ControlPlane) -> set[str]:
    """All allocations."""
    return {item["metadata"]["name"] for item in plane.request("GET", _path("ipallocations"))[1]["items"]}


def make_pool(plane: ControlPlane, network: str) -> str:
    """A pool 10.x.0.0/20 that hands out all but its first 16 addresses and its last one."""
    name = f"rack-{network.replace('.', '-')}"
    blocks = [{"cidr": f"{network}.0.0/28", "description": "switches"}]
    create(plane, "networkpools", pool_body(name, f"{network}.0.0/20", reserved=blocks))

    def ready() -> bool:
        found = read(plane, "networkpools", name).get("status", {}).get("conditions", [])
        return any(item["type"] == "Ready" and item["status"] == "True" for item in found)

    eventually(ready, f"{name} is ready")
    return name


def make_allocation(plane: ControlPlane, body: Json) -> None:
    name = body["metadata"]["name"]
    create(plane, "ipallocations", body)
    eventually(lambda: phase(plane, name) == "Allocated", f"{name} is granted")


def delete(plane: ControlPlane, name: str) -> None:
    """Delete an allocation, and wait until its addresses are back."""
    plane.request("DELETE", _path("ipallocations", name))
    eventually(lambda: not read(plane, "ipallocations", name), f"{name} is gone")


def release_by_hand(plane: ControlPlane, name: str) -> None:
    """As Butler does it when a tenant goes: the record stays."""
    patch = json.dumps({"status": {"phase": "Released"}})
    plane.kubectl("patch", "ipa", name, "-n", HOME, "--subresource=status", "--type=merge", "-p", patch)


def phase(plane: ControlPlane, name: str) -> str:
    found: str = read(plane, "ipallocations", name).get("status", {}).get("phase", "")
    return found


def make_tenant(plane: ControlPlane, data_dir: Path) -> Path:
    """Tenant cluster team-platform/web of the examples; the kubeconfig of its administrator, once it is ready."""
    plane.kubectl("apply", "-f", str(EXAMPLES / "pools.yaml"), "-f", str(EXAMPLES / "provider.yaml"))
    wanted = [item for item in yaml.safe_load_all((EXAMPLES / "tenants.yaml").read_text()) if item]
    one = [item for item in wanted if item["kind"] != "TenantCluster" or item["metadata"]["name"] == "web"]
    plane.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": one}))
    path = f"/apis/{API}/namespaces/team-platform/tenantclusters/web"

    def ready() -> str:
        status = plane.request("GET", path)[1].get("status", {})
        return str(status["tenantNamespace"]) if status.get("phase") == "Ready" else ""

    home = eventually(ready, "the cluster is ready")
    return data_dir / "clusters" / home / "web" / "kubeconfig"


RACK = "rack-10-77"


def make_small_estate(plane: ControlPlane, data_dir: Path) -> None:
    """Tenant cluster team-platform/web on its provider, and pool `RACK` with a hole, two tenants and a vain request."""
    make_pool(plane, "10.77")
    for name, tenant, spec in (
        ("shop-nodes", "team-shop/shop", {"count": 5}),
        ("gone", "team-shop/gone", {"count": 3}),
        ("shop-lb", "team-shop/shop", {"count": 8, "type": "loadbalancer"}),
    ):
        make_allocation(plane, allocation_body(name, RACK, tenant, **spec))
    delete(plane, "gone")
    create(plane, "ipallocations", allocation_body("too-large", RACK, "team-shop/big", count=4090))
    eventually(lambda: phase(plane, "too-large") == "Failed", "too-large is refused")
    make_tenant(plane, data_dir)
    path = f"/apis/{API}/namespaces/team-platform/tenantclusters/web"

    def balancers() -> Json:
        found: Json = plane.request("GET", path)[1]["status"].get("loadBalancers") or {}
        return found

    eventually(lambda: balancers().get("inUse") == 1, "traefik has its address")
