"""What there is to do on a tenant: labels, MetalLB's pool, and addresses that go.

Nothing is asked of a tenant that speaks for nothing: its pool is read when something happened to a Service that MetalLB
would not do with the pool that it was told, when somebody asks for a look, and now and then.
"""

from __future__ import annotations

import asyncio
import math
import zlib
from typing import TYPE_CHECKING, Final

from butler.api.labels import Annotation, LoadBalancerReason
from butler.controllers.loadbalancers.platform import label, unlabelled
from butler.controllers.loadbalancers.publishing import entry, publishable
from butler.kube.errors import KubeError
from butler.rules.loadbalancer.idleness import due
from butler.tenant.metallb import Outcome, read
from butler.tenant.metallb_health import can_hand_out, read_sign

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from butler.api.tenantcluster import TenantCluster
    from butler.controllers.loadbalancers.draining import Draining
    from butler.controllers.loadbalancers.memory import Memory
    from butler.controllers.loadbalancers.publishing import Publishing
    from butler.kube.client import Client
    from butler.rules.loadbalancer.policy import Terms
    from butler.rules.loadbalancer.settings import LoadBalancerSettings
    from butler.rules.loadbalancer.usage import Block, Survey
    from butler.tenant.service_feed import Feed

PATIENCE: Final = 20.0
"""Seconds for all that there is to say to one tenant in one go."""
TRIES: Final = 5
"""How often in a row a pool is written that somebody else writes too: MetalLB itself does, with every Service."""
CHANCE: Final = 2.9
"""Seconds that MetalLB gets to hand out a free address, before it is asked whether it will. A little less than what
Services that wait get before the status tells of them: then there is a look in any case."""
SOON: Final = 1.0
SELDOM: Final = 30.0
LONGEST_PROBLEM: Final = 500


class Upkeep:
    """Does it. `survey` looks at a tenant anew; `clock` gives the time of day, `monotonic` the other one."""

    def __init__(
        self,
        publishing: Publishing,
        draining: Draining,
        settings: LoadBalancerSettings,
        survey: Callable[[TenantCluster, Terms, Feed, Memory], Survey],
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._publishing = publishing
        self._draining = draining
        self._settings = settings
        self._survey = survey
        self._clock = clock
        self._monotonic = monotonic

    async def tend(self, cluster: TenantCluster, terms: Terms, feed: Feed, memory: Memory) -> float:
        """Do what there is to do on the tenant; in how many seconds there is more."""
        found = self._survey(cluster, terms, feed, memory)
        if found.draining and (found.is_held_up or any(block.claimed for block in found.draining)):
            await self._draining.break_off(found.draining, memory)
            found = self._survey(cluster, terms, feed, memory)
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._talk(cluster, terms, feed, found, memory)
        except (KubeError, TimeoutError) as error:
            return self._failed(error, memory)

    async def leave_alone(self, cluster: TenantCluster, terms: Terms, feed: Feed, memory: Memory) -> float | None:
        """End a drain, if there is one: MetalLB would hand out nothing. In how many seconds to try again, if at all."""
        found = self._survey(cluster, terms, feed, memory)
        if found.draining:
            await self._draining.break_off(found.draining, memory)
            found = self._survey(cluster, terms, feed, memory)
            memory.in_drain = True
        try:
            async with asyncio.timeout(PATIENCE):
                if memory.in_drain is None:
                    memory.in_drain = (await read(feed.client)).is_in_drain
                if not memory.in_drain:
                    return None
                memory.doubt = True
                await self._publish(cluster, feed, found, memory)
        except (KubeError, TimeoutError) as error:
            return self._failed(error, memory)
        return pause(memory.tries) if memory.problem else None

    def _failed(self, error: Exception, memory: Memory) -> float:
        memory.problem = str(error)[:LONGEST_PROBLEM] or f"it was not done within {PATIENCE:.0f} s"
        memory.problem_reason = LoadBalancerReason.TENANT_UNREACHABLE
        memory.published_at = None  # only the next look, by asking, can tell that all is well
        memory.tries += 1
        return pause(memory.tries)

    async def _talk(self, cluster: TenantCluster, terms: Terms, feed: Feed, found: Survey, memory: Memory) -> float:
        now = self._clock()
        await label(feed.client, unlabelled(cluster, feed.services()))
        waits_in_vain = memory.unsettled is not None and memory.unsettled[0] == LoadBalancerReason.SERVICES_WAITING
        if memory.refusal or waits_in_vain or self._monotonic() >= memory.sign_due:
            memory.refusal = (await read_sign(feed.client)).refused
            memory.sign_due = math.inf
        await self._look_for_lost(feed.client, found, memory)
        going = due(found, terms, now, self._settings.grace)
        rest = memory.no_drain_before - self._monotonic()
        if going and rest <= 0 and _can_go(going, memory):
            await self._draining.begin(going)
            found = self._survey(cluster, terms, feed, memory)
        if found.draining:
            return await self._draining.go_on(cluster, feed.client, found, memory, terms.served_class)
        again = await self._publish(cluster, feed, found, memory)
        if going and _can_go(going, memory):
            again = min(again, max(0.0, rest))  # no clock and no change would wake us for these
        return min(again, SELDOM) if memory.refusal or memory.in_vain is not None else again

    async def _look_for_lost(self, tenant: Client, found: Survey, memory: Memory) -> None:
        """Where Services wait in vain: ask how many of the free addresses MetalLB itself takes for free."""
        if not 0 < found.demand <= found.free:
            memory.in_vain, memory.lost = None, 0
            return
        now = self._monotonic()
        memory.in_vain = now if memory.in_vain is None else memory.in_vain
        if now - memory.in_vain < CHANCE:
            return
        memory.doubt = True
        standing = await read(tenant)
        there = [block for block in found.blocks if entry(block) in standing.addresses]
        left = can_hand_out(standing.pool, sum(block.range.size for block in there))
        if left is not None:
            memory.lost = max(0, sum(block.free for block in there) - left)

    async def _publish(self, cluster: TenantCluster, feed: Feed, found: Survey, memory: Memory) -> float:
        """See to it that MetalLB has what it should have; without a request where nothing speaks against it."""
        left, asked = self._seconds_to_check(cluster, memory), asked_to_look(cluster)
        memory.doubt = memory.doubt or asked != memory.asked
        memory.asked = asked
        if _is_as_told(found, memory) and not memory.doubt and left > 0:
            return left
        tenant = feed.client
        for _ in range(TRIES):
            standing = await read(tenant)
            blocks = publishable(found.blocks, standing.addresses)
            published = await self._publishing.put(
                cluster, tenant, standing, blocks, memory, auto_assign=_hands_out(found, memory)
            )
            if published.outcome is not Outcome.CONTESTED:
                break
        if memory.problem:
            return pause(memory.tries)
        if published.outcome is Outcome.WRITTEN:
            memory.sign_due = self._monotonic() + self._settings.settle
            return self._settings.settle
        memory.refusal = (await read_sign(tenant)).refused
        return self._seconds_to_check(cluster, memory)

    def _seconds_to_check(self, cluster: TenantCluster, memory: Memory) -> float:
        """How long what was published can be taken to be so; each tenant a little longer or shorter than the next."""
        if memory.published_at is None:
            return 0.0
        spread = 0.75 + zlib.crc32(cluster.metadata.uid.encode()) % 512 / 1024
        return memory.published_at + self._settings.check_every * spread - self._monotonic()


def _can_go(going: Sequence[Block], memory: Memory) -> bool:
    """Whether a drain can end well: not while MetalLB refuses, or it would end where it began, again and again.

    Where there is no MetalLB, nothing announces what was deleted, and nothing has to be told.
    """
    missing = memory.problem_reason is LoadBalancerReason.NOT_INSTALLED
    return not memory.refusal and (memory.problem == "" or (missing and all(block.is_going for block in going)))


def _is_as_told(found: Survey, memory: Memory) -> bool:
    """Whether MetalLB was told exactly what it should have."""
    if memory.entries is None:
        return False
    wanted = tuple(map(entry, publishable(found.blocks, memory.entries)))
    return memory.entries == wanted and memory.hands_out == _hands_out(found, memory)


def _hands_out(found: Survey, memory: Memory) -> bool:
    return found.hands_out(more_comes=not memory.is_short)


def asked_to_look(cluster: TenantCluster) -> str:
    """What the cluster's annotation says that asks for a look."""
    return cluster.metadata.annotations.get(Annotation.LOOK_AGAIN, "")


def pause(tries: int) -> float:
    """Seconds before what could not be done is tried again; a tenant may be without MetalLB for weeks."""
    return min(SELDOM, SOON * 2.0 ** min(tries - 1, 10))
