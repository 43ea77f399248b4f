"""Addresses that tenants' Services show although Butler did not grant them: never granted to others meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from butler.api.networkpool import MOST_WITHHELD
from butler.api.objects import Change, Key, key_of
from butler.api.tenantcluster import LoadBalancerUse
from butler.ipam.addresses import Family, Range, parse_address
from butler.ipam.layout import read_layout
from butler.reports.pool.segments import Kind, segments_of
from butler.reports.pool.summary import summary_of
from butler.rules.pool.foreign_addresses import ForeignAddresses, Shown, shown_by, shown_in
from butler.rules.pool.next_status import plan
from butler.rules.pool.quota import Quota
from unit.controllers.networkpool.values import NOW, allocation, grants, holdings_of, pool, reasons, view_of
from unit.controllers.tenantcluster.values import cluster

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.api.tenantcluster import TenantCluster
    from butler.rules.pool.next_status import PoolPlan

WINDOW = "10.0.0.0-10.0.0.15"
WEB, SHOP = Key("team-a", "web"), Key("team-b", "shop")


def shown(*last: int, tenant: Key = WEB) -> list[Shown]:
    return [Shown(parse_address(f"10.0.0.{number}")[1], tenant) for number in last]


def planned(subject: NetworkPool, foreign: list[Shown], *world: IPAllocation, **looks: Any) -> PoolPlan:
    holdings, layout = holdings_of(*world), read_layout(subject.spec)
    book = holdings.book(key_of(subject), layout)
    before = list(book.free.extents())
    view = replace(view_of(world, holdings, key_of(subject)), foreign=foreign, **looks)
    made = plan(subject, layout, book, view, obstacle=None, claimed_cidr=subject.spec.cidr, now=NOW)
    assert list(book.free.extents()) == before, "a decision left a trace in the book"
    return made


def after(subject: NetworkPool, made: PoolPlan) -> NetworkPool:
    return msgspec.structs.replace(subject, status=made.status)


def test_they_are_left_out_and_counted_as_allocated() -> None:
    made = planned(pool(WINDOW), shown(0, 5), allocation("a", 4), allocation("b", 4))
    assert grants(made) == {"a": "10.0.0.1-10.0.0.4", "b": "10.0.0.6-10.0.0.9"}
    status = made.status
    assert (status.total_ips, status.allocated_ips, status.available_ips, status.largest_free_block) == (16, 10, 6, 6)
    assert [foreign_address.address for foreign_address in status.foreign_addresses] == ["10.0.0.0", "10.0.0.5"]
    assert status.foreign_addresses[0].tenant_cluster_ref.name == "web"


def test_a_pinned_request_of_another_is_refused_and_told_why() -> None:
    made = planned(pool(WINDOW), shown(5), allocation("other", pinned="10.0.0.4-10.0.0.5"))
    assert reasons(made) == {"other": "PinnedRangeConflict"}
    assert "a Service of TenantCluster team-a/web (not allocated to it)" in made.refusals[0].message


def test_a_tenant_that_asks_for_the_address_that_it_shows_gets_it() -> None:
    """So a running estate is taken over; and who comes with it does not get in between."""
    own = allocation("web", pinned="10.0.0.4-10.0.0.5", type="loadbalancer")
    made = planned(pool(WINDOW), shown(5), own, allocation("other", 16), allocation("small", 1))
    assert grants(made) == {"web": "10.0.0.4-10.0.0.5", "small": "10.0.0.0-10.0.0.0"}
    assert made.status.foreign_addresses == ()


def test_a_request_of_the_tenant_that_cannot_be_met_opens_nothing_to_others() -> None:
    own = allocation("web", pinned="10.0.0.4-10.0.0.5", type="loadbalancer")
    held = allocation("holder", holds="10.0.0.4-10.0.0.4")
    made = planned(pool("10.0.0.4-10.0.0.5"), shown(5), own, held, allocation("other", 1))
    assert grants(made) == {}
    assert reasons(made)["web"] == "PinnedRangeConflict"


def test_a_request_of_the_tenant_beyond_its_quota_opens_nothing_to_others() -> None:
    """It is free for the tenant alone; and the tenant that asks for two gets the one that it may have."""
    own = allocation("web", pinned="10.0.0.5-10.0.0.5", type="loadbalancer", age=5)
    more = allocation("more", pinned="10.0.0.4-10.0.0.4", type="loadbalancer", tenantClusterRef=dict(WEB._asdict()))
    world = [own, more, allocation("other", 1), allocation("late", pinned="10.0.0.4-10.0.0.4")]

    def quota_of(request: IPAllocation) -> Quota | None:
        used = 1 if request is more else 0
        return Quota("web", 1, "maxLoadBalancerIPs", used) if request in (own, more) else None

    made = planned(pool("10.0.0.4-10.0.0.5"), shown(4, 5), *world, quota_of=quota_of)
    assert grants(made) == {"web": "10.0.0.5-10.0.0.5"}
    assert reasons(made) == {"more": "QuotaExceeded", "other": "PoolExhausted", "late": "PinnedRangeConflict"}
    assert [foreign_address.address for foreign_address in made.status.foreign_addresses] == ["10.0.0.4"]


def test_what_a_tenant_holds_is_only_reported_elsewhere() -> None:
    made = planned(pool(WINDOW), shown(5), allocation("holder", holds="10.0.0.5-10.0.0.5"))
    assert made.status.foreign_addresses == ()
    assert made.status.allocated_ips == 1


def test_only_so_many_of_a_pool_are_withheld() -> None:
    many = [Shown(parse_address("10.0.0.0")[1] + number, Key("team-a", f"t{number}")) for number in range(200)]
    made = planned(pool(), many)
    assert len(made.status.foreign_addresses) == MOST_WITHHELD


def test_two_tenants_that_show_one_address_count_once() -> None:
    made = planned(pool(WINDOW), [*shown(5), *shown(5, tenant=SHOP)])
    assert made.status.allocated_ips == 1


# What people see.


def test_maps_and_counters_show_them_as_kept_back() -> None:
    subject = pool(WINDOW)
    subject = after(subject, planned(subject, shown(5), allocation("a", holds="10.0.0.0-10.0.0.3")))
    world = [allocation("a", holds="10.0.0.0-10.0.0.3")]
    kept = [segment for segment in segments_of(subject, world).segments if segment.kind is Kind.RESERVED]
    assert [(segment.first & 255, segment.last & 255) for segment in kept] == [(5, 5)]
    assert "TenantCluster team-a/web" in kept[0].description
    found = summary_of(subject, world)
    assert found.doubts == ()
    assert found.standing is not None
    assert found.standing.capacity.allocated == 5
    assert shown_in(subject) == shown(5)


# What the controller keeps.


def with_shown(*texts: str) -> TenantCluster:
    use = LoadBalancerUse(
        held=0, in_use=0, idle=0, services=0, platform_services=0, waiting_services=0, foreign_addresses=texts
    )
    bare = cluster()
    return msgspec.structs.replace(bare, status=msgspec.structs.replace(bare.status, load_balancers=use))


def test_the_index_follows_the_clusters() -> None:
    index, around = ForeignAddresses(), Range(*[parse_address(name)[1] for name in ("10.0.0.0", "10.0.0.255")])
    one, two = with_shown("10.0.0.5", "nonsense"), with_shown("10.0.0.5", "10.0.0.9")
    index.changed(Change(WEB, None, cluster()))
    index.changed(Change(WEB, cluster(), one))
    assert index.within(Family.V4, around) == shown(5)
    index.changed(Change(WEB, one, two))
    assert index.within(Family.V4, around) == shown(5, 9)
    index.changed(Change(WEB, two, None))
    assert index.within(Family.V4, around) == []
    assert shown_by(None) == []
