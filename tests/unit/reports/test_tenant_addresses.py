"""Every address of a cluster and who has it, from both sides or from one."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from butler.ipam.addresses import Family, address_text, parse_address
from butler.reports.tenant.addresses import addresses_json, tenant_addresses
from butler.reports.tenant.summary import blocks
from butler.rules.loadbalancer.service import Balancer
from butler.tenant.inventory import Inventory, NodeAddress, PoolEntry
from unit.controllers.tenantcluster.values import allocation, cluster

MINE = blocks(
    cluster(),
    [
        allocation("web-nodes", "nodes", 4, start="10.40.0.8"),
        allocation("web-lb", "loadbalancer", 2, start="10.40.0.20"),
    ],
)
IN_STEP = (PoolEntry("default-pool", "10.40.0.20-10.40.0.21"),)
SHOP = Balancer("shop", "web", "1", addresses=("10.40.0.20",))


def told(blocks_: Any, inventory: Inventory | str) -> Any:
    return tenant_addresses("team-a", "web", blocks_, inventory)


def spans(found: Any, side: str) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(item.text, item.state, item.users) for item in getattr(found, side)]


def test_addresses_in_use_stand_alone_and_idle_ones_together() -> None:
    seen = Inventory(
        entries=IN_STEP,
        nodes=(NodeAddress("n1", "10.40.0.8"), NodeAddress("n2", "10.40.0.10")),
        balancers=(
            SHOP,
            Balancer("shop", "mail", "2"),
            Balancer("traefik", "traefik", "3", ("10.40.0.21",), platform=True),
        ),
    )
    found = told(MINE, seen)
    assert spans(found, "nodes") == [
        ("10.40.0.8", "in use", ("n1",)),
        ("10.40.0.9", "idle", ()),
        ("10.40.0.10", "in use", ("n2",)),
        ("10.40.0.11", "idle", ()),
    ]
    assert spans(found, "load_balancers") == [
        ("10.40.0.20", "in use", ("shop/web",)),
        ("10.40.0.21", "in use", ("traefik/traefik",)),
    ]
    answer = addresses_json(found)
    assert answer["waitingServices"] == ["shop/mail"]
    assert answer["metalLB"]["inStep"] is True
    assert [load_balancer["platform"] for load_balancer in answer["loadBalancers"]] == [False, True]
    assert answer["nodes"][1] == {
        "start": "10.40.0.9", "end": "10.40.0.9", "count": 1, "state": "idle", "users": [], "platform": False,
        "pool": "vlan40", "allocation": "web-nodes",
    }  # fmt: skip


def test_what_is_in_use_without_being_held_is_shown_as_such() -> None:
    seen = Inventory(
        IN_STEP, (NodeAddress("n1", "192.168.0.5"),), (SHOP, Balancer("a", "b", "2", ("10.99.0.1", "fd00::1")))
    )
    found = told(MINE, seen)
    assert spans(found, "nodes") == [("10.40.0.8-10.40.0.11", "idle", ()), ("192.168.0.5", "not held", ("n1",))]
    assert spans(found, "load_balancers")[-1] == ("10.99.0.1", "not held", ("a/b",))


def test_services_that_share_an_address_both_have_it() -> None:
    seen = Inventory(IN_STEP, (), (SHOP, Balancer("shop", "api", "2", ("10.40.0.20",))))
    assert spans(told(MINE, seen), "load_balancers")[0] == ("10.40.0.20", "in use", ("shop/api", "shop/web"))


def test_metallb_is_out_of_step_when_it_lacks_a_range_or_has_one_too_many() -> None:
    def metallb(*entries: PoolEntry, installed: bool = True) -> Any:
        return told(MINE, Inventory(entries, has_metallb=installed)).metallb

    assert metallb(*IN_STEP).in_step is True
    assert metallb().says == "MetalLB's default-pool lacks 10.40.0.20-10.40.0.21"
    extra = metallb(*IN_STEP, PoolEntry("default-pool", "10.9.0.0/30"), PoolEntry("mine", "10.8.0.1-10.8.0.2"))
    assert extra.in_step is False
    assert extra.strange == ("10.9.0.0/30", "10.8.0.1-10.8.0.2 (pool mine)")
    assert metallb(installed=False).in_step is None


def test_entries_of_metallb_are_compared_by_address_and_not_by_how_they_are_written() -> None:
    def metallb(*entries: tuple[str, str]) -> Any:
        return told(MINE, Inventory(tuple(PoolEntry(*entry) for entry in entries))).metallb

    ours = "default-pool"
    assert metallb((ours, "10.40.0.20/32"), (ours, "10.40.0.21/32")).in_step is True
    assert metallb((ours, "10.40.0.21/31"), ("mine", "10.40.0.20/31"), ("mine", "fd00::/64")).in_step is True
    assert metallb((ours, "10.40.0.21/32")).missing == ("10.40.0.20-10.40.0.20",)
    assert metallb((ours, "10.40.0.20/30")).strange == ("10.40.0.22-10.40.0.23",)
    assert metallb((ours, "10.40.0.20/31"), ("mine", "10.40.0.21-10.40.0.22")).strange == (
        "10.40.0.22-10.40.0.22 (pool mine)",
    )
    assert metallb((ours, "10.40.0.20/31"), (ours, "rubbish")).strange == ("rubbish",)
    adopted = metallb(("mine", "10.40.0.20/31"))
    assert (adopted.missing, adopted.strange) == (("10.40.0.20-10.40.0.21",), ()), "as fsck says it"


def test_a_range_on_its_way_back_may_be_in_metallb_or_not() -> None:
    leaving = blocks(
        cluster(),
        [
            allocation("web-lb", "loadbalancer", 2, start="10.40.0.20"),
            allocation("web-lb-2", "loadbalancer", 1, start="10.40.0.30", growth=True, deleting=True),
        ],
    )
    assert told(leaving, Inventory(IN_STEP)).metallb.in_step is True
    both = (*IN_STEP, PoolEntry("default-pool", "10.40.0.30-10.40.0.30"))
    assert told(leaving, Inventory(both)).metallb.in_step is True


def test_a_tenant_that_cannot_be_asked_leaves_the_ranges_and_a_sentence() -> None:
    found = told(MINE, "its API server cannot be reached")
    assert spans(found, "nodes") == [("10.40.0.8-10.40.0.11", "not known", ())]
    assert found.waiting is None
    assert found.unseen == ("Who has which address is not known: its API server cannot be reached.",)


def test_who_may_not_read_allocations_sees_what_the_tenant_knows() -> None:
    found = told(None, Inventory(IN_STEP, (NodeAddress("n1", "10.40.0.8"),), (SHOP,)))
    assert spans(found, "nodes") == [("10.40.0.8", "in use", ("n1",))]
    assert spans(found, "load_balancers") == [("10.40.0.20", "in use", ("shop/web",)), ("10.40.0.21", "idle", ())]
    assert found.metallb.in_step is None


FIRST = parse_address("10.40.0.0")[1]


@given(st.sets(st.integers(0, 40)), st.integers(0, 20), st.integers(1, 20))
def test_every_held_address_is_told_exactly_once_and_every_user_is_told(used: set[int], start: int, size: int) -> None:
    first = address_text(FIRST + start, Family.V4)
    mine = blocks(cluster(), [allocation("web-nodes", "nodes", size, start=first)])
    seen = Inventory(nodes=tuple(NodeAddress(f"n{item}", address_text(FIRST + item, Family.V4)) for item in used))
    found = told(mine, seen).nodes
    inside = [item for item in found if item.state != "not held"]
    told_of = [number for item in inside for number in range(item.range.first, item.range.last + 1)]
    assert told_of == list(range(FIRST + start, FIRST + start + size))
    assert {name for item in found for name in item.users} == {f"n{entry}" for entry in used}
    assert all((item.state == "idle") == (not item.users) for item in found)
