"""What people do to IPAllocations by hand, and what these say then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenants.estate import HOME

if TYPE_CHECKING:
    from elastic.estate import ElasticTenant, Place
    from tenants.witness import Json

ALLOCATIONS = f"/apis/butler.butlerlabs.dev/v1alpha1/namespaces/{HOME}/ipallocations"


def found(web: ElasticTenant, name: str) -> Json:
    return web.witness.get("ipallocations", HOME, name) or {}


def deleting(web: ElasticTenant, name: str) -> Json:
    conditions = (found(web, name).get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition["type"] == "Deleting"), {})


def delete(place: Place, name: str) -> None:
    place.estate.send("DELETE", f"{ALLOCATIONS}/{name}")


def pinned(place: Place, name: str, address: str, tenant: Json, pool: str = "") -> None:
    """A request by hand for exactly one address."""
    spec = {
        "poolRef": {"name": pool or place.pool},
        "tenantClusterRef": tenant,
        "type": "loadbalancer",
        "pinnedRange": {"startAddress": address, "endAddress": address},
    }
    kind = {"apiVersion": "butler.butlerlabs.dev/v1alpha1", "kind": "IPAllocation"}
    place.estate.send("POST", ALLOCATIONS, {**kind, "metadata": {"name": name, "namespace": HOME}, "spec": spec})
