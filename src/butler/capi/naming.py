"""What things are called: namespaces, labels, templates, and every foreign kind that is built or read.

Names are how Butler finds its objects again after a restart, so each is worked out from the TenantCluster alone.
Templates are immutable in Cluster API; their names carry a hash of what they say, so a change makes a new template
and no change makes none. The hash covers the spec only: labels may change without replacing machines.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Final, NamedTuple

from butler.api.labels import MANAGED_BY, Label
from butler.api.providers import Provider

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.api.tenantcluster import TenantCluster
    from butler.rules.tenant.blueprint import Blueprint

CLUSTER_NAME_LABEL: Final = "cluster.x-k8s.io/cluster-name"
"""Cluster API's own label on everything that belongs to a Cluster."""
DEPLOYMENT_NAME_LABEL: Final = "cluster.x-k8s.io/deployment-name"
SECRET_TYPE: Final = "cluster.x-k8s.io/secret"  # noqa: S105 (a Secret's type, no secret)
"""Type of the Secrets that Cluster API reads: kubeconfigs, certificates, machine configurations."""

_CORE = "cluster.x-k8s.io"
_BOOTSTRAP = "bootstrap.cluster.x-k8s.io"
_CONTROL_PLANE = "controlplane.cluster.x-k8s.io"
_INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"


class Kind(NamedTuple):
    """A foreign kind: what is needed to write its objects and to find them under an API server's URL."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


CLUSTER: Final = Kind(_CORE, "v1beta1", "clusters", "Cluster")
MACHINE_DEPLOYMENT: Final = Kind(_CORE, "v1beta1", "machinedeployments", "MachineDeployment")
MACHINE_SET: Final = Kind(_CORE, "v1beta1", "machinesets", "MachineSet")
MACHINE: Final = Kind(_CORE, "v1beta1", "machines", "Machine")
KUBEADM_CONFIG_TEMPLATE: Final = Kind(_BOOTSTRAP, "v1beta1", "kubeadmconfigtemplates", "KubeadmConfigTemplate")
STEWARD_CONTROL_PLANE: Final = Kind(_CONTROL_PLANE, "v1alpha1", "stewardcontrolplanes", "StewardControlPlane")
SECRET: Final = Kind("", "v1", "secrets", "Secret")


class ProviderKinds(NamedTuple):
    """What one provider calls a cluster, the shape of a machine, and a machine."""

    cluster: Kind
    machine_template: Kind
    machine: Kind
    identities: tuple[Kind, ...] = ()


def _infrastructure(version: str, name: str, *identities: Kind) -> ProviderKinds:
    lower = name.lower()
    return ProviderKinds(
        Kind(_INFRASTRUCTURE, version, f"{lower}clusters", f"{name}Cluster"),
        Kind(_INFRASTRUCTURE, version, f"{lower}machinetemplates", f"{name}MachineTemplate"),
        Kind(_INFRASTRUCTURE, version, f"{lower}machines", f"{name}Machine"),
        identities,
    )


AWS_STATIC_IDENTITY: Final = Kind(
    _INFRASTRUCTURE, "v1beta2", "awsclusterstaticidentities", "AWSClusterStaticIdentity", namespaced=False
)
AZURE_IDENTITY: Final = Kind(_INFRASTRUCTURE, "v1beta1", "azureclusteridentities", "AzureClusterIdentity")

PROVIDERS: Final[dict[Provider, ProviderKinds]] = {
    Provider.HARVESTER: _infrastructure("v1alpha1", "Harvester"),
    Provider.NUTANIX: _infrastructure("v1beta1", "Nutanix"),
    Provider.PROXMOX: _infrastructure("v1alpha1", "Proxmox"),
    Provider.AWS: _infrastructure("v1beta2", "AWS", AWS_STATIC_IDENTITY),
    Provider.GCP: _infrastructure("v1beta1", "GCP"),
    Provider.AZURE: _infrastructure("v1beta1", "Azure", AZURE_IDENTITY),
}

KINDS: Final[tuple[Kind, ...]] = (
    CLUSTER,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    MACHINE,
    KUBEADM_CONFIG_TEMPLATE,
    STEWARD_CONTROL_PLANE,
    *(
        kind
        for kinds in PROVIDERS.values()
        for kind in (kinds.cluster, kinds.machine_template, kinds.machine, *kinds.identities)
    ),
)
"""Every custom resource of Cluster API, Steward and the providers that is built or read."""


def workers_name(cluster: TenantCluster) -> str:
    """The MachineDeployment, and what the names of its templates begin with."""
    return f"{cluster.metadata.name}-workers"


def labels(cluster: TenantCluster) -> dict[str, str]:
    """What stands on every object that is made for a cluster."""
    key, value = MANAGED_BY
    team = cluster.spec.team_ref
    return {
        key: value,
        Label.TENANT.value: cluster.metadata.name,
        Label.TENANT_UID.value: cluster.metadata.uid,
        Label.SOURCE_NAMESPACE.value: cluster.metadata.namespace,
        **({Label.TEAM.value: team.name} if team else {}),
        CLUSTER_NAME_LABEL: cluster.metadata.name,
    }


def make(kind: Kind, blueprint: Blueprint, spec: Json, name: str | None = None) -> Json:
    """An object of a cluster, with the cluster's own name unless another is given."""
    metadata: Json = {"name": name or blueprint.name, "labels": labels(blueprint.cluster)}
    if kind.namespaced:
        metadata["namespace"] = blueprint.namespace
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def make_secret(blueprint: Blueprint, name: str, text: dict[str, str], secret_type: str = "Opaque") -> Json:  # noqa: S107
    """A Secret of a cluster, encoded as it is stored: what was applied can be compared with what is there."""
    metadata = {"name": name, "namespace": blueprint.namespace, "labels": labels(blueprint.cluster)}
    data = {key: base64.b64encode(value.encode()).decode() for key, value in text.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": secret_type, "data": data}


def reference(kind: Kind, name: str, namespace: str) -> Json:
    """How Cluster API objects point at each other. The namespace is spelled out: capi-steward reads it as it stands."""
    return {"apiVersion": kind.api_version, "kind": kind.kind, "name": name, "namespace": namespace}


def content_name(prefix: str, obj: Json) -> str:
    """A name that changes exactly when what the object says does."""
    said = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"{prefix}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def named_by_content(prefix: str, obj: Json) -> Json:
    """The same object under the name that its content gives it."""
    return {**obj, "metadata": {**obj["metadata"], "name": content_name(prefix, obj)}}
