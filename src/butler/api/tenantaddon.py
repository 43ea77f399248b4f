"""TenantAddon: a Helm chart that is wanted on a tenant cluster.

A TenantCluster's own addons become TenantAddons too, named `<cluster>-<addon>`, so that what is installed, which
version, and what went wrong can be read and waited for in one way, for addons of every origin.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from msgspec import field

from butler.api.labels import ConditionType
from butler.api.meta import Condition, LocalObjectReference
from butler.api.resource import AGE, Column, CustomResource, Definition
from butler.api.schema import ListType, Part, Reason, Rule, about
from butler.api.tenantaddons import Values


class TenantAddonPhase(StrEnum):
    """Where an addon stands in its life."""

    PENDING = "Pending"
    INSTALLING = "Installing"
    INSTALLED = "Installed"
    UPGRADING = "Upgrading"
    DEGRADED = "Degraded"
    FAILED = "Failed"
    DELETING = "Deleting"


class TenantAddonSpec(Part):
    """The wanted addon."""

    validations = (
        Rule(
            expression="self.clusterRef == oldSelf.clusterRef && self.addon == oldSelf.addon",
            message="clusterRef and addon cannot be changed: delete this TenantAddon and create another",
            reason=Reason.FORBIDDEN,
        ),
    )

    cluster_ref: Annotated[LocalObjectReference, about("The TenantCluster to install it on, in the same namespace.")]
    addon: Annotated[str, about("Name of the addon, such as cilium or traefik.", min_length=1, max_length=63)]
    version: Annotated[
        str | None, about("Version of the Helm chart; the platform's when not given.", min_length=1, max_length=64)
    ] = None
    values: Values = field(default_factory=dict)


class TenantAddonStatus(Part):
    """What is installed."""

    phase: Annotated[TenantAddonPhase, about("Where the addon stands; Failed is tried again.")] = (
        TenantAddonPhase.PENDING
    )
    conditions: Annotated[
        tuple[Condition, ...],
        about(
            "Whether the addon is there and well, and if not, why.",
            max_items=32,
            list_type=ListType.MAP,
            map_keys=("type",),
        ),
    ] = ()
    installed_version: Annotated[str | None, about("Version that is on the cluster.", max_length=64)] = None
    message: Annotated[str | None, about("What happened last, for people.", max_length=1024)] = None
    last_transition_time: Annotated[datetime | None, about("When the phase last changed.")] = None
    observed_generation: Annotated[
        int | None, about("The generation of the spec that this status speaks of.", format="int64", minimum=0)
    ] = None


class TenantAddon(CustomResource):
    """A Helm chart that is wanted on a tenant cluster."""

    definition: ClassVar[Definition] = Definition(
        plural="tenantaddons",
        singular="tenantaddon",
        short_name="ta",
        description="A Helm chart that is wanted on a tenant cluster.",
        columns=(
            Column("Cluster", ".spec.clusterRef.name", "The cluster it is for."),
            Column("Addon", ".spec.addon", "Name of the addon."),
            Column("Version", ".spec.version", "Wanted version."),
            Column("Phase", ".status.phase", "Where the addon stands."),
            Column("Installed", ".status.installedVersion", "Version that is on the cluster."),
            AGE,
        ),
        conditions={ConditionType.INSTALLED: "The chart is on the cluster, in the wanted version."},
        example="""
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: TenantAddon
metadata:
  name: payments-traefik
  namespace: team-payments
spec:
  clusterRef:
    name: payments
  addon: traefik
  version: 34.4.1
""",
    )

    kind: Literal["TenantAddon"] = "TenantAddon"
    spec: Annotated[TenantAddonSpec, about("The wanted addon.")]
    status: Annotated[TenantAddonStatus, about("What is installed, as it was last seen.")] = TenantAddonStatus()
