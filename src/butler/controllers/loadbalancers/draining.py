"""Taking addresses back, without ever moving a Service.

MetalLB takes the address away from a Service when it leaves the pool. So a block goes in steps, each of which can be
broken off, repeated, or finished by another process:

1. its allocation is marked: from now on no process adds it to a pool;
2. MetalLB's pool hands out no address for a moment (`autoAssign: false`); Services that have one keep it;
3. when MetalLB has had time to take that in, the pool is read and then all Services are listed afresh. If one has or
   asks for an address of the block, or any Service waits that could have one, the drain is broken off: the mark goes,
   and then all is published as before;
4. else the pool is written without the block, handing out addresses again, valid only for the pool as it was read;
5. when that is confirmed and has had time to settle, Services are listed once more, for one that asked for an address
   of the block by name in between: then it gets the block back;
6. else the allocation is released, valid only for the version that carries the mark.

Every drain writes the pool after the mark, if only a token that is new each time: when it begins (2), and before it
ends, should the block be out of the pool by another hand. So a process that read the pool before, and was paused
since, finds its write refused; and one that reads it later sees the mark.

Two kinds of blocks go this way: what was added for demand and was idle for long, and what a person deleted. The
second ones are never handed out to Services that wait: they are no reason to break off.

Where MetalLB shows whether it has taken in a change (`butler.tenant.metallb_health`), steps 3 and 5 wait for that, not
only for time to pass; and where it says that it refuses its configuration, nothing is taken back. A MetalLB that hangs
would otherwise still hand out addresses from memory that are another tenant's by then.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from butler.api.tenantcluster import PoolChange
from butler.controllers.loadbalancers.next_look import AT_ONCE, SOON, NextLook
from butler.controllers.loadbalancers.publisher import entry, publishable, split
from butler.ipam.addresses import Family, range_text
from butler.kube.kinds import CLUSTERS
from butler.rules.allocation.release import DELETED_BY_REQUEST, Grounds
from butler.rules.loadbalancer.deletion import DRAINING, deleting
from butler.rules.loadbalancer.usage import hands_out, usage_of
from butler.tenant.metallb import ApplyOutcome, address_pool, differs, read
from butler.tenant.metallb_health import read_sign, size_seen
from butler.tenant.services import load_balancers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from butler.api.tenantcluster import TenantCluster
    from butler.controllers.loadbalancers.allocations import Ledger
    from butler.controllers.loadbalancers.look import Look
    from butler.controllers.loadbalancers.metrics import LoadBalancerMetrics
    from butler.controllers.loadbalancers.publisher import Publisher
    from butler.controllers.loadbalancers.states import TenantStates
    from butler.controllers.loadbalancers.status_writer import StatusProgress
    from butler.kube.events import EventRecorder
    from butler.rules.loadbalancer.settings import LoadBalancerSettings
    from butler.rules.loadbalancer.usage import HeldBlock, Usage
    from butler.tenant.metallb import MetalLBStanding, Published

SHRANK: Final = "LoadBalancerShrink"
REST: Final = 30.0
"""Seconds before a drain that was broken off is tried again."""
CONTESTED: Final = NextLook(0.05)
"""When to write a pool again that another process wrote in between."""
A_SECOND: Final = 1.1
LONGEST_SETTLING: Final = 15.0
"""Seconds after which MetalLB is taken to be stuck: the drain is broken off, and Services can have addresses again."""


def _mark(block: HeldBlock, now: datetime) -> Mapping[str, Any]:
    """What is written when the drain of a block begins; all at once, because a later write would begin it anew."""
    said = {"conditions": deleting(block.allocation, DRAINING, now)} if block.is_going else {}
    return {"draining_since": now, **said}


def _after_failure(published: Published) -> NextLook:
    return CONTESTED if published.outcome is ApplyOutcome.CONTESTED else SOON


@dataclass(slots=True)
class DrainProgress:
    """How far the drain of a tenant is. `Draining` alone changes it."""

    held_back: float | None = None
    """When this process made MetalLB hand out no more addresses."""
    token: str = ""
    """What was last written to the pool for no other reason than to change it."""
    read_at: str | None = None
    """When MetalLB, by its own word, last read its pools before that; None where it does not say."""
    steady: tuple[str | None, float] | None = None
    """The same, as it was when last looked at, and since when it has been so."""
    withdrawn: dict[str, float] = field(default_factory=dict)
    """When MetalLB's pool was written without each block, by the version of its allocation that carries the mark."""
    rests_until: float = -math.inf
    """When the next drain may begin, after one that was broken off."""


class Draining:
    """Drains. `new_token` gives another text each time; `clock` gives the time of day, `monotonic` the other one."""

    def __init__(
        self,
        ledger: Ledger,
        publisher: Publisher,
        events: EventRecorder,
        metrics: LoadBalancerMetrics,
        settings: LoadBalancerSettings,
        new_token: Callable[[], str],
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._publisher = publisher
        self._events = events
        self._metrics = metrics
        self._settings = settings
        self._new_token = new_token
        self._clock = clock
        self._monotonic = monotonic

    async def begin(self, blocks: Iterable[HeldBlock]) -> None:
        """Step 1."""
        now = self._clock()
        await asyncio.gather(*(self._ledger.mark(block.allocation, **_mark(block, now)) for block in blocks))

    def saw(self, found: Usage, drain: DrainProgress) -> None:
        """Forget what was withdrawn under another mark, and a drain that has ended."""
        marked = {block.version for block in found.draining}
        drain.withdrawn = {version: since for version, since in drain.withdrawn.items() if version in marked}
        if not marked:
            drain.held_back = None

    async def break_off(self, blocks: Iterable[HeldBlock], drain: DrainProgress) -> None:
        """The marks go, and with the next publishing all is as before."""
        await asyncio.gather(*(self._ledger.mark(block.allocation, draining_since=None) for block in blocks))
        drain.held_back = None
        drain.rests_until = self._monotonic() + min(REST, self._settings.grace.total_seconds())
        self._metrics.drain_broken_off()

    async def go_on(self, look: Look, found: Usage, states: TenantStates) -> NextLook:
        """Do the next step for the blocks that are marked; and when there is another one."""
        standing = await read(look.tenant)
        there = set(standing.addresses)
        inside = [block for block in found.draining if entry(block) in there]
        staying = publishable((block for block in found.blocks if not block.is_draining), there)
        if inside:
            return await self._take_out(look, standing, staying, inside, states)
        if any(block.version not in states.drain.withdrawn for block in found.draining):
            return await self._stamp(look, standing, staying, found.draining, states)
        return await self._give_back(look, standing, found, states)

    async def _take_out(
        self,
        look: Look,
        standing: MetalLBStanding,
        staying: Sequence[HeldBlock],
        inside: Sequence[HeldBlock],
        states: TenantStates,
    ) -> NextLook:
        """Steps 2 to 4."""
        drain, settle = states.drain, self._settings.settle
        blocks = [*staying, *inside]
        first, last = split(blocks)
        wanted = address_pool(first, last=last, auto_assign=False, drained_by=drain.token)
        if drain.held_back is None or differs(wanted, standing.pool):
            return await self._hold_back(look, standing, blocks, states)
        held_for = self._monotonic() - drain.held_back
        if held_for < settle:
            return NextLook(settle - held_for)
        sign, seen = await read_sign(look.tenant), size_seen(standing.pool)
        unread = sign.read_at is not None and sign.read_at == drain.read_at
        unseen = unread or (seen is not None and seen != sum(block.range.size for block in blocks))
        if unseen and not sign.refused and held_for < LONGEST_SETTLING:
            return SOON
        if unseen or sign.refused or await self._is_needed(look, blocks, inside):
            await self.break_off(inside, drain)
            return AT_ONCE
        published = await self._publisher.put(
            look, standing, staying, states, leaving=inside, auto_assign=hands_out(staying)
        )
        if not published.is_current:
            return _after_failure(published)
        drain.held_back = None
        now = self._monotonic()
        drain.withdrawn.update({block.version: now for block in inside})
        return NextLook(settle)

    async def _hold_back(
        self, look: Look, standing: MetalLBStanding, blocks: Sequence[HeldBlock], states: TenantStates
    ) -> NextLook:
        drain = states.drain
        sign = await self._publisher.ask_for_sign(look.tenant, states.pool)
        if sign.refused:
            await self.break_off([block for block in blocks if block.is_draining], drain)
            return AT_ONCE
        # It counts whole seconds: a change within this one would not show. An earlier look changes nothing.
        now = self._monotonic()
        if drain.steady is None or drain.steady[0] != sign.read_at:
            drain.steady = (sign.read_at, now)
        if sign.read_at is not None and now < drain.steady[1] + A_SECOND:
            return NextLook(drain.steady[1] + A_SECOND - now)
        # Should the answer be lost, the wait begins anew, and not at an earlier time.
        drain.held_back, drain.token = None, self._new_token()
        published = await self._publisher.put(look, standing, blocks, states, auto_assign=False, drained_by=drain.token)
        if published.is_current:
            # Where it was so already, by another process, MetalLB does not read its pools again.
            was_so = standing.pool is not None and standing.pool.get("spec", {}).get("autoAssign") is False
            drain.held_back, drain.read_at = self._monotonic(), None if was_so else sign.read_at
            return NextLook(self._settings.settle)
        return _after_failure(published)

    async def _stamp(
        self,
        look: Look,
        standing: MetalLBStanding,
        staying: Sequence[HeldBlock],
        outside: Sequence[HeldBlock],
        states: TenantStates,
    ) -> NextLook:
        """Write the pool, which lacks these blocks already: no process that read it earlier can write it any more.

        It may look as if it were held back, where only blocks that go are left; what waits for that begins anew.
        """
        drain = states.drain
        drain.held_back, drain.token = None, self._new_token()
        published = await self._publisher.put(
            look, standing, staying, states, auto_assign=hands_out(staying), drained_by=drain.token
        )
        # Where MetalLB is not there, nothing can be written, nor announced.
        if not published.is_current and published.outcome is not ApplyOutcome.NOT_INSTALLED:
            return _after_failure(published)
        now = self._monotonic()
        drain.withdrawn.update({block.version: now for block in outside})
        return NextLook(self._settings.settle)

    async def _give_back(self, look: Look, standing: MetalLBStanding, found: Usage, states: TenantStates) -> NextLook:
        """Steps 5 and 6."""
        drain, settle = states.drain, self._settings.settle
        outside, now = found.draining, self._monotonic()
        out_for = now - max(drain.withdrawn[block.version] for block in outside)
        if out_for < settle:
            return NextLook(settle - out_for)
        sign, seen = await read_sign(look.tenant), size_seen(standing.pool)
        there = standing.addresses
        staying = publishable((block for block in found.blocks if not block.is_draining), there)
        unseen = seen is not None and seen != sum(block.range.size for block in staying)
        if unseen and not sign.refused and out_for < LONGEST_SETTLING:
            return SOON
        if unseen or sign.refused or await self._is_needed(look, outside, outside):
            await self.break_off(outside, drain)
            return AT_ONCE
        for block in outside:
            await self._release(look.cluster, block, states.status)
        return AT_ONCE

    async def _is_needed(self, look: Look, blocks: Sequence[HeldBlock], going: Sequence[HeldBlock]) -> bool:
        """Whether a Service has or asks for one of the addresses that go, or waits in vain for any; asked afresh."""
        services = await load_balancers(look.tenant)
        fresh = usage_of([block.allocation for block in blocks], services, self._clock(), look.policy.served_class)
        uids = {block.uid for block in going}
        return fresh.is_held_up or any(block.claimed for block in fresh.blocks if block.uid in uids)

    async def _release(self, cluster: TenantCluster, block: HeldBlock, status: StatusProgress) -> None:
        idle, count = block.allocation.status.idle_since, block.range.size
        which = "it" if count == 1 else "them"
        unused = (
            f"no Service has used {which} since {idle:%Y-%m-%d %H:%M:%S} UTC" if idle else f"no Service uses {which}"
        )
        if block.is_going:
            unused = f"its IPAllocation was deleted, and {unused}"
        await self._ledger.release(
            block.allocation, DELETED_BY_REQUEST if block.is_going else Grounds(unused, "released")
        )
        status.shrank(PoolChange(time=self._clock(), addresses=count, reason=unused))
        self._metrics.shrank(count)
        noun = "address" if count == 1 else "addresses"
        where = f"{range_text(block.range, Family.V4)} to pool {block.allocation.spec.pool_ref.name}"
        self._events.record(cluster, CLUSTERS, SHRANK, f"{count} {noun} given back ({where}): {unused}")
