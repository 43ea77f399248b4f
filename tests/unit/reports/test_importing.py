"""Rows compared with the estate: made, there, or in conflict with an object that is named."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from butler.api.ipallocation import IPAllocationPhase, IPAllocationStatus, IPAllocationType
from butler.api.labels import AllocationRole, Finalizer, Label
from butler.api.objects import Key
from butler.ipam.addresses import Family, Range, address_text
from butler.reports.exchange.import_check import Difference, RowVerdict, compare
from butler.reports.exchange.rows import Contents, ExchangeRow, among_themselves
from unit.reports.exchange_estate import NOW, addresses, cluster, estate, holder, shown
from unit.webhooks.given import intents, pool, windows

NODES, LB = IPAllocationType.NODES, IPAllocationType.LOAD_BALANCER
MAKE, THERE, CONFLICT = RowVerdict.MAKE, RowVerdict.THERE, RowVerdict.CONFLICT


def row(text: str, tenant: str = "t/web", type_: IPAllocationType = NODES, **more: Any) -> ExchangeRow:
    return ExchangeRow(more.pop("where", f"row {text}"), Key(*tenant.split("/")), type_, addresses(text), **more)


def held_against(here: Any, *rows: ExchangeRow) -> Difference:
    contents = among_themselves(Contents(rows))
    assert not contents.bad
    return compare(here, contents, NOW)


def told(found: Difference) -> list[tuple[RowVerdict, str, tuple[str, ...]]]:
    return [(item.verdict, shown(item.addresses), item.names) for item in found.items]


def why(found: Difference) -> str:
    (each,) = found.items
    assert each.verdict is CONFLICT, each
    return each.why


def test_what_is_missing_is_made_as_a_pinned_request_of_that_tenant() -> None:
    web = cluster("t/web", "uid-1")
    (made,) = held_against(estate(clusters=(web,)), row("10.40.0.20-10.40.0.23", type_=LB)).items
    assert (made.verdict, made.names, made.pool) == (MAKE, ("web-lb",), "rack")
    request = made.request
    assert request is not None
    assert request.spec.pinned_range is not None
    assert request.spec.pinned_range.end_address == "10.40.0.23"
    assert request.metadata.finalizers == (Finalizer.IP_ALLOCATION,)
    assert request.metadata.labels[Label.TENANT_UID] == "uid-1"
    assert request.metadata.labels[Label.ALLOCATION_ROLE] == AllocationRole.INITIAL


def test_a_tenant_that_does_not_exist_yet_has_no_uid() -> None:
    (made,) = held_against(estate(), row("10.40.0.20")).items
    assert made.request is not None
    assert Label.TENANT_UID not in made.request.metadata.labels


def test_what_is_held_for_the_same_purpose_is_there_in_however_many_pieces() -> None:
    here = estate(holder("a", "10.40.0.20-10.40.0.21"), holder("b", "10.40.0.22-10.40.0.29"))
    assert told(held_against(here, row("10.40.0.20-10.40.0.25"))) == [(THERE, "10.40.0.20-10.40.0.25", ("a", "b"))]


def test_of_what_is_there_in_part_the_rest_is_made() -> None:
    here = estate(holder("web-nodes", "10.40.0.22-10.40.0.23"))
    assert told(held_against(here, row("10.40.0.20-10.40.0.25", name="mine"))) == [
        (THERE, "10.40.0.20-10.40.0.25", ("web-nodes",)),
        (MAKE, "10.40.0.20-10.40.0.21", ("web-nodes-2",)),
        (MAKE, "10.40.0.24-10.40.0.25", ("web-nodes-3",)),
    ]


def test_what_was_asked_for_and_waits_is_there() -> None:
    for phase in ("Pending", "Failed"):
        here = estate(holder("web-nodes", phase=phase, pinned="10.40.0.20"))
        assert told(held_against(here, row("10.40.0.20"))) == [(THERE, "10.40.0.20", ("web-nodes",))]


def test_what_was_released_is_made_again_under_another_name() -> None:
    here = estate(holder("web-nodes", "10.40.0.20", phase="Released"))
    assert told(held_against(here, row("10.40.0.20"))) == [(MAKE, "10.40.0.20", ("web-nodes-2",))]


def test_single_addresses_side_by_side_become_one_allocation() -> None:
    rows = [row(f"10.40.0.{last}", where=f"line {last}") for last in (22, 20, 21, 24)]
    found = held_against(estate(), *rows)
    assert told(found) == [
        (MAKE, "10.40.0.20-10.40.0.22", ("web-nodes",)),
        (MAKE, "10.40.0.24", ("web-nodes-2",)),
    ]
    assert found.items[0].where == ("line 20", "line 21", "line 22")


@pytest.mark.parametrize(
    "other",
    [
        row("10.40.0.21", "t/other"),
        row("10.40.0.21", type_=LB),
        row("10.40.0.21", name="own"),
        row("10.40.0.21-10.40.0.22"),
    ],
    ids=["another tenant", "another purpose", "a name of its own", "a range"],
)
def test_what_is_not_alike_stays_apart(other: ExchangeRow) -> None:
    assert len(held_against(estate(), row("10.40.0.20"), other).items) == 2


def test_neighbours_in_two_windows_stay_apart() -> None:
    rack = pool(**windows(("10.40.0.16", "10.40.0.31"), ("10.40.0.32", "10.40.0.63")))
    found = held_against(estate(pools=[rack]), row("10.40.0.31"), row("10.40.0.32"))
    assert [shown(item.addresses) for item in found.of(MAKE)] == ["10.40.0.31", "10.40.0.32"]


def test_a_name_of_ones_own_is_kept_where_it_is_free() -> None:
    here = estate(holder("taken", "10.40.0.99", tenant="t/other"))
    found = held_against(
        here, row("10.40.0.20", name="mine"), row("10.40.0.30", name="taken"), row("10.40.0.40", name="web-nodes")
    )
    assert [item.names for item in found.items] == [("mine",), ("web-nodes-2",), ("web-nodes",)]


def test_two_tenants_of_one_name_get_two_names() -> None:
    found = held_against(estate(), row("10.40.0.20", "a/web"), row("10.40.0.30", "b/web"))
    assert [item.names for item in found.items] == [("web-nodes",), ("web-nodes-2",)]


def test_a_conflict_names_who_has_the_address_and_what_for() -> None:
    here = estate(holder("shop-lb", "10.40.0.22-10.40.0.25", tenant="t/shop", type_="loadbalancer"))
    assert why(held_against(here, row("10.40.0.20-10.40.0.23"))) == (
        "10.40.0.22 is held by shop-lb for loadbalancer of t/shop: correct the row, or release shop-lb"
    )


def test_the_same_tenant_with_another_purpose_is_a_conflict() -> None:
    found = held_against(estate(holder("web-nodes", "10.40.0.20")), row("10.40.0.20", type_=LB))
    assert "is held by web-nodes for nodes of the same tenant" in why(found)


def test_an_earlier_cluster_of_that_name_is_another() -> None:
    old = holder("old", "10.40.0.20", tenantClusterUID="uid-old")
    found = held_against(estate(old, clusters=(cluster("t/web", "uid-new"),)), row("10.40.0.20"))
    assert "is held by old for nodes of an earlier cluster t/web" in why(found)


def test_what_is_just_being_released_is_not_there_and_not_free() -> None:
    going = holder("going", "10.40.0.20", meta={"deletionTimestamp": "2027-05-17T09:29:00Z"})
    assert "10.40.0.20 is just being released by going" in why(held_against(estate(going), row("10.40.0.20")))


def test_what_is_just_being_granted_to_another_is_a_conflict() -> None:
    rack = pool(status=intents(("new", "10.40.0.20", "10.40.0.23")))
    here = estate(holder("new", tenant="t/shop", phase="Pending"), pools=[rack])
    assert "10.40.0.20 is wanted by new for nodes of t/shop" in why(held_against(here, row("10.40.0.20")))


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        (row("10.40.0.20", pool="nope"), "there is no NetworkPool nope in namespace home (there is rack)"),
        (row("10.40.0.5"), "10.40.0.5 is reserved by 10.40.0.0/28"),
        (row("10.40.0.255"), "it is outside what rack hands out (10.40.0.1-10.40.0.254)"),
        (row("10.99.0.1"), "10.99.0.1 lies in no pool; the nearest is rack (10.40.0.0/24): create a pool for it"),
        (row("10.40.0.250-10.40.1.3"), "reaches beyond pool rack: split it at the pool's edge"),
    ],
)
def test_what_a_pool_does_not_allow_is_a_conflict(wanted: ExchangeRow, complaint: str) -> None:
    assert complaint in why(held_against(estate(), wanted))


def test_two_pools_with_the_address_are_one_too_many() -> None:
    here = estate(pools=[pool("a"), pool("b")])
    assert "lies in the pools a and b: name one of them in column pool" in why(held_against(here, row("10.40.0.20")))


def test_a_pool_that_hands_out_nothing_is_a_conflict() -> None:
    ready = {"type": "Ready", "status": "False", "reason": "Overlap", "message": "it overlaps b"}
    rack = pool(status={"conditions": [ready | {"lastTransitionTime": "2027-01-01T00:00:00Z"}]})
    found = held_against(estate(pools=[rack]), row("10.40.0.20"))
    assert why(found) == "NetworkPool rack hands out nothing: it overlaps b"


blocks = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(0, 2), st.sampled_from([NODES, LB])), max_size=24
)


def _apart(found: list[tuple[int, int, int, IPAllocationType]]) -> list[tuple[Range, str, IPAllocationType]]:
    at, made = 0x0A280000, []
    for gap, size, tenant, type_ in found:
        at += gap
        made.append((Range(at, at + size - 1), f"t/t{tenant}", type_))
        at += size
    return made


@settings(max_examples=150, deadline=None)
@given(blocks, blocks)
def test_an_import_grants_nothing_twice_and_a_second_one_has_nothing_to_do(present: Any, wanted: Any) -> None:
    held = [
        holder(f"h{number}", f"{text(each.first)}-{text(each.last)}", tenant=tenant, type_=str(type_))
        for number, (each, tenant, type_) in enumerate(_apart(present))
    ]
    rows = [
        ExchangeRow(f"line {number}", Key(*tenant.split("/")), type_, each)
        for number, (each, tenant, type_) in enumerate(_apart(wanted))
    ]
    here = estate(*held)
    found = held_against(here, *rows)
    names = [item.names[0] for item in found.of(MAKE)]
    assert len(set(names)) == len(names)
    assert not set(names) & {allocation.metadata.name for allocation in held}
    made = [_granted(item.request) for item in found.of(MAKE)]
    taken = sorted(addresses_of(item) for item in [*held, *made])
    assert all(before.last < after.first for before, after in pairwise(taken)), "no address twice"
    again = held_against(estate(*held, *made), *rows)
    assert not again.of(MAKE)
    assert [item.why for item in again.of(CONFLICT)] == [entry.why for entry in found.of(CONFLICT)]
    asked = sum(item.addresses.size for item in rows)
    refused = sum(item.addresses.size for item in found.of(CONFLICT))
    assert sum(item.addresses.size for item in again.of(THERE)) == asked - refused


def text(value: int) -> str:
    return address_text(value, Family.V4)


def addresses_of(allocation: Any) -> Range:
    return addresses(f"{allocation.status.start_address}-{allocation.status.end_address}")


def _granted(request: Any) -> Any:
    pinned = request.spec.pinned_range
    status = IPAllocationStatus(
        phase=IPAllocationPhase.ALLOCATED, start_address=pinned.start_address, end_address=pinned.end_address
    )
    meta = msgspec.structs.replace(request.metadata, uid=f"uid-{request.metadata.name}")
    return msgspec.structs.replace(request, status=status, metadata=meta)
