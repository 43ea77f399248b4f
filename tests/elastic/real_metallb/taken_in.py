"""A rule of drains that only a MetalLB can be judged by which shows what it sees: version 0.15 and newer.

An allocation may be released only after the pool's status, in which MetalLB counts the addresses that it has loaded,
was that of a pool without the allocation's addresses. Read from the record of both sides, like all rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from elastic.chronicle import announced, granted, is_growth, of_kind, phase, tenant_of
from elastic.rules import default_pool
from ipam.history import ALLOCATION
from ipam.oracle import text
from ipam.story import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from elastic.chronicle import Chronicle, Dated
    from elastic.moments import Moment
    from ipam.history import Json


def seen_size(pool: Json | None) -> int | None:
    """How many addresses MetalLB says it sees in a pool."""
    status = (pool or {}).get("status") or {}
    if "availableIPv4" not in status and "assignedIPv4" not in status:
        return None
    return int(status.get("availableIPv4", 0)) + int(status.get("assignedIPv4", 0))


def given_back_unseen(chronicle: Chronicle) -> Iterator[Violation]:
    """Releases before which MetalLB had surely not shown that it had taken in the withdrawal."""
    for tenant, inside in chronicle.tenants.items():
        pools = default_pool(inside)
        for dated in of_kind(chronicle.management, ALLOCATION):
            before, after = dated.revision.before, dated.revision.after
            if before is None or after is None or tenant_of(after) != tenant or not is_growth(after):
                continue
            if phase(before) != "Allocated" or phase(after) != "Released" or after["metadata"].get("deletionTimestamp"):
                continue
            addresses = granted(before)
            if not _was_taken_in(pools, addresses, dated.moment):
                what = f"{text((min(addresses), max(addresses)))} was given back before MetalLB showed it knew"
                yield Violation("unseen", what, (dated.revision, *(pool.revision for pool in pools[-6:])))


def _was_taken_in(pools: list[Dated], addresses: set[int], released: Moment) -> bool:
    """Whether, maybe before that moment, MetalLB's count was that of the pool without these addresses."""
    for dated in pools:
        pool = dated.revision.after
        if released.surely_before(dated.moment):
            break
        if pool is None:
            if dated.moment.earliest <= released.latest:
                return True  # no pool, no count
            continue
        listed = announced(pool)
        if not addresses & listed and seen_size(pool) == len(listed):
            return True
    return False
