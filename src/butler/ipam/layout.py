"""What a NetworkPool may hand out, read from its spec: the network, its windows, and what is kept back of them.

The CRD's own rules and the admission webhook refuse most bad specs, but a pool may have been stored before a rule
existed, or while the webhook was off. So this reads with suspicion, and reports *all* that is wrong at once: a
person who fixes a pool should not have to come back for the next complaint. A pool with any problem hands out
nothing; there is no guessing at what was meant.

Without a window, the whole network is handed out except its first and last address, which belong to the network
itself (in networks that are large enough to have any to spare). With a window, the administrator's word counts.

In either case gateways and DNS servers are left out that ProviderConfigs name: the pool's status lists them, so that
everyone who reads a pool (`pool_layout`) comes to the same addresses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from butler.api.networkpool import SHORTEST_PREFIX, AllocationDefaults
from butler.api.text import LARGEST_RANGE
from butler.ipam.addresses import (
    BadAddress,
    Family,
    Range,
    address_text,
    parse_address,
    parse_network,
    range_cidr,
    range_text,
)
from butler.ipam.range_difference import without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from butler.api.networkpool import (
        ExcludedAddress,
        NetworkPool,
        NetworkPoolSpec,
        ReservedBlock,
        TenantAllocation,
    )

    Report = Callable[[str, str], None]


class FieldProblem(NamedTuple):
    """One thing that is wrong with a spec: the field as it is spelled in YAML, and a sentence."""

    field: str
    message: str


class InvalidPool(Exception):
    """A pool that cannot hand out anything, with everything that is wrong with it."""

    def __init__(self, problems: Iterable[FieldProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{field}: {message}" for field, message in self.problems))


class Reserved(NamedTuple):
    """A block that is kept back, and what for."""

    addresses: Range
    description: str


@dataclass(frozen=True, slots=True)
class PoolLayout:
    """The ranges of a valid pool."""

    family: Family
    network: Range
    windows: tuple[Range, ...]
    """Where grants may lie, in order of address; one grant lies inside one of them."""
    reserved: tuple[Range, ...]
    """What is kept back, in order of address, touching blocks joined."""
    blocks: tuple[Reserved, ...]
    """What is kept back, as it was written, in order of address."""
    excluded: tuple[Reserved, ...]
    """Single addresses that ProviderConfigs give to something else, in order, with what they are."""
    usable: tuple[Range, ...]
    """The windows without what is reserved or excluded, in order of address; pieces of two windows stay apart."""
    total: int
    """How many addresses may be handed out in all."""
    nodes_default: int
    load_balancer_default: int


class _Named(NamedTuple):
    """A range of the spec, and the field that it came from."""

    addresses: Range
    field: str


def pool_layout(pool: NetworkPool) -> PoolLayout:
    """What a pool hands out, as its own controller has it. Raises `InvalidPool` with everything that is wrong."""
    return read_layout(pool.spec, pool.status.excluded_addresses)


def read_layout(spec: NetworkPoolSpec, excluded: Iterable[ExcludedAddress] = ()) -> PoolLayout:
    """What a pool with this spec may hand out. Raises `InvalidPool` with everything that is wrong."""
    problems: list[FieldProblem] = []

    def report(field: str, message: str) -> None:
        problems.append(FieldProblem(field, message))

    network = _read_network(spec.cidr, report)
    blocks = _read_reserved(spec.reserved, network, report)
    windows = _read_windows(spec.tenant_allocation, network, report)
    _check_reserved_against_windows(blocks, windows, report)
    defaults = spec.tenant_allocation.defaults if spec.tenant_allocation else AllocationDefaults()
    _check_defaults(defaults, report)
    if problems or network is None:
        raise InvalidPool(problems)

    reserved = _joined(sorted(block.addresses for block in blocks))
    handed_out = sorted(window.addresses for window in windows) or [_without_its_edges(network)]
    left_out = _read_excluded(excluded, network)
    taken = _joined(sorted([*reserved, *(address.addresses for address in left_out)]))
    usable = tuple(piece for window in handed_out for piece in without(window, taken))
    if not usable:
        by = "spec.cidr" if left_out else "spec.reserved"
        raise InvalidPool([FieldProblem(by, f"nothing of {spec.cidr} is left to hand out: reserve less of it")])
    descriptions = {block.field: entry.description for block, entry in zip(blocks, spec.reserved, strict=True)}
    return PoolLayout(
        family=Family.V4,
        network=network,
        windows=tuple(handed_out),
        reserved=tuple(reserved),
        blocks=tuple(sorted(Reserved(block.addresses, descriptions[block.field] or "") for block in blocks)),
        excluded=left_out,
        usable=usable,
        total=sum(piece.size for piece in usable),
        nodes_default=defaults.nodes_per_tenant,
        load_balancer_default=defaults.lb_pool_per_tenant,
    )


def _read_network(cidr: str, report: Report) -> Range | None:
    try:
        family, network = parse_network(cidr)
    except BadAddress as error:
        report("spec.cidr", str(error))
        return None
    if family is Family.V6:
        report("spec.cidr", f"{cidr} is an IPv6 network: pools hand out IPv4 only, for now")
        return None
    if network.size > 1 << (family.bits - SHORTEST_PREFIX):
        report("spec.cidr", f"{cidr} is too large: the prefix must be /{SHORTEST_PREFIX} or longer")
    return network


def _read_excluded(entries: Iterable[ExcludedAddress], network: Range) -> tuple[Reserved, ...]:
    """The excluded addresses that lie in the network. They come from a status, where nonsense means nothing."""
    found: dict[int, str] = {}
    for entry in entries:
        try:
            family, address = parse_address(entry.address)
        except BadAddress:
            continue
        if family is Family.V4 and network.first <= address <= network.last:
            found.setdefault(address, entry.reason)
    return tuple(Reserved(Range(address, address), found[address]) for address in sorted(found))


def _read_reserved(entries: Sequence[ReservedBlock], network: Range | None, report: Report) -> list[_Named]:
    blocks: list[_Named] = []
    for index, entry in enumerate(entries):
        field = f"spec.reserved[{index}].cidr"
        try:
            family, addresses = parse_network(entry.cidr)
        except BadAddress as error:
            report(field, str(error))
            continue
        if family is Family.V6:
            report(field, f"{entry.cidr} is an IPv6 network: this pool hands out IPv4")
            continue
        if network is not None and not network.contains(addresses):
            report(field, f"{entry.cidr} is outside the pool's network {range_cidr(network, family)}")
        blocks.append(_Named(addresses, field))
    for before, after in _overlapping(blocks):
        report(after.field, f"{_cidr(after)} overlaps {_cidr(before)} of {before.field}: keep one of the two")
    return blocks


def _read_windows(wanted: TenantAllocation | None, network: Range | None, report: Report) -> list[_Named]:
    if wanted is None:
        return []
    stem = "spec.tenantAllocation"
    ends = [(window.start, window.end, f"{stem}.ranges[{i}]") for i, window in enumerate(wanted.ranges)]
    if wanted.start is not None and wanted.end is not None:
        if ends:
            report(f"{stem}.ranges", "give either start and end (one window) or ranges (several), not both")
        ends.append((wanted.start, wanted.end, stem))
    elif wanted.start is not None:
        report(f"{stem}.end", "a window with a start needs an end")
    elif wanted.end is not None:
        report(f"{stem}.start", "a window with an end needs a start")

    windows: list[_Named] = []
    for start, end, field in ends:
        first = _read_bound(start, f"{field}.start", network, report)
        last = _read_bound(end, f"{field}.end", network, report)
        if first is None or last is None:
            continue
        if last < first:
            report(f"{field}.end", f"end {end} comes before start {start}")
            continue
        windows.append(_Named(Range(first, last), field))
    if not (wanted.ranges and wanted.start is not None):
        for before, after in _overlapping(windows):
            report(
                after.field,
                f"window {_text(after)} overlaps window {_text(before)} of {before.field}: join the two or part them",
            )
    return windows


def _read_bound(text: str, field: str, network: Range | None, report: Report) -> int | None:
    try:
        family, address = parse_address(text)
    except BadAddress as error:
        report(field, str(error))
        return None
    if family is Family.V6:
        report(field, f"{text} is an IPv6 address: this pool hands out IPv4")
        return None
    if network is not None and not network.first <= address <= network.last:
        report(field, f"{text} is outside the pool's network {range_cidr(network, family)}")
    return address


def _check_reserved_against_windows(blocks: list[_Named], windows: list[_Named], report: Report) -> None:
    """A block lies inside a window or outside it. Where it crosses an edge, one of the two is a mistake."""
    swallowed: set[str] = set()
    for block in blocks:
        for window in windows:
            if block.addresses.contains(window.addresses):
                swallowed.add(window.field)
                report(block.field, f"{_cidr(block)} covers the whole window {_text(window)} of {window.field}")
            elif block.addresses.overlaps(window.addresses) and not window.addresses.contains(block.addresses):
                report(
                    block.field,
                    f"{_cidr(block)} crosses the edge of window {_text(window)} of {window.field}:"
                    " move one of them, so that the block lies inside the window or outside it",
                )
    reserved = _joined(sorted(block.addresses for block in blocks))
    for window in windows:
        if window.field not in swallowed and not without(window.addresses, reserved):
            report(window.field, f"window {_text(window)} is wholly reserved, by several blocks: remove it")


def _check_defaults(defaults: AllocationDefaults, report: Report) -> None:
    for name, value in (
        ("nodesPerTenant", defaults.nodes_per_tenant),
        ("lbPoolPerTenant", defaults.lb_pool_per_tenant),
    ):
        if not 1 <= value <= LARGEST_RANGE:
            report(
                f"spec.tenantAllocation.defaults.{name}",
                f"{value} is no number of addresses to give out: choose 1 to {LARGEST_RANGE}",
            )


def _without_its_edges(network: Range) -> Range:
    """The network without its network and broadcast address, where it has any others."""
    return Range(network.first + 1, network.last - 1) if network.size >= 4 else network


def _overlapping(ranges: Sequence[_Named]) -> list[tuple[_Named, _Named]]:
    """Pairs that overlap, the one that was written first before the other.

    Each range is held against the one below it that reaches furthest: that names everyone concerned, if not
    every pair.
    """
    pairs: list[tuple[_Named, _Named]] = []
    furthest: int | None = None
    for index in sorted(range(len(ranges)), key=lambda index: ranges[index].addresses):
        addresses = ranges[index].addresses
        if furthest is not None and addresses.first <= ranges[furthest].addresses.last:
            pairs.append((ranges[min(index, furthest)], ranges[max(index, furthest)]))
        if furthest is None or addresses.last > ranges[furthest].addresses.last:
            furthest = index
    return pairs


def _joined(ranges: Iterable[Range]) -> list[Range]:
    """Ranges in order of address, with those that touch or overlap made one."""
    joined: list[Range] = []
    for addresses in ranges:
        if joined and addresses.first <= joined[-1].last + 1:
            joined[-1] = Range(joined[-1].first, max(joined[-1].last, addresses.last))
        else:
            joined.append(addresses)
    return joined


def _text(named: _Named) -> str:
    return range_text(named.addresses, Family.V4)


def _cidr(named: _Named) -> str:
    return range_cidr(named.addresses, Family.V4) or address_text(named.addresses.first, Family.V4)
