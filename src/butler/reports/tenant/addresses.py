"""Every address of a tenant cluster, and what has it: a node, a Service, or neither. Pure.

Two sides are put together: what Butler gave the cluster (its allocations), and what the cluster's own API server says
it uses (an `Inventory`). Either may be out of sight: then a side is shown for what it is, and nothing is concluded from
the absence of the other.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from butler.api.ipallocation import IPAllocationType
from butler.ipam.addresses import BadAddress, Family, Range, address_text, parse_address
from butler.ipam.range_difference import without
from butler.reports.tenant.summary import range_json
from butler.rules.loadbalancer.demand import waits
from butler.rules.loadbalancer.service import POOL
from butler.tenant import metallb

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from butler.reports.tenant.summary import TenantBlock
    from butler.tenant.inventory import Inventory

IN_USE, IDLE, NOT_KNOWN, NOT_HELD = "in use", "idle", "not known", "not held"


@dataclass(frozen=True, slots=True)
class AddressSpan:
    """One address that a node or a Service has, or a run of addresses that are all alike."""

    range: Range
    state: str
    users: tuple[str, ...] = ()
    """The node, or the Services that share it."""
    platform: bool = False
    """Whether a Service of the platform has it, and not of the tenant."""
    pool: str = ""
    allocation: str = ""

    @property
    def text(self) -> str:
        first = address_text(self.range.first, Family.V4)
        return first if self.range.size == 1 else f"{first}-{address_text(self.range.last, Family.V4)}"


@dataclass(frozen=True, slots=True)
class Announced:
    """What the tenant's MetalLB may hand out, beside what it should."""

    in_step: bool | None
    """None: unknown."""
    missing: tuple[str, ...] = ()
    """The cluster's, and not in the pool that Butler writes."""
    strange: tuple[str, ...] = ()
    """In one of MetalLB's pools, and not the cluster's."""
    says: str = ""


@dataclass(frozen=True, slots=True)
class TenantAddressReport:
    """The addresses of one cluster."""

    namespace: str
    name: str
    nodes: tuple[AddressSpan, ...]
    load_balancers: tuple[AddressSpan, ...]
    waiting: tuple[str, ...] | None
    """Services that wait for an address; None: the tenant cannot be asked."""
    metallb: Announced
    unseen: tuple[str, ...]
    """What could not be read, each a sentence."""


def tenant_addresses(
    namespace: str,
    name: str,
    blocks: Sequence[TenantBlock] | None,
    inventory: Inventory | str,
    *,
    served_class: str = "",
    unseen: Iterable[str] = (),
) -> TenantAddressReport:
    """Put both sides together. `blocks` is None where allocations may not be read; an inventory that is a text says
    why the tenant could not be asked."""
    missing = list(unseen)
    if isinstance(inventory, str):
        missing.append(f"Who has which address is not known: {inventory}.")
        held = [_unknown(block) for block in blocks or () if block.range]
        by_purpose = {purpose: [span for use, span in held if use is purpose] for purpose in IPAllocationType}
        return TenantAddressReport(
            namespace,
            name,
            tuple(by_purpose[IPAllocationType.NODES]),
            tuple(by_purpose[IPAllocationType.LOAD_BALANCER]),
            None,
            Announced(None, says=f"not asked: {inventory}"),
            tuple(missing),
        )
    nodes = _users((node.address, node.node) for node in inventory.nodes)
    services = _users((text, str(balancer)) for balancer in inventory.balancers for text in balancer.addresses)
    platform = frozenset(str(balancer) for balancer in inventory.balancers if balancer.platform)
    waiting = tuple(sorted(str(balancer) for balancer in inventory.balancers if waits(balancer, served_class)))
    return TenantAddressReport(
        namespace,
        name,
        _spans(blocks, IPAllocationType.NODES, nodes, ()),
        tuple(
            replace(span, platform=not platform.isdisjoint(span.users))
            for span in _spans(blocks, IPAllocationType.LOAD_BALANCER, services, _entries(inventory))
        ),
        waiting,
        _announced(blocks, inventory),
        tuple(missing),
    )


def _unknown(block: TenantBlock) -> tuple[IPAllocationType, AddressSpan]:
    assert block.range is not None
    return block.purpose, AddressSpan(block.range, NOT_KNOWN, pool=block.pool, allocation=block.allocation)


def _users(pairs: Iterable[tuple[str, str]]) -> dict[int, list[str]]:
    """Who has each IPv4 address; IPv6 is never Butler's to give."""
    found: dict[int, list[str]] = defaultdict(list)
    for text, user in pairs:
        try:
            family, address = parse_address(text)
        except BadAddress:
            continue
        if family is Family.V4:
            found[address].append(user)
    return found


def _spans(
    blocks: Sequence[TenantBlock] | None,
    purpose: IPAllocationType,
    users: Mapping[int, list[str]],
    announced: Sequence[Range],
) -> tuple[AddressSpan, ...]:
    """What is held, piece by piece, and then what is in use without being held."""
    if blocks is None:
        # Which ones are the cluster's is not known; MetalLB's pool is the next best thing to it.
        held = [(item, "", "") for item in announced]
    else:
        mine = (block for block in blocks if block.purpose is purpose)
        held = [(block.range, block.pool, block.allocation) for block in mine if block.range is not None]
    spans = [span for block in held for span in _pieces(*block, users)]
    inside = {address for block, _, _ in held for address in users if block.first <= address <= block.last}
    stray = IN_USE if blocks is None else NOT_HELD
    spans += [
        AddressSpan(Range(address, address), stray, tuple(sorted(users[address])))
        for address in sorted(users)
        if address not in inside
    ]
    return tuple(spans)


def _pieces(block: Range, pool: str, allocation: str, users: Mapping[int, list[str]]) -> list[AddressSpan]:
    spans, first = [], block.first
    for address in sorted(user for user in users if block.first <= user <= block.last):
        if first < address:
            spans.append(AddressSpan(Range(first, address - 1), IDLE, pool=pool, allocation=allocation))
        spans.append(
            AddressSpan(
                Range(address, address), IN_USE, tuple(sorted(users[address])), pool=pool, allocation=allocation
            )
        )
        first = address + 1
    if first <= block.last:
        spans.append(AddressSpan(Range(first, block.last), IDLE, pool=pool, allocation=allocation))
    return spans


# MetalLB.


def _entries(inventory: Inventory) -> list[Range]:
    return sorted({found for entry in inventory.entries if (found := metallb.ipv4_range(entry.text)) is not None})


def _announced(blocks: Sequence[TenantBlock] | None, inventory: Inventory) -> Announced:
    if not inventory.has_metallb:
        return Announced(None, says="MetalLB is not installed")
    if blocks is None:
        return Announced(None, says="which addresses it should have is not known")
    balancers = [block for block in blocks if block.purpose is IPAllocationType.LOAD_BALANCER]
    held = [block.range for block in balancers if block.range]
    # What is on its way back may still be there.
    wanted = [block.range for block in balancers if block.range and not block.leaving]
    ours = [entry for entry in inventory.entries if entry.pool == POOL]
    there = [found for own in ours if (found := metallb.ipv4_range(own.text)) is not None]
    missing = tuple(text for span in wanted for text in metallb.addresses(list(without(span, there))))
    # IPv6 in pools of other names is none of Butler's business, and neither is what makes no sense.
    others = [entry for entry in inventory.entries if entry.pool != POOL and metallb.ipv4_range(entry.text)]
    strange = (
        *sorted(text for own in ours for text in _not_held(own.text, held)),
        *sorted(f"{text} (pool {other.pool})" for other in others for text in _not_held(other.text, held)),
    )
    if not missing and not strange:
        return Announced(True, says="MetalLB has exactly the cluster's addresses")
    words = []
    if missing:
        words.append(f"MetalLB's {POOL} lacks {', '.join(missing)}")
    if strange:
        words.append(f"MetalLB has {', '.join(strange)}, which the cluster does not hold")
    return Announced(False, missing, strange, "; ".join(words))


def _not_held(entry: str, held: Sequence[Range]) -> list[str]:
    """What of an entry the cluster does not hold; the entry as it is written where that is all of it."""
    found = metallb.ipv4_range(entry)
    left = [] if found is None else list(without(found, held))
    return [entry] if found is None or left == [found] else metallb.addresses(left)


# As a computed answer.


def addresses_json(found: TenantAddressReport) -> dict[str, Any]:
    """Stable, for programs."""
    return {
        "namespace": found.namespace,
        "name": found.name,
        "nodes": [_span_json(node) for node in found.nodes],
        "loadBalancers": [_span_json(load_balancer) for load_balancer in found.load_balancers],
        "waitingServices": None if found.waiting is None else list(found.waiting),
        "metalLB": {
            "inStep": found.metallb.in_step,
            "missing": list(found.metallb.missing),
            "strange": list(found.metallb.strange),
            "says": found.metallb.says,
        },
        "unseen": list(found.unseen),
    }


def _span_json(span: AddressSpan) -> dict[str, Any]:
    return {
        **range_json(Family.V4, span.range),
        "state": span.state,
        "users": list(span.users),
        "platform": span.platform,
        "pool": span.pool or None,
        "allocation": span.allocation or None,
    }
