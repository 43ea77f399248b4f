"""Which pool may hand out from which network: reading the register, and changing it against all odds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from butler.api.objects import Key
from butler.controllers.networkpool.claims_writer import ClaimRegister, PoolMoved, StillHeld
from butler.rules.pool.claims import ClaimTable, Moved, NetworkClaim, contains, entry, moved, overlaps
from unit.controllers.networkpool.pool_server import PoolServer
from unit.controllers.networkpool.values import NAMESPACE, POOL, allocation, pool

pytestmark = pytest.mark.usefixtures("api_servers")
OLD = NetworkClaim("10.0.0.0/24", "p1", 1)


def register(server: PoolServer) -> ClaimRegister:
    return ClaimRegister(server, "home")


def with_entries(server: PoolServer, **claims: str) -> PoolServer:
    server.register(dict(entry(Key(NAMESPACE, name), NetworkClaim(cidr, "p1", 1)) for name, cidr in claims.items()))
    return server


def read(config_map: dict[str, Any] | None) -> dict[Key, NetworkClaim | None]:
    table = ClaimTable(config_map)
    return {key: table.get(key) for key in table}


# Reading.


def test_an_entry_reads_back_as_it_was_written() -> None:
    key = Key("butler-system", "a.pool.with.dots")
    name, text = entry(key, OLD)
    assert (name, text) == ("butler-system.a.pool.with.dots", "10.0.0.0/24 p1 1")
    assert read({"data": {name: text}}) == {key: OLD}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no-namespace", "10.0.0.0/24 p1 1"),
        ("ns.pool", ""),
        ("ns.pool", "10.0.0.0/24"),
        ("ns.pool", "10.0.0.0/24 p1 one"),
        ("ns.pool", "10.0.0.7/24 p1 1"),
        ("ns.pool", "10.0.0.0 p1 1"),
        ("ns.pool", "999.0.0.0/24 p1 1"),
    ],
)
def test_what_is_no_entry_is_left_out(name: str, text: str) -> None:
    assert read({"data": {name: text}}) == {}


@pytest.mark.parametrize("nothing", [None, {}, {"data": None}, {"data": {}}])
def test_an_empty_register_has_no_claims(nothing: dict[str, None] | None) -> None:
    assert read(nothing) == {}


@pytest.mark.parametrize(
    ("one", "other", "inside", "meet"),
    [
        ("10.0.0.0/16", "10.0.1.0/24", True, True),
        ("10.0.0.0/24", "10.0.0.0/24", True, True),
        ("10.0.1.0/24", "10.0.0.0/16", False, True),
        ("10.0.0.0/24", "10.0.1.0/24", False, False),
        ("10.0.0.0/24", "fd00::/64", False, False),
    ],
)
def test_networks_contain_and_meet_each_other(one: str, other: str, inside: bool, meet: bool) -> None:
    assert contains(one, other) is inside
    assert overlaps(one, other) is overlaps(other, one) is meet


def test_a_rival_is_another_pool_with_any_of_the_addresses() -> None:
    claims = ClaimTable()
    claims.put(POOL, OLD)
    claims.put(Key(NAMESPACE, "b"), NetworkClaim("10.0.1.0/24", "p2", 1))
    assert claims.rival(POOL, "10.0.0.0/24") is None, "a pool is no rival of itself"
    assert claims.rival(POOL, "10.0.0.0/23") == (NAMESPACE, "b")
    assert claims.rival(Key(NAMESPACE, "c"), "10.0.0.8/29") == POOL
    assert claims.rival(Key("elsewhere", POOL.name), "10.0.0.0/24") == POOL, "names are per namespace"
    claims.take(None)
    assert claims.rival(Key(NAMESPACE, "c"), "10.0.0.8/29") is None, "nothing of it was written"


def test_only_entries_that_differ_are_told() -> None:
    before = {"data": dict([entry(POOL, OLD), entry(Key(NAMESPACE, "b"), OLD), entry(Key(NAMESPACE, "c"), OLD)])}
    changed = {**before["data"], f"{NAMESPACE}.b": "10.0.2.0/24 p1 2", f"{NAMESPACE}.d": "10.0.3.0/24 p4 1", "no": "1"}
    del changed[f"{NAMESPACE}.c"]
    assert sorted(moved(before, {"data": changed})) == [
        Moved(Key(NAMESPACE, "b"), OLD, NetworkClaim("10.0.2.0/24", "p1", 2)),
        Moved(Key(NAMESPACE, "c"), OLD, None),
        Moved(Key(NAMESPACE, "d"), None, NetworkClaim("10.0.3.0/24", "p4", 1)),
    ]
    table = ClaimTable(before)
    table.put(Key(NAMESPACE, "d"), OLD)
    table.take({"data": changed})
    assert {key: table.get(key) for key in table} == read({"data": changed})


# Changing.


async def test_the_first_claim_makes_the_register_with_what_pools_claim_already() -> None:
    """A user deleted it: what pools may hand out from must not be given away."""
    first, second = pool(name="a"), pool(name="b", claimed_cidr="10.0.0.0/24", uid="p2")
    server = PoolServer(first, second, pool(name="c", claimed_cidr="nonsense", uid="p3"))
    assert await register(server).claim(first) == (NAMESPACE, "b")
    assert server.entries == {"b": "10.0.0.0/24"}


async def test_a_claim_is_entered_with_the_uid_and_generation_it_is_for() -> None:
    mine = pool()
    server = PoolServer(mine)
    assert await register(server).claim(mine) is None
    assert read(server.config_map) == {POOL: OLD}


async def test_two_who_make_the_register_at_once_agree() -> None:
    mine = pool()
    server = PoolServer(mine)
    server.meanwhile = lambda: with_entries(server, other="10.0.0.0/16")
    assert await register(server).claim(mine) == (NAMESPACE, "other")


async def test_a_claim_that_another_controller_makes_meanwhile_is_noticed() -> None:
    mine = pool()
    server = with_entries(PoolServer(mine))
    server.meanwhile = lambda: with_entries(server, other="10.0.0.0/16")
    assert await register(server).claim(mine) == (NAMESPACE, "other")
    assert server.entries == {"other": "10.0.0.0/16"}


@pytest.mark.parametrize("changes", [{"uid": "p2"}, {"generation": 2}])
async def test_nothing_is_claimed_for_what_a_pool_was_before(changes: dict[str, object]) -> None:
    mine = pool()
    now = msgspec.structs.replace(mine, metadata=msgspec.structs.replace(mine.metadata, **changes))
    server = with_entries(PoolServer(now))
    with pytest.raises(PoolMoved):
        await register(server).claim(mine)
    assert server.counts["patch configmaps"] == 0


async def test_a_pool_that_still_claims_something_else_claims_nothing_new() -> None:
    mine = pool(claimed_cidr="10.9.0.0/24")
    server = with_entries(PoolServer(mine), vlan40="10.9.0.0/24")
    with pytest.raises(PoolMoved, match=r"not yet given up 10\.9\.0\.0/24"):
        await register(server).claim(mine)


async def test_growing_needs_no_look_at_who_holds_what() -> None:
    mine = pool(cidr="10.0.0.0/16", claimed_cidr="10.0.0.0/24")
    server = with_entries(PoolServer(mine, allocation("a", holds="10.0.0.1-10.0.0.2")), vlan40="10.0.0.0/24")
    assert await register(server).claim(mine) is None
    assert server.entries == {"vlan40": "10.0.0.0/16"}
    assert server.counts["list ipallocations"] == 0


async def test_moving_away_from_live_allocations_is_refused() -> None:
    moved = pool(cidr="10.9.0.0/24")
    server = with_entries(PoolServer(moved, allocation("a", holds="10.0.0.1-10.0.0.2")), vlan40="10.0.0.0/24")
    with pytest.raises(StillHeld, match="a still holds addresses"):
        await register(server).claim(moved)
    server.allocations.clear()
    assert await register(server).claim(moved) is None
    assert server.entries == {"vlan40": "10.9.0.0/24"}


@pytest.mark.parametrize(
    ("holds", "shrinks"),
    [
        (None, True),
        ("10.0.0.1-10.0.0.2", True),
        ("10.0.0.127-10.0.0.128", False),
        ("10.0.0.200-10.0.0.201", False),
        ("10.9.0.1-10.9.0.2", True),
        ("nonsense-10.0.0.200", False),
    ],
)
async def test_the_register_shrinks_to_the_status_but_never_below_live_allocations(
    holds: str | None, shrinks: bool
) -> None:
    mine = pool(cidr="10.0.0.0/25", claimed_cidr="10.0.0.0/25")
    live = [allocation("a", holds=holds)] if holds else []
    server = with_entries(
        PoolServer(mine, *live, allocation("b", holds="10.0.0.250-10.0.0.250", of="x")), vlan40="10.0.0.0/24"
    )
    if shrinks:
        await register(server).shrink(POOL)
        assert server.entries == {"vlan40": "10.0.0.0/25"}
    else:
        with pytest.raises(StillHeld):
            await register(server).shrink(POOL)
        assert server.entries == {"vlan40": "10.0.0.0/24"}


@pytest.mark.parametrize(
    ("story", "mine"),
    [
        ("claims nothing", pool(cidr="10.0.0.0/25")),
        ("claims more than it wants", pool(cidr="10.0.0.0/26", claimed_cidr="10.0.0.0/25")),
        ("claims nonsense", pool(cidr="10.0.0.0/25", claimed_cidr="nonsense")),
        ("claims all of its entry", pool(claimed_cidr="10.0.0.0/24")),
    ],
)
async def test_the_register_stays_where_it_is_for_a_pool_that(story: str, mine) -> None:  # type: ignore[no-untyped-def]
    server = with_entries(PoolServer(mine), vlan40="10.0.0.0/24")
    await register(server).shrink(POOL)
    assert server.counts["patch configmaps"] == 0, story


async def test_the_entry_of_a_pool_that_is_gone_goes_once_its_addresses_are_free() -> None:
    server = with_entries(PoolServer(allocation("a", holds="10.0.0.1-10.0.0.2")), vlan40="10.0.0.0/24", b="10.1.0.0/24")
    with pytest.raises(StillHeld):
        await register(server).drop(POOL)
    server.allocations.clear()
    await register(server).drop(POOL)
    assert server.entries == {"b": "10.1.0.0/24"}
    await register(server).drop(POOL)
    assert server.counts["patch configmaps"] == 1


async def test_the_entry_of_a_pool_that_came_back_stays() -> None:
    server = with_entries(PoolServer(pool(uid="p2")), vlan40="10.0.0.0/24")
    await register(server).drop(POOL)
    assert server.entries == {"vlan40": "10.0.0.0/24"}
