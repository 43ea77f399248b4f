"""Nutanix AHV, by Nutanix' Cluster API provider (CAPX), kinds of infrastructure.cluster.x-k8s.io/v1beta1.

What we rely on, from its types and source (v1.7.0):

- `credentialRef` names a Secret in the NutanixCluster's own namespace, with JSON under `credentials`; it is made by an
  encoder. `additionalTrustBundle` takes the certificate of Prism Central as text.
- The endpoint is filled in by capi-steward. CAPX always speaks HTTPS.
- The image is a UUID or a name; without either, CAPX itself looks for the newest image whose name holds the operating
  system and the Kubernetes version (`capx-rocky-9.5-1.31.4-*`, its own pattern).
- Bootstrap data reaches a machine on a config drive, as OpenStack has it; of Talos, it takes the OpenStack image.
- The system disk lies in the storage container of its image; only further disks may name one. So a storage container
  cannot be obeyed, and is refused. The system disk has at least 20 GiB.

Node addresses. CAPX gives a machine's network card a subnet and nothing else: no field of a NutanixMachine, of its
template or of the cluster takes an address, and machines of one template share their bootstrap data, so it cannot
travel there either. Which address a machine gets is decided by the subnet: by the IP pools of AHV's own address
management, or by DHCP. What Butler's node allocation is then is a reservation: so many addresses of that subnet are
spoken for. It keeps clusters from starting that would find no address, and it is true under one condition: the
NetworkPool for nodes describes the addresses that the subnet hands out, and nothing else takes from it. A pool that
serves load balancers as well would sooner or later give a Service the address of a machine. So a pool for nodes must
be for nodes alone (`types: [nodes]`), or the cluster is refused; without any pool for nodes Butler counts none. The
NutanixCluster names the reservations in its annotations, so that users do not take them for assignments; gateway and
DNS servers stand beside them, as what the subnet has to hand out.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from butler.api.ipallocation import IPAllocationType
from butler.api.providers import NutanixSettings, Provider
from butler.api.tenantcluster import NutanixOverride, OSType
from butler.capi.naming import PROVIDERS, make, make_secret
from butler.capi.onprem import (
    MACHINE,
    image_name,
    range_texts,
    refuse_settings_without_node_addresses,
    refuse_subnet,
)
from butler.capi.quantity import GIB, MIB, in_units
from butler.rules.tenant.blueprint import Infrastructure, Unbuildable

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.rules.tenant.blueprint import Blueprint, NodeNetwork

SMALLEST_DISK: Final = 20
USUAL_PORT: Final = 9440
IMAGE_PATTERN: Final = "capx-{{.BaseOS}}-{{.K8sVersion}}-*"
RESERVED: Final = "butler.butlerlabs.dev/reserved-node-addresses"
EXPECTED_NETWORK: Final = "butler.butlerlabs.dev/expected-subnet-settings"
"""Annotations that say what Butler has reserved, and what the subnet must hand out along with it."""

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def infrastructure(blueprint: Blueprint) -> Infrastructure:
    """The NutanixCluster, the shape of its machines, and the credentials as CAPX reads them."""
    settings = blueprint.provider.spec.nutanix
    if settings is None:
        raise Unbuildable("spec.nutanix", "provider nutanix needs its settings")
    overrides = blueprint.cluster.spec.infrastructure_override
    override = (overrides.nutanix if overrides else None) or NutanixOverride()
    refuse_subnet(blueprint, "spec.nutanix.subnetUUID")
    refuse_settings_without_node_addresses(blueprint)
    _refuse_storage_container(settings, override)
    secret = f"{blueprint.name}-nutanix"
    kinds = PROVIDERS[Provider.NUTANIX]
    cluster = make(kinds.cluster, blueprint, {"prismCentral": _prism_central(blueprint, settings, secret)})
    if blueprint.nodes is not None:
        _refuse_shared_pools(blueprint)
        cluster["metadata"]["annotations"] = _reservation(blueprint.nodes)
    return Infrastructure(
        cluster=cluster,
        machine_template=make(
            kinds.machine_template, blueprint, {"template": {"spec": _machine(blueprint, settings, override)}}
        ),
        others=(make_secret(blueprint, secret, {"credentials": _credentials(blueprint)}),),
    )


def _machine(blueprint: Blueprint, settings: NutanixSettings, override: NutanixOverride) -> Json:
    shape = blueprint.cluster.spec.workers.machine_template
    disk = in_units(shape.disk_size, GIB)
    if disk < SMALLEST_DISK:
        raise Unbuildable(f"{MACHINE}.diskSize", f"must be at least {SMALLEST_DISK}Gi on Nutanix")
    return {
        "bootType": "legacy",
        "vcpuSockets": shape.cpu,
        "vcpusPerSocket": 1,
        "memorySize": f"{in_units(shape.memory, MIB)}Mi",
        "systemDiskSize": f"{disk}Gi",
        "cluster": _identifier(override.cluster_uuid or settings.cluster_uuid),
        "subnet": [_identifier(override.subnet_uuid or settings.subnet_uuid)],
        **_image(blueprint, settings, override),
    }


def _image(blueprint: Blueprint, settings: NutanixSettings, override: NutanixOverride) -> Json:
    system = blueprint.cluster.spec.workers.machine_template.os
    named = system.image_ref or override.image_uuid or settings.image_uuid
    if named:
        return {"image": _identifier(named)}
    if system.type is OSType.TALOS:
        # Talos brings Kubernetes as a container image, so its own version is the only one in the image's name.
        return {"image": _identifier(image_name(system))}
    return {"imageLookup": {"baseOS": image_name(system), "format": IMAGE_PATTERN}}


def _identifier(text: str) -> Json:
    return {"type": "uuid", "uuid": text} if _UUID.fullmatch(text) else {"type": "name", "name": text}


def _prism_central(blueprint: Blueprint, settings: NutanixSettings, secret: str) -> Json:
    url = urlsplit(settings.endpoint)
    if url.scheme != "https" or not url.hostname:
        raise Unbuildable("spec.nutanix.endpoint", "Prism Central is reached by HTTPS: give https:// and its host")
    port = url.port or settings.port
    if settings.port not in (port, USUAL_PORT):
        raise Unbuildable("spec.nutanix.port", f"is {settings.port}, but the endpoint says {port}: give one of them")
    prism: Json = {
        "address": url.hostname,
        "port": port,
        "insecure": settings.insecure,
        "credentialRef": {"kind": "Secret", "name": secret, "namespace": blueprint.namespace},
    }
    authority = blueprint.credentials.get("ca.pem")
    if authority:
        prism["additionalTrustBundle"] = {"kind": "String", "data": authority}
    return prism


def _credentials(blueprint: Blueprint) -> str:
    reference = blueprint.provider.spec.credentials_ref
    if reference is not None and reference.key is not None:
        raise Unbuildable("spec.credentialsRef.key", "Nutanix credentials have two keys, username and password")
    user, password = (blueprint.credentials.get(key, "") for key in ("username", "password"))
    if not user or not password:
        namespace, name = blueprint.credentials_secret
        raise Unbuildable("spec.credentialsRef", f"Secret {namespace}/{name} needs the keys username and password")
    login = {"username": user, "password": password}
    return json.dumps([{"type": "basic_auth", "data": {"prismCentral": login}}])


def _refuse_storage_container(settings: NutanixSettings, override: NutanixOverride) -> None:
    why = "Nutanix keeps a machine's disk in the storage container of its image: choose the container on the image"
    if override.storage_container_uuid is not None:
        raise Unbuildable("spec.infrastructureOverride.nutanix.storageContainerUUID", why)
    if settings.storage_container_uuid is not None:
        raise Unbuildable("spec.nutanix.storageContainerUUID", why)


def _refuse_shared_pools(blueprint: Blueprint) -> None:
    for pool in blueprint.provider.spec.network.pool_refs:
        serves_nodes = not pool.types or IPAllocationType.NODES in pool.types
        if serves_nodes and set(pool.types) != {IPAllocationType.NODES}:
            raise Unbuildable(
                "spec.network.poolRefs[].types",
                f"Nutanix chooses machines' addresses itself, so pool {pool.name} must be for nodes alone and describe"
                " what the subnet hands out: give it types [nodes], and load balancers a pool of their own",
            )


def _reservation(nodes: NodeNetwork) -> dict[str, str]:
    expected = {"gateway": nodes.gateway, "prefix": nodes.prefix_length, "dnsServers": list(nodes.dns_servers)}
    return {RESERVED: ", ".join(range_texts(nodes)), EXPECTED_NETWORK: json.dumps(expected)}
