"""Tenants that are not built yet get all their blocks or none, oldest tenant first, whatever the order of requests."""

from __future__ import annotations

import itertools
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

import pytest

from butler.api.ipallocation import IPAllocationType
from butler.ipam.decide import PoolDecision, decide
from butler.ipam.free_space import FreeSpace
from butler.ipam.requests import AddressRequest, UnbuiltTenant, in_turn
from unit.ipam.pools import MORNING, layout, span

if TYPE_CHECKING:
    from butler.ipam.addresses import Range

NODES, BALANCER = IPAllocationType.NODES, IPAllocationType.LOAD_BALANCER
BOTH = frozenset((NODES, BALANCER))
POOL = layout("10.40.0.0/22", "10.40.0.0-10.40.3.255")


def block(
    tenant: str,
    type_: IPAllocationType,
    count: int,
    *,
    born: float = 0,
    after: float = 0,
    uid: str = "",
    pin: str = "",
    unavailable: str = "",
) -> AddressRequest:
    pinned = span(pin) if pin else None
    return AddressRequest(
        uid=uid or f"{tenant}-{type_}",
        name=f"{tenant}-{type_}",
        pool="vlan40",
        created=MORNING + timedelta(seconds=after),
        count=pinned.size if pinned else count,
        pinned=pinned,
        type=type_,
        tenant=UnbuiltTenant(f"uid-{tenant}", MORNING + timedelta(seconds=born), BOTH),
        unavailable=unavailable,
    )


def single(name: str, count: int, *, after: float = 0, pin: str = "") -> AddressRequest:
    pinned = span(pin) if pin else None
    return AddressRequest(f"uid-{name}", name, "vlan40", MORNING + timedelta(seconds=after), count, pinned)


def decided(*requests: AddressRequest, free: str | list[str], most: int = 512) -> PoolDecision:
    space = FreeSpace(span(text) for text in ([free] if isinstance(free, str) else free))
    before = list(space.extents())
    decision = decide(requests, space, POOL, lambda _: (), most)
    assert list(space.extents()) == before, "a decision left a trace"
    return decision


def granted(decision: PoolDecision) -> dict[str, Range]:
    return {grant.name: grant.range for grant in decision.grants}


@pytest.mark.parametrize(("room", "tenants"), [(3, 8), (10, 50), (1, 4), (0, 3)])
def test_exactly_as_many_tenants_get_both_as_there_is_room_for(room: int, tenants: int) -> None:
    """All requests of one second, their UIDs in any order: what random UIDs are."""
    for seed in range(200):
        random = Random(seed)
        requests = [
            block(f"t{number:02}", type_, count, uid=f"{random.random()}")
            for number in range(tenants)
            for type_, count in ((NODES, 5), (BALANCER, 8))
        ]
        random.shuffle(requests)
        free = [f"10.40.0.0-10.40.0.{room * 13 - 1}"] if room else []
        names = sorted(granted(decided(*requests, free=free)))
        whole = [f"t{number:02}-{type_}" for number in range(room) for type_ in ("loadbalancer", "nodes")]
        assert names == whole, f"seed {seed}"


def test_the_oldest_tenant_goes_first_however_late_its_requests_come() -> None:
    requests = [
        block("young", NODES, 5, born=9, after=10),
        block("young", BALANCER, 8, born=9, after=10),
        block("old", NODES, 5, born=1, after=60),
        block("old", BALANCER, 8, born=1, after=59),
    ]
    assert set(granted(decided(*requests, free="10.40.0.0-10.40.0.12"))) == {"old-nodes", "old-loadbalancer"}


def test_tenants_of_one_second_go_by_their_own_uid() -> None:
    turns = in_turn([block("b", NODES, 1), block("a", BALANCER, 1), block("a", NODES, 1), block("b", BALANCER, 1)])
    assert [[request.name for request in unit] for unit in turns] == [
        ["a-nodes", "a-loadbalancer"],
        ["b-nodes", "b-loadbalancer"],
    ]


def test_who_cannot_have_both_keeps_nothing_from_others() -> None:
    decision = decided(
        block("big", NODES, 5), block("big", BALANCER, 90), single("small", 20, after=5), free="10.40.0.0-10.40.0.31"
    )
    assert granted(decision) == {"small": span("10.40.0.0-10.40.0.19")}
    told = {refusal.name: refusal for refusal in decision.refusals}
    assert told["big-loadbalancer"].reason == "PoolExhausted"
    assert told["big-nodes"].reason == "OtherBlockDoesNotFit"
    assert told["big-nodes"].message.startswith(
        "is granted together with big-loadbalancer or not at all, and big-loadbalancer needs 90 contiguous addresses; "
    )


def test_what_another_pool_cannot_give_keeps_this_one_free() -> None:
    decision = decided(
        block("half", NODES, 5, unavailable="half-lb waits for pool other (PoolExhausted)"),
        single("next", 8, after=1),
        free="10.40.0.0-10.40.0.7",
    )
    assert set(granted(decision)) == {"next"}
    assert [(refusal.name, str(refusal.reason)) for refusal in decision.refusals] == [
        ("half-nodes", "OtherBlockUnavailable")
    ]
    assert decision.refusals[0].message == (
        "vlan40 has room for the 5 addresses, but a tenant starts with all its blocks or with none,"
        " and half-lb waits for pool other (PoolExhausted)"
    )


def test_a_batch_never_ends_between_the_blocks_of_a_tenant() -> None:
    requests = [block(name, type_, 2) for name in ("a", "b") for type_ in (NODES, BALANCER)]
    decision = decided(*requests, free="10.40.0.0-10.40.0.31", most=3)
    assert set(granted(decision)) == {"a-nodes", "a-loadbalancer"}
    assert [request.name for request in decision.left_over] == ["b-nodes", "b-loadbalancer"]
    assert decision.capacity.allocated == POOL.total - 28


def test_no_other_block_lies_where_a_pin_could_have_been() -> None:
    """The tenant's nodes would fit best where a younger request has its pin."""
    decision = decided(
        block("a", BALANCER, 0, pin="10.40.1.0-10.40.1.7"),
        block("a", NODES, 4),
        single("pinned", 0, pin="10.40.0.0-10.40.0.3", after=9),
        free=["10.40.0.0-10.40.0.3", "10.40.1.0-10.40.1.31"],
    )
    assert granted(decision) == {
        "pinned": span("10.40.0.0-10.40.0.3"),
        "a-loadbalancer": span("10.40.1.0-10.40.1.7"),
        "a-nodes": span("10.40.1.8-10.40.1.11"),
    }


def test_a_pin_is_not_kept_for_a_tenant_that_cannot_have_its_other_block() -> None:
    decision = decided(
        block("a", BALANCER, 0, pin="10.40.1.0-10.40.1.7"),
        block("a", NODES, 90),
        single("pinned", 0, pin="10.40.1.4-10.40.1.9", after=9),
        free="10.40.1.0-10.40.1.31",
    )
    assert granted(decision) == {"pinned": span("10.40.1.4-10.40.1.9")}
    assert {refusal.name for refusal in decision.refusals} == {"a-nodes", "a-loadbalancer"}


def test_two_tenants_that_pin_the_same_range_are_served_by_age() -> None:
    requests = [
        block(name, type_, 4, pin="10.40.1.0-10.40.1.7" if type_ is BALANCER else "", born=born)
        for name, born in (("young", 5), ("old", 1))
        for type_ in (NODES, BALANCER)
    ]
    decision = decided(*requests, free="10.40.1.0-10.40.1.31")
    assert set(granted(decision)) == {"old-nodes", "old-loadbalancer"}
    assert {refusal.name: str(refusal.reason) for refusal in decision.refusals} == {
        "young-loadbalancer": "PinnedRangeConflict",
        "young-nodes": "OtherBlockDoesNotFit",
    }


def test_never_a_part_of_a_unit_in_random_batches() -> None:
    seen = {"whole": 0, "none": 0}
    for seed in range(400):
        random = Random(seed)
        requests = []
        for number in range(random.randint(1, 8)):
            pin = f"10.40.0.{random.randrange(0, 60)}" if random.random() < 0.4 else ""
            requests += [
                block(f"t{number}", NODES, random.randint(1, 9), born=random.randint(0, 3)),
                block(f"t{number}", BALANCER, random.randint(1, 9), born=random.randint(0, 3), pin=pin),
            ]
        requests += [single(f"s{number}", random.randint(1, 9), after=2) for number in range(random.randint(0, 3))]
        decision = decided(
            *requests, free=["10.40.0.0-10.40.0.19", "10.40.0.30-10.40.0.59"], most=random.choice([3, 99])
        )
        got = granted(decision)
        answered = {*got, *(refusal.name for refusal in decision.refusals), *(left.name for left in decision.left_over)}
        assert len(answered) == len(requests), f"seed {seed}: an answer is missing, or there are two"
        ranges = sorted(got.values())
        assert all(one.last < other.first for one, other in itertools.pairwise(ranges)), f"seed {seed}"
        for number in range(8):
            parts = [f"t{number}-{type_}" in got for type_ in (NODES, BALANCER)]
            assert parts[0] == parts[1], f"seed {seed}: t{number} got one block"
            seen["whole" if parts[0] else "none"] += 1
    assert min(seen.values()) > 200, seen
