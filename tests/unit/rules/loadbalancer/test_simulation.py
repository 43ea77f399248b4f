"""Any history of Services, pools and settings: no tenant gets more than its limit, and who can be served is."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from butler.api.ipallocation import IPAllocationPhase
from butler.ipam.addresses import Family, Range, address_text, parse_address
from butler.ipam.free_space import FreeSpace
from butler.rules.loadbalancer.usage import granted_range
from unit.rules.loadbalancer.balancers import service
from unit.rules.loadbalancer.simulation import BASES, POOLS, SIZE, Held, World

SHAPES: list[dict[str, Any]] = [
    {},
    {},
    {},
    {"platform": True},
    {"class_name": "example.com/other"},
    {"has_hostname": True},
    {"deleting": True},
    {"asks_pool": "default-pool"},
    {"asks_pool": "other"},
    {"families": ("IPv6",)},
    {"families": ("IPv4", "IPv6"), "family_policy": "PreferDualStack"},
    {"families": ("IPv4", "IPv6"), "family_policy": "RequireDualStack"},
    {"asks": ("192.0.2.1",)},
    {"asks": ("nonsense",)},
]
NAMES = st.sampled_from([f"s{number}" for number in range(12)])
HOLES = st.sets(st.integers(0, SIZE - 1))


def left(base: int, taken: set[int]) -> FreeSpace:
    return FreeSpace.without(
        [Range(base, base + SIZE - 1)], [Range(base + number, base + number) for number in sorted(taken)]
    )


class History(RuleBasedStateMachine):
    """What may happen, in any order."""

    world: World

    @initialize(
        taken=st.fixed_dictionaries(dict.fromkeys(POOLS, HOLES)),
        initial=st.integers(0, 3),
        pinned=st.booleans(),
        increment=st.integers(1, 5),
        most=st.none() | st.integers(1, 14),
    )
    def begin(self, taken: dict[str, set[int]], initial: int, pinned: bool, increment: int, most: int | None) -> None:
        self.world = World({name: left(BASES[name], taken[name]) for name in POOLS}, initial, pinned)
        self.world.policy = replace(self.world.policy, increment=increment, most=most)
        self.world.look()

    # Services.

    @rule(
        name=NAMES,
        shape=st.sampled_from(SHAPES),
        key=st.sampled_from([None, None, "x", "y"]),
        port=st.sampled_from([80, 443]),
    )
    def a_service_comes(self, name: str, shape: dict[str, Any], key: str | None, port: int) -> None:
        if name not in self.world.services:
            self.world.services[name] = Held(service(name, sharing_key=key, **shape), port)
            self.world.look()

    @rule(name=NAMES, offset=st.integers(0, SIZE - 1), of=st.sampled_from(POOLS))
    def a_service_comes_that_asks_for_an_address(self, name: str, offset: int, of: str) -> None:
        if name not in self.world.services:
            address = address_text(BASES[of] + offset, Family.V4)
            self.world.services[name] = Held(service(name, asks=(address,)))
            self.world.look()

    @rule(name=NAMES)
    def a_service_goes(self, name: str) -> None:
        if self.world.services.pop(name, None):
            self.world.look()

    @rule(name=NAMES)
    def a_service_begins_to_go(self, name: str) -> None:
        held = self.world.services.get(name)
        if held is not None:
            self.world.services[name] = held._replace(service=held.service._replace(deleting=True))
            self.world.look()

    # The world answers.

    @rule()
    def the_pools_answer(self) -> None:
        if self.world.answer():
            self.world.look()

    @rule()
    def metallb_serves(self) -> None:
        if self.world.serve():
            self.world.look()

    @rule(of=st.sampled_from(POOLS), count=st.integers(1, 4))
    def another_tenant_takes_addresses(self, of: str, count: int) -> None:
        """The pool shows it only when it answers next."""
        self.world.others_take(of, count)

    @rule(index=st.integers(0, 9))
    def another_tenant_gives_addresses_back(self, index: int) -> None:
        self.world.others_give_back(index)

    @rule(seconds=st.integers(1, 1300))
    def time_passes(self, seconds: int) -> None:
        self.world.pass_(timedelta(seconds=seconds))
        self.world.look()

    # Settings.

    @rule(most=st.none() | st.integers(1, 14))
    def the_quota_changes(self, most: int | None) -> None:
        self._set(most=most)

    @rule(increment=st.integers(1, 5))
    def the_increment_changes(self, increment: int) -> None:
        self._set(increment=increment)

    @rule(elastic=st.booleans())
    def the_mode_changes(self, elastic: bool) -> None:
        self._set(elastic=elastic)

    @rule(pools=st.sampled_from([POOLS, POOLS[::-1], POOLS[:1], POOLS[1:]]))
    def the_pools_of_the_provider_change(self, pools: tuple[str, ...]) -> None:
        self._set(pools=pools)

    @rule(share=st.integers(0, 4))
    def the_cluster_names_a_size(self, share: int) -> None:
        """Not above what it holds: more than that is asked for by the cluster's own controller."""
        self._set(least=self.world.usage().held * share // 4)

    def _set(self, **changes: Any) -> None:
        self.world.policy = replace(self.world.policy, **changes)
        self.world.look()

    @precondition(lambda self: self.world.services)
    @rule()
    def everything_comes_to_rest(self) -> None:
        self.world.come_to_rest()
        self._check_rest()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.come_to_rest()
            self._check_rest()

    # What holds.

    @invariant()
    def a_service_that_has_an_address_keeps_it(self) -> None:
        if not hasattr(self, "world"):
            return
        ranges = self.world.ranges()
        for held in self.world.services.values():
            for address in held.service.addresses:
                value = parse_address(address)[1]
                assert any(span.first <= value <= span.last for span in ranges)

    @invariant()
    def no_address_is_held_twice(self) -> None:
        if hasattr(self, "world"):
            ranges = self.world.ranges()
            assert all(one.last < next_.first for one, next_ in itertools.pairwise(ranges))

    def _check_rest(self) -> None:
        found, policy = self.world.usage(), self.world.policy
        if found.demand > found.free and policy.elastic:
            some_free = any(self.world.free[name].largest for name in policy.pools)
            assert (policy.most is not None and found.held >= policy.most) or not some_free, "it could have been served"
        assert not (found.demand and found.free and self.world.serve())
        for block in found.blocks:
            needed = found.held - block.range.size < policy.least
            assert not block.may_go or block.claimed or found.demand or needed, "it is idle, and does not go back"
        if not found.demand or not policy.elastic:
            asked = [
                allocation
                for allocation in self.world.allocations.values()
                if allocation.status.phase is not IPAllocationPhase.ALLOCATED
            ]
            assert asked == [], "no Service needs it"
        assert all(
            granted_range(allocation)
            for allocation in self.world.allocations.values()
            if allocation.status.start_address
        )


TestHistory = History.TestCase
TestHistory.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
