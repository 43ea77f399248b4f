"""AWS, by Cluster API Provider AWS (CAPA), kinds of infrastructure.cluster.x-k8s.io/v1beta2.

What we rely on, from its source and its webhooks:

- `controlPlaneLoadBalancer.loadBalancerType: disabled` is for control planes that live elsewhere. CAPA then makes no
    load balancer and waits for `controlPlaneEndpoint` to be filled in; capi-steward does that. No other field of that
  load balancer may be set beside it, and the type can never be changed, so both are fixed here.
- `identityRef` says whose credentials are used. Left out, CAPA would put its own account's there, so it is always
  given. An AWSClusterStaticIdentity has no namespace, and its Secret is read from the namespace that CAPA itself runs
  in, capa-system as it installs itself. Both are made per cluster and named after the tenant namespace, which is
  unique: the identity admits that namespace alone, a cluster that goes takes only its own credentials along, and two
  ProviderConfigs never meet. They lie outside the tenant namespace, so they have to be deleted by name.
- A VPC that is given belongs to the user: CAPA wants its subnets listed. Without a VPC it makes one per cluster, of
  10.0.0.0/16, and then neither subnets nor security groups of another VPC make sense.
- CAPA puts a machine into the first private subnet of the cluster unless the template names one. Each cluster gets
  one of the subnets by a hash of its UID (rendezvous hashing: a subnet more moves few clusters), so clusters spread
  over all of them, and public subnets are usable. All are listed in the AWSCluster.
- CAPA opens node security groups for Calico unless told otherwise; ours are the ports of Cilium.
- Without `sshKeyName` an EC2 key pair called "default" would have to exist. Ours is empty: the key of a TenantCluster
  is text and travels in the bootstrap data.
- Bootstrap data goes into the user data. CAPA's default, AWS Secrets Manager, needs an instance profile and the AWS
  command line inside the image, neither of which a ProviderConfig knows. The join token in it lives for minutes, and
  instances answer for metadata only with a session token and only to the host itself, not to pods. Ignition needs
  CAPA's feature gate BootstrapFormatIgnition, and no cloudInit block beside it.
- Templates are immutable apart from metadata.

Images: an imageRef is the id of an AMI. Without one, type and version look up the newest image of that name from the
account of its maker (commercial partition; elsewhere give an imageRef).
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from butler.api.providers import Provider
from butler.api.tenantcluster import OSType, TalosSettings
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
from butler.capi.naming import AWS_STATIC_IDENTITY, PROVIDERS, make, make_secret
from butler.rules.tenant.blueprint import Infrastructure, Unbuildable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from butler.api.objects import Json
    from butler.api.providers import AWSSettings
    from butler.api.tenantcluster import OperatingSystem
    from butler.rules.tenant.blueprint import Blueprint

SYSTEM_NAMESPACE: Final = "capa-system"
"""Where CAPA runs, and so where it looks for the Secrets of static identities."""

MANAGED_VPC: Final = "10.0.0.0/16"
LARGEST_DISK_GIB: Final = 16384

_SIZES = {
    "large": 2,
    "xlarge": 4,
    "2xlarge": 8,
    "4xlarge": 16,
    "8xlarge": 32,
    "12xlarge": 48,
    "16xlarge": 64,
    "24xlarge": 96,
    "32xlarge": 128,
}


def _family(name: str, gib_per_cpu: int) -> Iterator[InstanceType]:
    return (InstanceType(cpus, cpus * gib_per_cpu, f"{name}.{size}") for size, cpus in _SIZES.items())


INSTANCE_TYPES: Final = instance_types(_family("c6i", 2), _family("m6i", 4), _family("r6i", 8))

_CILIUM_PORTS: Final = (
    ("Cilium VXLAN", "udp", 8472, 8472),
    ("Cilium health checks", "tcp", 4240, 4240),
    ("Cilium health checks by ping", "icmp", 8, -1),
    ("Hubble", "tcp", 4244, 4244),
)


def infrastructure(blueprint: Blueprint) -> Infrastructure:
    """AWSCluster, AWSMachineTemplate, and the identity whose credentials CAPA uses."""
    settings = blueprint.provider.spec.aws
    if settings is None:
        raise Unbuildable("spec.aws", "provider aws needs its settings here")
    refuse_foreign_networking(blueprint, "spec.aws.subnetIDs")
    _refuse_half_a_network(blueprint, settings)
    return Infrastructure(
        cluster=_cluster(blueprint, settings),
        machine_template=_machine_template(blueprint, settings),
        others=_identity(blueprint),
    )


def identity_name(blueprint: Blueprint) -> str:
    """Name of the identity and of its Secret: both share their space with those of all other clusters."""
    return f"butler-{blueprint.namespace}"


def _refuse_half_a_network(blueprint: Blueprint, settings: AWSSettings) -> None:
    if settings.vpc_id is not None and not settings.subnet_ids:
        raise Unbuildable("spec.aws.subnetIDs", f"name the subnets of {settings.vpc_id} that machines may be placed in")
    if settings.vpc_id is None:
        for field, given in (("subnetIDs", settings.subnet_ids), ("securityGroupIDs", settings.security_group_ids)):
            if given:
                raise Unbuildable("spec.aws.vpcID", f"name the VPC that spec.aws.{field} belong to")
        refuse_overlap(blueprint, MANAGED_VPC, "name a VPC in spec.aws.vpcID")


def _identity(blueprint: Blueprint) -> tuple[Json, ...]:
    refuse_key_of_credentials(blueprint)
    name = identity_name(blueprint)
    keys = {
        "AccessKeyID": credential(blueprint, "accessKeyID"),
        "SecretAccessKey": credential(blueprint, "secretAccessKey"),
    }
    secret = make_secret(blueprint, name, keys)
    secret["metadata"]["namespace"] = SYSTEM_NAMESPACE
    allowed = {"allowedNamespaces": {"list": [blueprint.namespace]}, "secretRef": name}
    return secret, make(AWS_STATIC_IDENTITY, blueprint, allowed, name)


def _cluster(blueprint: Blueprint, settings: AWSSettings) -> Json:
    network: Json = {
        "cni": {
            "cniIngressRules": [
                {"description": description, "protocol": protocol, "fromPort": first, "toPort": last}
                for description, protocol, first, last in _CILIUM_PORTS
            ]
        }
    }
    if settings.vpc_id is not None:
        network["vpc"] = {"id": settings.vpc_id}
        network["subnets"] = [{"id": subnet} for subnet in settings.subnet_ids]
    spec: Json = {
        "region": settings.region,
        "identityRef": {"kind": AWS_STATIC_IDENTITY.kind, "name": identity_name(blueprint)},
        "controlPlaneLoadBalancer": {"loadBalancerType": "disabled"},
        "network": network,
    }
    return make(PROVIDERS[Provider.AWS].cluster, blueprint, spec)


def _machine_template(blueprint: Blueprint, settings: AWSSettings) -> Json:
    system = blueprint.cluster.spec.workers.machine_template.os
    machine: Json = {
        "instanceType": smallest_holding(blueprint, INSTANCE_TYPES, "ask for less"),
        "rootVolume": {"size": disk_gib(blueprint, LARGEST_DISK_GIB), "type": "gp3"},
        "sshKeyName": "",
        "instanceMetadataOptions": {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 1},
        # Only cloud-init unpacks its data by itself.
        "uncompressedUserData": system.type is not OSType.ROCKY,
        **_image(blueprint, settings),
    }
    if system.type is OSType.FLATCAR:
        machine["ignition"] = {"storageType": "UnencryptedUserData"}
    else:
        machine["cloudInit"] = {"insecureSkipSecretsManager": True}
    if settings.subnet_ids:
        machine["subnet"] = {"id": _subnet_of(blueprint, settings.subnet_ids)}
    if settings.security_group_ids:
        machine["additionalSecurityGroups"] = [{"id": group} for group in settings.security_group_ids]
    return make(PROVIDERS[Provider.AWS].machine_template, blueprint, {"template": {"spec": machine}})


def _subnet_of(blueprint: Blueprint, subnets: tuple[str, ...]) -> str:
    def weight(subnet: str) -> bytes:
        return hashlib.sha256(f"{blueprint.cluster.metadata.uid}/{subnet}".encode()).digest()

    return max(subnets, key=weight)


def _image(blueprint: Blueprint, settings: AWSSettings) -> Json:
    system = blueprint.cluster.spec.workers.machine_template.os
    if system.image_ref is not None:
        if re.fullmatch(r"ami-[0-9a-f]{8,17}", system.image_ref) is None:
            raise Unbuildable(IMAGE_REF, f"{system.image_ref} is no id of an AMI, such as ami-0123456789abcdef0")
        return {"ami": {"id": system.image_ref}}
    found = _public_image(system, settings.region)
    if found is None:
        raise Unbuildable(IMAGE_REF, f"Butler knows no image of {system.type.value}: give the id of an AMI")
    if re.fullmatch(found.shape, found.version) is None:
        raise Unbuildable(
            f"{MACHINE}.os.{found.field}",
            f"{found.version} is no version of {system.type.value}: give one, or the id of an AMI in imageRef",
        )
    return {"imageLookupOrg": found.owner, "imageLookupFormat": found.name}


class _PublicImage(NamedTuple):
    owner: str
    name: str
    version: str
    shape: str
    field: str = "version"


def _public_image(system: OperatingSystem, region: str) -> _PublicImage | None:
    version = system.version
    match system.type:
        case OSType.ROCKY:
            major = version.split(".")[0]
            name = f"Rocky-{major}-EC2-Base-{version}-*.x86_64"
            return _PublicImage("792107900819", name, version, r"\d+\.\d+")
        case OSType.FLATCAR:
            return _PublicImage("075585003325", f"Flatcar-stable-{version}-hvm", version, r"\d{4,}\.\d+\.\d+")
        case OSType.TALOS:
            version = (system.talos or TalosSettings()).version
            name = f"talos-{version}-{region}-amd64"
            return _PublicImage("540036508848", name, version, r"v\d+\.\d+\.\d+", "talos.version")
        case _:
            return None
