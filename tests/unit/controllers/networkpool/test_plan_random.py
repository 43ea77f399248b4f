"""Any state whatever, sane or edited by hand: a plan never grants an address twice, and its figures are a recount."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from butler.ipam.addresses import Family, address_text
from butler.ipam.layout import read_layout
from butler.rules.pool.holdings import holding_of
from butler.rules.pool.next_status import intent_range
from unit.controllers.networkpool.values import allocation, intent, planned, pool

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.ipam.addresses import Range

BASE = 10 << 24
POOLS = (
    ("10.0.0.0-10.0.0.31",),
    ("10.0.0.4-10.0.0.11", "10.0.0.16-10.0.0.23", "10.0.0.24-10.0.0.30"),
)


def text(first: int, last: int) -> str:
    return f"{address_text(BASE + first, Family.V4)}-{address_text(BASE + last, Family.V4)}"


RANGES = st.tuples(st.integers(0, 38), st.integers(0, 7)).map(lambda pair: text(pair[0], pair[0] + pair[1]))
NAMES = st.sampled_from("abcdefgh")


@st.composite
def worlds(draw: st.DrawFn) -> tuple[NetworkPool, list[IPAllocation]]:
    """Holdings that may overlap each other and the intents, intents for those who wait, hold, or never were."""
    world = []
    for index, name in enumerate(draw(st.lists(NAMES, unique=True))):
        kind = draw(st.sampled_from(["holds", "holds", "waits", "waits", "pinned", "leaves", "goes"]))
        version = 100 + index
        if kind == "holds":
            world.append(allocation(name, holds=draw(RANGES), version=version))
        elif kind == "waits":
            world.append(allocation(name, draw(st.integers(1, 9)), version=version, age=draw(st.integers(0, 2))))
        elif kind == "pinned":
            world.append(allocation(name, pinned=draw(RANGES), version=version))
        elif kind == "leaves":
            world.append(allocation(name, phase="Released", deleting=True, version=version))
        else:
            world.append(allocation(name, deleting=True, version=version))
    intents = tuple(
        intent(name, draw(st.one_of(RANGES, st.just("x-y")))) for name in draw(st.lists(NAMES, unique=True, max_size=4))
    )
    reserved = draw(st.sampled_from([(), ("10.0.0.20/31",)]))
    return pool(*draw(st.sampled_from(POOLS)), reserved=reserved, intents=intents, allocations_seen="99"), world


def addresses(of: Range) -> set[int]:
    return set(range(of.first, of.last + 1))


@given(worlds())
def test_nothing_is_granted_twice_and_the_figures_are_a_recount(world: tuple[NetworkPool, list[IPAllocation]]) -> None:
    subject, allocations = world
    layout = read_layout(subject.spec)
    usable = set().union(*map(addresses, layout.usable))
    made = planned(subject, *allocations)

    waits = {item.metadata.uid for item in allocations if item.status.phase == "Pending"}
    taken = set().union(*(addresses(held.range) for item in allocations if (held := holding_of(item))))
    kept = [item for item in made.status.intents if item not in made.granted]
    assert {item.uid for item in kept} <= waits
    for item in kept:
        assert item in subject.status.intents, "a promise was changed"
        taken |= addresses(intent_range(item)[1])
    for item in made.granted:
        granted = addresses(intent_range(item)[1])
        assert granted <= usable
        assert not granted & taken, f"{item.name} got what another has"
        assert any(window.contains(intent_range(item)[1]) for window in layout.windows)
        taken |= granted

    status = made.status
    free = usable - taken
    assert (status.total_ips, status.allocated_ips, status.available_ips) == (
        len(usable),
        len(usable & taken),
        len(free),
    )
    live = sum(holding_of(item) is not None for item in allocations)
    assert status.allocation_count == live + len(status.intents)
    going = {item.metadata.uid for item in allocations if item.metadata.deletion_timestamp}
    answered = [*(item.uid for item in (*kept, *made.granted)), *(refusal.uid for refusal in made.refusals)]
    assert set(answered) >= waits - going, "every request that waits gets an answer"
    assert len(answered) == len(set(answered)), "and one thing only"
    promised = {item.uid for item in (*subject.status.intents, *made.granted)}
    noted = [item for item in allocations if item.metadata.uid in promised or item.status.phase == "Released"]
    assert status.allocations_seen == str(max([99, *(int(item.metadata.resource_version) for item in noted)]))
