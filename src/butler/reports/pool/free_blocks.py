"""Where so many addresses would fit into a pool, and where the engine would put them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from butler.ipam.addresses import Family, Range, address_text, range_cidr

if TYPE_CHECKING:
    from butler.ipam.free_space import FreeSpace


class Block(NamedTuple):
    """A hole, and which addresses of it answer the question."""

    hole: Range
    fit: Range
    chosen: bool
    """Whether best fit, as the engine does it, takes its addresses from this hole."""


@dataclass(frozen=True, slots=True)
class FreeBlocksReport:
    """What was asked, and all holes that hold it."""

    size: int | None
    align: bool
    free: int
    holes: int
    largest: int
    best_fit: Range | None
    """What a request for so many addresses would get now; never aligned but by chance."""
    blocks: tuple[Block, ...]
    """In order of address."""


def free_blocks(free: FreeSpace, *, size: int | None = None, align: bool = False) -> FreeBlocksReport:
    """All holes, or those with room for `size` addresses; with `align`, beginning at a multiple of that."""
    best = free.best_fit(size) if size else None
    blocks: list[Block] = []
    for hole in free.extents():
        fit = _fit(hole, size, align=align)
        if fit is not None:
            blocks.append(Block(hole, fit, chosen=best is not None and hole.contains(best)))
    return FreeBlocksReport(size, align, free.free, free.holes, free.largest, best, tuple(blocks))


def _fit(hole: Range, size: int | None, *, align: bool) -> Range | None:
    if not align:
        return hole if size is None else Range(hole.first, hole.first + size - 1) if hole.size >= size else None
    if size is not None:
        return _aligned(hole, size)
    for power in range(hole.size.bit_length() - 1, -1, -1):
        found = _aligned(hole, 1 << power)
        if found is not None:
            return found
    return None


def _aligned(hole: Range, size: int) -> Range | None:
    first = -(-hole.first // size) * size
    return Range(first, first + size - 1) if first + size - 1 <= hole.last else None


def free_blocks_json(found: FreeBlocksReport, pool: str, family: Family) -> dict[str, Any]:
    return {
        "pool": pool,
        "size": found.size,
        "align": found.align,
        "free": found.free,
        "holes": found.holes,
        "largest": found.largest,
        "bestFit": _json(found.best_fit, family) if found.best_fit else None,
        "blocks": [
            {**_json(block.hole, family), "fit": _json(block.fit, family), "bestFit": block.chosen}
            for block in found.blocks
        ],
    }


def _json(addresses: Range, family: Family) -> dict[str, Any]:
    return {
        "start": address_text(addresses.first, family),
        "end": address_text(addresses.last, family),
        "count": addresses.size,
        "cidr": range_cidr(addresses, family),
    }
