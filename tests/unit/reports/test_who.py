"""Whose an address is, and what hangs on it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from butler.api.codec import from_json
from butler.api.ipallocation import IPAllocationType
from butler.api.labels import Label
from butler.api.objects import Key
from butler.api.providerconfig import ProviderConfig
from butler.ipam.addresses import BadAddress, Family, Range, range_text
from butler.reports.address_lookup import Answer, TenantIs, answer_json, read_asked, who
from butler.reports.plan.new_requests import answers, request_for
from butler.reports.pool.segments import Kind
from butler.reports.release_impact import impact, impact_json
from butler.reports.tenant.address_use import AddressUse
from butler.rules.loadbalancer.service import Balancer
from butler.tenant.inventory import Inventory, NodeAddress
from unit.reports.exchange_estate import NOW, addresses, cluster, estate, holder, shown
from unit.webhooks.given import API, pool, window

WEB = Key("t", "web")


def asked(here: Any, text: str) -> Answer:
    return who(here, *read_asked(text))


def places(answer: Answer) -> list[tuple[str, str]]:
    return [(shown(place.addresses), place.kind) for place in answer.places]


def test_a_held_address_has_an_owner_since_a_time() -> None:
    web = holder("web-lb", "10.40.0.20-10.40.0.23", type_="loadbalancer", allocatedAt="2027-05-17T08:00:00Z")
    web.metadata.labels[Label.ALLOCATION_ROLE] = "growth"
    answer = asked(estate(web, clusters=(cluster(),)), "10.40.0.21")
    (owner,) = answer.owners
    assert (owner.allocation, owner.tenant, owner.tenant_is) == ("web-lb", WEB, "exists")
    assert (owner.type, owner.role, owner.pool, shown(owner.addresses)) == (
        "loadbalancer", "growth", "rack", "10.40.0.20-10.40.0.23",
    )  # fmt: skip
    assert owner.since == NOW - timedelta(hours=1, minutes=30)
    assert answer.is_known


@pytest.mark.parametrize(
    ("address", "kind"),
    [("10.40.0.5", "reserved"), ("10.40.0.255", "outside"), ("10.40.0.99", "free"), ("10.9.9.9", "in no pool")],
)
def test_an_address_that_is_not_held_is_told_by_what_its_pool_says(address: str, kind: str) -> None:
    assert places(asked(estate(), address)) == [(address, kind)]


def test_an_address_of_no_pool_has_a_nearest_one_and_is_not_known() -> None:
    here = estate(pools=[pool("a", "10.40.0.0/24"), pool("b", "10.60.0.0/24")])
    assert asked(here, "10.59.0.1").nearest == ("b", "10.60.0.0/24")
    assert not asked(here, "10.59.0.1").is_known
    assert asked(estate(pools=[]), "10.59.0.1").nearest is None
    assert asked(here, "fd00::1").nearest is None
    assert not asked(here, "fd00::1").is_known


def test_a_range_is_cut_where_the_answer_changes() -> None:
    here = estate(holder("web", "10.40.0.20-10.40.0.23"), holder("shop", "10.40.0.24", tenant="t/shop"))
    assert places(asked(here, "10.40.0.10-10.40.0.30")) == [
        ("10.40.0.10-10.40.0.15", "reserved"),
        ("10.40.0.16-10.40.0.19", "free"),
        ("10.40.0.20-10.40.0.23", "allocated"),
        ("10.40.0.24", "allocated"),
        ("10.40.0.25-10.40.0.30", "free"),
    ]


def test_earlier_owners_are_remembered_the_latest_first() -> None:
    first = holder("first", "10.40.0.20", phase="Released", releasedAt="2027-05-17T01:00:00Z")
    second = holder("second", "10.40.0.20-10.40.0.29", phase="Released", releasedAt="2027-05-17T05:00:00Z")
    elsewhere = holder("elsewhere", "10.40.0.99", phase="Released")
    answer = asked(estate(first, second, elsewhere), "10.40.0.20")
    assert [owner.allocation for owner in answer.earlier] == ["second", "first"]
    assert places(answer) == [("10.40.0.20", "free")]


def test_a_request_that_insists_on_the_address_is_told() -> None:
    answer = asked(estate(holder("waits", phase="Failed", pinned="10.40.0.20-10.40.0.21")), "10.40.0.21")
    assert [(owner.allocation, owner.phase) for owner in answer.wanted] == [("waits", "Failed")]


def test_what_is_held_from_a_pool_that_is_gone_is_found() -> None:
    answer = asked(estate(holder("old", "10.9.0.4-10.9.0.5", of="gone")), "10.9.0.0/29")
    assert places(answer) == [
        ("10.9.0.0-10.9.0.3", "in no pool"),
        ("10.9.0.4-10.9.0.5", "allocated"),
        ("10.9.0.6-10.9.0.7", "in no pool"),
    ]
    assert answer.places[1].stranded
    assert answer.is_known


def test_the_owner_may_be_gone_or_another_one() -> None:
    web = holder("web", "10.40.0.20", tenantClusterUID="uid-old")
    assert asked(estate(web), "10.40.0.20").owners[0].tenant_is is TenantIs.GONE
    new = estate(web, clusters=(cluster(uid="uid-new"),))
    assert asked(new, "10.40.0.20").owners[0].tenant_is is TenantIs.REPLACED
    never = holder("never", "10.40.0.20")
    assert asked(estate(never), "10.40.0.20").owners[0].tenant_is is TenantIs.UNSEEN


def test_pools_that_overlap_are_all_named() -> None:
    answer = asked(estate(pools=[pool("a"), pool("b", "10.40.0.0/25")]), "10.40.0.20")
    assert answer.pools == (("a", "10.40.0.0/24"), ("b", "10.40.0.0/25"))


def test_gateways_name_servers_and_endpoints_are_known() -> None:
    network = {"mode": "ipam", "gateway": "10.40.0.1", "dnsServers": ["10.40.0.2"], "poolRefs": [{"name": "rack"}]}
    body = {"apiVersion": API, "kind": "ProviderConfig", "metadata": {"name": "dc", "namespace": "home"}}
    provider = from_json(ProviderConfig, {**body, "spec": {"provider": "local", "network": network}})
    web = cluster(controlPlaneEndpoint="https://10.40.0.3:6443")
    here = estate(clusters=(web,))
    here = type(here)(here.home, here.pools, (), (provider,), here.clusters)
    assert asked(here, "10.40.0.0/29").known_as == (
        "gateway 10.40.0.1 of ProviderConfig dc",
        "name server 10.40.0.2 of ProviderConfig dc",
        "endpoint https://10.40.0.3:6443 of the control plane of t/web",
    )


@pytest.mark.parametrize(
    "text", ["", "banana", "10.40.0.1-", "10.40.0.9-10.40.0.1", "10.40.0.1/24", "10.40.0.1-fd00::1"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadAddress):
        read_asked(text)


@given(
    st.integers(0, 255), st.integers(0, 300), st.lists(st.tuples(st.integers(0, 250), st.integers(1, 30)), max_size=6)
)
def test_every_address_that_was_asked_for_has_exactly_one_place(first: int, more: int, held: Any) -> None:
    base = 0x0A27FF80  # somewhat below the pool
    found = [
        holder(f"h{number}", range_text(Range(base + at, base + at + size), Family.V4), of="rack")
        for number, (at, size) in enumerate(held)
    ]
    whole = Range(base + first, base + first + more)
    answer = who(estate(*found), Family.V4, whole)
    covered = [address for item in answer.places for address in range(item.addresses.first, item.addresses.last + 1)]
    assert covered == list(range(whole.first, whole.last + 1))
    for place in answer.places:
        is_held = any(owner.addresses.overlaps(place.addresses) for owner in place.owners)
        assert is_held == (place.kind in (Kind.ALLOCATED, Kind.DRAINING))


def test_the_answer_is_plain_json() -> None:
    here = estate(holder("web", "10.40.0.20"), holder("old", "10.40.0.20", phase="Released"))
    found = json.loads(json.dumps(answer_json(asked(here, "10.40.0.20")), default=str))
    assert found["places"][0]["owners"][0]["range"] == {"start": "10.40.0.20", "end": "10.40.0.20", "count": 1}
    assert (found["known"], found["earlier"][0]["allocation"]) == (True, "old")
    assert found["places"][0]["owners"][0]["tenant"] == str(WEB), "one spelling, as pools and plans have it"


# What a pool would say.


def ask(here: Any, count: int | None = None, pinned: str = "", of: str = "rack") -> Any:
    wanted = addresses(pinned) if pinned else None
    request = request_for(
        WEB, IPAllocationType.NODES, name="new", pool=of, home="home", cluster=None, count=count, pinned=wanted
    )
    return answers(here, [request], NOW)["new"]


def test_a_request_is_foretold_what_the_pool_would_say() -> None:
    here = estate(holder("web", "10.40.0.16-10.40.0.19"), holder("shop", "10.40.0.24-10.40.0.30"))
    assert shown(ask(here, 3)) == "10.40.0.20-10.40.0.22", "the smallest hole"
    assert shown(ask(here)) == "10.40.0.31-10.40.0.35", "the pool's default for nodes"
    assert ask(here, 999)[0] == "PoolExhausted"
    assert "is held by web" in ask(here, pinned="10.40.0.17")[1]
    assert ask(here, 1, of="nope")[0] == "PoolNotFound"


def test_those_who_wait_longer_are_served_first() -> None:
    waiting = holder("waits", phase="Pending", pinned="10.40.0.16-10.40.0.20")
    meta = msgspec.structs.replace(waiting.metadata, finalizers=("butler.butlerlabs.dev/ipallocation",))
    waiting = msgspec.structs.replace(waiting, metadata=meta)
    assert shown(ask(estate(waiting), 2)) == "10.40.0.21-10.40.0.22"


def test_a_pool_that_makes_no_sense_grants_nothing() -> None:
    here = estate(pools=[pool(**window("10.41.0.1", "10.41.0.9"))])
    assert ask(here, 1)[0] == "PoolNotReady"


# What hangs on a release.


def test_a_release_tells_who_uses_the_addresses_now() -> None:
    web = holder("web-lb", "10.40.0.20-10.40.0.23", type_="loadbalancer")
    told = Inventory((), (NodeAddress("n1", "10.40.0.21"),), (Balancer("shop", "web", "u", ("10.40.0.20",)),))
    machines = [AddressUse(WEB, "Machine", "m1", "10.40.0.21"), AddressUse(WEB, "Machine", "m2", "10.40.0.22")]
    found = impact(web, estate(web, clusters=(cluster(),)), machines, told)
    assert [str(use) for use in found.uses] == [
        "Service shop/web (10.40.0.20)", "Node n1 (10.40.0.21)", "Machine m2 (10.40.0.22)",
    ]  # fmt: skip
    assert "so Butler refuses: delete the TenantCluster" in found.follows[0]
    assert "the Services above lose them" in found.follows[1]
    assert (found.refused, found.unknown) == (True, False)
    said = json.loads(json.dumps(impact_json(found)))
    assert (said["tenant"], said["inUse"][2]["kind"]) == (str(WEB), "Machine")


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        (holder("a", "10.40.0.20"), "its cluster exists, so Butler refuses"),
        (holder("a", "10.40.0.20", tenant="t/imported"), "Butler cannot see whether this is in use"),
        (holder("a", "10.40.0.20", tenant="t/gone", tenantClusterUID="u"), "the cluster that it was made for is gone"),
        (holder("a", phase="Failed"), "it holds nothing: the request is taken back"),
        (holder("a", "10.40.0.20", phase="Released"), "the record of who had the addresses goes"),
        (holder("a", "10.40.0.20", meta={"deletionTimestamp": "2027-01-01T00:00:00Z"}), "being released already"),
    ],
)
def test_a_release_tells_what_follows(given_: Any, said: str) -> None:
    found = impact(given_, estate(given_, clusters=(cluster(),)), [], "its API server cannot be reached")
    assert said in found.follows[0]
    assert bool(found.not_asked) == (found.addresses is not None)
