"""Google Cloud, by Cluster API Provider GCP (CAPG), kinds of infrastructure.cluster.x-k8s.io/v1beta1.

What we rely on, from its source and its webhooks:

- CAPG has no switch for a control plane that lives elsewhere. It makes a load balancer for each of the types External,
  Internal and InternalExternal, External when none is named, and then overwrites `controlPlaneEndpoint` with that
  load balancer's address. The field is plain text, and any other word makes no load balancer and leaves the endpoint
  alone: that is why it says "None" here. It is immutable, as are project, region and credentialsRef.
- capi-steward does not know GCPCluster, so the endpoint is ours to write; CAPG waits for it.
- A machine goes into the first of the cluster's failure domains, by name. Ours is the one zone that was asked for, so
  there is never a choice.
- `credentialsRef` names a Secret with the key `credentials`, in a namespace of our choice: the tenant's.
- Subnetworks are named without a path: CAPG puts the network's project and the cluster's region before the name. A
  network that is given with its path (projects/<project>/global/networks/<name>) may belong to another project, a
  shared VPC; CAPG then touches neither its firewall nor its routers.
- Images, in contrast, need a full reference; a bare name gets the image project before it.
- CAPG calls its firewall rules and its (empty) instance groups after the cluster, and Google allows 63 characters.
- A GCPCluster stored without a `network` can never be updated: only inside that block does the schema fill in the MTU
  that the webhook asks for. So there always is one, by the name that CAPG would use, "default".
- A root disk is a slow pd-standard unless another type is named, and the newest machine series take Hyperdisks only.
- Templates are immutable apart from labels and network tags.

Google hands out DNS servers by DHCP from its metadata server, per network; there is nowhere to put others.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from butler.api.providers import Provider
from butler.api.tenantcluster import GCPOverride
from butler.capi.cloud import (
    IMAGE_REF,
    InstanceType,
    credential,
    disk_gib,
    instance_types,
    refuse_foreign_networking,
    smallest_holding,
)
from butler.capi.naming import PROVIDERS, make, make_secret
from butler.rules.tenant.blueprint import Infrastructure, Unbuildable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from butler.api.objects import Json
    from butler.api.providers import GCPSettings
    from butler.rules.tenant.blueprint import Blueprint

NAME_LENGTH: Final = 63
LARGEST_DISK_GIB: Final = 65536
SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
"""Access scopes are the old way to limit a machine; the roles of its service account do that now."""

_HYPERDISK_ONLY: Final = frozenset({"c4", "c4a", "c4d", "n4", "n4a", "n4d", "x4", "m4"})
_IMAGE_REFERENCE: Final = ("projects/", "global/", "https://")
_CPUS = (2, 4, 8, 16, 32, 48, 64, 80, 96)


def _family(kind: str, gib_per_cpu: int) -> Iterator[InstanceType]:
    return (InstanceType(cpus, cpus * gib_per_cpu, f"n2-{kind}-{cpus}") for cpus in _CPUS)


INSTANCE_TYPES: Final = instance_types(_family("highcpu", 1), _family("standard", 4), _family("highmem", 8))


def infrastructure(blueprint: Blueprint) -> Infrastructure:
    """GCPCluster, GCPMachineTemplate, and the Secret with the service account's key."""
    settings = blueprint.provider.spec.gcp
    if settings is None:
        raise Unbuildable("spec.gcp", "provider gcp needs its settings here")
    refuse_foreign_networking(blueprint, "spec.gcp.subnetwork")
    override = blueprint.cluster.spec.infrastructure_override
    own = (override.gcp if override is not None else None) or GCPOverride()
    network = _network(settings)
    return Infrastructure(
        cluster=_cluster(blueprint, settings, network, _zone(settings, own)),
        machine_template=_machine_template(blueprint, settings, own, network),
        others=(_secret(blueprint),),
    )


class _Network(NamedTuple):
    name: str
    project: str


def _network(settings: GCPSettings) -> _Network:
    if settings.network is None or "/" not in settings.network:
        return _Network(settings.network or "default", settings.project_id)
    match = re.fullmatch(r"projects/([^/]+)/global/networks/([^/]+)", settings.network)
    if match is None:
        raise Unbuildable("spec.gcp.network", "give a name, or projects/<project>/global/networks/<name>")
    return _Network(match[2], match[1])


def _zone(settings: GCPSettings, own: GCPOverride) -> str:
    field, zone = (
        ("spec.infrastructureOverride.gcp.zone", own.zone) if own.zone is not None else ("spec.gcp.zone", settings.zone)
    )
    zone = zone or f"{settings.region}-a"
    if re.fullmatch(re.escape(settings.region) + "-[a-z]", zone) is None:
        raise Unbuildable(field, f"{zone} is no zone of region {settings.region}")
    return zone


def _secret_name(blueprint: Blueprint) -> str:
    return f"{blueprint.name}-gcp-credentials"


def _secret(blueprint: Blueprint) -> Json:
    reference = blueprint.provider.spec.credentials_ref
    key = (reference.key if reference is not None else None) or "serviceAccountKey"
    return make_secret(blueprint, _secret_name(blueprint), {"credentials": credential(blueprint, key)})


def _cluster(blueprint: Blueprint, settings: GCPSettings, network: _Network, zone: str) -> Json:
    longest = max(f"allow-{blueprint.name}-healthchecks", f"{blueprint.name}-apiserver-{zone}", key=len)
    if len(longest) > NAME_LENGTH:
        raise Unbuildable(
            "metadata.name", f"is too long for gcp by {len(longest) - NAME_LENGTH} characters: it makes {longest}"
        )
    spec: Json = {
        "project": settings.project_id,
        "region": settings.region,
        "failureDomains": [zone],
        "loadBalancer": {"loadBalancerType": "None"},
        "credentialsRef": {"namespace": blueprint.namespace, "name": _secret_name(blueprint)},
        "network": {"name": network.name},
    }
    if network.project != settings.project_id:
        spec["network"]["hostProject"] = network.project
    if blueprint.endpoint is not None:
        spec["controlPlaneEndpoint"] = {"host": blueprint.endpoint.host, "port": blueprint.endpoint.port}
    return make(PROVIDERS[Provider.GCP].cluster, blueprint, spec)


def _machine_template(blueprint: Blueprint, settings: GCPSettings, own: GCPOverride, network: _Network) -> Json:
    machine_type = own.machine_type or settings.machine_type
    if machine_type is None:
        machine_type = smallest_holding(blueprint, INSTANCE_TYPES, "name a machineType")
    series = machine_type.split("-")[0]
    machine: Json = {
        "instanceType": machine_type,
        "rootDeviceSize": disk_gib(blueprint, LARGEST_DISK_GIB),
        "rootDeviceType": "hyperdisk-balanced" if series in _HYPERDISK_ONLY else "pd-balanced",
        **_image(blueprint, settings, own),
    }
    subnetwork = _subnetwork(settings, own, network)
    if subnetwork is not None:
        machine["subnet"] = subnetwork
    if settings.tags:
        machine["additionalNetworkTags"] = [_tag(tag) for tag in settings.tags]
    if settings.service_account is not None:
        machine["serviceAccounts"] = {"email": settings.service_account, "scopes": [SCOPE]}
    return make(PROVIDERS[Provider.GCP].machine_template, blueprint, {"template": {"spec": machine}})


def _subnetwork(settings: GCPSettings, own: GCPOverride, network: _Network) -> str | None:
    field, given = (
        ("spec.infrastructureOverride.gcp.subnetwork", own.subnetwork)
        if own.subnetwork is not None
        else ("spec.gcp.subnetwork", settings.subnetwork)
    )
    if given is None or "/" not in given:
        return given
    before = f"projects/{network.project}/regions/{settings.region}/subnetworks/"
    if not given.startswith(before) or "/" in given.removeprefix(before):
        raise Unbuildable(field, f"give a name, or {before}<name>: project and region are those of the network")
    return given.removeprefix(before)


def _tag(tag: str) -> str:
    if re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", tag) is None:
        raise Unbuildable(
            "spec.gcp.tags",
            f"{tag} is no network tag: lower-case letters, digits and hyphens, a letter first, at most 63",
        )
    return tag


def _image(blueprint: Blueprint, settings: GCPSettings, own: GCPOverride) -> Json:
    """The cluster's image goes before the provider's, and an image before a family at either."""
    if settings.image_project is not None and settings.image is not None and "/" in settings.image:
        raise Unbuildable("spec.gcp.imageProject", "spec.gcp.image names its project already: leave this out")
    project = settings.image_project or settings.project_id
    override = "spec.infrastructureOverride.gcp"
    for field, given, key in (
        (IMAGE_REF, blueprint.cluster.spec.workers.machine_template.os.image_ref, "image"),
        (f"{override}.image", own.image, "image"),
        (f"{override}.imageFamily", own.image_family, "imageFamily"),
        ("spec.gcp.image", settings.image, "image"),
        ("spec.gcp.imageFamily", settings.image_family, "imageFamily"),
    ):
        if given is None:
            continue
        if "/" not in given:
            folder = "images" if key == "image" else "images/family"
            return {key: f"projects/{project}/global/{folder}/{given}"}
        if not given.startswith(_IMAGE_REFERENCE):
            raise Unbuildable(field, f"{given} is no name, and no reference such as projects/<project>/global/images/x")
        return {key: given}
    raise Unbuildable(
        IMAGE_REF, "name an image here, in spec.infrastructureOverride.gcp, or in the ProviderConfig's spec.gcp"
    )
