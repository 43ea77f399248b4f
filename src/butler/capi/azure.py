"""Azure, by Cluster API Provider Azure (CAPZ), kinds of infrastructure.cluster.x-k8s.io/v1beta1.

What we rely on, from its source and its webhooks:

- `controlPlaneEnabled: false` is for control planes that live elsewhere: no load balancer for an API server, no subnet
  for control-plane machines. capi-steward fills in `controlPlaneEndpoint`.
- `identityRef` is required and names an AzureClusterIdentity. That has a namespace: ours lies in the tenant's, admits
    that namespace alone (one without a list admits no namespace), and finds the password under the key `clientSecret`.
- Subscription, resource group and location can never be changed, so the location has to be known. CAPZ adopts a
  resource group and a virtual network that exist and removes neither. It knows a network by its name in the resource
  group, and wants a subnet of role `node` in it. One that does not exist it makes, so without any name each cluster
  gets a network of its own, with 10.1.0.0/16 for machines. One name without the other would be half a network of each
  kind and is refused.
- The name of a cluster has at most 44 characters.
- The mutating webhook turns `subnetName` into `networkInterfaces` and removes it. We write `networkInterfaces` at once:
  what is stored then contains what we asked for, and nothing is applied twice.
- A machine without an SSH key gets a random one from that webhook. A given key must parse, in base64.
- An OS disk has at most 2048 GB and needs its caching type, because the template's webhook fills in none.
- CAPZ judges a boot by an extension that the Azure agent runs. Talos has no agent, so there both are off.
- Templates are immutable.

Images are named in three ways. publisher:offer:sku:version is one of the marketplace; those of other makers than the
distributors below are sold with a plan, even if it costs nothing, and Azure refuses a machine without it. An id of a
managed image is passed on; an id of a gallery's image is taken apart, because CAPZ wants its parts.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

from butler.api.providers import Provider
from butler.api.tenantcluster import OSType
from butler.capi.cloud import (
    IMAGE_REF,
    MACHINE,
    InstanceType,
    credential,
    disk_gib,
    instance_types,
    refuse_foreign_networking,
    refuse_key_of_credentials,
    refuse_overlap,
    smallest_holding,
)
from butler.capi.naming import AZURE_IDENTITY, PROVIDERS, make, make_secret, reference
from butler.rules.tenant.blueprint import Infrastructure, Unbuildable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from butler.api.objects import Json
    from butler.api.providers import AzureSettings
    from butler.rules.tenant.blueprint import Blueprint

NAME_LENGTH: Final = 44
LARGEST_DISK_GIB: Final = 2048
MANAGED_SUBNET: Final = "10.1.0.0/16"

_GALLERY: Final = re.compile(
    r"/subscriptions/(?P<subscriptionID>[^/]+)/resourceGroups/(?P<resourceGroup>[^/]+)/providers/Microsoft\.Compute"
    r"/galleries/(?P<gallery>[^/]+)/images/(?P<name>[^/]+)(?:/versions/(?P<version>[^/]+))?",
    re.IGNORECASE,
)
_COMMUNITY_GALLERY: Final = re.compile(
    r"/CommunityGalleries/(?P<gallery>[^/]+)/Images/(?P<name>[^/]+)(?:/Versions/(?P<version>[^/]+))?", re.IGNORECASE
)
_MANAGED_IMAGE: Final = re.compile(
    r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Compute/images/[^/]+", re.IGNORECASE
)
_SOLD_WITHOUT_PLAN: Final = frozenset({"canonical", "cncf-upstream", "debian", "oracle", "redhat", "suse"})


def _family(name: str, gib_per_cpu: int, cpus: tuple[int, ...]) -> Iterator[InstanceType]:
    return (InstanceType(number, number * gib_per_cpu, name.format(number)) for number in cpus)


INSTANCE_TYPES: Final = instance_types(
    _family("Standard_F{}s_v2", 2, (2, 4, 8, 16, 32, 48, 64, 72)),
    _family("Standard_D{}s_v5", 4, (2, 4, 8, 16, 32, 48, 64, 96)),
    _family("Standard_E{}s_v5", 8, (2, 4, 8, 16, 20, 32, 48, 64)),
    # The largest has less memory per CPU than its smaller brothers.
    (InstanceType(96, 672, "Standard_E96s_v5"),),
)


def infrastructure(blueprint: Blueprint) -> Infrastructure:
    """AzureCluster, AzureMachineTemplate, and the identity with its password."""
    settings = blueprint.provider.spec.azure
    if settings is None:
        raise Unbuildable("spec.azure", "provider azure needs its settings here")
    refuse_foreign_networking(blueprint, "spec.azure.subnetName", takes_dns_servers=True)
    _refuse_half_a_network(blueprint, settings)
    return Infrastructure(
        cluster=_cluster(blueprint, settings),
        machine_template=_machine_template(blueprint, settings),
        others=_identity(blueprint, settings),
    )


def _refuse_half_a_network(blueprint: Blueprint, settings: AzureSettings) -> None:
    if settings.vnet_name is not None and settings.subnet_name is None:
        raise Unbuildable("spec.azure.subnetName", f"name the subnet of {settings.vnet_name} for the machines")
    if settings.subnet_name is not None and settings.vnet_name is None:
        raise Unbuildable("spec.azure.vnetName", f"name the virtual network that {settings.subnet_name} belongs to")
    if settings.vnet_name is None:
        refuse_overlap(blueprint, MANAGED_SUBNET, "name a virtual network in spec.azure.vnetName")


def _subnet_name(blueprint: Blueprint, settings: AzureSettings) -> str:
    return settings.subnet_name or f"{blueprint.name}-node-subnet"


def _secret_name(blueprint: Blueprint) -> str:
    return f"{blueprint.name}-azure-credentials"


def _identity(blueprint: Blueprint, settings: AzureSettings) -> tuple[Json, ...]:
    refuse_key_of_credentials(blueprint)
    theirs = blueprint.credentials.get("subscriptionID", "").strip()
    if theirs and theirs.lower() != settings.subscription_id.lower():
        raise Unbuildable("spec.azure.subscriptionID", f"the Secret's credentials are for subscription {theirs}")
    name = _secret_name(blueprint)
    spec: Json = {
        "type": "ServicePrincipal",
        "tenantID": credential(blueprint, "tenantID"),
        "clientID": credential(blueprint, "clientID"),
        "clientSecret": {"name": name, "namespace": blueprint.namespace},
        "allowedNamespaces": {"list": [blueprint.namespace]},
    }
    password = {"clientSecret": credential(blueprint, "clientSecret")}
    return make_secret(blueprint, name, password), make(AZURE_IDENTITY, blueprint, spec)


def _cluster(blueprint: Blueprint, settings: AzureSettings) -> Json:
    if len(blueprint.name) > NAME_LENGTH:
        raise Unbuildable("metadata.name", f"may have at most {NAME_LENGTH} characters on azure")
    if settings.location is None:
        raise Unbuildable("spec.azure.location", "name the region of the machines, such as westeurope")
    spec: Json = {
        "controlPlaneEnabled": False,
        "subscriptionID": settings.subscription_id,
        "resourceGroup": settings.resource_group,
        "location": settings.location,
        "identityRef": reference(AZURE_IDENTITY, blueprint.name, blueprint.namespace),
    }
    subnet: Json = {"name": _subnet_name(blueprint, settings), "role": "node"}
    if settings.vnet_name is None:
        subnet["cidrBlocks"] = [MANAGED_SUBNET]
    vnet = {"name": settings.vnet_name or f"{blueprint.name}-vnet", "resourceGroup": settings.resource_group}
    spec["networkSpec"] = {"vnet": vnet, "subnets": [subnet]}
    return make(PROVIDERS[Provider.AZURE].cluster, blueprint, spec)


def _machine_template(blueprint: Blueprint, settings: AzureSettings) -> Json:
    system = blueprint.cluster.spec.workers.machine_template.os
    machine: Json = {
        "vmSize": settings.vm_size or smallest_holding(blueprint, INSTANCE_TYPES, "name a size in spec.azure.vmSize"),
        "osDisk": {"osType": "Linux", "diskSizeGB": disk_gib(blueprint, LARGEST_DISK_GIB), "cachingType": "None"},
        "networkInterfaces": [{"subnetName": _subnet_name(blueprint, settings), "privateIPConfigs": 1}],
        "image": _image(blueprint, settings),
    }
    if blueprint.provider.spec.network.dns_servers:
        machine["dnsServers"] = list(blueprint.provider.spec.network.dns_servers)
    if system.ssh_authorized_key is not None:
        machine["sshPublicKey"] = _ssh_key(system.ssh_authorized_key)
    if system.type is OSType.TALOS:
        machine |= {"disableExtensionOperations": True, "disableVMBootstrapExtension": True}
    return make(PROVIDERS[Provider.AZURE].machine_template, blueprint, {"template": {"spec": machine}})


def _ssh_key(key: str) -> str:
    key = key.strip()
    try:
        load_ssh_public_key(key.encode())
    except (ValueError, UnsupportedAlgorithm):
        one = False
    else:
        one = "\n" not in key
    if not one:
        raise Unbuildable(f"{MACHINE}.os.sshAuthorizedKey", "is not one public key as in authorized_keys")
    return base64.b64encode(key.encode()).decode()


def _image(blueprint: Blueprint, settings: AzureSettings) -> Json:
    own = blueprint.cluster.spec.workers.machine_template.os.image_ref
    field, given = (IMAGE_REF, own) if own is not None else ("spec.azure.imageURN", settings.image_urn)
    if given is None:
        raise Unbuildable(IMAGE_REF, "name an image here, or in the ProviderConfig's spec.azure.imageURN")
    if (match := _GALLERY.fullmatch(given) or _COMMUNITY_GALLERY.fullmatch(given)) is not None:
        return {"computeGallery": match.groupdict() | {"version": match["version"] or "latest"}}
    if _MANAGED_IMAGE.fullmatch(given) is not None:
        return {"id": given}
    parts = given.split(":")
    if len(parts) == 4 and all(parts):
        publisher, offer, sku, version = parts
        return {
            "marketplace": {
                "publisher": publisher,
                "offer": offer,
                "sku": sku,
                "version": version,
                "thirdPartyImage": _has_plan(publisher, offer),
            }
        }
    raise Unbuildable(
        field, f"{given} is neither publisher:offer:sku:version nor the id of a managed image or of a gallery's image"
    )


def _has_plan(publisher: str, offer: str) -> bool:
    publisher = publisher.lower()
    if publisher in _SOLD_WITHOUT_PLAN or publisher.startswith("microsoft"):
        return False
    # Flatcar's "corevm" offers are the ones that its makers publish without a plan.
    return "corevm" not in offer.lower()
