"""What a check can find: how bad, under which code, about which objects, and what to do about it. Pure.

Codes are contract: people alert on them and look them up. One is added here or nowhere, and never changes its meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from butler.api.objects import Key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class FsckSeverity(StrEnum):
    """How bad it is."""

    ERROR = "error"
    """A rule is broken that keeps addresses apart, or the books are wrong."""
    WARNING = "warning"
    """Something is not as it should be; no address is in danger."""
    NOTE = "note"
    """Worth knowing, and perhaps meant."""


class Code(StrEnum):
    """Every kind of finding."""

    DUPLICATE = "IPAM-S1-DUPLICATE"
    OUTSIDE_POOL = "IPAM-S2-OUTSIDE-POOL"
    ANNOUNCED = "IPAM-S5-ANNOUNCED"
    COUNTERS = "IPAM-S6-COUNTERS"
    POOL_INVALID = "IPAM-POOL-INVALID"
    POOL_MISSING = "IPAM-POOL-MISSING"
    POOL_OVERLAP = "IPAM-POOL-OVERLAP"
    POOL_UNSEEN = "IPAM-POOL-UNSEEN"
    POOL_VERSIONS = "IPAM-POOL-VERSIONS"
    INTENT_STUCK = "IPAM-INTENT-STUCK"
    INTENT_WRONG = "IPAM-INTENT-WRONG"
    UNREADABLE = "IPAM-UNREADABLE"
    STATUS = "IPAM-STATUS"
    LABELS = "IPAM-LABELS"
    ORPHAN = "IPAM-ORPHAN"
    OWNER = "IPAM-OWNER"
    TENANT_NEVER_SEEN = "IPAM-TENANT-NEVER-SEEN"
    TENANT_UNREACHABLE = "IPAM-TENANT-UNREACHABLE"
    METALLB_MISSING = "IPAM-METALLB-MISSING"
    METALLB_DRIFT = "IPAM-METALLB-DRIFT"
    METALLB_FOREIGN = "IPAM-METALLB-FOREIGN"
    SERVICE_OUTSIDE = "IPAM-SERVICE-OUTSIDE"
    SERVICE_DUPLICATE = "IPAM-SERVICE-DUPLICATE"
    NODE_OUTSIDE = "IPAM-NODE-OUTSIDE"
    NODE_DUPLICATE = "IPAM-NODE-DUPLICATE"


MEANINGS: Mapping[Code, str] = {
    Code.DUPLICATE: "two allocations hold the same address, across all pools",
    Code.OUTSIDE_POOL: "an allocation holds addresses that its pool does not hand out",
    Code.ANNOUNCED: "MetalLB on a tenant may announce addresses that the tenant does not hold",
    Code.COUNTERS: "a pool's counters differ from a recount",
    Code.POOL_INVALID: "a pool's spec makes no sense, so it hands out nothing",
    Code.POOL_MISSING: "an allocation holds addresses of a pool that does not exist",
    Code.POOL_OVERLAP: "two pools claim the same addresses",
    Code.POOL_UNSEEN: "no controller has looked at a pool since it was changed",
    Code.POOL_VERSIONS: "a pool's status speaks of versions that never were, as after a restore",
    Code.INTENT_STUCK: "a grant was decided and does not reach its allocation",
    Code.INTENT_WRONG: "a pool's record of a grant contradicts the allocation, or makes no sense",
    Code.UNREADABLE: "an object that Butler cannot read",
    Code.STATUS: "the status of an allocation contradicts itself or its request",
    Code.LABELS: "labels of an allocation say something else than its spec",
    Code.ORPHAN: "the cluster that an allocation was made for is gone",
    Code.OWNER: "it is not recorded, or contradictory, which cluster an allocation belongs to",
    Code.TENANT_NEVER_SEEN: "addresses are kept for a cluster that has never existed",
    Code.TENANT_UNREACHABLE: "a tenant could not be asked",
    Code.METALLB_MISSING: "a tenant holds load-balancer addresses that its MetalLB does not have",
    Code.METALLB_DRIFT: "MetalLB's objects on a tenant are not as Butler writes them",
    Code.METALLB_FOREIGN: "MetalLB on a tenant has a pool that is not Butler's",
    Code.SERVICE_OUTSIDE: "a Service has an address that its tenant does not hold",
    Code.SERVICE_DUPLICATE: "Services of two tenants have the same address",
    Code.NODE_OUTSIDE: "a node has an address that its tenant does not hold",
    Code.NODE_DUPLICATE: "nodes of two tenants have the same address",
}


@dataclass(frozen=True, slots=True)
class Thing:
    """An object that a finding is about."""

    kind: str
    name: str
    namespace: str = ""
    cluster: str = ""
    """`namespace/name` of the TenantCluster that it lives in; empty: the management cluster."""

    def __str__(self) -> str:
        where = f" of {self.cluster}" if self.cluster else ""
        return f"{self.kind} {Key(self.namespace, self.name)}{where}"


# What may be done about a finding without any risk.


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Make the controllers look at a NetworkPool or a TenantCluster; they put right what is theirs."""

    kind: str
    key: Key

    def __str__(self) -> str:
        return f"have the controllers look at {self.kind} {self.key} again"


@dataclass(frozen=True, slots=True)
class DropRequest:
    """Delete a request that holds nothing and whose cluster is gone, if it is still the one that was looked at."""

    key: Key
    uid: str
    version: str
    tenant: Key
    owners: tuple[str, ...]
    """The UIDs that its cluster may have had."""

    def __str__(self) -> str:
        return f"delete IPAllocation {self.key}, which holds nothing"


@dataclass(frozen=True, slots=True)
class Relabel:
    """Make labels say what the spec says, if the allocation is still the one that was looked at."""

    key: Key
    uid: str
    version: str
    labels: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        said = ", ".join(f"{name.rpartition('/')[2]}={value}" for name, value in self.labels)
        return f"label IPAllocation {self.key} with {said}"


Repair = LookAgain | DropRequest | Relabel


@dataclass(frozen=True, slots=True)
class FsckFinding:
    """One thing that is not as it should be. Two are the same when all that they say is the same."""

    severity: FsckSeverity
    code: Code
    things: tuple[Thing, ...]
    what: str
    """What is wrong, with the numbers."""
    todo: str
    pools: frozenset[str] = frozenset()
    """Names of the pools that it concerns."""
    tenants: frozenset[str] = frozenset()
    """`namespace/name` of the clusters that it concerns."""
    versions: tuple[str, ...] = ()
    """For what can be wrong for a moment while it is written: in which versions it was seen."""
    repair: Repair | None = field(default=None, compare=False)

    @property
    def is_bad(self) -> bool:
        return self.severity is not FsckSeverity.NOTE

    @property
    def order(self) -> tuple[int, str, str, str]:
        return (list(FsckSeverity).index(self.severity), self.code, str(self.things[:1]), self.what)


def standing(first: Iterable[FsckFinding], second: Iterable[FsckFinding]) -> tuple[FsckFinding, ...]:
    """What was found by two looks some time apart: a grant or a drain under way shows in one of them at most."""
    seen = set(first)
    return tuple(sorted((item for item in second if item in seen), key=lambda finding: finding.order))
