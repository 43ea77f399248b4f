"""Harvester, by the Cluster API provider for Harvester (CAPHV), kinds of infrastructure.cluster.x-k8s.io/v1alpha1.

What we rely on, from its types, webhooks and controllers:

- `vmNetworkConfig` of the HarvesterCluster carries node addresses: one range, gateway, netmask and DNS servers. CAPHV
  makes a Harvester IPPool of it, once, and takes one address per machine out of it; cloud-init configures the machine.
  Machines of a template cannot each name an address (`networkConfig` is for a single machine). An IPPool that exists
  is not changed by CAPHV: a range that grows later needs the IPPool in Harvester to be grown, too. Ranges that do not
  touch cannot be expressed, and are refused. Without `vmNetworkConfig` machines use DHCP.
- A cluster without control-plane machines gets a placeholder Service in Harvester (address by DHCP of the management
  network, `ipamType: dhcp`), and CAPHV writes that Service's address over `controlPlaneEndpoint` at every turn. So the
  endpoint is not written here: two writers would chase each other. Cluster API takes whichever endpoint comes first,
  the control plane's or the infrastructure's; the placeholder's would be wrong. That is why `objects` holds the
  HarvesterCluster back until Steward's endpoint is known, and why capi-steward has to run with SkipInfraClusterPatch.
- `identitySecret` points at a Secret in any namespace with the key `kubeconfig`, so the credentials stay where they
  are. Only an `endpoint` of our own, or another key, makes a copy necessary: CAPHV goes to the server that the
  kubeconfig names, and nowhere else.
- Disks made from an image always use the storage class that Harvester made with the image; `storageClassName` cannot
  be obeyed, so it is refused. Images are found by name or by display name.
- `sshKeyPair` must name a KeyPair that exists in Harvester. Ours is called `butler`, in the machines' namespace. The
  key of a TenantCluster is text, and reaches machines by their bootstrap configuration.
- CAPHV itself sets the nodes' providerID and takes the taint of an uninitialized node away, so clusters become ready
  without a cloud controller manager.
- CAPHV reads what a machine starts with as cloud-init, mixes its own into it and writes it anew. Templates in it are
  lost on the way. A Talos configuration comes out as something that Talos does not take, and its machines would wait
  for ever; so Talos is refused here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

from butler.api.providers import HarvesterSettings, Provider
from butler.api.tenantcluster import HarvesterOverride, OSType
from butler.capi.bootstrap import LOGIN
from butler.capi.naming import PROVIDERS, make, make_secret
from butler.capi.onprem import (
    MACHINE,
    image_name,
    joined,
    network_text,
    refuse_settings_without_node_addresses,
    refuse_subnet,
)
from butler.capi.quantity import GIB, MIB, in_units
from butler.ipam.addresses import Family, address_text
from butler.rules.tenant.blueprint import Infrastructure, Unbuildable, family_of

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.rules.tenant.blueprint import Blueprint, NodeNetwork

KEY: Final = "kubeconfig"
KEY_PAIR: Final = "butler"
"""The SSH key pair that has to exist in Harvester, in the machines' namespace."""


def infrastructure(blueprint: Blueprint) -> Infrastructure:
    """The HarvesterCluster, the shape of its machines, and a copy of the kubeconfig where one is needed."""
    settings = blueprint.provider.spec.harvester
    if settings is None:
        raise Unbuildable("spec.harvester", "provider harvester needs its settings")
    if settings.storage_class_name is not None:
        raise Unbuildable(
            "spec.harvester.storageClassName",
            "Harvester keeps a machine's disk in the storage class of its image: choose the class on the image",
        )
    if blueprint.cluster.spec.workers.machine_template.os.type is OSType.TALOS:
        raise Unbuildable(
            f"{MACHINE}.os.type",
            "the Harvester provider mixes cloud-init into what machines start with, and Talos takes none: use rocky",
        )
    refuse_subnet(blueprint, "spec.harvester.networkName")
    refuse_settings_without_node_addresses(blueprint)
    overrides = blueprint.cluster.spec.infrastructure_override
    override = (overrides.harvester if overrides else None) or HarvesterOverride()
    namespace = override.namespace or settings.namespace
    network = override.network_name or settings.network_name
    identity, others = _identity(blueprint, settings)
    kinds = PROVIDERS[Provider.HARVESTER]
    spec: Json = {
        "targetNamespace": namespace,
        "identitySecret": identity,
        "loadBalancerConfig": {"ipamType": "dhcp"},
    }
    if settings.endpoint is not None:
        spec["server"] = settings.endpoint
    if blueprint.nodes is not None:
        spec["vmNetworkConfig"] = _machine_network(blueprint.nodes, network)
    return Infrastructure(
        cluster=make(kinds.cluster, blueprint, spec),
        machine_template=make(
            kinds.machine_template,
            blueprint,
            {"template": {"spec": _machine(blueprint, settings, override, namespace, network)}},
        ),
        others=others,
    )


def _machine(
    blueprint: Blueprint, settings: HarvesterSettings, override: HarvesterOverride, namespace: str, network: str
) -> Json:
    shape = blueprint.cluster.spec.workers.machine_template
    image = shape.os.image_ref or override.image_name or settings.image_name or image_name(shape.os)
    return {
        "cpu": shape.cpu,
        "memory": f"{in_units(shape.memory, MIB)}Mi",
        "sshUser": LOGIN[OSType.ROCKY],
        "sshKeyPair": f"{namespace}/{KEY_PAIR}",
        "networks": [network],
        "volumes": [
            {
                "volumeType": "image",
                "imageName": image,
                "volumeSize": f"{in_units(shape.disk_size, GIB)}Gi",
                "bootOrder": 1,
            }
        ],
    }


def _machine_network(nodes: NodeNetwork, network: str) -> Json:
    family = family_of(nodes)
    if family is not Family.V4:
        raise Unbuildable("spec.network.gateway", "the Harvester provider hands out IPv4 addresses only")
    ranges = joined(nodes.ranges)
    if len(ranges) != 1:
        raise Unbuildable(
            "spec.workers.replicas",
            "the Harvester provider takes one range of node addresses, and this cluster has several that do not touch",
        )
    mask = (1 << family.bits) - (1 << (family.bits - nodes.prefix_length))
    spec: Json = {
        "gateway": nodes.gateway,
        "subnetMask": address_text(mask, family),
        "ipPool": {
            "vmNetwork": network,
            "subnet": network_text(nodes),
            "gateway": nodes.gateway,
            "rangeStart": address_text(ranges[0].first, family),
            "rangeEnd": address_text(ranges[0].last, family),
        },
    }
    if nodes.dns_servers:
        spec["dnsServers"] = list(nodes.dns_servers)
    return spec


def _identity(blueprint: Blueprint, settings: HarvesterSettings) -> tuple[Json, tuple[Json, ...]]:
    """Where CAPHV finds the kubeconfig, and the Secret that has to be made for that, if any."""
    reference = blueprint.provider.spec.credentials_ref
    key = (reference.key if reference else None) or KEY
    namespace, name = blueprint.credentials_secret
    text = blueprint.credentials.get(key)
    if not text:
        raise Unbuildable("spec.credentialsRef", f"Secret {namespace}/{name} has nothing under the key {key}")
    if key == KEY and settings.endpoint is None:
        return {"namespace": namespace, "name": name}, ()
    if settings.endpoint is not None:
        text = _with_server(text, settings.endpoint)
    copy = f"{blueprint.name}-harvester"
    return {"namespace": blueprint.namespace, "name": copy}, (make_secret(blueprint, copy, {KEY: text}),)


def _with_server(kubeconfig: str, server: str) -> str:
    """The kubeconfig with another server in its current context."""
    unreadable = Unbuildable("spec.credentialsRef", "the kubeconfig cannot be read, or has no current context")
    try:
        config: Any = yaml.safe_load(kubeconfig)
        contexts = {context["name"]: context["context"] for context in config["contexts"]}
        wanted = contexts[config["current-context"]]["cluster"]
        cluster = next(item["cluster"] for item in config["clusters"] if item["name"] == wanted)
        cluster["server"] = server
    except (yaml.YAMLError, KeyError, TypeError, StopIteration):
        raise unreadable from None
    return yaml.safe_dump(config, sort_keys=False)
