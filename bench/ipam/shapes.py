"""The shapes a pool is in when a decision is timed: which addresses are taken, and by how many allocations.

Each shape is a function of the pool and of the number of allocations wanted; it gives as many as fit. All are
seeded, so every contender sees the same one.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from butler.ipam.addresses import Range

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCK = 8
SEED = 20_260_217
FIRST = 10 << 24


def pool_of(prefix: int) -> Range:
    return Range(FIRST, FIRST + (1 << (32 - prefix)) - 1)


def sequential(pool: Range, wanted: int) -> list[Range]:
    """One after another from the start, half of the pool at most."""
    count = min(wanted, pool.size // BLOCK // 2)
    return [Range(start, start + BLOCK - 1) for start in range(pool.first, pool.first + count * BLOCK, BLOCK)]


def checkerboard(pool: Range, wanted: int) -> list[Range]:
    """Every second block: all holes fit exactly."""
    count = min(wanted, pool.size // BLOCK // 2)
    return [Range(start, start + BLOCK - 1) for start in range(pool.first, pool.first + count * 2 * BLOCK, 2 * BLOCK)]


def scattered(pool: Range, wanted: int) -> list[Range]:
    """Blocks anywhere on the grid of blocks, half of it at most."""
    slots = pool.size // BLOCK
    chosen = sorted(random.Random(SEED).sample(range(slots), min(wanted, slots // 2)))
    return [Range(pool.first + slot * BLOCK, pool.first + slot * BLOCK + BLOCK - 1) for slot in chosen]


def random_sizes(pool: Range, wanted: int) -> list[Range]:
    """Blocks of 1 to 64 with holes of 1 to 64 between them."""
    source = random.Random(SEED)
    taken: list[Range] = []
    start = pool.first
    while len(taken) < wanted:
        start += source.randint(1, 64)
        last = start + source.randint(1, 64) - 1
        if last > pool.last - 64:
            break
        taken.append(Range(start, last))
        start = last + 1
    return taken


def no_exact_fit(pool: Range, wanted: int) -> list[Range]:
    """Holes of 4 and of 16: none is of the size asked for, and half are too small."""
    taken: list[Range] = []
    for start in range(pool.first, pool.first + min(wanted // 2 * 32, pool.size), 32):
        taken += [Range(start, start + 7), Range(start + 12, start + 15)]
    return taken


def full(pool: Range, wanted: int) -> list[Range]:
    """Nothing is free: what a refusal costs."""
    count = min(1 << (wanted.bit_length() - 1), pool.size // BLOCK)
    size = pool.size // count
    return [Range(start, start + size - 1) for start in range(pool.first, pool.last, size)]


SHAPES: dict[str, Callable[[Range, int], list[Range]]] = {
    "sequential": sequential,
    "checkerboard": checkerboard,
    "scattered": scattered,
    "random 1..64": random_sizes,
    "no exact fit": no_exact_fit,
    "full (refusal)": full,
}
