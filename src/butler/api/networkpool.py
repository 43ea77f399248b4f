"""NetworkPool: a network whose addresses Butler hands out to tenant clusters.

The status is also the place where the allocator makes its decisions safe. Two allocators may run at once, one of
them paused and stale; what keeps them from granting an address twice is that each batch of grants is first written
here, under the resource version that it was based on. Hence `status.intents` (what was decided and perhaps not yet
written into the allocations) and `status.allocationsSeen`: once an intent is dropped, only the allocation itself
knows of the grant, so no process may decide from a view of the allocations that is older than the drop.

The status holds no list of addresses and no history: it is rewritten with every batch and has to stay small.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from butler.api.labels import ConditionType
from butler.api.meta import Condition, NamespacedObjectReference
from butler.api.resource import AGE, Column, ColumnType, CustomResource, Definition, name_at_most
from butler.api.schema import ListType, Part, Reason, Rule, about
from butler.api.text import (
    A_NETWORK,
    AN_IPV4_ADDRESS,
    IPV4,
    IPV4_CIDR,
    IPV4_CIDR_LENGTH,
    IPV4_LENGTH,
    NO_HOST_BITS,
    an_ordered_range,
    is_ipv4,
    numbers,
)

SHORTEST_PREFIX = 8
MOST_RESERVED = 256
MOST_WINDOWS = 16
MOST_INTENTS = 512
MOST_WITHHELD = 64
"""Foreign addresses that a pool does not hand out; more are only told."""
"""How many grants one batch may carry: about 75 kB of status, with names of usual length."""

MOST_EXCLUDED = 256
"""How many gateways and DNS servers a pool leaves out."""

NOT_SHORTER_THAN_8 = Rule(
    expression=f"!isCIDR(self) || cidr(self).prefixLength() >= {SHORTEST_PREFIX}",
    message=f"the prefix must be /{SHORTEST_PREFIX} or longer",
)


class ReservedBlock(Part):
    """Addresses of the pool that are never handed out."""

    cidr: Annotated[
        str,
        about(
            "The block to keep back, as a network inside the pool's cidr.",
            pattern=IPV4_CIDR,
            max_length=IPV4_CIDR_LENGTH,
            rules=(A_NETWORK, NO_HOST_BITS),
        ),
    ]
    description: Annotated[
        str | None, about("What the block is kept back for, for the people who read this pool.", max_length=1024)
    ] = None


class AddressRange(Part):
    """Addresses from first to last, both included."""

    validations = (an_ordered_range("start", "end"),)

    start: Annotated[
        str, about("First address of the range.", pattern=IPV4, max_length=IPV4_LENGTH, rules=(AN_IPV4_ADDRESS,))
    ]
    end: Annotated[
        str,
        about(
            "Last address of the range, itself included.",
            pattern=IPV4,
            max_length=IPV4_LENGTH,
            rules=(AN_IPV4_ADDRESS,),
        ),
    ]


class AllocationDefaults(Part):
    """How many addresses a request gets that names no number."""

    nodes_per_tenant: Annotated[
        int, about("Addresses for a request of type nodes without a count.", minimum=1, maximum=65536)
    ] = 5
    lb_pool_per_tenant: Annotated[
        int, about("Addresses for a request of type loadbalancer without a count.", minimum=1, maximum=65536)
    ] = 8


def _first_address(of: str) -> str:
    return numbers(f"[{of}.start]") + "[0]"


def _last_address(of: str) -> str:
    return numbers(f"[{of}.end]") + "[0]"


class TenantAllocation(Part):
    """Which part of the pool tenants get, and how much each."""

    validations = (
        Rule(
            expression="has(self.start) || !has(self.end)",
            message="a window with an end needs a start",
            reason=Reason.REQUIRED,
            field_path=".start",
        ),
        Rule(
            expression="has(self.end) || !has(self.start)",
            message="a window with a start needs an end",
            reason=Reason.REQUIRED,
            field_path=".end",
        ),
        Rule(
            expression="!has(self.ranges) || (!has(self.start) && !has(self.end))",
            message="give either start and end (one window) or ranges (several), not both",
            reason=Reason.FORBIDDEN,
            field_path=".ranges",
        ),
        Rule(
            expression=f"!has(self.start) || !has(self.end) || ({an_ordered_range('start', 'end').expression})",
            message="end must not come before start",
            message_expression="'end ' + self.end + ' comes before start ' + self.start",
            field_path=".end",
        ),
        Rule(
            # Each window meets exactly one window: itself.
            expression="!has(self.ranges)"
            f" || !self.ranges.all(r, {is_ipv4('r.start')} && {is_ipv4('r.end')})"
            " || self.ranges.all(a, self.ranges.filter(b,"
            f" {_first_address('b')} <= {_last_address('a')} && {_first_address('a')} <= {_last_address('b')}"
            ").size() <= 1)",
            message="the windows must not overlap",
            field_path=".ranges",
        ),
    )

    start: Annotated[
        str | None,
        about(
            "First address that tenants may get; with end, the one window of this pool.",
            pattern=IPV4,
            max_length=IPV4_LENGTH,
            rules=(AN_IPV4_ADDRESS,),
        ),
    ] = None
    end: Annotated[
        str | None,
        about(
            "Last address that tenants may get, itself included.",
            pattern=IPV4,
            max_length=IPV4_LENGTH,
            rules=(AN_IPV4_ADDRESS,),
        ),
    ] = None
    ranges: Annotated[
        tuple[AddressRange, ...],
        about(
            "Several windows that tenants may get addresses from, in place of start and end.",
            min_items=1,
            max_items=MOST_WINDOWS,
            list_type=ListType.ATOMIC,
        ),
    ] = ()
    defaults: Annotated[AllocationDefaults, about("Number of addresses for requests that do not name one.")] = (
        AllocationDefaults()
    )


def _inside_the_pool(field: str) -> Rule:
    value = f"self.tenantAllocation.{field}"
    return Rule(
        expression=f"!isCIDR(self.cidr) || !has(self.tenantAllocation) || !has({value})"
        f" || !isIP({value}) || cidr(self.cidr).containsIP({value})",
        message=f"{field} must be inside the pool's cidr",
        message_expression=f"'{field} ' + {value} + ' is outside the pool\\'s cidr ' + self.cidr",
        field_path=f".tenantAllocation.{field}",
    )


_WINDOWS = "self.tenantAllocation.ranges"
_STRAY_BLOCKS = "self.reserved.map(r, r.cidr).filter(c, isCIDR(c) && !cidr(self.cidr).containsCIDR(c))"
_STRAY_ADDRESSES = (
    f"({_WINDOWS}.map(r, r.start) + {_WINDOWS}.map(r, r.end)).filter(a, isIP(a) && !cidr(self.cidr).containsIP(a))"
)


class NetworkPoolSpec(Part):
    """The network, what is kept back of it, and what tenants get."""

    validations = (
        Rule(
            expression=f"!isCIDR(self.cidr) || !has(self.reserved) || {_STRAY_BLOCKS}.size() == 0",
            message="every reserved block must be inside the pool's cidr",
            message_expression=f"'reserved block ' + {_STRAY_BLOCKS}[0] + ' is outside the pool\\'s cidr ' + self.cidr",
            field_path=".reserved",
        ),
        _inside_the_pool("start"),
        _inside_the_pool("end"),
        Rule(
            expression=f"!isCIDR(self.cidr) || !has(self.tenantAllocation) || !has({_WINDOWS})"
            f" || {_STRAY_ADDRESSES}.size() == 0",
            message="every window must be inside the pool's cidr",
            message_expression=f"'window address ' + {_STRAY_ADDRESSES}[0]"
            " + ' is outside the pool\\'s cidr ' + self.cidr",
            field_path=".tenantAllocation.ranges",
        ),
    )

    cidr: Annotated[
        str,
        about(
            "The network that this pool owns, such as 10.40.0.0/21; it may grow, or shrink to what is allocated.",
            pattern=IPV4_CIDR,
            max_length=IPV4_CIDR_LENGTH,
            rules=(A_NETWORK, NO_HOST_BITS, NOT_SHORTER_THAN_8),
        ),
    ]
    reserved: Annotated[
        tuple[ReservedBlock, ...],
        about(
            "Blocks inside the cidr that are never handed out, such as those of the management cluster.",
            max_items=MOST_RESERVED,
            list_type=ListType.ATOMIC,
        ),
    ] = ()
    tenant_allocation: Annotated[
        TenantAllocation | None,
        about(
            "Which addresses tenants may get and how many by default; without a window, the whole cidr"
            " except its first and last address and what is reserved."
        ),
    ] = None
    keep_for_oldest_after_minutes: Annotated[
        int | None,
        about(
            "Minutes after which space that comes free is kept for the oldest request that waits, where the pool could"
            " hold it when empty; when not given, smaller requests that fit now are granted first.",
            minimum=1,
            maximum=525600,
        ),
    ] = None


class Intent(Part):
    """A grant that was decided and may not have reached its IPAllocation yet."""

    uid: Annotated[str, about("UID of the IPAllocation.", min_length=1, max_length=64)]
    name: Annotated[str, about("Name of the IPAllocation.", min_length=1, max_length=253)]
    start_address: Annotated[str, about("First address granted.", max_length=45)]
    end_address: Annotated[str, about("Last address granted.", max_length=45)]


class ExcludedAddress(Part):
    """An address of the pool that a ProviderConfig gives to something else than a tenant."""

    address: Annotated[str, about("The address.", max_length=45)]
    reason: Annotated[str, about("What it is, such as the gateway of a ProviderConfig.", max_length=512)]


class CapacityTier(StrEnum):
    """The capacity conditions, each also the tier of an event."""

    WARNING = "CapacityWarning"
    CRITICAL = "CapacityCritical"
    EXHAUSTED = "CapacityExhausted"


class CapacityNotice(Part):
    """What was last said in an event about one capacity tier, in one direction."""

    tier: Annotated[CapacityTier, about("The capacity condition that the event was about.")]
    above: Annotated[bool, about("Whether the event said that the pool is above the tier's threshold.")]
    time: Annotated[datetime, about("When the event was sent; the next one in this direction waits 10 minutes.")]


class ForeignAddress(Part):
    """An address of the pool that a Service of a tenant shows, though it was not granted to the tenant."""

    address: Annotated[str, about("The address.", max_length=45)]
    tenant_cluster_ref: Annotated[NamespacedObjectReference, about("The TenantCluster of the Service.")]


class NetworkPoolStatus(Part):
    """What the allocator knows about the pool."""

    conditions: Annotated[
        tuple[Condition, ...],
        about(
            "Whether the pool can be used, and how full it is.",
            max_items=32,
            list_type=ListType.MAP,
            map_keys=("type",),
        ),
    ] = ()
    total_ips: Annotated[
        int | None,
        about(
            "Addresses that tenants may get in all: the windows without what is reserved or excluded.",
            format="int64",
            minimum=0,
        ),
    ] = None
    allocated_ips: Annotated[
        int | None, about("Addresses that tenants hold at present.", format="int64", minimum=0)
    ] = None
    available_ips: Annotated[int | None, about("Addresses that are free at present.", format="int64", minimum=0)] = None
    allocation_count: Annotated[int | None, about("IPAllocations that hold these addresses.", minimum=0)] = None
    fragmentation_percent: Annotated[
        int | None,
        about(
            "How scattered the free addresses are: 0 when they form one block, or one as long as the windows allow.",
            minimum=0,
            maximum=100,
        ),
    ] = None
    largest_free_block: Annotated[
        int | None,
        about(
            "The longest run of free addresses, and so the largest request that can be met now.",
            format="int64",
            minimum=0,
        ),
    ] = None
    observed_generation: Annotated[
        int | None, about("The generation of the pool that this status speaks of.", format="int64", minimum=0)
    ] = None
    claimed_cidr: Annotated[
        str | None,
        about(
            "The network that this pool may hand out from: its cidr, once no other pool claims any part of it.",
            max_length=43,
        ),
    ] = None
    intents: Annotated[
        tuple[Intent, ...],
        about(
            "Grants under way: written here before they are written into the IPAllocations, so that no address is"
            " granted twice; kept by the allocator, not for editing.",
            max_items=MOST_INTENTS,
            list_type=ListType.ATOMIC,  # one owner, always written whole: a third of the server's work for a map
        ),
    ] = ()
    allocations_seen: Annotated[
        str | None,
        about(
            "Resource version of the IPAllocations that this status takes into account; no controller may grant"
            " addresses from an older view.",
            max_length=64,
        ),
    ] = None
    excluded_addresses: Annotated[
        tuple[ExcludedAddress, ...],
        about(
            "Gateways and DNS servers of the ProviderConfigs that name this pool: they lie in its network and are never"
            " handed out.",
            max_items=MOST_EXCLUDED,
            list_type=ListType.ATOMIC,
        ),
    ] = ()
    foreign_addresses: Annotated[
        tuple[ForeignAddress, ...],
        about(
            "Addresses that Services of tenants show and that were not granted to them; not handed out meanwhile, and"
            " counted as allocated.",
            max_items=MOST_WITHHELD,
            list_type=ListType.ATOMIC,
        ),
    ] = ()
    capacity_notices: Annotated[
        tuple[CapacityNotice, ...],
        about(
            "The last events on each capacity tier, one a direction and the newest first, so that a restart neither"
            " repeats nor forgets one.",
            max_items=6,
            list_type=ListType.ATOMIC,
        ),
    ] = ()


class NetworkPool(CustomResource):
    """A network whose addresses Butler hands out."""

    definition: ClassVar[Definition] = Definition(
        plural="networkpools",
        singular="networkpool",
        short_name="np",
        description="A network whose addresses Butler hands out to tenant clusters, in contiguous ranges.",
        columns=(
            Column("CIDR", ".spec.cidr", "The network that the pool owns."),
            Column("Available", ".status.availableIPs", "Addresses that are free.", ColumnType.INTEGER),
            Column("Allocated", ".status.allocatedIPs", "Addresses that tenants hold.", ColumnType.INTEGER),
            Column("Total", ".status.totalIPs", "Addresses that tenants may get in all.", ColumnType.INTEGER),
            AGE,
        ),
        conditions={
            ConditionType.READY: "Addresses can be granted from this pool.",
            ConditionType.CAPACITY_WARNING: "70 % or more of the addresses are allocated: plan an expansion.",
            ConditionType.CAPACITY_CRITICAL: "85 % or more are allocated: larger requests may fail.",
            ConditionType.CAPACITY_EXHAUSTED: "95 % or more are allocated: new requests will likely fail.",
        },
        example="""
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: NetworkPool
metadata:
  name: rack-12
  namespace: butler-system
spec:
  cidr: 10.60.0.0/22
  reserved:
    - cidr: 10.60.0.0/27
      description: Switches and the management cluster
  tenantAllocation:
    ranges:
      - start: 10.60.0.32
        end: 10.60.1.255
      - start: 10.60.3.0
        end: 10.60.3.254
    defaults:
      nodesPerTenant: 5
      lbPoolPerTenant: 8
""",
    )
    validations = (name_at_most(63, "as it becomes the value of a label on every allocation"),)

    kind: Literal["NetworkPool"] = "NetworkPool"
    spec: Annotated[NetworkPoolSpec, about("The network, what is kept back of it, and what tenants get.")]
    status: Annotated[NetworkPoolStatus, about("How full the pool is, as Butler last saw it.")] = NetworkPoolStatus()
