"""TenantCluster: a Kubernetes cluster for a team.

Blocks with defaults inside are themselves filled in (`machineTemplate`, `networking`, ...), so that the stored
object says what will be built and a later change of a default does not rebuild a running cluster.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from butler.api.labels import ConditionType
from butler.api.meta import LABEL_LENGTH, Condition, LocalObjectReference, ProviderConfigReference, TeamReference
from butler.api.resource import AGE, Column, ColumnType, CustomResource, Definition, Scale
from butler.api.schema import ListType, Part, Reason, Rule, about
from butler.api.tenantaddons import Addons, ObservedAddon, ObservedWorkers, Workspaces
from butler.api.text import (
    A_NETWORK,
    AN_IPV4_ADDRESS,
    IPV4,
    IPV4_LENGTH,
    LARGEST_RANGE,
    NO_HOST_BITS,
    QUANTITY,
    an_ordered_range,
)

NAME_LENGTH = 54
MOST_FOREIGN = 8
"""Addresses of pools that a tenant does not hold and that count as shown by its Services; more are only told."""
"""The cluster gets a namespace called <name>-<8 characters of its UID>, which may have 63."""

UNCHANGEABLE = Rule(
    expression="self == oldSelf",
    message="cannot be changed once the cluster exists",
    reason=Reason.FORBIDDEN,
)


class ServiceType(StrEnum):
    """How a hosted control plane is reached."""

    LOAD_BALANCER = "LoadBalancer"
    NODE_PORT = "NodePort"
    CLUSTER_IP = "ClusterIP"


class OSType(StrEnum):
    """Operating systems of workers."""

    ROCKY = "rocky"
    FLATCAR = "flatcar"
    TALOS = "talos"
    KAIROS = "kairos"
    BOTTLEROCKET = "bottlerocket"


class ManagementMode(StrEnum):
    """Who manages the addons of a cluster."""

    ACTIVE = "Active"
    OBSERVE = "Observe"
    GITOPS = "GitOps"


class TenantClusterPhase(StrEnum):
    """Where a cluster stands in its life."""

    PENDING = "Pending"
    PROVISIONING = "Provisioning"
    INSTALLING = "Installing"
    READY = "Ready"
    UPDATING = "Updating"
    DELETING = "Deleting"
    FAILED = "Failed"


class ResourceAmounts(Part):
    """CPU and memory."""

    cpu: Annotated[int | str | None, about("CPU cores, such as 500m or 2.", pattern=QUANTITY)] = None
    memory: Annotated[int | str | None, about("Memory, such as 512Mi.", pattern=QUANTITY)] = None


class ComponentResources(Part):
    """What one component is guaranteed, and what it may use at the most."""

    requests: Annotated[ResourceAmounts | None, about("What the component is guaranteed.")] = None
    limits: Annotated[ResourceAmounts | None, about("What the component may use at the most.")] = None


class ControlPlaneResources(Part):
    """CPU and memory of the hosted control plane, per component."""

    api_server: Annotated[ComponentResources | None, about("The API server.")] = None
    controller_manager: Annotated[ComponentResources | None, about("The controller manager.")] = None
    scheduler: Annotated[ComponentResources | None, about("The scheduler.")] = None


class ControlPlane(Part):
    """The hosted control plane."""

    replicas: Annotated[int, about("How many API servers run.", minimum=1, maximum=3)] = 1
    service_type: Annotated[
        ServiceType | None, about("How the API server is reached; as the platform exposes it when not given.")
    ] = None
    cert_sans: Annotated[
        tuple[Annotated[str, about("Host name or address.", min_length=1, max_length=253)], ...],
        about(
            "More names and addresses that the API server's certificate is valid for.",
            max_items=64,
            list_type=ListType.SET,
        ),
    ] = ()
    data_store_ref: Annotated[
        LocalObjectReference | None, about("Steward DataStore that holds the state; default when not given.")
    ] = None
    external_cloud_provider: Annotated[
        bool, about("Whether an external cloud controller manager initializes the nodes.")
    ] = True
    resources: Annotated[
        ControlPlaneResources | None,
        about("CPU and memory per component; a component that is given replaces the platform's default whole."),
    ] = None


class TalosSettings(Part):
    """Settings of Talos Linux workers."""

    version: Annotated[str, about("Version of Talos Linux.", min_length=1, max_length=64)] = "v1.9.3"
    install_disk: Annotated[str, about("Disk that Talos is installed on.", min_length=1, max_length=253)] = "/dev/vda"
    installer_image: Annotated[
        str | None, about("Container image of the installer; that of the version when not given.", max_length=512)
    ] = None


class OperatingSystem(Part):
    """What runs on a worker."""

    validations = (
        Rule(
            expression="self.type == 'talos' || !has(self.talos)",
            message="talos settings need type talos",
            reason=Reason.FORBIDDEN,
            field_path=".talos",
        ),
        Rule(
            expression="!(self.type in ['kairos', 'bottlerocket'])",
            message="Butler cannot bootstrap this operating system yet: use rocky, flatcar or talos",
            reason=Reason.FORBIDDEN,
            field_path=".type",
        ),
        Rule(
            expression="!has(self.schematicID)",
            message="Butler has no image factory yet: put the image's name into imageRef",
            reason=Reason.FORBIDDEN,
            field_path=".schematicID",
        ),
    )

    type: Annotated[OSType, about("Operating system.")] = OSType.ROCKY
    version: Annotated[
        str, about("Version of the operating system; Talos has its own in talos.version.", max_length=64)
    ] = "9.5"
    image_ref: Annotated[str | None, about("Image to start from; goes before type and version.", max_length=512)] = None
    schematic_id: Annotated[
        str | None, about("Schematic of the image factory to build the image from.", max_length=128)
    ] = None
    ssh_authorized_key: Annotated[
        str | None, about("Public key that may log in by SSH; not on Talos.", max_length=8192)
    ] = None
    talos: Annotated[TalosSettings | None, about("Settings of Talos Linux.")] = None


class MachineTemplate(Part):
    """The shape of a worker."""

    cpu: Annotated[int, about("Virtual CPUs.", minimum=1)] = 4
    memory: Annotated[int | str, about("Memory, such as 16Gi.", pattern=QUANTITY)] = "16Gi"
    disk_size: Annotated[int | str, about("Size of the root disk, such as 100Gi.", pattern=QUANTITY)] = "100Gi"
    os: Annotated[OperatingSystem, about("Operating system.")] = OperatingSystem()


class Workers(Part):
    """The machines that run the tenant's pods."""

    replicas: Annotated[int, about("How many workers.", minimum=1, maximum=5000)]
    machine_template: Annotated[MachineTemplate, about("The shape of each worker.")] = MachineTemplate()


class LoadBalancerPool(Part):
    """A hand-picked range of load-balancer addresses."""

    validations = (an_ordered_range("start", "end"),)

    start: Annotated[str, about("First address.", pattern=IPV4, max_length=IPV4_LENGTH, rules=(AN_IPV4_ADDRESS,))]
    end: Annotated[
        str, about("Last address, itself included.", pattern=IPV4, max_length=IPV4_LENGTH, rules=(AN_IPV4_ADDRESS,))
    ]


class Networking(Part):
    """Networks of the cluster."""

    validations = (
        Rule(
            # Two networks overlap exactly when one contains the other's first address.
            expression="!isCIDR(self.podCIDR) || !isCIDR(self.serviceCIDR)"
            " || (!cidr(self.podCIDR).containsIP(cidr(self.serviceCIDR).ip())"
            " && !cidr(self.serviceCIDR).containsIP(cidr(self.podCIDR).ip()))",
            message="podCIDR and serviceCIDR must not overlap",
            message_expression="'podCIDR ' + self.podCIDR + ' and serviceCIDR ' + self.serviceCIDR + ' overlap'",
            field_path=".serviceCIDR",
        ),
        Rule(
            expression="!has(self.loadBalancerPool) || !has(self.lbPoolSize)",
            message="loadBalancerPool already says how many addresses there are: give one of the two",
            reason=Reason.FORBIDDEN,
            field_path=".lbPoolSize",
        ),
    )

    pod_cidr: Annotated[
        str,
        about(
            "Network that pods get their addresses from; fixed once created.",
            max_length=43,
            rules=(A_NETWORK, NO_HOST_BITS, UNCHANGEABLE),
        ),
    ] = "10.244.0.0/16"
    service_cidr: Annotated[
        str,
        about(
            "Network that Services get their cluster addresses from; fixed once created.",
            max_length=43,
            rules=(A_NETWORK, NO_HOST_BITS, UNCHANGEABLE),
        ),
    ] = "10.96.0.0/12"
    lb_pool_size: Annotated[
        int | None,
        about(
            "Load-balancer addresses to start with, in place of the provider's number; ipam mode only.",
            minimum=1,
            maximum=LARGEST_RANGE,
        ),
    ] = None
    load_balancer_pool: Annotated[
        LoadBalancerPool | None,
        about(
            "Hand-picked load-balancer addresses, for a cluster that uses them already; they must lie in a pool of the"
            " provider. ipam mode only, and fixed once set.",
            rules=(UNCHANGEABLE,),
        ),
    ] = None


class ManagementPolicy(Part):
    """Who manages the addons."""

    mode: Annotated[
        ManagementMode,
        about("Active lets Butler install and mend addons, Observe only report; GitOps leaves them to that tool."),
    ] = ManagementMode.ACTIVE


class HarvesterOverride(Part):
    """Harvester settings of this cluster."""

    namespace: Annotated[str | None, about("Harvester namespace for the machines.", max_length=63)] = None
    network_name: Annotated[str | None, about("VM network, as namespace/name.", max_length=253)] = None
    image_name: Annotated[str | None, about("VM image, as namespace/name.", max_length=253)] = None


class NutanixOverride(Part):
    """Nutanix settings of this cluster."""

    cluster_uuid: Annotated[str | None, about("UUID of the Prism Element cluster.", max_length=64)] = None
    subnet_uuid: Annotated[str | None, about("UUID of the subnet.", max_length=64)] = None
    image_uuid: Annotated[str | None, about("UUID of the image.", max_length=64)] = None
    storage_container_uuid: Annotated[str | None, about("UUID of the storage container.", max_length=64)] = None


class ProxmoxOverride(Part):
    """Proxmox settings of this cluster."""

    node: Annotated[str | None, about("Proxmox node for the machines.", max_length=253)] = None
    storage: Annotated[str | None, about("Storage for the disks.", max_length=253)] = None
    template_id: Annotated[int | None, about("Number of the machine template.", minimum=100)] = None


class GCPOverride(Part):
    """GCP settings of this cluster."""

    zone: Annotated[str | None, about("Zone of the machines.", max_length=64)] = None
    subnetwork: Annotated[str | None, about("Subnetwork of the machines.", max_length=253)] = None
    machine_type: Annotated[str | None, about("Machine type.", max_length=64)] = None
    image: Annotated[str | None, about("Image; goes before imageFamily.", max_length=512)] = None
    image_family: Annotated[str | None, about("Image family whose newest image is used.", max_length=253)] = None


class InfrastructureOverride(Part):
    """Provider settings of this cluster alone."""

    harvester: Annotated[HarvesterOverride | None, about("For provider harvester.")] = None
    nutanix: Annotated[NutanixOverride | None, about("For provider nutanix.")] = None
    proxmox: Annotated[ProxmoxOverride | None, about("For provider proxmox.")] = None
    gcp: Annotated[GCPOverride | None, about("For provider gcp.")] = None


def _set_once(field: str, message: str) -> Rule:
    return Rule(
        expression=f"!has(oldSelf.{field}) || (has(self.{field}) && self.{field} == oldSelf.{field})",
        message=message,
        reason=Reason.FORBIDDEN,
        field_path=f".{field}",
    )


class TenantClusterSpec(Part):
    """The wanted cluster."""

    validations = (
        _set_once("providerConfigRef", "a cluster cannot move to another provider"),
        _set_once("teamRef", "a cluster cannot move to another team"),
        Rule(
            expression="!has(self.workspaces) || !self.workspaces.enabled",
            message="Butler has no developer workspaces yet: leave them disabled",
            reason=Reason.FORBIDDEN,
            field_path=".workspaces.enabled",
        ),
    )

    kubernetes_version: Annotated[
        str, about("Kubernetes version, such as v1.31.4.", pattern=r"^v\d+\.\d+\.\d+$", max_length=32)
    ]
    workers: Annotated[Workers, about("The machines that run the tenant's pods.")]
    provider_config_ref: Annotated[
        ProviderConfigReference | None,
        about("Where the cluster is put; the platform's default when not given, and fixed once set."),
    ] = None
    team_ref: Annotated[
        TeamReference | None,
        about(
            "The team that owns the cluster. It follows from the namespace, so this may be left out; it grants nothing,"
            " and one that is not the namespace's team is refused. Fixed once set."
        ),
    ] = None
    control_plane: Annotated[ControlPlane, about("The hosted control plane.")] = ControlPlane()
    networking: Annotated[Networking, about("Networks of the cluster.")] = Networking()
    addons: Annotated[
        Addons, about("What is installed when the cluster is built; later entries are added, none is removed.")
    ] = Addons()
    management_policy: Annotated[ManagementPolicy, about("Who manages the addons.")] = ManagementPolicy()
    infrastructure_override: Annotated[
        InfrastructureOverride | None, about("Provider settings of this cluster alone, over the ProviderConfig's.")
    ] = None
    time_servers: Annotated[
        tuple[Annotated[str, about("Host name or address of a time server.", min_length=1, max_length=253)], ...],
        about(
            "Time servers of Talos workers; the provider's, then the platform's, when not given.",
            max_items=16,
            list_type=ListType.ATOMIC,
        ),
    ] = ()
    workspaces: Annotated[Workspaces | None, about("Developer workspaces on the cluster.")] = None
    paused: Annotated[
        bool,
        about("Leaves the cluster and its machines as they are until it is set to false again; deletion waits too."),
    ] = False


class DeletionStage(StrEnum):
    """What a cluster that is being deleted waits for, in this order; addresses go last."""

    LOAD_BALANCERS = "LoadBalancers"
    ADDONS = "Addons"
    CLUSTER_API = "ClusterAPI"
    MACHINES = "Machines"
    NAMESPACE = "Namespace"
    ADDRESSES = "Addresses"


class DeletionProgress(Part):
    """How far the deletion of a cluster is."""

    stage: Annotated[DeletionStage, about("What is being taken down.")]
    since: Annotated[datetime, about("When this stage began; each has a time limit.")]


class ObservedState(Part):
    """What was seen on the running cluster."""

    kubernetes_version: Annotated[
        str | None, about("Kubernetes version that the API server reports.", max_length=64)
    ] = None
    workers: Annotated[ObservedWorkers | None, about("The workers.")] = None
    addons: Annotated[
        tuple[ObservedAddon, ...],
        about("The addons.", max_items=256, list_type=ListType.MAP, map_keys=("name",)),
    ] = ()


class PoolChange(Part):
    """One change of a tenant's load-balancer addresses."""

    time: Annotated[datetime, about("When it was done.")]
    addresses: Annotated[int, about("How many addresses came or went.", minimum=0)]
    reason: Annotated[str, about("Why.", max_length=1024)]


class LoadBalancerUse(Part):
    """What the tenant's Services make of its load-balancer addresses."""

    held: Annotated[int, about("Addresses that the tenant holds.", minimum=0)]
    in_use: Annotated[int, about("Of these, addresses that a Service has.", minimum=0)]
    idle: Annotated[int, about("Of these, addresses that no Service has.", minimum=0)]
    services: Annotated[int, about("Services that have an address.", minimum=0)]
    platform_services: Annotated[int, about("Of these, Services of platform addons such as Traefik.", minimum=0)]
    waiting_services: Annotated[int, about("Services that MetalLB would serve and that have none.", minimum=0)]
    foreign_addresses: Annotated[
        tuple[Annotated[str, about("One address.", max_length=45)], ...],
        about(
            "Addresses of pools that Services show and that the tenant does not hold; pools do not hand them out"
            " meanwhile.",
            max_items=MOST_FOREIGN,
            list_type=ListType.ATOMIC,
        ),
    ] = ()
    last_growth: Annotated[PoolChange | None, about("When addresses were last added, and why.")] = None
    last_shrink: Annotated[PoolChange | None, about("When addresses were last given back, and why.")] = None


class TenantClusterStatus(Part):
    """Where the cluster stands."""

    phase: Annotated[TenantClusterPhase, about("Where the cluster stands; Failed is tried again.")] = (
        TenantClusterPhase.PENDING
    )
    conditions: Annotated[
        tuple[Condition, ...],
        about(
            "How far each part of the cluster is, and what stands in the way.",
            max_items=32,
            list_type=ListType.MAP,
            map_keys=("type",),
        ),
    ] = ()
    control_plane_endpoint: Annotated[str | None, about("URL of the cluster's API server.", max_length=1024)] = None
    kubeconfig_secret_ref: Annotated[
        LocalObjectReference | None, about("Secret with the administrator's kubeconfig, in tenantNamespace.")
    ] = None
    tenant_namespace: Annotated[
        str | None, about("Namespace with the objects that make up this cluster.", max_length=63)
    ] = None
    ip_allocation_ref: Annotated[
        LocalObjectReference | None, about("IPAllocation with the addresses of the nodes, in butler-system.")
    ] = None
    lb_allocation_ref: Annotated[
        LocalObjectReference | None,
        about("IPAllocation with the first load-balancer addresses, in butler-system."),
    ] = None
    load_balancers: Annotated[
        LoadBalancerUse | None, about("The load-balancer addresses: held, in use, waited for; ipam mode only.")
    ] = None
    team: Annotated[
        str | None,
        about(
            "The team that the cluster belongs to and counts for: that of its namespace, by the label"
            " butler.butlerlabs.dev/team.",
            max_length=LABEL_LENGTH,
        ),
    ] = None
    deletion: Annotated[DeletionProgress | None, about("How far the deletion of the cluster is.")] = None
    worker_nodes_desired: Annotated[int | None, about("How many workers there should be.", minimum=0)] = None
    worker_nodes_ready: Annotated[int | None, about("How many workers are ready.", minimum=0)] = None
    observed_state: Annotated[ObservedState | None, about("What was seen on the running cluster.")] = None
    last_transition_time: Annotated[datetime | None, about("When the phase last changed.")] = None
    observed_generation: Annotated[
        int | None, about("The generation of the spec that this status speaks of.", format="int64", minimum=0)
    ] = None


class TenantCluster(CustomResource):
    """A Kubernetes cluster for a team."""

    definition: ClassVar[Definition] = Definition(
        plural="tenantclusters",
        singular="tenantcluster",
        short_name="tc",
        description="A Kubernetes cluster for a team: hosted control plane, workers, networks and addons.",
        columns=(
            Column("Phase", ".status.phase", "Where the cluster stands."),
            Column("K8s Version", ".spec.kubernetesVersion", "Wanted Kubernetes version."),
            Column("Workers", ".status.observedState.workers.ready", "Workers that are ready.", ColumnType.INTEGER),
            Column("Endpoint", ".status.controlPlaneEndpoint", "URL of the cluster's API server."),
            AGE,
        ),
        conditions={
            ConditionType.READY: "The cluster can be used.",
            ConditionType.PROVIDER_ACCESS_GRANTED: "The team may use the provider.",
            ConditionType.QUOTA_SATISFIED: "The cluster is within the limits of its team and provider.",
            ConditionType.NETWORK_READY: "The addresses of the cluster are allocated.",
            ConditionType.INFRASTRUCTURE_READY: "The provider has what the machines need.",
            ConditionType.CONTROL_PLANE_READY: "The API server answers.",
            ConditionType.WORKERS_READY: "Workers have joined and are ready.",
            ConditionType.ADDONS_READY: "All addons are installed and healthy.",
            ConditionType.LOAD_BALANCERS_READY: "MetalLB has the tenant's addresses, and no Service waits for one.",
            ConditionType.PAUSED: "The cluster is left as it is, by spec.paused.",
            ConditionType.DELETING: "The cluster is being taken down; the message says what it waits for.",
        },
        scale=Scale(wanted=".spec.workers.replicas", present=".status.workerNodesReady"),
        example="""
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: TenantCluster
metadata:
  name: payments
  namespace: team-payments
spec:
  kubernetesVersion: v1.33.2
  providerConfigRef:
    name: harvester-berlin
  workers:
    replicas: 3
    machineTemplate:
      cpu: 8
      memory: 32Gi
      os:
        type: rocky
        version: "9.5"
""",
    )
    validations = (
        Rule(
            expression=f"size(self.metadata.name) <= {NAME_LENGTH}"
            " && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            message="the name becomes that of a namespace and of machines: it must start with a lower-case letter,"
            f" hold only lower-case letters, digits and hyphens, and have at most {NAME_LENGTH} characters",
            field_path=".metadata.name",
        ),
    )

    kind: Literal["TenantCluster"] = "TenantCluster"
    spec: Annotated[TenantClusterSpec, about("The wanted cluster.")]
    status: Annotated[TenantClusterStatus, about("Where the cluster stands, as Butler last saw it.")] = (
        TenantClusterStatus()
    )
