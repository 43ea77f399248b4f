"""The addons that a TenantCluster is built with, and the developer workspaces on it."""

from enum import StrEnum
from typing import Annotated, Any

from msgspec import field

from butler.api.meta import LocalObjectReference
from butler.api.schema import ListType, Part, about

Values = Annotated[dict[str, Any], about("Values for the Helm chart, over those that Butler sets.")]
Version = Annotated[str, about("Version of the Helm chart.", min_length=1, max_length=64)]


class CNIProvider(StrEnum):
    """Pod networks."""

    CILIUM = "cilium"


class LoadBalancerProvider(StrEnum):
    """What serves Services of type LoadBalancer."""

    METALLB = "metallb"


class StorageProvider(StrEnum):
    """Block storage inside the cluster."""

    LONGHORN = "longhorn"
    LINSTOR = "linstor"


class IngressProvider(StrEnum):
    """Ingress controllers."""

    TRAEFIK = "traefik"
    NGINX = "nginx"


class GitOpsProvider(StrEnum):
    """Tools that apply a Git repository to the cluster."""

    FLUXCD = "fluxcd"
    ARGOCD = "argocd"


class CNIAddon(Part):
    """The pod network."""

    provider: Annotated[CNIProvider, about("Which pod network is installed.")] = CNIProvider.CILIUM
    version: Version
    values: Values = field(default_factory=dict)


class CertManagerAddon(Part):
    """TLS certificates."""

    enabled: Annotated[bool, about("Whether cert-manager is installed.")] = True
    version: Version
    values: Values = field(default_factory=dict)


class LoadBalancerAddon(Part):
    """What serves Services of type LoadBalancer."""

    provider: Annotated[LoadBalancerProvider, about("Which load balancer is installed.")] = LoadBalancerProvider.METALLB
    version: Version
    values: Values = field(default_factory=dict)


class StorageAddon(Part):
    """Block storage inside the cluster."""

    provider: Annotated[StorageProvider | None, about("Which storage is installed; longhorn when not given.")] = None
    version: Version
    values: Values = field(default_factory=dict)


class IngressAddon(Part):
    """The ingress controller."""

    enabled: Annotated[
        bool, about("Whether an ingress controller is installed; without one, the cluster needs one address less.")
    ] = True
    provider: Annotated[
        IngressProvider | None, about("Which ingress controller is installed; traefik when not given.")
    ] = None
    version: Annotated[
        str | None, about("Version of the Helm chart; the platform's when not given.", min_length=1, max_length=64)
    ] = None
    values: Values = field(default_factory=dict)


class GitRepository(Part):
    """Where the wanted state of the cluster lives."""

    url: Annotated[str, about("URL to clone.", min_length=1, max_length=2048)]
    branch: Annotated[str, about("Branch to follow.", min_length=1, max_length=253)] = "main"
    path: Annotated[str | None, about("Folder of this cluster within the repository.", max_length=1024)] = None
    secret_ref: Annotated[LocalObjectReference | None, about("Secret with the credentials for the repository.")] = None


class GitOpsAddon(Part):
    """The tool that applies a Git repository to the cluster."""

    provider: Annotated[GitOpsProvider | None, about("Which tool is installed; fluxcd when not given.")] = None
    version: Annotated[str | None, about("Version of the tool.", min_length=1, max_length=64)] = None
    repository: Annotated[GitRepository | None, about("The repository that the tool follows.")] = None


class Addons(Part):
    """What is installed when the cluster is built."""

    cni: Annotated[CNIAddon | None, about("The pod network; the platform's when not given.")] = None
    cert_manager: Annotated[CertManagerAddon | None, about("TLS certificates by cert-manager.")] = None
    load_balancer: Annotated[LoadBalancerAddon | None, about("What serves Services of type LoadBalancer.")] = None
    storage: Annotated[StorageAddon | None, about("Block storage inside the cluster.")] = None
    ingress: Annotated[IngressAddon, about("The ingress controller.")] = IngressAddon()
    gitops: Annotated[GitOpsAddon | None, about("The tool that applies a Git repository to the cluster.")] = None


class WorkspaceQuota(Part):
    """What all workspaces of the cluster may use together."""

    max_cpu: Annotated[str, about("Sum of CPU requests.", max_length=32)] = "16"
    max_memory: Annotated[str, about("Sum of memory requests.", max_length=32)] = "32Gi"
    max_storage: Annotated[str, about("Sum of volume sizes.", max_length=32)] = "500Gi"


class Workspaces(Part):
    """Developer workspaces on the cluster."""

    enabled: Annotated[bool, about("Whether workspaces may be created on this cluster.")] = False
    default_image: Annotated[
        str, about("Container image of workspaces that name none.", min_length=1, max_length=512)
    ] = "ghcr.io/butlerdotdev/workspace-base:latest"
    max_workspaces: Annotated[int, about("The most workspaces on this cluster; 0 means no limit.", minimum=0)] = 20
    auto_delete_after: Annotated[
        str,
        about(
            "How long a stopped workspace is kept, such as 720h; 0 means for ever.",
            pattern=r"^(0|([0-9]+(\.[0-9]+)?(h|m|s))+)$",
            max_length=32,
        ),
    ] = "720h"
    resource_quota: Annotated[WorkspaceQuota | None, about("What all workspaces of the cluster may use together.")] = (
        None
    )


class AddonManager(StrEnum):
    """Who installed an addon."""

    BUTLER = "butler"
    FLUX = "flux"
    ARGOCD = "argocd"
    MANUAL = "manual"


class AddonHealth(StrEnum):
    """How an addon fares."""

    PENDING = "Pending"
    INSTALLING = "Installing"
    HEALTHY = "Healthy"
    DEGRADED = "Degraded"
    FAILED = "Failed"


class ObservedAddon(Part):
    """An addon that was seen on the cluster."""

    name: Annotated[str, about("Name of the addon.", min_length=1, max_length=253)]
    version: Annotated[str, about("Version that is installed.", max_length=64)]
    status: Annotated[AddonHealth, about("How it fares.")]
    managed_by: Annotated[AddonManager, about("Who installed it.")]


class ObservedWorkers(Part):
    """The workers that were seen."""

    desired: Annotated[int, about("How many there should be.", minimum=0)]
    ready: Annotated[int, about("How many are ready.", minimum=0)]
    nodes: Annotated[
        tuple[Annotated[str, about("Name of a node.", max_length=253)], ...],
        about("Names of the nodes.", max_items=5000, list_type=ListType.ATOMIC),
    ] = ()
