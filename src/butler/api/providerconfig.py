"""ProviderConfig: an infrastructure that clusters can be put on, and how its addresses are managed.

One block, named after `spec.provider`, holds the settings of that provider; no code would read the block of another
provider, so it is refused. The same goes for the parts of `spec.network` that only mean something in ipam mode: a
user who lists pools and forgets `mode: ipam` gets an error, and does not wait for addresses that never come.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from butler.api.ipallocation import IPAllocationType
from butler.api.labels import ConditionType
from butler.api.meta import Condition, SecretReference, TeamReference
from butler.api.providers import (
    CLOUDS,
    AWSSettings,
    AzureSettings,
    GCPSettings,
    HarvesterSettings,
    LocalSettings,
    NutanixSettings,
    Provider,
    ProxmoxSettings,
)
from butler.api.resource import AGE, Column, ColumnType, CustomResource, Definition
from butler.api.schema import ListType, Part, Reason, Rule, about
from butler.api.text import AN_ADDRESS, LARGEST_RANGE


class NetworkMode(StrEnum):
    """Who manages addresses."""

    IPAM = "ipam"
    CLOUD = "cloud"


class AllocationMode(StrEnum):
    """Whether a tenant's load-balancer addresses are fixed or follow demand."""

    STATIC = "static"
    ELASTIC = "elastic"


class ScopeType(StrEnum):
    """Who may use a provider."""

    PLATFORM = "platform"
    TEAM = "team"


class PoolReference(Part):
    """A NetworkPool, its place in the order, and what its addresses are for."""

    name: Annotated[str, about("Name of the NetworkPool, in Butler's own namespace.", min_length=1, max_length=253)]
    priority: Annotated[
        int,
        about(
            "Pools with a lower number are tried first; equal numbers keep the order of the list.",
            minimum=-(2**31),
            maximum=2**31 - 1,
        ),
    ] = 0
    types: Annotated[
        tuple[IPAllocationType, ...],
        about(
            "What this pool's addresses are for: nodes, loadbalancer, or both when not given. Where no pool is for"
            " nodes, machines get their addresses from the network itself, as by DHCP.",
            min_items=1,
            max_items=2,
            list_type=ListType.SET,
        ),
    ] = ()
    gateway: Annotated[
        str | None,
        about(
            "Default gateway of machines with addresses of this pool; network.gateway when not given.",
            max_length=45,
            rules=(AN_ADDRESS,),
        ),
    ] = None


class LoadBalancerAllocation(Part):
    """How many load-balancer addresses a tenant gets, and when."""

    allocation_mode: Annotated[
        AllocationMode,
        about("static gives a fixed number at creation; elastic starts small and follows the tenant's Services."),
    ] = AllocationMode.STATIC
    default_pool_size: Annotated[
        int, about("Addresses that a tenant gets in static mode.", minimum=1, maximum=LARGEST_RANGE)
    ] = 8
    initial_pool_size: Annotated[
        int,
        about(
            "Addresses that a tenant starts with in elastic mode; 0 means none until the first Service needs one.",
            minimum=0,
            maximum=LARGEST_RANGE,
        ),
    ] = 2
    growth_increment: Annotated[
        int,
        about("The fewest addresses that are added at a time in elastic mode.", minimum=1, maximum=LARGEST_RANGE),
    ] = 2


class TenantQuota(Part):
    """The most addresses that one tenant cluster may hold."""

    max_node_ips: Annotated[
        int | None, about("The most node addresses per tenant cluster; no limit when not given.", minimum=1)
    ] = None
    max_load_balancer_ips: Annotated[
        int | None,
        about("The most load-balancer addresses per tenant cluster; no limit when not given.", minimum=1),
    ] = None


def _only_in_ipam_mode(field: str) -> Rule:
    return Rule(
        expression=f"self.mode == 'ipam' || !has(self.{field})",
        message=f"{field} has a meaning in ipam mode only: set mode to ipam, or remove it",
        reason=Reason.FORBIDDEN,
        field_path=f".{field}",
    )


class ProviderNetwork(Part):
    """How machines and Services get their addresses."""

    validations = (
        Rule(
            expression="self.mode != 'ipam' || (has(self.poolRefs) && size(self.poolRefs) > 0)",
            message="ipam mode takes addresses from NetworkPools: name at least one",
            reason=Reason.REQUIRED,
            field_path=".poolRefs",
        ),
        _only_in_ipam_mode("poolRefs"),
        _only_in_ipam_mode("loadBalancer"),
        _only_in_ipam_mode("quotaPerTenant"),
    )

    mode: Annotated[
        NetworkMode,
        about("ipam takes addresses from NetworkPools; cloud leaves them to the provider."),
    ] = NetworkMode.CLOUD
    pool_refs: Annotated[
        tuple[PoolReference, ...],
        about(
            "NetworkPools to take addresses from, tried by priority; ipam mode needs at least one.",
            max_items=64,
            list_type=ListType.MAP,
            map_keys=("name",),
        ),
    ] = ()
    subnet: Annotated[str | None, about("Name of the network that machines are attached to.", max_length=253)] = None
    gateway: Annotated[
        str | None,
        about("Default gateway of machines, unless their pool has its own.", max_length=45, rules=(AN_ADDRESS,)),
    ] = None
    dns_servers: Annotated[
        tuple[Annotated[str, about("Address of a DNS server.", max_length=45, rules=(AN_ADDRESS,))], ...],
        about("DNS servers of machines, in order of preference.", max_items=16, list_type=ListType.ATOMIC),
    ] = ()
    time_servers: Annotated[
        tuple[Annotated[str, about("Host name or address of a time server.", min_length=1, max_length=253)], ...],
        about("Time servers of machines, in order of preference.", max_items=16, list_type=ListType.ATOMIC),
    ] = ()
    load_balancer: Annotated[
        LoadBalancerAllocation | None,
        about("How many load-balancer addresses a tenant gets, and when; ipam mode only."),
    ] = None
    quota_per_tenant: Annotated[
        TenantQuota | None, about("The most addresses that one tenant cluster may hold; ipam mode only.")
    ] = None


class ProviderScope(Part):
    """Who may put clusters on this provider."""

    validations = (
        Rule(
            expression="self.type != 'team' || has(self.teamRef)",
            message="scope team needs the team that may use this provider",
            reason=Reason.REQUIRED,
            field_path=".teamRef",
        ),
        Rule(
            expression="self.type == 'team' || !has(self.teamRef)",
            message="scope platform is for all teams: set type to team, or remove teamRef",
            reason=Reason.FORBIDDEN,
            field_path=".teamRef",
        ),
    )

    type: Annotated[
        ScopeType, about("platform lets every team use this provider, team only the one that teamRef names.")
    ] = ScopeType.PLATFORM
    team_ref: Annotated[TeamReference | None, about("The team whose namespaces may use this provider.")] = None


class ProviderLimits(Part):
    """How much one team may put on this provider."""

    max_clusters_per_team: Annotated[
        int | None, about("The most clusters of one team; no limit when not given.", minimum=1)
    ] = None
    max_nodes_per_team: Annotated[
        int | None,
        about("The most workers of one team, over all its clusters; no limit when not given.", minimum=1),
    ] = None


def _own_block(provider: Provider) -> Rule:
    return Rule(
        expression=f"self.provider != '{provider}' || has(self.{provider})",
        message=f"provider {provider} needs its settings here",
        reason=Reason.REQUIRED,
        field_path=f".{provider}",
    )


def _no_foreign_block(provider: Provider) -> Rule:
    return Rule(
        expression=f"self.provider == '{provider}' || !has(self.{provider})",
        message=f"settings for {provider} mean nothing here: provider is another one",
        message_expression=f"'settings for {provider} mean nothing here: provider is ' + self.provider",
        reason=Reason.FORBIDDEN,
        field_path=f".{provider}",
    )


_CLOUD_NAMES = ", ".join(f"'{provider}'" for provider in CLOUDS)


class ProviderConfigSpec(Part):
    """The platform, how to get into it, and who may use it."""

    validations = (
        Rule(
            expression="self.provider == 'local' || has(self.credentialsRef)",
            message="every provider except local needs the Secret with its credentials",
            reason=Reason.REQUIRED,
            field_path=".credentialsRef",
        ),
        # A local provider works without any settings; every other one has some that only the operator knows.
        *(_own_block(provider) for provider in Provider if provider is not Provider.LOCAL),
        *(_no_foreign_block(provider) for provider in Provider),
        Rule(
            expression=f"!(self.provider in [{_CLOUD_NAMES}]) || !has(self.network) || self.network.mode != 'ipam'",
            message="this provider manages addresses itself: use mode cloud",
            message_expression="'provider ' + self.provider + ' manages addresses itself: use mode cloud'",
            reason=Reason.FORBIDDEN,
            field_path=".network.mode",
        ),
    )

    provider: Annotated[
        Provider,
        about(
            "The platform; fixed once created.",
            rules=(
                Rule(
                    expression="self == oldSelf",
                    message="the provider cannot be changed: create another ProviderConfig",
                    reason=Reason.FORBIDDEN,
                ),
            ),
        ),
    ]
    credentials_ref: Annotated[
        SecretReference | None,
        about("The Secret with the credentials for the platform; every provider except local needs one."),
    ] = None
    harvester: Annotated[HarvesterSettings | None, about("Settings of provider harvester.")] = None
    nutanix: Annotated[NutanixSettings | None, about("Settings of provider nutanix.")] = None
    proxmox: Annotated[ProxmoxSettings | None, about("Settings of provider proxmox.")] = None
    azure: Annotated[AzureSettings | None, about("Settings of provider azure.")] = None
    aws: Annotated[AWSSettings | None, about("Settings of provider aws.")] = None
    gcp: Annotated[GCPSettings | None, about("Settings of provider gcp.")] = None
    local: Annotated[LocalSettings | None, about("Settings of provider local.")] = None
    network: Annotated[ProviderNetwork, about("How machines and Services get their addresses.")] = ProviderNetwork()
    scope: Annotated[ProviderScope, about("Who may put clusters on this provider.")] = ProviderScope()
    limits: Annotated[ProviderLimits | None, about("How much one team may put on this provider.")] = None


class ProviderCapacity(Part):
    """What the provider's pools still have room for."""

    available_ips: Annotated[
        int | None, about("Free addresses in all pools of this provider.", format="int64", minimum=0)
    ] = None
    estimated_tenants: Annotated[
        int | None, about("Roughly how many more tenant clusters these addresses suffice for.", minimum=0)
    ] = None


class ProviderConfigStatus(Part):
    """Whether the provider can be used."""

    conditions: Annotated[
        tuple[Condition, ...],
        about(
            "Whether the provider can be used, and if not, why.",
            max_items=32,
            list_type=ListType.MAP,
            map_keys=("type",),
        ),
    ] = ()
    ready: Annotated[bool | None, about("Whether clusters can be put on this provider.")] = None
    validated: Annotated[bool | None, about("Whether the credentials are there and complete.")] = None
    last_validation_time: Annotated[
        datetime | None,
        about("When the credentials were found to be complete; later looks with the same result do not move it."),
    ] = None
    last_probe_time: Annotated[
        datetime | None,
        about("When asking the provider last brought something new; later answers of the same kind do not move it."),
    ] = None
    provider_version: Annotated[str | None, about("Version that the platform reports.", max_length=253)] = None
    capacity: Annotated[ProviderCapacity | None, about("What the provider's pools still have room for.")] = None
    observed_generation: Annotated[
        int | None, about("The generation of the spec that this status speaks of.", format="int64", minimum=0)
    ] = None


class ProviderConfig(CustomResource):
    """An infrastructure that clusters can be put on."""

    definition: ClassVar[Definition] = Definition(
        plural="providerconfigs",
        singular="providerconfig",
        short_name="pc",
        description="An infrastructure for clusters: its settings, its credentials, and how addresses are managed.",
        columns=(
            Column("Provider", ".spec.provider", "The platform."),
            Column("Scope", ".spec.scope.type", "Who may use it."),
            Column("Ready", ".status.ready", "Whether clusters can be put on it.", ColumnType.BOOLEAN),
            Column("Validated", ".status.validated", "Whether the credentials are complete.", ColumnType.BOOLEAN),
            AGE,
        ),
        conditions={
            ConditionType.READY: "Clusters can be put on this provider.",
            ConditionType.CREDENTIALS_VALID: "The Secret is there and holds what the provider needs.",
            ConditionType.REACHABLE: "The provider answers and accepts the credentials; Unknown if not asked.",
            ConditionType.POOL_AVAILABLE: "At least one of the pools has free addresses.",
        },
        example="""
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ProviderConfig
metadata:
  name: harvester-berlin
  namespace: butler-system
spec:
  provider: harvester
  credentialsRef:
    name: harvester-berlin-kubeconfig
  harvester:
    networkName: default/vlan60
  network:
    mode: ipam
    poolRefs:
      - name: rack-12
        priority: 1
      - name: rack-13
        priority: 2
    gateway: 10.60.0.1
    dnsServers:
      - 10.60.0.2
    loadBalancer:
      allocationMode: elastic
      initialPoolSize: 2
      growthIncrement: 1
    quotaPerTenant:
      maxLoadBalancerIPs: 32
""",
    )

    kind: Literal["ProviderConfig"] = "ProviderConfig"
    spec: Annotated[ProviderConfigSpec, about("The platform, how to get into it, and who may use it.")]
    status: Annotated[ProviderConfigStatus, about("Whether the provider can be used, as Butler last saw it.")] = (
        ProviderConfigStatus()
    )
