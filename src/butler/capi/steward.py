"""StewardControlPlane: the hosted control plane of a cluster.

capi-steward turns it into a TenantControlPlane, whose pods Steward runs on the management cluster. It then writes
the endpoint into this object and into the provider's cluster, so no endpoint is written here: two writers would
fight over it. Where the API server is reached is a Service; without a wish it is a LoadBalancer, which is how the
platform exposes control planes. Replicas are always written, because Steward's own default (2) is not ours (1).

Steward brings CoreDNS, kube-proxy and konnectivity (the way from the hosted API server to pods and kubelets). Talos
workers join through Steward's trustd, which the workerBootstrap addon runs on the control plane's Service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.api.tenantcluster import ComponentResources, OSType, ResourceAmounts, ServiceType
from butler.capi.naming import STEWARD_CONTROL_PLANE, make
from butler.rules.tenant.blueprint import Unbuildable

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.rules.tenant.blueprint import Blueprint

DEFAULT_DATA_STORE: Final = "default"
TRUSTD_PORT: Final = 50001
"""Where Talos machines ask for their certificates, on the host of the API server."""
_ADDRESS_TYPES = ("InternalIP", "ExternalIP", "Hostname")


def control_plane(blueprint: Blueprint) -> Json:
    """The StewardControlPlane of a cluster."""
    wanted = blueprint.cluster.spec.control_plane
    spec: Json = {
        "version": blueprint.versions.control_plane,
        "replicas": wanted.replicas,
        "dataStoreName": wanted.data_store_ref.name if wanted.data_store_ref else DEFAULT_DATA_STORE,
        "addons": _addons(blueprint),
        "kubelet": {
            "cgroupfs": "cgroupfs" if _is_talos(blueprint) else "systemd",
            "preferredAddressTypes": list(_ADDRESS_TYPES),
        },
        "network": {"serviceType": (wanted.service_type or ServiceType.LOAD_BALANCER).value},
    }
    if wanted.cert_sans:
        _refuse_ports(wanted.cert_sans)
        spec["network"]["certSANs"] = list(wanted.cert_sans)
    if wanted.resources is not None:
        spec |= {
            component: {"resources": _resources(amounts)}
            for component, amounts in (
                ("apiServer", wanted.resources.api_server),
                ("controllerManager", wanted.resources.controller_manager),
                ("scheduler", wanted.resources.scheduler),
            )
            if amounts is not None
        }
    return make(STEWARD_CONTROL_PLANE, blueprint, spec)


def _refuse_ports(names: tuple[str, ...]) -> None:
    """capi-steward takes a name with a port for an error, and says so in its log only."""
    for name in names:
        if name.count(":") == 1 or "]:" in name:
            raise Unbuildable("spec.controlPlane.certSANs", f"{name} has a port: a certificate is valid for all ports")


def _is_talos(blueprint: Blueprint) -> bool:
    return blueprint.cluster.spec.workers.machine_template.os.type is OSType.TALOS


def _addons(blueprint: Blueprint) -> Json:
    addons: Json = {"coreDNS": {}, "kubeProxy": {}, "konnectivity": {}}
    if _is_talos(blueprint):
        sans = list(blueprint.cluster.spec.control_plane.cert_sans)
        trustd: Json = {"port": TRUSTD_PORT, **({"certSANs": sans} if sans else {})}
        addons["workerBootstrap"] = {"provider": "talos", "talos": trustd, "csrApproval": {"autoApprove": True}}
    return addons


def _resources(component: ComponentResources) -> Json:
    both = {"requests": component.requests, "limits": component.limits}
    return {name: _amounts(amounts) for name, amounts in both.items() if amounts is not None}


def _amounts(amounts: ResourceAmounts) -> Json:
    return {
        name: str(amount) for name, amount in (("cpu", amounts.cpu), ("memory", amounts.memory)) if amount is not None
    }
