"""KubeadmConfigTemplate: how a fresh machine with Rocky Linux or Flatcar becomes a node of its cluster.

Cluster API's kubeadm provider makes a script of it: cloud-init for Rocky, Ignition for Flatcar. kubeadm joins with a
token that Cluster API makes and renews. What the machine is called, and by which id the provider knows it, is only
known on the machine; cloud-init puts it in from the provider's metadata (`{{ ds.meta_data... }}`).

Steward's control planes have no machines of their own, so there is only `joinConfiguration` here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.providers import Provider
from butler.api.tenantcluster import OSType
from butler.capi import flatcar, rocky
from butler.capi.blueprint import Unbuildable
from butler.capi.naming import KUBEADM_CONFIG_TEMPLATE, make, workers_name

if TYPE_CHECKING:
    from butler.capi.blueprint import Blueprint, Json

LOGIN = {OSType.ROCKY: "rocky", OSType.FLATCAR: "core"}
"""Who logs in by SSH: the user that people of that distribution expect."""

_WITH_IGNITION = (Provider.PROXMOX, Provider.AWS)
"""Providers that hand an Ignition configuration to the machine."""

_NODE_NAME = {
    Provider.GCP: '{{ ds.meta_data.local_hostname.split(".")[0] }}',
}
_USUAL_NODE_NAME = "{{ ds.meta_data.local_hostname }}"


def kubeadm_template(blueprint: Blueprint) -> Json:
    """The template from which each worker gets its configuration."""
    system = blueprint.cluster.spec.workers.machine_template.os
    if system.type is OSType.ROCKY:
        spec = rocky.preparation(blueprint.versions.workers, system.version)
        spec["format"] = "cloud-config"
    elif system.type is OSType.FLATCAR:
        if blueprint.provider.spec.provider not in _WITH_IGNITION:
            raise Unbuildable(
                "spec.workers.machineTemplate.os.type",
                f"machines of provider {blueprint.provider.spec.provider.value} get no Ignition: use rocky or talos",
            )
        spec = flatcar.preparation(blueprint.versions.workers)
        spec["format"] = "ignition"
    else:
        raise Unbuildable(
            "spec.workers.machineTemplate.os.type",
            f"{system.type.value} has no bootstrap template: use rocky or flatcar",
        )
    spec["joinConfiguration"] = {"nodeRegistration": _node(blueprint)}
    if system.ssh_authorized_key:
        spec["users"] = [
            {
                "name": LOGIN[system.type],
                "sudo": "ALL=(ALL) NOPASSWD:ALL",
                "sshAuthorizedKeys": [system.ssh_authorized_key],
            }
        ]
    servers = time_servers(blueprint)
    if servers:
        spec["ntp"] = {"enabled": True, "servers": list(servers)}
    return make(KUBEADM_CONFIG_TEMPLATE, blueprint, {"template": {"spec": spec}}, workers_name(blueprint.cluster))


def time_servers(blueprint: Blueprint) -> tuple[str, ...]:
    """Time servers of the machines: the cluster's, else the provider's, else none of ours."""
    return blueprint.cluster.spec.time_servers or blueprint.provider.spec.network.time_servers


def _node(blueprint: Blueprint) -> Json:
    arguments: dict[str, str] = {}
    provider = blueprint.provider.spec.provider
    if blueprint.cluster.spec.control_plane.external_cloud_provider:
        arguments["cloud-provider"] = "external"
    if provider is Provider.PROXMOX:
        # Nothing but the machine itself can tell Kubernetes which Proxmox machine it is.
        arguments["provider-id"] = "proxmox://{{ ds.meta_data.instance_id }}"
    node: Json = {"name": _NODE_NAME.get(provider, _USUAL_NODE_NAME)}
    if arguments:
        node["kubeletExtraArgs"] = arguments
    return node
