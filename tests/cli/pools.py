"""Pools and allocations as tests of the command lines make them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cli.terminal import eventually

if TYPE_CHECKING:
    from control_planes import ControlPlane

API = "butler.butlerlabs.dev/v1alpha1"
HOME = "butler-system"
Json = dict[str, Any]


def pool_body(name: str, cidr: str, **spec: Any) -> Json:
    meta = {"name": name, "namespace": HOME}
    return {"apiVersion": API, "kind": "NetworkPool", "metadata": meta, "spec": {"cidr": cidr, **spec}}


def allocation_body(name: str, pool: str, tenant: str = "team-a/shop", **spec: Any) -> Json:
    namespace, _, cluster = tenant.partition("/")
    asked = {"poolRef": {"name": pool}, "tenantClusterRef": {"name": cluster, "namespace": namespace}, "type": "nodes"}
    meta = {"name": name, "namespace": HOME}
    return {"apiVersion": API, "kind": "IPAllocation", "metadata": meta, "spec": {**asked, **spec}}


def apply(plane: ControlPlane, *bodies: Json) -> None:
    plane.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(bodies)}))


def set_status(plane: ControlPlane, plural: str, name: str, **status: Any) -> None:
    """Write a status by hand, as no user should."""
    path = f"/apis/{API}/namespaces/{HOME}/{plural}/{name}"
    _, found = plane.request("GET", path)
    code, answer = plane.request("PUT", f"{path}/status", {**found, "status": status})
    assert code == 200, answer


def grant(plane: ControlPlane, pool: str, *wanted: tuple[str, str, int]) -> None:
    """Allocations (name, tenant, count) that a running Butler grants, one after the other."""
    for name, tenant, count in wanted:
        apply(plane, allocation_body(name, pool, tenant, count=count))
        eventually(lambda name=name: granted(plane, name), f"{name} is granted")


def granted(plane: ControlPlane, name: str) -> str:
    """`start-end` of an allocation; empty as long as it has none."""
    path = "{.status.startAddress}-{.status.endAddress}"
    found = plane.kubectl("get", "ipallocation", name, "-n", HOME, "-o", f"jsonpath={path}").stdout
    return found if found != "-" else ""
