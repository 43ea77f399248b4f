"""Pools that were admitted a moment ago: remembered until the cache shows them, or for a moment."""

from __future__ import annotations

from butler.api.objects import Key
from butler.ipam.addresses import Range
from butler.rules.pool.admission import networks_of
from butler.webhooks.recently_admitted import MEMORY_SECONDS, AdmittedPools
from unit.webhooks.given import pool

RACK = Key("home", "rack")
EVERYTHING = Range(0, (1 << 32) - 1)


def test_a_pool_is_forgotten_once_the_cache_shows_what_was_admitted() -> None:
    admitted = AdmittedPools()
    admitted.add(RACK, networks_of(pool()))
    admitted.forget_shown({RACK: pool(cidr="10.50.0.0/24")}.get)
    assert admitted.touching(EVERYTHING) == [RACK], "the cache shows it as it was before"
    admitted.forget_shown({RACK: pool()}.get)
    assert admitted.touching(EVERYTHING) == []


def test_a_pool_that_never_came_is_forgotten_after_a_moment() -> None:
    now = [0.0]
    admitted = AdmittedPools(lambda: now[0])
    admitted.add(RACK, networks_of(pool()))
    now[0] = MEMORY_SECONDS
    admitted.forget_shown(lambda _: None)
    assert (len(admitted), admitted.touching(EVERYTHING)) == (0, [])


def test_what_was_admitted_last_counts() -> None:
    admitted = AdmittedPools()
    admitted.add(RACK, networks_of(pool()))
    admitted.add(RACK, networks_of(pool(cidr="10.50.0.0/24", status={"claimedCIDR": "10.50.0.0/24"})))
    (network,) = networks_of(pool())
    assert admitted.touching(network) == []
    assert admitted.touching(EVERYTHING) == [RACK]
