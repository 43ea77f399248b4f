"""Who gets which address: MetalLB's rules in cases, and against a slow reading of them in random histories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from butler.ipam.addresses import Family
from butler.local.world.metallb_allocator import AddressRefused, Allocator, Counts, ServiceRequest
from butler.local.world.metallb_pools import Address, Pools, configuration
from unit.local.world.given import ip, pool, pools, request

if TYPE_CHECKING:
    from collections.abc import Iterator


def allocator(given_pools: Pools) -> Allocator:
    made = Allocator()
    made.set_pools(given_pools)
    return made


def texts(addresses: tuple[Address, ...]) -> list[str]:
    return [str(address) for address in addresses]


def test_the_first_free_address_is_taken_in_the_order_of_the_lines() -> None:
    mine = allocator(pools(a="10.0.9.1-10.0.9.2 10.0.0.1-10.0.0.2"))
    given_out = [texts(mine.allocate(request(f"s{number}")).addresses)[0] for number in range(4)]
    assert given_out == ["10.0.9.1", "10.0.9.2", "10.0.0.1", "10.0.0.2"]
    with pytest.raises(AddressRefused, match=r"^no available IPs$"):
        mine.allocate(request("late"))
    mine.unassign("default/s1")
    assert texts(mine.allocate(request("late")).addresses) == ["10.0.9.2"]


def test_counts_follow_what_is_held_and_an_address_that_is_shared_counts_once() -> None:
    mine = allocator(pools(a="10.0.0.1-10.0.0.3", b="10.0.9.1-10.0.9.4 fc00::/126"))
    assert mine.counts() == {"a": Counts(0, 3), "b": Counts(0, 4, 0, 4)}
    mine.allocate(request("one", 80, sharing="k"))
    mine.allocate(request("two", 81, sharing="k"))
    mine.allocate(request("both", families=(Family.V4, Family.V6), policy="RequireDualStack"))
    assert mine.counts() == {"a": Counts(1, 2), "b": Counts(1, 3, 1, 3)}
    mine.set_pools(pools(b="10.0.0.1-10.0.0.2"))
    assert mine.counts() == {"b": Counts(1, 1)}
    mine.unassign("default/one")
    mine.unassign("default/two")
    assert mine.counts() == {"b": Counts(0, 2)}


def test_pools_of_ones_own_come_first_by_priority_then_those_for_everyone() -> None:
    mine = allocator(
        configuration(
            [
                pool("all", "10.0.0.1/32"),
                pool("later", "10.1.0.1/32", serviceAllocation={"priority": 20, "namespaces": ["default"]}),
                pool("first", "10.2.0.1/32", serviceAllocation={"priority": 10, "namespaces": ["default"]}),
                pool("last", "10.3.0.1/32", serviceAllocation={"namespaces": ["default"]}),
                pool("asked", "10.4.0.1/32", autoAssign=False),
                pool("others", "10.5.0.1/32", serviceAllocation={"namespaces": ["elsewhere"]}),
                pool("mere", "10.6.0.1/32", serviceAllocation={"priority": 30}),
            ]
        )
    )
    chosen = [mine.allocate(request(f"s{number}")).pool for number in range(5)]
    assert chosen == ["first", "later", "mere", "last", "all"]
    with pytest.raises(AddressRefused):
        mine.allocate(request("late"))
    assert mine.allocate_from(request("late"), "asked").pool == "asked"


def test_a_pool_that_is_asked_for_must_exist_have_room_and_serve() -> None:
    mine = allocator(
        configuration(
            [pool("a", "10.0.0.1/32"), pool("theirs", "10.1.0.1/32", serviceAllocation={"namespaces": ["elsewhere"]})]
        )
    )
    with pytest.raises(AddressRefused, match='unknown pool "b"'):
        mine.allocate_from(request(), "b")
    with pytest.raises(AddressRefused, match="pool theirs not compatible for ip assignment"):
        mine.allocate_from(request(), "theirs")
    mine.allocate(request("other"))
    with pytest.raises(AddressRefused, match=r'^\["<nil>"\] is not allowed in config$'):
        mine.allocate_from(request(), "a")


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (request("a", 80, sharing="k"), request("b", 443, sharing="k"), True),
        (request("a", 80, sharing="k"), request("b", 80, sharing="k"), False),
        (request("a", 80), request("b", 443), False),
        (request("a", 80, sharing="k"), request("b", 443), False),
        (request("a", 80, sharing="k"), request("b", 443, sharing="l"), False),
        (request("a", 80, sharing="k", backend="x=1"), request("b", 443, sharing="k"), False),
        (request("a", 80, sharing="k", backend="x=1"), request("b", 443, sharing="k", backend="x=1"), True),
    ],
)
def test_sharing_needs_one_key_the_same_backends_and_different_ports(
    first: ServiceRequest, second: ServiceRequest, together: bool
) -> None:
    mine = allocator(pools(a="10.0.0.1-10.0.0.2"))
    mine.allocate(first)
    assert (texts(mine.allocate(second).addresses) == ["10.0.0.1"]) is together


def test_refusals_say_who_or_which_port_is_in_the_way() -> None:
    mine = allocator(pools(a="10.0.0.1-10.0.0.2"))
    mine.assign(request("a", 80, sharing="k"), (ip("10.0.0.1"),))
    with pytest.raises(
        AddressRefused, match='can\'t change sharing key for "default/b", address also in use by default/a'
    ):
        mine.assign(request("b", 443), (ip("10.0.0.1"),))
    with pytest.raises(AddressRefused, match=r'port TCP/80 is already in use on "10\.0\.0\.1"'):
        mine.assign(request("b", 80, sharing="k"), (ip("10.0.0.1"),))
    with pytest.raises(AddressRefused, match=r'\["10.9.9.9"\] is not allowed in config'):
        mine.assign(request("b"), (ip("10.9.9.9"),))
    assert mine.held_by("default/b") is None


def test_the_only_user_of_an_address_may_change_its_key_and_ports() -> None:
    mine = allocator(pools(a="10.0.0.1-10.0.0.2"))
    mine.allocate(request("a", 80, sharing="k"))
    held = mine.assign(request("a", 81, sharing="l"), (ip("10.0.0.1"),))
    assert (held.sharing, [port.number for port in held.ports]) == ("l", [81])


def test_new_pools_keep_who_fits_and_drop_who_does_not() -> None:
    mine = allocator(pools(a="10.0.0.1-10.0.0.2"))
    mine.allocate(request("x"))
    mine.allocate(request("y"))
    mine.set_pools(pools(b="10.0.0.2-10.0.0.3"))
    assert mine.held_by("default/x") is None
    held = mine.held_by("default/y")
    assert held is not None
    assert (held.pool, texts(held.addresses)) == ("b", ["10.0.0.2"])


def test_two_families_come_from_one_pool_and_one_will_do_for_those_who_prefer() -> None:
    both = (Family.V4, Family.V6)
    mine = allocator(pools(a="10.0.0.1/32", b="10.1.0.1/32 fc00::1/128", c="fc01::1/128"))
    strict = request("strict", families=both, policy="RequireDualStack")
    assert texts(mine.allocate(strict).addresses) == ["10.1.0.1", "fc00::1"]
    with pytest.raises(AddressRefused):
        mine.allocate(request("second", families=both, policy="RequireDualStack"))
    relaxed = request("relaxed", families=both, policy="PreferDualStack")
    assert texts(mine.allocate(relaxed).addresses) == ["10.0.0.1"]
    with pytest.raises(AddressRefused, match=r'^\["10.0.0.1" "<nil>"\] is not allowed in config$'):
        mine.add_other_family(relaxed)
    mine.set_pools(pools(a="10.0.0.1/32 fc00::9/128", b="10.1.0.1/32 fc00::1/128"))
    assert str(mine.add_other_family(relaxed)) == "fc00::9"


# Random histories against the rules, read slowly.

LINES = ("10.0.0.0/31", "10.0.0.4-10.0.0.6", "10.0.1.254-10.0.2.1", "10.0.3.7/32")
REQUESTS = st.builds(
    request,
    st.sampled_from("abcdefgh"),
    st.integers(1, 3),
    sharing=st.sampled_from(("", "k", "l")),
    backend=st.sampled_from(("", "x=1")),
)
POOLS = st.lists(st.sampled_from(LINES), min_size=1, unique=True).map(
    lambda lines: configuration(
        [pool(f"p{number}", line, avoidBuggyIPs=number == 1) for number, line in enumerate(lines)]
    )
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), REQUESTS),
        st.tuples(st.just("remove"), st.sampled_from("abcdefgh")),
        st.tuples(st.just("pools"), POOLS),
    ),
    max_size=40,
)


def in_order(given_pools: Pools) -> Iterator[Address]:
    for given_pool in given_pools.values():
        for block in given_pool.blocks:
            for value in range(block.range.first, block.range.last + 1):
                if given_pool.offers(Address(block.family, value)):
                    yield Address(block.family, value)


def may_have(asking: ServiceRequest, address: Address, others: dict[str, tuple[ServiceRequest, Address]]) -> bool:
    beside = [request for name, (request, where) in others.items() if where == address and name != asking.service]
    return all(
        item.sharing == asking.sharing != ""
        and item.backend == asking.backend
        and not set(item.ports) & set(asking.ports)
        for item in beside
    )


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_every_history_goes_as_the_rules_say_when_read_slowly(steps: list[tuple[str, object]]) -> None:
    mine = Allocator()
    current: Pools = {}
    model: dict[str, tuple[ServiceRequest, Address]] = {}
    for verb, what in steps:
        if isinstance(what, dict):
            current = what
            mine.set_pools(current)
            offered = set(in_order(current))
            model = {name: held for name, held in model.items() if held[1] in offered}
        elif isinstance(what, ServiceRequest):
            mine.unassign(what.service)
            model.pop(what.service, None)
            expected = next((item for item in in_order(current) if may_have(what, item, model)), None)
            try:
                got = mine.allocate(what).addresses
            except AddressRefused:
                assert expected is None
            else:
                assert got == (expected,)
                assert expected is not None
                model[what.service] = (what, expected)
        else:
            mine.unassign(f"default/{what}")
            model.pop(f"default/{what}", None)
        held = {f"default/{name}": mine.held_by(f"default/{name}") for name in "abcdefgh"}
        seen = {name: holding.addresses[0] for name, holding in held.items() if holding is not None}
        assert seen == {name: address for name, (_, address) in model.items()}, verb
