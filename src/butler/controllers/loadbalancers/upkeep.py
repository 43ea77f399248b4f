"""What there is to do on a tenant: labels, MetalLB's pool, and addresses that go.

Nothing is asked of a tenant that speaks for nothing: its pool is read when something happened to a Service that MetalLB
would not do with the pool that it was told, when a person asks for a look, and now and then.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from butler.api.labels import LoadBalancerReason
from butler.controllers.loadbalancers.next_look import SELDOM, NextLook
from butler.controllers.loadbalancers.platform import label, unlabelled
from butler.kube.errors import KubeError
from butler.rules.loadbalancer.idleness import due

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime

    from butler.controllers.loadbalancers.draining import Draining
    from butler.controllers.loadbalancers.look import Look
    from butler.controllers.loadbalancers.publisher import PublishedPool, Publisher
    from butler.controllers.loadbalancers.states import TenantStates
    from butler.rules.loadbalancer.settings import LoadBalancerSettings
    from butler.rules.loadbalancer.usage import HeldBlock, Usage

PATIENCE: Final = 20.0
"""Seconds for all that there is to say to one tenant in one go."""


class Upkeep:
    """Does it. `clock` gives the time of day, `monotonic` the other one."""

    def __init__(
        self,
        publisher: Publisher,
        draining: Draining,
        settings: LoadBalancerSettings,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._publisher = publisher
        self._draining = draining
        self._settings = settings
        self._clock = clock
        self._monotonic = monotonic

    async def tend(self, look: Look, states: TenantStates) -> NextLook:
        """Do what there is to do on the tenant; and when there is more."""
        found = look.usage()
        if found.draining and (found.is_held_up or any(block.claimed for block in found.draining)):
            await self._draining.break_off(found.draining, states.drain)
            found = look.usage()
        return await self._patiently(self._talk(look, found, states), states.pool)

    async def leave_alone(self, look: Look, states: TenantStates) -> NextLook:
        """End a drain, if there is one: MetalLB would hand out nothing. When to try again, if that fails."""
        found = look.usage()
        was_marked = bool(found.draining)
        if was_marked:
            await self._draining.break_off(found.draining, states.drain)
            found = look.usage()
        return await self._patiently(self._publisher.end_drain(look, found, states, was_marked=was_marked), states.pool)

    async def _patiently(self, talk: Awaitable[NextLook], pool: PublishedPool) -> NextLook:
        try:
            async with asyncio.timeout(PATIENCE):
                return await talk
        except (KubeError, TimeoutError) as error:
            return self._publisher.failed(str(error) or f"it was not done within {PATIENCE:.0f} s", pool)

    async def _talk(self, look: Look, found: Usage, states: TenantStates) -> NextLook:
        now, pool = self._clock(), states.pool
        await label(look.tenant, unlabelled(look.cluster, look.services()))
        await self._publisher.ask_if_due(look.tenant, pool, waits_in_vain=_wait_in_vain(states))
        await self._publisher.look_for_lost(look.tenant, found, pool)
        going = due(found, look.policy, now, self._settings.grace)
        rest = NextLook.within(states.drain.rests_until - self._monotonic())
        if going and rest.is_due and _can_go(going, pool):
            await self._draining.begin(going)
            found = look.usage()
        if found.draining:
            return await self._draining.go_on(look, found, states)
        again = await self._publisher.keep_in_step(look, found, states)
        if going and _can_go(going, pool):
            again = min(again, rest)  # no clock and no change would wake us for these
        return min(again, SELDOM) if pool.refusal or pool.in_vain is not None else again


def _wait_in_vain(states: TenantStates) -> bool:
    """Whether Services waited, when the status was last spoken of, for free addresses."""
    unsettled = states.status.unsettled
    return unsettled is not None and unsettled[0] is LoadBalancerReason.SERVICES_WAITING


def _can_go(going: Sequence[HeldBlock], pool: PublishedPool) -> bool:
    """Whether a drain can end well: not while MetalLB refuses, or it would end where it began, again and again.

    Where there is no MetalLB, nothing announces what was deleted, and nothing has to be told.
    """
    missing = pool.problem_reason is LoadBalancerReason.NOT_INSTALLED
    return not pool.refusal and (pool.problem == "" or (missing and all(block.is_going for block in going)))
