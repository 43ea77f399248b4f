"""KubeadmConfigTemplate: how a fresh machine with Rocky Linux or Flatcar becomes a node of its cluster.

Cluster API's kubeadm provider makes a script of it: cloud-init for Rocky, Ignition for Flatcar. kubeadm joins with a
token that Cluster API makes and renews. What the machine is called, and by which id the provider knows it, is only
known on the machine; cloud-init puts it in from the provider's metadata (`{{ ds.meta_data... }}`), and for Ignition
a command does (`${COREOS_...}`).

`externalCloudProvider` becomes the kubelet's `cloud-provider: external`: the node stays tainted until a cloud
controller manager, or the provider itself, has initialized it. Nothing else needs to know: the controller manager
has no cloud code any more.

Steward's control planes have no machines of their own, so there is only `joinConfiguration` here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.api.providers import Provider
from butler.api.tenantcluster import OSType
from butler.capi import flatcar, rocky
from butler.capi.naming import KUBEADM_CONFIG_TEMPLATE, make, workers_name
from butler.rules.tenant.blueprint import Unbuildable

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.rules.tenant.blueprint import Blueprint

LOGIN: Final = {OSType.ROCKY: "rocky", OSType.FLATCAR: "core"}
"""Who logs in by SSH: the user that people of that distribution expect."""

_OS_TYPE = "spec.workers.machineTemplate.os.type"

_IGNITION: Final[dict[Provider, flatcar.FlatcarMetadata]] = {
    Provider.AWS: flatcar.FlatcarMetadata("/run/metadata/flatcar", unit="coreos-metadata.service"),
    Provider.PROXMOX: flatcar.FlatcarMetadata("/etc/proxmox-env"),
}
"""Providers that hand Ignition to machines, and where the machine then finds what it is called."""


def kubeadm_template(blueprint: Blueprint) -> Json:
    """The template from which each worker gets its configuration."""
    system = blueprint.cluster.spec.workers.machine_template.os
    provider = blueprint.provider.spec.provider
    if system.type is OSType.ROCKY:
        spec = rocky.preparation(blueprint.versions.workers, system.version)
        spec["format"] = "cloud-config"
    elif system.type is OSType.FLATCAR:
        if provider not in _IGNITION:
            raise Unbuildable(_OS_TYPE, f"machines of provider {provider.value} get no Ignition: use rocky or talos")
        spec = flatcar.preparation(blueprint.versions.workers, _IGNITION[provider])
        spec["format"] = "ignition"
    else:
        raise Unbuildable(_OS_TYPE, f"{system.type.value} has no bootstrap template: use rocky or flatcar")
    node = _node(blueprint)
    spec["joinConfiguration"] = {"nodeRegistration": node} if node else {}
    if system.ssh_authorized_key:
        login = {"name": LOGIN[system.type], "sudo": "ALL=(ALL) NOPASSWD:ALL"}
        spec["users"] = [{**login, "sshAuthorizedKeys": [system.ssh_authorized_key]}]
    servers = time_servers(blueprint)
    if servers:
        spec["ntp"] = {"enabled": True, "servers": list(servers)}
    return make(KUBEADM_CONFIG_TEMPLATE, blueprint, {"template": {"spec": spec}}, workers_name(blueprint.cluster))


def time_servers(blueprint: Blueprint) -> tuple[str, ...]:
    """Time servers of the machines: the cluster's, else the provider's, else none of ours."""
    return blueprint.cluster.spec.time_servers or blueprint.provider.spec.network.time_servers


def _node(blueprint: Blueprint) -> Json:
    provider = blueprint.provider.spec.provider
    ignition = blueprint.cluster.spec.workers.machine_template.os.type is OSType.FLATCAR
    arguments: dict[str, str] = {}
    if blueprint.cluster.spec.control_plane.external_cloud_provider:
        arguments["cloud-provider"] = "external"
    if provider is Provider.PROXMOX:
        # Nothing but the machine itself can tell Kubernetes which Proxmox machine it is.
        machine_id = "${COREOS_CUSTOM_INSTANCE_ID}" if ignition else "{{ ds.meta_data.instance_id }}"
        arguments["provider-id"] = f"proxmox://{machine_id}"
    name = _node_name(provider, ignition=ignition)
    return {**({"name": name} if name else {}), **({"kubeletExtraArgs": arguments} if arguments else {})}


def _node_name(provider: Provider, *, ignition: bool) -> str | None:
    """What a node is called, where it is not simply its host name: providers find their machines by it.

    CAPHV rewrites cloud-init, and may lose its templates on the way; but there the host name is the machine's name.
    """
    if provider is Provider.HARVESTER:
        return None
    if ignition:
        return "${COREOS_EC2_HOSTNAME}" if provider is Provider.AWS else None
    if provider is Provider.GCP:
        return '{{ ds.meta_data.local_hostname.split(".")[0] }}'
    if provider is Provider.NUTANIX:
        return "{{ ds.meta_data.hostname }}"
    return "{{ ds.meta_data.local_hostname }}"
