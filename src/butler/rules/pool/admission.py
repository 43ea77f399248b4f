"""The rules for NetworkPools: what may be created, changed and deleted. Pure: plain values in, a verdict out.

The controller is safe without these rules: it grants nothing from a pool that is invalid or overlaps another one.
They are here so that a person hears of a mistake at once, and so that an address in use never falls outside its
pool by an edit:

- a spec must make sense as a whole (`butler.ipam.layout`), and overlap no other pool, neither its spec nor the
  network that it still hands out from;
- what is in use, or is just being granted (`status.intents` of the stored pool), stays inside what is handed out;
- a pool that holds addresses in use is not deleted.

An edit is judged by what it makes worse. A pool that overlaps another one already, or whose addresses in use are
stranded already (both happen where admission was off), can still be edited, or it could never be put right; the
author is warned. What is unchanged in its spec, or on its way out, is never refused.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from butler.ipam.addresses import BadAddress, Family, Range, parse_network
from butler.ipam.layout import FieldProblem, InvalidPool, pool_layout
from butler.ipam.range_difference import without
from butler.rules.admission_verdict import NAMED, AdmissionVerdict
from butler.rules.allocation.holders import Held, held_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool, NetworkPoolSpec
    from butler.ipam.layout import PoolLayout

_EVERYTHING = (Range(0, (1 << Family.V6.bits) - 1),)


def judge(
    old: NetworkPool | None, new: NetworkPool, others: Iterable[NetworkPool], allocations: Iterable[IPAllocation]
) -> AdmissionVerdict:
    """Whether a pool may be created (no old) or changed into `new`. `others` may include the pool itself."""
    try:
        layout = pool_layout(new)
    except InvalidPool as error:
        return AdmissionVerdict(error.problems)
    before = () if old is None else _network_of(old.spec.cidr)
    problems, warnings = _overlaps(new, layout, before, others)
    if old is not None:
        lost, left_before = _stranded(old, new.spec, layout, held_in(old, allocations))
        problems += lost
        warnings += left_before
    return AdmissionVerdict(tuple(problems), (*warnings, *_too_small_for_defaults(layout)))


def why_not_deleted(pool: NetworkPool, allocations: Iterable[IPAllocation]) -> str:
    """Why a pool must stay, as a sentence; empty when it may go."""
    held = held_in(pool, allocations)
    if not held:
        return ""
    return (
        f"NetworkPool {pool.metadata.name} ({pool.spec.cidr}) has addresses in use: {listed(held)};"
        f" have them released first (kubectl get ipallocations -n {pool.metadata.namespace} shows whose they are)"
    )


def listed(held: Sequence[Held]) -> str:
    """The first few holders with their ranges, and how many more there are."""
    named = ", ".join(f"{item.name} ({item.text})" for item in held[:NAMED])
    return _and_more(named, len(held) - NAMED, "")


# Overlap with other pools.


def _overlaps(
    new: NetworkPool, layout: PoolLayout, before: Sequence[Range], others: Iterable[NetworkPool]
) -> tuple[list[FieldProblem], list[str]]:
    """Overlaps that the edit makes, as problems, and those that were there before, as warnings."""
    made: list[str] = []
    known: list[str] = []
    for other in sorted(others, key=lambda pool: (pool.metadata.namespace, pool.metadata.name)):
        if (other.metadata.namespace, other.metadata.name) == (new.metadata.namespace, new.metadata.name):
            continue
        name = f"NetworkPool {other.metadata.namespace}/{other.metadata.name}"
        networks = [(other.spec.cidr, f"{other.spec.cidr} of {name}")]
        claimed = other.status.claimed_cidr
        if claimed is not None and claimed != other.spec.cidr:
            networks.append((claimed, f"{claimed}, which {name} still hands out from"))
        for cidr, shown in networks:
            shared = [_shared(layout.network, network) for network in _network_of(cidr)]
            if not any(shared):
                continue
            is_new = any(span and not any(network.contains(span) for network in before) for span in shared)
            (made if is_new else known).append(shown)
            break
    problems, warnings = [], []
    if made:
        advice = "choose a network that no other pool uses"
        problems.append(FieldProblem("spec.cidr", f"{new.spec.cidr} overlaps {_listed_pools(made)}: {advice}"))
    if known:
        warnings.append(f"spec.cidr: {new.spec.cidr} still overlaps {_listed_pools(known)}")
    return problems, warnings


def _listed_pools(shown: Sequence[str]) -> str:
    return _and_more("; ".join(shown[:NAMED]), len(shown) - NAMED, " pools")


def _shared(one: Range, other: Range) -> Range | None:
    return Range(max(one.first, other.first), min(one.last, other.last)) if one.overlaps(other) else None


def networks_of(pool: NetworkPool) -> tuple[Range, ...]:
    """What a pool wants to hand out from, and what it still does."""
    claimed = pool.status.claimed_cidr
    also = _network_of(claimed) if claimed is not None and claimed != pool.spec.cidr else ()
    return (*_network_of(pool.spec.cidr), *also)


def _network_of(cidr: str) -> tuple[Range, ...]:
    """The network of a text that may be wrong: a pool that cannot be read overlaps nothing."""
    try:
        family, network = parse_network(cidr)
    except BadAddress:
        return ()
    return (network,) if family is Family.V4 else ()


# Addresses in use.


def _stranded(
    old: NetworkPool, spec: NetworkPoolSpec, layout: PoolLayout, held: Iterable[Held]
) -> tuple[list[FieldProblem], list[str]]:
    """Addresses in use that the edit would leave outside, by the field to blame; and those outside before."""
    usable_before = _usable_of(old)
    lost: dict[str, list[Held]] = {}
    already: list[Held] = []
    for item in held:
        outside = _less(item.addresses, layout.usable)
        if not outside:
            continue
        newly = [piece for part in outside for piece in _within(part, usable_before)]
        if newly:
            lost.setdefault(_blamed(newly[0], spec, layout), []).append(item)
        else:
            already.append(item)
    problems = [
        FieldProblem(field, f"{_would(field, spec)}: {listed(who)}; keep these addresses, or have them released first")
        for field, who in sorted(lost.items())
    ]
    warnings = [f"in use, and outside what this pool hands out: {listed(already)}"] if already else []
    return problems, warnings


def _would(field: str, spec: NetworkPoolSpec) -> str:
    if field == "spec.cidr":
        return f"{spec.cidr} would leave out addresses in use"
    if field.startswith("spec.reserved"):
        block = spec.reserved[int(field.partition("[")[2].partition("]")[0])]
        return f"{block.cidr} would take addresses in use"
    return "the windows would leave out addresses in use"


def _blamed(addresses: Range, spec: NetworkPoolSpec, layout: PoolLayout) -> str:
    """The field that keeps addresses from being handed out."""
    if not layout.network.contains(addresses):
        return "spec.cidr"
    for index, block in enumerate(spec.reserved):
        if any(network.overlaps(addresses) for network in _network_of(block.cidr)):
            return f"spec.reserved[{index}].cidr"
    return (
        "spec.tenantAllocation.ranges"
        if spec.tenant_allocation and spec.tenant_allocation.ranges
        else ("spec.tenantAllocation")
    )


def _usable_of(old: NetworkPool) -> Sequence[Range]:
    """What a stored pool handed out. One that cannot be read still held what it had claimed, or anything."""
    try:
        return pool_layout(old).usable
    except InvalidPool:
        claimed = old.status.claimed_cidr
        return (_network_of(claimed) if claimed else ()) or _EVERYTHING


def _less(addresses: Range, kept: Sequence[Range]) -> list[Range]:
    """The pieces of a range that lie in none of `kept`, which is in order: of many, only those around it are read."""
    near = kept[max(0, bisect_right(kept, (addresses.first,)) - 1) : bisect_right(kept, (addresses.last + 1,))]
    return without(addresses, near)


def _within(addresses: Range, kept: Sequence[Range]) -> list[Range]:
    """The pieces of a range that lie in one of `kept`."""
    return [shared for span in kept if (shared := _shared(addresses, span))]


def _too_small_for_defaults(layout: PoolLayout) -> list[str]:
    longest = max(piece.size for piece in layout.usable)
    return [
        f"spec.tenantAllocation.defaults.{name}: requests without a count ask for {wanted} addresses in a row,"
        f" but this pool has at most {longest}: they will fail"
        for name, wanted in (
            ("nodesPerTenant", layout.nodes_default),
            ("lbPoolPerTenant", layout.load_balancer_default),
        )
        if wanted > longest
    ]


def _and_more(named: str, more: int, what: str) -> str:
    return f"{named} and {more} more{what}" if more > 0 else named
