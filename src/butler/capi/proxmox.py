"""Proxmox VE, by IONOS Cloud's Cluster API provider (CAPMOX), kinds of infrastructure.cluster.x-k8s.io/v1alpha1.

What we rely on, from its types, webhooks and source (v0.7.0):

- `ipv4Config` (or `ipv6Config`) of the ProxmoxCluster is the home of node addresses: ranges, prefix and gateway. CAPMOX
  makes an IP pool of it, gives each machine one address, and writes it into the machine's cloud-init network
  configuration together with `dnsServers`. Ranges may be added while the cluster lives. Neither can be left out, so a
  Proxmox cluster needs a pool for nodes; DHCP is not an option.
- `externalManagedControlPlane` makes CAPMOX wait for another controller to fill in the endpoint: capi-steward.
- Credentials are an API token, not a password: `username` holds the token's id (`butler@pve!capi`), `password` its
  secret. They are copied into the tenant namespace under the names that CAPMOX reads. `insecure` is always written,
  because CAPMOX takes a missing one for permission to skip the check of certificates. `ca.pem`, where the
  ProviderConfig's Secret has one, becomes `root_ca`.
- A template is named by its number and the node it lies on, or found by its tags. Numbers are looked for on the first
  node of the ProviderConfig's list; tags are found wherever they are. An imageRef is a number, or tags with commas.
- Machines are spread over `allowedNodes`, by memory; a cluster that names a node gets that one as `target`.
- `spec.network.subnet` is the bridge. Without it, machines keep the network card of their template.
- Memory is a multiple of 8 MiB, the boot disk (`scsi0`, as image-builder makes templates) at least 5 GB.
- Talos and Flatcar have no cloud-init whose end could be waited for, and Talos no guest agent unless it was built in,
  so these checks are off for them. Talos learns its providerID from the metadata, if it is put there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.api.providers import Provider, ProxmoxSettings
from butler.api.tenantcluster import OSType, ProxmoxOverride
from butler.capi.naming import PROVIDERS, make, make_secret
from butler.capi.onprem import MACHINE, image_name, range_texts
from butler.capi.quantity import GIB, MIB, in_units
from butler.ipam.addresses import Family
from butler.rules.tenant.blueprint import Infrastructure, Unbuildable, family_of

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.rules.tenant.blueprint import Blueprint

BOOT_DISK: Final = "scsi0"
SMALLEST_DISK: Final = 5
MEMORY_STEP: Final = 8


def infrastructure(blueprint: Blueprint) -> Infrastructure:
    """The ProxmoxCluster, the shape of its machines, and the token that CAPMOX logs in with."""
    settings = blueprint.provider.spec.proxmox
    if settings is None:
        raise Unbuildable("spec.proxmox", "provider proxmox needs its settings")
    overrides = blueprint.cluster.spec.infrastructure_override
    override = (overrides.proxmox if overrides else None) or ProxmoxOverride()
    secret = f"{blueprint.name}-proxmox"
    kinds = PROVIDERS[Provider.PROXMOX]
    spec: Json = {
        "externalManagedControlPlane": True,
        "allowedNodes": [override.node] if override.node else list(settings.nodes),
        "credentialsRef": {"name": secret, "namespace": blueprint.namespace},
        **_addresses(blueprint),
    }
    return Infrastructure(
        cluster=make(kinds.cluster, blueprint, spec),
        machine_template=make(
            kinds.machine_template, blueprint, {"template": {"spec": _machine(blueprint, settings, override)}}
        ),
        others=(make_secret(blueprint, secret, _token(blueprint, settings)),),
    )


def _addresses(blueprint: Blueprint) -> Json:
    nodes = blueprint.nodes
    if nodes is None:
        gateway = blueprint.provider.spec.network.gateway
        raise Unbuildable(
            "spec.network.poolRefs[].types" if gateway else "spec.network.gateway",
            "machines on Proxmox get their addresses from Butler: use mode ipam with a pool for nodes, and a gateway",
        )
    if not nodes.dns_servers:
        raise Unbuildable("spec.network.dnsServers", "machines on Proxmox need at least one DNS server")
    field = "ipv4Config" if family_of(nodes) is Family.V4 else "ipv6Config"
    config = {
        "addresses": range_texts(nodes),
        "prefix": nodes.prefix_length,
        "gateway": nodes.gateway,
        "metric": 100,
    }
    return {"dnsServers": list(nodes.dns_servers), field: config}


def _machine(blueprint: Blueprint, settings: ProxmoxSettings, override: ProxmoxOverride) -> Json:
    shape = blueprint.cluster.spec.workers.machine_template
    disk = in_units(shape.disk_size, GIB)
    if disk < SMALLEST_DISK:
        raise Unbuildable(f"{MACHINE}.diskSize", f"must be at least {SMALLEST_DISK}Gi on Proxmox")
    where = blueprint.cluster.metadata
    spec: Json = {
        **_source(blueprint, settings, override),
        "full": True,
        "storage": override.storage or settings.storage,
        "numSockets": 1,
        "numCores": shape.cpu,
        "memoryMiB": in_units(shape.memory, MIB * MEMORY_STEP) * MEMORY_STEP,
        "disks": {"bootVolume": {"disk": BOOT_DISK, "sizeGb": disk}},
        "description": f"worker of the Butler tenant cluster {where.namespace}/{where.name}",
    }
    if override.node:
        spec["target"] = override.node
    if blueprint.provider.spec.network.subnet:
        spec["network"] = {"default": {"bridge": blueprint.provider.spec.network.subnet, "model": "virtio"}}
    if settings.vmid_range is not None:
        spec["vmIDRange"] = {"start": settings.vmid_range.start, "end": settings.vmid_range.end}
    if shape.os.type is OSType.TALOS:
        spec["checks"] = {"skipCloudInitStatus": True, "skipQemuGuestAgent": True}
        spec["metadataSettings"] = {"providerIDInjection": True}
    elif shape.os.type is OSType.FLATCAR:
        spec["checks"] = {"skipCloudInitStatus": True}
    return spec


def _source(blueprint: Blueprint, settings: ProxmoxSettings, override: ProxmoxOverride) -> Json:
    """The template that machines are cloned from: its number and node, or its tags."""
    system = blueprint.cluster.spec.workers.machine_template.os
    if system.image_ref and not system.image_ref.isdecimal():
        tags = [tag.strip() for tag in system.image_ref.split(",")]
        if not all(tags):
            raise Unbuildable(f"{MACHINE}.os.imageRef", "give the number of a template, or tags with commas between")
        return {"templateSelector": {"matchTags": tags}}
    number = int(system.image_ref) if system.image_ref else override.template_id or settings.template_id
    if number is None:
        return {"templateSelector": {"matchTags": [image_name(system)]}}
    return {"templateID": number, "sourceNode": settings.nodes[0]}


def _token(blueprint: Blueprint, settings: ProxmoxSettings) -> dict[str, str]:
    reference = blueprint.provider.spec.credentials_ref
    if reference is not None and reference.key is not None:
        raise Unbuildable("spec.credentialsRef.key", "Proxmox credentials have two keys, username and password")
    namespace, name = blueprint.credentials_secret
    user, secret = (blueprint.credentials.get(key, "").strip() for key in ("username", "password"))
    if not user or not secret:
        raise Unbuildable("spec.credentialsRef", f"Secret {namespace}/{name} needs the keys username and password")
    if "!" not in user:
        raise Unbuildable(
            "spec.credentialsRef",
            f"Secret {namespace}/{name}: the Proxmox provider logs in with an API token: put its id, such as"
            " butler@pve!capi, under username and its secret under password",
        )
    token = {"url": settings.endpoint, "token": user, "secret": secret, "insecure": str(settings.insecure).lower()}
    authority = blueprint.credentials.get("ca.pem")
    return {**token, **({"root_ca": authority} if authority else {})}
