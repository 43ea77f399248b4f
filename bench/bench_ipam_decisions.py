"""What a decision costs: allocate 8 contiguous addresses and release 8, in pools from /24 to /8.

    python bench/bench_ipam_decisions.py        (or: make bench-ipam PART=decisions)

All contenders see the same shapes, the same requests and the same releases, in this process, and every answer is
checked by a map of the pool that shares nothing with any of them: inside the pool, of the right length, on nothing
taken. Times are medians of single pairs. The others are given fewer turns where one takes long.
"""

from __future__ import annotations

import gc
import random
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path[:0] = [
    str(Path(__file__).parent),
    str(Path(__file__).parents[1] / "tests"),
    str(Path(__file__).parents[1] / "tests/support"),
    str(Path(__file__).parents[1] / "tools"),
    str(Path(__file__).parents[1] / "kubeserver/tests/support"),
]

from ipam.contenders import Butler, Contender, FreeNetworks, NetBox, Neutron, SubnetWalk  # noqa: E402
from ipam.report import Goal, duration, heading, note, summary, table, times  # noqa: E402

from butler.ipam.addresses import Family, Range, address_text, parse_range  # noqa: E402
from butler.ipam.free_space import FreeSpace  # noqa: E402
from ipam import neutron_itself, shapes  # noqa: E402 - after the path is set

if TYPE_CHECKING:
    from collections.abc import Sequence

PREFIXES = (24, 20, 16, 12, 8)
MOST = 64_000
LADDER = (100, 1_000, 4_000, 16_000, 64_000)
PAIRS = 20_000
OUTSTANDING = 8
"""Blocks held while pairs run, so that a release seldom undoes the last grant; a /24 has 16 blocks to spare."""

RECIPE_SECONDS = 1.0
RECIPE_PATIENCE = 6.0
"""A recipe whose one turn would take longer than this is not asked."""


class Wrong(Exception):
    """A contender handed out what it must not."""


class Cost(NamedTuple):
    median: float
    p99: float
    turns: int


def check(pool: Range, taken: Sequence[Range], history: Sequence[tuple[Range | None, Range | None]]) -> None:
    """Replay grants and releases on a map of the pool, one byte an address."""
    cells = bytearray(pool.size)
    for span in taken:
        cells[span.first - pool.first : span.last - pool.first + 1] = b"\1" * span.size
    for granted, released in history:
        if granted is not None:
            first, last = granted.first - pool.first, granted.last - pool.first
            if granted.size != shapes.BLOCK or first < 0 or last >= pool.size or any(cells[first : last + 1]):
                raise Wrong(f"{granted} is not a free block of {shapes.BLOCK} in {pool}")
            cells[first : last + 1] = b"\1" * granted.size
        if released is not None:
            cells[released.first - pool.first : released.last - pool.first + 1] = bytes(released.size)


def cost_of(
    contender: Contender, pool: Range, taken: Sequence[Range], *, pairs: int, seconds: float, outstanding: int = 1
) -> Cost:
    """Run pairs until there are enough of them or the time is over, then check all that was handed out.

    A release gives back one of the last `outstanding` grants, not always the very last.
    """
    contender.load(pool, taken)
    source = random.Random(shapes.SEED)
    history: list[tuple[Range | None, Range | None]] = []
    held: list[Range] = []
    spent: list[int] = []
    clock = time.perf_counter_ns
    gc.collect()
    deadline = clock() + int(seconds * 1e9)
    while len(spent) < pairs and (clock() < deadline or len(spent) <= outstanding):
        released = None
        if len(held) == outstanding:
            place = source.randrange(len(held))
            held[place], held[-1] = held[-1], held[place]
            released = held.pop()
        began = clock()
        granted = contender.allocate(shapes.BLOCK)
        if released is not None:
            contender.release(released)
        spent.append(clock() - began)
        history.append((granted, released))
        if granted is not None:
            held.append(granted)
    check(pool, taken, history)
    counted = sorted(spent[outstanding:])
    return Cost(statistics.median(counted) / 1e9, counted[int(len(counted) * 0.99)] / 1e9, len(counted))


def our_cost(prefix: int, shape: str, most: int = MOST) -> tuple[Cost, int]:
    pool = shapes.pool_of(prefix)
    taken = shapes.SHAPES[shape](pool, most)
    return cost_of(Butler(), pool, taken, pairs=PAIRS, seconds=5.0, outstanding=OUTSTANDING), len(taken)


def by_pool_size() -> tuple[float, float]:
    """Ours over pools and shapes. Returns the largest ratio of a /8 to a /24, with equal and with growing numbers."""
    heading(f"Decisions: allocate + release of {shapes.BLOCK} addresses, median (p99), allocations in the pool")
    rows: list[list[str]] = []
    growing: list[float] = []
    for shape in shapes.SHAPES:
        costs = [our_cost(prefix, shape) for prefix in PREFIXES]
        cells = [f"{duration(cost.median)} ({duration(cost.p99)}) {count:,}" for cost, count in costs]
        growing.append(costs[-1][0].median / costs[0][0].median)
        rows.append([shape, *cells, times(growing[-1])])
    table(["as full as up to 64,000 allow", *(f"/{prefix}" for prefix in PREFIXES), "/8 to /24"], rows)
    rows, equal = [], []
    for shape in ("sequential", "scattered"):
        costs = [our_cost(prefix, shape, 16) for prefix in PREFIXES]
        equal.append(costs[-1][0].median / costs[0][0].median)
        rows.append(
            [shape, *(f"{duration(cost.median)} ({duration(cost.p99)})" for cost, _ in costs), times(equal[-1])]
        )
    print()
    table(["the same 16 allocations", *(f"/{prefix}" for prefix in PREFIXES), "/8 to /24"], rows)
    return max(equal), max(growing)


def against_recipes(real_neutron: bool) -> tuple[float, float]:
    """All contenders by shape at 4,000 blocks, then by number of blocks.

    Returns how many times our time NetBox's recipe takes at 4,000 scattered blocks, and in the shape it likes best.
    """
    contenders: list[Contender] = [NetBox(), Neutron(), SubnetWalk(), FreeNetworks()]
    pool = shapes.pool_of(12)
    columns = [*(contender.name for contender in contenders)]
    heading("Decisions against the recipes: time of a pair, and how many times ours")
    rows: list[list[str]] = []
    least = float("inf")
    for shape, make in shapes.SHAPES.items():
        taken = make(pool, 4_000)
        ours = cost_of(Butler(), pool, taken, pairs=PAIRS, seconds=2.0).median
        cells = []
        for contender in contenders:
            cost = cost_of(contender, pool, taken, pairs=200, seconds=RECIPE_SECONDS / 2)
            cells.append(f"{duration(cost.median)} {times(cost.median / ours)}")
            if isinstance(contender, NetBox):
                least = min(least, cost.median / ours)
        rows.append([f"{shape}, {len(taken):,}", duration(ours), *cells])
    table(["a /12, about 4,000 blocks", "Butler", *columns], rows)
    print()
    rows, ratio = [], 0.0
    previous = dict.fromkeys(columns, 0.0)
    for count in LADDER:
        taken = shapes.scattered(pool, count)
        ours = cost_of(Butler(), pool, taken, pairs=PAIRS, seconds=2.0).median
        cells = []
        for contender in contenders:
            if previous[contender.name] * 4 > RECIPE_PATIENCE:
                cells.append("not waited for")
                continue
            median = cost_of(contender, pool, taken, pairs=200, seconds=RECIPE_SECONDS).median
            previous[contender.name] = median
            cells.append(f"{duration(median)} {times(median / ours)}")
            if isinstance(contender, NetBox) and count == 4_000:
                ratio = median / ours
        if real_neutron:
            median = neutron_itself.seconds_per_decision(pool, taken, RECIPE_SECONDS)
            cells.append(f"{duration(median)} {times(median / ours)}")
        rows.append([f"{count:,}", duration(ours), *cells])
    table(["blocks, scattered in a /12", "Butler", *columns, *([neutron_itself.NAME] if real_neutron else [])], rows)
    note("Ours is a true best fit of any length; the others hand out aligned powers of two only.")
    note("The walk over subnets knows one size only; it is quick while the front of the pool has room.")
    return ratio, least


def rebuild() -> float:
    """The whole memory of a pool from 10,000 records, in seconds, addresses still being text."""
    heading("Rebuild from 10,000 records")
    pool = shapes.pool_of(12)
    taken = shapes.random_sizes(pool, 10_000)
    random.Random(shapes.SEED).shuffle(taken)
    texts = [(address_text(item.first, Family.V4), address_text(item.last, Family.V4)) for item in taken]
    from_text, from_numbers, by_netaddr = [], [], []
    for _ in range(15):
        began = time.perf_counter()
        space = FreeSpace.without([pool], [parse_range(start, end)[1] for start, end in texts])
        from_text.append(time.perf_counter() - began)
        began = time.perf_counter()
        again = FreeSpace.without([pool], taken)
        from_numbers.append(time.perf_counter() - began)
        if list(space.extents()) != list(again.extents()) or space.free != pool.size - sum(r.size for r in taken):
            raise Wrong("a rebuilt pool does not have what was left free")
    for _ in range(2):
        contender = NetBox()
        contender.load(pool, taken)
        began = time.perf_counter()
        contender.allocate(shapes.BLOCK)
        by_netaddr.append(time.perf_counter() - began)
    ours = statistics.median(from_text)
    table(
        ["records of 1..64 addresses in a /12", "time", "ratio"],
        [
            ["Butler, from the text of the records", duration(ours), "1"],
            ["Butler, from numbers", duration(statistics.median(from_numbers)), ""],
            ["NetBox recipe (on every request)", duration(min(by_netaddr)), times(min(by_netaddr) / ours)],
        ],
    )
    return ours


def run(real_neutron: bool = False) -> list[Goal]:
    equal, growing = by_pool_size()
    ratio, least = against_recipes(real_neutron)
    rebuilt = rebuild()
    return [
        Goal(
            "decisions: flat from /24 to /8 (read as 2x at most, every shape)",
            f"{times(equal)} with 16 allocations, {times(growing)} with 16 to 64,000",
            max(equal, growing) <= 2,
        ),
        Goal(
            "decisions: 1,000 times the NetBox recipe at 4,000 blocks",
            f"{times(ratio)} scattered; {times(least)} where it does best",
            ratio >= 1_000,
        ),
        Goal("decisions: rebuild from 10,000 records under 50 ms", duration(rebuilt), rebuilt < 0.050),
    ]


if __name__ == "__main__":
    summary(run("--real-neutron" in sys.argv))
