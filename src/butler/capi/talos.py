"""The machine configuration of a Talos worker.

Talos is configured by one YAML document and by nothing else: no shell, no cloud-init, no SSH. It joins in two steps.
The machine itself gets its certificate from Steward's trustd, which listens beside the API server and knows it by
`machine.token` and the operating system's own CA. The kubelet then joins the cluster with an ordinary bootstrap token
and the cluster's CA. All workers share one document, so nothing in it may belong to a single machine: hostnames and
addresses come from the platform (its metadata and network configuration), of which the document only adds what is the
same for all. Keys of certificate authorities must never be in it: a worker needs to trust them, not to be them.

The document is data and is written by an encoder; a token with a quote in it stays a token.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, Final

import yaml

from butler.api.tenantcluster import OSType, TalosSettings
from butler.capi.bootstrap import time_servers
from butler.capi.cluster import DNS_DOMAIN
from butler.capi.naming import SECRET_TYPE, make_secret, named_by_content
from butler.rules.tenant.blueprint import Unbuildable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from butler.api.objects import Json
    from butler.rules.tenant.blueprint import Blueprint

INSTALLER: Final = "ghcr.io/siderolabs/installer"
KUBELET: Final = "ghcr.io/siderolabs/kubelet"
USUAL_DISK: Final = "/dev/sda"
"""Where the root disk is on the providers that Talos runs on, when the spec has no Talos settings."""
CLUSTER_DNS: Final = 10
"""Which address of the Service network cluster DNS has: the tenth, as kubeadm and Steward have it."""
TRUSTD_KEYS: Final = ("token", "os-ca.crt")
CA_KEY: Final = "ca.crt"


@dataclass(frozen=True, slots=True)
class Trust:
    """What a machine needs in order to be let in, and to know whom it talks to. PEM texts, and two tokens."""

    machine_token: str
    machine_ca: str
    cluster_ca: str
    bootstrap_token: str

    @classmethod
    def read(cls, trustd: Mapping[str, str], ca: Mapping[str, str], bootstrap_token: str) -> Trust | None:
        """From Steward's Secrets `<cluster>-trustd-creds` and `<cluster>-ca`; None until both are complete."""
        machine_token, machine_ca = (trustd.get(key, "") for key in TRUSTD_KEYS)
        cluster_ca = ca.get(CA_KEY, "")
        if not (machine_token and machine_ca and cluster_ca and bootstrap_token):
            return None
        return cls(machine_token, machine_ca, cluster_ca, bootstrap_token)


def machine_config(blueprint: Blueprint, trust: Trust) -> bytes:
    """The YAML document that every worker of the cluster starts with."""
    if blueprint.endpoint is None:
        raise ValueError("a worker cannot be configured before the control plane has an endpoint")
    document = {
        "version": "v1alpha1",
        "persist": True,
        "machine": _machine(blueprint, trust),
        "cluster": _cluster(blueprint, trust),
    }
    return yaml.safe_dump(document, sort_keys=False).encode()


def refuse_what_talos_has_not(blueprint: Blueprint) -> None:
    """Say what is wrong before anything is built, and not when the first machine is to be configured."""
    if blueprint.cluster.spec.workers.machine_template.os.ssh_authorized_key:
        raise Unbuildable("spec.workers.machineTemplate.os.sshAuthorizedKey", "Talos has no SSH: leave it out")
    _cluster_dns(blueprint.cluster.spec.networking.service_cidr)


def bootstrap_secret(blueprint: Blueprint, trust: Trust) -> Json:
    """The Secret that hands the configuration to Cluster API, named by its content: a change replaces machines."""
    text = machine_config(blueprint, trust).decode()
    secret = make_secret(blueprint, blueprint.name, {"value": text}, SECRET_TYPE)
    return named_by_content(f"{blueprint.name}-talos", secret)


def _machine(blueprint: Blueprint, trust: Trust) -> dict[str, Any]:
    system = blueprint.cluster.spec.workers.machine_template.os
    if system.type is not OSType.TALOS:
        raise Unbuildable("spec.workers.machineTemplate.os.type", "is not talos")
    refuse_what_talos_has_not(blueprint)
    settings = system.talos or TalosSettings(install_disk=USUAL_DISK)
    arguments = {"rotate-server-certificates": "true"}
    if blueprint.cluster.spec.control_plane.external_cloud_provider:
        arguments["cloud-provider"] = "external"
    machine: dict[str, Any] = {
        "type": "worker",
        "token": trust.machine_token,
        "ca": {"crt": _encoded(trust.machine_ca)},
        "kubelet": {
            "image": f"{KUBELET}:{blueprint.versions.workers}",
            "clusterDNS": [_cluster_dns(blueprint.cluster.spec.networking.service_cidr)],
            "extraArgs": arguments,
            "defaultRuntimeSeccompProfileEnabled": True,
            "disableManifestsDirectory": True,
        },
        "install": {
            "disk": settings.install_disk,
            "image": settings.installer_image or f"{INSTALLER}:{settings.version}",
            "wipe": False,
        },
        "features": {"rbac": True, "stableHostname": True},
    }
    if blueprint.nodes is not None and blueprint.nodes.dns_servers:
        machine["network"] = {"nameservers": list(blueprint.nodes.dns_servers)}
    servers = time_servers(blueprint)
    if servers:
        machine["time"] = {"servers": list(servers)}
    return machine


def _cluster(blueprint: Blueprint, trust: Trust) -> dict[str, Any]:
    assert blueprint.endpoint is not None
    host = f"[{blueprint.endpoint.host}]" if ":" in blueprint.endpoint.host else blueprint.endpoint.host
    networking = blueprint.cluster.spec.networking
    return {
        "clusterName": blueprint.name,
        "controlPlane": {"endpoint": f"https://{host}:{blueprint.endpoint.port}"},
        "ca": {"crt": _encoded(trust.cluster_ca)},
        "token": trust.bootstrap_token,
        "network": {
            "dnsDomain": DNS_DOMAIN,
            "podSubnets": [networking.pod_cidr],
            "serviceSubnets": [networking.service_cidr],
            "cni": {"name": "none"},
        },
        # Discovery is a service of Talos' maker that nodes report to; a tenant's nodes talk to their cluster only.
        "discovery": {"enabled": False},
    }


def _cluster_dns(service_cidr: str) -> str:
    try:
        return str(ip_network(service_cidr)[CLUSTER_DNS])
    except IndexError:
        raise Unbuildable("spec.networking.serviceCIDR", "is too small: cluster DNS has its tenth address") from None


def _encoded(certificate: str) -> str:
    return base64.b64encode(certificate.encode()).decode()
