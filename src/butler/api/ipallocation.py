"""IPAllocation: the request for a range of addresses, and the record of what was granted.

The spec never changes after creation: an allocation that moved to another pool or tenant would make the counters of
both wrong. The status is the truth about which tenant holds which range; the pool's counters are derived from it.
A new allocation shows phase Pending through a default in the CRD, so no client has to write it.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from butler.api.labels import ConditionType
from butler.api.meta import Condition, LocalObjectReference, NamespacedObjectReference
from butler.api.resource import AGE, Column, CustomResource, Definition
from butler.api.schema import ListType, Part, Reason, Rule, about
from butler.api.text import (
    A_NETWORK,
    AN_ADDRESS,
    AN_IPV4_ADDRESS,
    IPV4,
    IPV4_LENGTH,
    LARGEST_RANGE,
    an_ordered_range,
    in_order,
    is_ipv4,
    numbers,
)


class IPAllocationType(StrEnum):
    """What the addresses are for."""

    NODES = "nodes"
    LOAD_BALANCER = "loadbalancer"


class IPAllocationPhase(StrEnum):
    """Where an allocation stands in its life."""

    PENDING = "Pending"
    ALLOCATED = "Allocated"
    RELEASED = "Released"
    FAILED = "Failed"


_BOTH_ENDS = numbers("[self.startAddress, self.endAddress]")


class PinnedIPRange(Part):
    """An exact range of addresses, for clusters that already use them."""

    validations = (
        an_ordered_range("startAddress", "endAddress"),
        Rule(
            expression=f"!{is_ipv4('self.startAddress')} || !{is_ipv4('self.endAddress')}"
            f" || {_BOTH_ENDS}[1] - {_BOTH_ENDS}[0] < {LARGEST_RANGE}",
            message=f"one allocation may hold at most {LARGEST_RANGE} addresses",
        ),
    )

    start_address: Annotated[
        str,
        about("First address of the wanted range.", pattern=IPV4, max_length=IPV4_LENGTH, rules=(AN_IPV4_ADDRESS,)),
    ]
    end_address: Annotated[
        str,
        about(
            "Last address of the wanted range, itself included.",
            pattern=IPV4,
            max_length=IPV4_LENGTH,
            rules=(AN_IPV4_ADDRESS,),
        ),
    ]


class IPAllocationSpec(Part):
    """What is asked for, from which pool and for which cluster."""

    validations = (
        Rule(
            expression="self == oldSelf",
            message="the request cannot be changed: delete this IPAllocation and create a new one",
            reason=Reason.FORBIDDEN,
        ),
    )

    pool_ref: Annotated[LocalObjectReference, about("The NetworkPool to take addresses from, in the same namespace.")]
    tenant_cluster_ref: Annotated[NamespacedObjectReference, about("The TenantCluster that the addresses are for.")]
    type: Annotated[
        IPAllocationType,
        about("What the addresses are for: nodes (worker machines) or loadbalancer (Services of the tenant)."),
    ]
    count: Annotated[
        int | None,
        about(
            "How many addresses; the pool's default for the type when not given, and ignored beside pinnedRange.",
            minimum=1,
            maximum=LARGEST_RANGE,
        ),
    ] = None
    pinned_range: Annotated[
        PinnedIPRange | None,
        about("Exactly these addresses, in place of any; for clusters that use them already."),
    ] = None


GRANTED_FIELDS = ("startAddress", "endAddress", "cidr", "addresses", "allocatedCount")


def _unchanged(field: str) -> str:
    return f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"


def _has_range(status: str) -> str:
    return f"has({status}.startAddress) && has({status}.endAddress)"


def _is_granted(status: str) -> str:
    """CEL: whether a status names a range that can be read. One that cannot be read may be put right by hand."""
    ends = f"isIP({status}.startAddress) && isIP({status}.endAddress)"
    return f"{status}.phase in ['Allocated', 'Released'] && {_has_range(status)} && {ends}"


class IPAllocationStatus(Part):
    """What was granted.

    The rules guard the truth about who holds what: a status is the one thing that says so, and every writer of it,
    Butler included, can only move it forward. Together with the default of the phase they also hold for a status
    that is taken away altogether.
    """

    validations = (
        Rule(
            expression="oldSelf.phase != 'Allocated' || self.phase in ['Allocated', 'Released']",
            message="an allocation that was granted stays Allocated until it is Released:"
            " delete the IPAllocation to give its addresses back",
            reason=Reason.FORBIDDEN,
            field_path=".phase",
        ),
        Rule(
            expression="oldSelf.phase != 'Released' || self.phase == 'Released'",
            message="Released is final, because the addresses may be another's by now: create a new IPAllocation",
            reason=Reason.FORBIDDEN,
            field_path=".phase",
        ),
        Rule(
            expression=f"!({_is_granted('oldSelf')}) || ({' && '.join(map(_unchanged, GRANTED_FIELDS))})",
            message="the granted range never changes: delete this IPAllocation and create a new one",
            reason=Reason.FORBIDDEN,
            field_path=".startAddress",
        ),
        Rule(
            expression=f"self.phase != 'Allocated' || ({_has_range('self')})",
            message="an allocation that is Allocated needs its startAddress and its endAddress",
            reason=Reason.REQUIRED,
            field_path=".startAddress",
        ),
        Rule(
            expression=f"!({_has_range('self')}) || {in_order('self.startAddress', 'self.endAddress')}",
            message="endAddress must not come before startAddress",
            field_path=".endAddress",
        ),
    )

    phase: Annotated[
        IPAllocationPhase,
        about(
            "Pending until the pool was looked at, then Allocated, or Failed (and tried again) with the reason"
            " in condition Ready; Released once the addresses are back in the pool."
        ),
    ] = IPAllocationPhase.PENDING
    conditions: Annotated[
        tuple[Condition, ...],
        about(
            "Whether the addresses can be used, and if not, what stood in the way.",
            max_items=32,
            list_type=ListType.MAP,
            map_keys=("type",),
        ),
    ] = ()
    cidr: Annotated[
        str | None,
        about(
            "The range as one network, where it is one: a power of two long and aligned.",
            max_length=43,
            rules=(A_NETWORK,),
        ),
    ] = None
    start_address: Annotated[str | None, about("First address granted.", max_length=45, rules=(AN_ADDRESS,))] = None
    end_address: Annotated[
        str | None, about("Last address granted, itself included.", max_length=45, rules=(AN_ADDRESS,))
    ] = None
    addresses: Annotated[
        tuple[Annotated[str, about("One address.", max_length=45, rules=(AN_ADDRESS,))], ...],
        about("Every address granted, in order.", max_items=LARGEST_RANGE, list_type=ListType.ATOMIC),
    ] = ()
    allocated_count: Annotated[int | None, about("How many addresses were granted.", minimum=0)] = None
    passed_by: Annotated[
        int | None,
        about(
            "How many younger requests the pool has met while this one waited for room; counted with each refusal that"
            " is written.",
            minimum=0,
        ),
    ] = None
    observed_generation: Annotated[
        int | None, about("The generation of the request that this status speaks of.", format="int64", minimum=0)
    ] = None
    allocated_at: Annotated[datetime | None, about("When the addresses were granted.")] = None
    allocated_by: Annotated[str | None, about("Who granted the addresses.", max_length=253)] = None
    released_at: Annotated[datetime | None, about("When the addresses went back to the pool.")] = None
    tenant_cluster_uid: Annotated[
        str | None,
        about(
            "UID of the TenantCluster, recorded when it was first seen; a later cluster of that name is another.",
            max_length=64,
        ),
    ] = None
    idle_since: Annotated[
        datetime | None,
        about("Since when none of the addresses is in use; a growth allocation goes back after a grace time."),
    ] = None
    draining_since: Annotated[
        datetime | None,
        about("Since when the addresses are being taken back from the tenant; until this is unset, none is published."),
    ] = None


class IPAllocation(CustomResource):
    """A request for addresses, and what was granted."""

    definition: ClassVar[Definition] = Definition(
        plural="ipallocations",
        singular="ipallocation",
        short_name="ipa",
        description="A range of addresses from a NetworkPool for a tenant cluster: the request and the grant.",
        columns=(
            Column("Pool", ".spec.poolRef.name", "The NetworkPool that the addresses come from."),
            Column("Cluster", ".spec.tenantClusterRef.name", "The TenantCluster that the addresses are for."),
            Column("Type", ".spec.type", "What the addresses are for."),
            Column("Phase", ".status.phase", "Where the allocation stands."),
            Column("Start", ".status.startAddress", "First address granted."),
            Column("End", ".status.endAddress", "Last address granted."),
            AGE,
        ),
        conditions={
            ConditionType.READY: "The addresses are granted and can be used.",
            ConditionType.TENANT_FOUND: "The TenantCluster exists; until it does, the allocation is left alone.",
            ConditionType.WAITING: "It waits for room; the message says since when, and how often it was passed.",
            ConditionType.DELETING: "It was deleted while its TenantCluster lives; the message says what it waits for.",
        },
        example="""
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: IPAllocation
metadata:
  name: payments-nodes
  namespace: butler-system
spec:
  poolRef:
    name: rack-12
  tenantClusterRef:
    name: payments
    namespace: team-payments
  type: nodes
  pinnedRange:
    startAddress: 10.60.0.40
    endAddress: 10.60.0.44
""",
    )

    kind: Literal["IPAllocation"] = "IPAllocation"
    spec: Annotated[IPAllocationSpec, about("What is asked for; fixed once created.")]
    status: Annotated[IPAllocationStatus, about("What was granted, as recorded by the allocator.")] = (
        IPAllocationStatus()
    )
