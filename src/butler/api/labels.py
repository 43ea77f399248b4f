"""Every name that Butler writes into objects: labels, finalizers, field managers, conditions and their reasons.

They are contract. People select by them, alert on them and compare them in scripts, so a name is added here or
nowhere, and is never changed.
"""

from enum import StrEnum


class Label(StrEnum):
    """Labels, mostly on IPAllocations."""

    NETWORK_POOL = "butler.butlerlabs.dev/network-pool"
    TEAM = "butler.butlerlabs.dev/team"
    TENANT = "butler.butlerlabs.dev/tenant"
    TENANT_UID = "butler.butlerlabs.dev/tenant-uid"
    """UID of the TenantCluster that an allocation was made for: names come back, UIDs do not."""
    ALLOCATION_TYPE = "butler.butlerlabs.dev/allocation-type"
    ALLOCATION_ROLE = "butler.butlerlabs.dev/allocation-role"
    PLATFORM_LOAD_BALANCER = "butler.butlerlabs.dev/platform-lb"
    """On a tenant's Services that belong to platform addons, with the value `true`."""
    SOURCE_NAMESPACE = "butler.butlerlabs.dev/source-namespace"
    """Where the TenantCluster lives that an object was made for; its name is in the tenant label."""


MANAGED_BY = ("app.kubernetes.io/managed-by", "butler")
"""The label, and its value, on everything that Butler makes for a cluster."""


class Annotation(StrEnum):
    """What does not fit elsewhere: words of people to Butler, and of Butler to people and to itself."""

    FORCE_DELETE = "butler.butlerlabs.dev/force-delete"
    """On a TenantCluster that is being deleted, with its own name as the value: give up waiting for machines.
    On an IPAllocation, with its own name as the value: release it at once, though its TenantCluster lives."""
    GRANTED_TOGETHER = "butler.butlerlabs.dev/granted-together"
    """On an IPAllocation of a cluster that is not built yet: the types of all blocks that the cluster starts with, such
    as `nodes,loadbalancer`. It gets all of them or none."""
    TENANT_CREATED = "butler.butlerlabs.dev/tenant-created"
    """On the same IPAllocations: when the TenantCluster was created, which decides whose turn it is."""
    GIVES_BACK = "butler.butlerlabs.dev/gives-back"
    """On a TenantCluster that was not built yet: UID of the IPAllocation that it last gave back, because it could not
    get its other block. Nothing may be built with that allocation any more."""
    GRANTED = "butler.butlerlabs.dev/granted"
    """On an IPAllocation that holds addresses: which, and its own UID, such as `10.40.0.5-10.40.0.9 3f2c...`. Backups
    keep it when they drop the status: an object that comes back without one gets exactly these addresses, or waits."""
    BUILT_AS = "butler.butlerlabs.dev/built-as"
    """On a TenantCluster: the tenant namespace that it was built in, and its own UID. On one with another UID, which
    came back from a backup, it tells where its machines are."""
    POOL_GONE = "butler.butlerlabs.dev/pool-gone"
    """On an IPAllocation that waited when its NetworkPool was removed by force: UID of that pool, and the version that
    this replaced. What a controller was about to grant from that pool comes too late since then."""
    REASON = "butler.butlerlabs.dev/reason"
    """On an IPAllocation that was asked for because Services needed it: why."""
    DRAINED_BY = "butler.butlerlabs.dev/drained-by"
    """On a tenant's IPAddressPool whose addresses are not handed out for a moment: which process asked for that."""
    ACTOR = "butler.butlerlabs.dev/actor"
    """On an Event of something that a person did in the console: who it was to Kubernetes."""
    PROVIDER_CONFIGS = "butler.butlerlabs.dev/provider-configs"
    """On a Secret: the ProviderConfigs of other namespaces that may use it, as namespace/name, separated by commas."""
    HOSTS = "butler.butlerlabs.dev/hosts"
    """On a Secret with credentials: the hosts that they may be sent to, with or without a port, separated by commas."""
    LOOK_AGAIN = "butler.butlerlabs.dev/look-again"
    """On a NetworkPool or a TenantCluster: a value that it did not have before makes Butler look at it anew, and at
    MetalLB on the tenant too, without taking anything for known. `butleradm ipam fsck --repair` sets it to the time."""


class AllocationRole(StrEnum):
    """Values of the allocation-role label."""

    INITIAL = "initial"
    GROWTH = "growth"


class Finalizer(StrEnum):
    """What must be undone before a resource may go."""

    NETWORK_POOL = "butler.butlerlabs.dev/networkpool"
    IP_ALLOCATION = "butler.butlerlabs.dev/ipallocation"
    PROVIDER_CONFIG = "butler.butlerlabs.dev/providerconfig"
    TENANT_CLUSTER = "butler.butlerlabs.dev/tenantcluster"
    TENANT_ADDON = "butler.butlerlabs.dev/tenantaddon"


class FieldManager(StrEnum):
    """Under which name Butler's writers own fields."""

    IPAM = "butler-controller/ipam"
    WEBHOOKS = "butler-controller/webhooks"
    TENANTS = "butler-controller/tenants"


ALLOCATED_BY = "networkpool-controller"
"""What an IPAllocation's status says about who granted it."""


class ConditionType(StrEnum):
    """Conditions, of all kinds."""

    READY = "Ready"
    # NetworkPool
    CAPACITY_WARNING = "CapacityWarning"
    CAPACITY_CRITICAL = "CapacityCritical"
    CAPACITY_EXHAUSTED = "CapacityExhausted"
    # IPAllocation; also Deleting, below
    TENANT_FOUND = "TenantFound"
    WAITING = "Waiting"
    # ProviderConfig
    CREDENTIALS_VALID = "CredentialsValid"
    REACHABLE = "Reachable"
    POOL_AVAILABLE = "PoolAvailable"
    # TenantCluster
    INFRASTRUCTURE_READY = "InfrastructureReady"
    CONTROL_PLANE_READY = "ControlPlaneReady"
    WORKERS_READY = "WorkersReady"
    ADDONS_READY = "AddonsReady"
    NETWORK_READY = "NetworkReady"
    LOAD_BALANCERS_READY = "LoadBalancersReady"
    PROVIDER_ACCESS_GRANTED = "ProviderAccessGranted"
    QUOTA_SATISFIED = "QuotaSatisfied"
    PAUSED = "Paused"
    DELETING = "Deleting"
    # TenantAddon
    INSTALLED = "Installed"


class AllocationReason(StrEnum):
    """Reasons of an IPAllocation's Ready condition."""

    ALLOCATED = "Allocated"
    RELEASED = "Released"
    POOL_NOT_FOUND = "PoolNotFound"
    POOL_NOT_READY = "PoolNotReady"
    """The pool exists but hands out nothing: it is invalid, overlaps another one or is being deleted."""
    POOL_EXHAUSTED = "PoolExhausted"
    POOL_FRAGMENTED = "PoolFragmented"
    """Enough addresses are free, but no block of them is long enough."""
    PINNED_RANGE_CONFLICT = "PinnedRangeConflict"
    PINNED_RANGE_OUT_OF_POOL = "PinnedRangeOutOfPool"
    QUOTA_EXCEEDED = "QuotaExceeded"
    INVALID_REQUEST = "InvalidRequest"
    KEPT_FOR_OLDER = "KeptForOlder"
    """It would fit, but the pool keeps its space for an older request, by keepForOldestAfterMinutes."""
    OTHER_BLOCK_DOES_NOT_FIT = "OtherBlockDoesNotFit"
    """The tenant, which is not built yet, asks this pool for two blocks, and the other one cannot be granted."""
    OTHER_BLOCK_UNAVAILABLE = "OtherBlockUnavailable"
    """It would fit, but the tenant, which is not built yet, cannot get its other block from another pool."""
    OTHER_BLOCK_NOT_REQUESTED = "OtherBlockNotRequested"
    """The tenant, which is not built yet, needs another block, and no IPAllocation requests it yet."""


class TenantReason(StrEnum):
    """Reasons of an IPAllocation's TenantFound condition."""

    FOUND = "Found"
    NOT_FOUND = "NotFound"
    REPLACED = "Replaced"
    """A TenantCluster of that name exists, but it is another one than the allocation was made for."""


class DeletionReason(StrEnum):
    """Reasons of the Deleting condition of an IPAllocation that was deleted while its owner lives."""

    IN_USE = "InUse"
    """Machines have, or Services have or ask for, some of its addresses; the message names them."""
    DRAINING = "Draining"
    """Nothing uses its addresses, and they are being taken back."""
    UNKNOWN = "Unknown"
    """Whether anything uses its addresses cannot be told now, so they stay where they are."""


class PoolReason(StrEnum):
    """Reasons of a NetworkPool's conditions."""

    READY = "Ready"
    OVERLAP = "Overlap"
    NOT_CLAIMED = "NotClaimed"
    """Which pool has which network cannot be recorded, so nothing may be handed out."""
    VALIDATION_FAILED = "ValidationFailed"
    DELETING = "Deleting"
    ALLOCATION_UNREADABLE = "AllocationUnreadable"
    """Butler cannot tell which addresses are free, because it cannot read an allocation of the namespace."""
    VERSIONS_WENT_BACK = "VersionsWentBack"
    """The pool's status is from another life of the API server, or from another one; it is put right by itself."""
    UTILIZATION_ABOVE_THRESHOLD = "UtilizationAboveThreshold"
    UTILIZATION_BELOW_THRESHOLD = "UtilizationBelowThreshold"


class NetworkReason(StrEnum):
    """Reasons of a TenantCluster's NetworkReady and a ProviderConfig's PoolAvailable condition."""

    READY = "Ready"
    NETWORK_NOT_READY = "NetworkNotReady"
    RECONCILING = "Reconciling"
    POOL_AVAILABLE = "PoolAvailable"
    POOL_EXHAUSTED = "PoolExhausted"
    VALIDATION_FAILED = "ValidationFailed"
    POOL_NOT_FOUND = "PoolNotFound"
    MACHINE_OUTSIDE_ALLOCATION = "MachineOutsideAllocation"
    """A machine has an address that the cluster does not hold, and that another cluster may be given."""


class LoadBalancerReason(StrEnum):
    """Reasons of a TenantCluster's LoadBalancersReady condition."""

    IN_STEP = "InStep"
    """MetalLB on the tenant has exactly the addresses that the tenant holds, and no Service waits for one."""
    GROWING = "Growing"
    SERVICES_WAITING = "ServicesWaiting"
    """Services wait, and nothing is on its way: MetalLB does not hand out what is free, or the number is fixed."""
    QUOTA_REACHED = "QuotaReached"
    POOL_EXHAUSTED = "PoolExhausted"
    ALLOCATIONS_NOT_WRITTEN = "AllocationsNotWritten"
    """The management cluster refuses IPAllocations, or does not answer: a policy, a quota, a webhook, a namespace."""
    DELETION_WAITS = "DeletionWaits"
    """An IPAllocation of the tenant was deleted, and stays until no Service uses its addresses."""
    FOREIGN_ADDRESSES = "ForeignAddresses"
    """Services show addresses of pools that the tenant does not hold: from MetalLB pools of the tenant's own."""
    PAUSED = "Paused"
    """Services wait, and the cluster is left as it is."""
    TENANT_UNREACHABLE = "TenantUnreachable"
    NOT_INSTALLED = "NotInstalled"
    NOT_READY = "NotReady"
    REFUSED = "Refused"
    CONTESTED = "Contested"


class ProviderReason(StrEnum):
    """Reasons of a ProviderConfig's conditions, PoolAvailable apart."""

    READY = "Ready"
    VALIDATION_FAILED = "ValidationFailed"
    DELETING = "Deleting"
    # CredentialsValid
    COMPLETE = "Complete"
    NOT_NEEDED = "NotNeeded"
    SECRET_NOT_FOUND = "SecretNotFound"  # noqa: S105 (a word)
    SECRET_UNREADABLE = "SecretUnreadable"  # noqa: S105 (a word)
    SECRET_NOT_ALLOWED = "SecretNotAllowed"  # noqa: S105 (a word)
    """The Secret lies in a namespace whose Secrets this ProviderConfig may not use."""
    MALFORMED = "Malformed"
    REFUSED = "Refused"
    # Reachable
    ACCEPTED = "Accepted"
    UNREACHABLE = "Unreachable"
    UNCLEAR = "Unclear"
    """The provider answers, but not in a way that tells anything about the credentials."""
    NOT_ASKED = "NotAsked"
    ASKING = "Asking"
    """The provider takes its time."""


class TenantClusterReason(StrEnum):
    """Reasons of a TenantCluster's conditions, NetworkReady apart."""

    # Holding.
    READY = "Ready"
    GRANTED = "Granted"
    WITHIN_LIMITS = "WithinLimits"
    PAUSED = "Paused"
    NOT_PAUSED = "NotPaused"
    NOT_MANAGED = "NotManaged"
    """Butler does not manage the addons, by spec.managementPolicy."""
    # On the way.
    WAITING = "Waiting"
    PROVISIONING = "Provisioning"
    INSTALLING = "Installing"
    UPDATING = "Updating"
    DELETING = "Deleting"
    # In the way.
    RESTORED = "Restored"
    """The cluster came back from a backup, and no administrator has said yet what became of its machines."""
    PROVIDER_NOT_FOUND = "ProviderNotFound"
    PROVIDER_NOT_READY = "ProviderNotReady"
    PROVIDER_ACCESS_DENIED = "ProviderAccessDenied"
    PROVIDER_UNSUPPORTED = "ProviderUnsupported"
    NAME_TAKEN = "NameTaken"
    QUOTA_EXCEEDED = "QuotaExceeded"
    INVALID_CONFIGURATION = "InvalidConfiguration"
    VERSION_NOT_ALLOWED = "VersionNotAllowed"
    CLUSTER_API_MISSING = "ClusterAPIMissing"
    OBJECT_REFUSED = "ObjectRefused"
    """The API server did not take one of the objects that make up the cluster."""
    MACHINE_FAILED = "MachineFailed"
    ADDON_FAILED = "AddonFailed"
    TENANT_UNREACHABLE = "TenantUnreachable"
    STALLED = "Stalled"
    FORCED = "Forced"
