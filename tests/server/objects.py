"""Objects that tests put into the estate, as an administrator does with kubectl."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from control_planes import ControlPlane

Json = dict[str, Any]
GROUP = "butler.butlerlabs.dev/v1alpha1"
HOME = "butler-system"
PLURALS = {
    "NetworkPool": "networkpools",
    "IPAllocation": "ipallocations",
    "ProviderConfig": "providerconfigs",
    "TenantCluster": "tenantclusters",
}


def create(plane: ControlPlane, obj: Json) -> Json:
    namespace = obj["metadata"]["namespace"]
    path = f"/apis/{GROUP}/namespaces/{namespace}/{PLURALS[obj['kind']]}"
    status, made = plane.request("POST", path, obj)
    assert status == 201, made
    return dict(made)


def pool(name: str, cidr: str, **spec: object) -> Json:
    meta = {"name": name, "namespace": HOME}
    return {"apiVersion": GROUP, "kind": "NetworkPool", "metadata": meta, "spec": {"cidr": cidr, **spec}}


def allocation(name: str, of: str, count: int, *, tenant: str = "shop", namespace: str = "team-web") -> Json:
    return {
        "apiVersion": GROUP,
        "kind": "IPAllocation",
        "metadata": {"name": name, "namespace": HOME},
        "spec": {
            "poolRef": {"name": of},
            "tenantClusterRef": {"name": tenant, "namespace": namespace},
            "type": "nodes",
            "count": count,
        },
    }
