"""What a check finds, and what it leaves alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from butler.api.objects import Key
from butler.ipam.addresses import Family, Range, address_text
from butler.reports.fsck import (
    MEANINGS,
    Code,
    NodeAddresses,
    Report,
    UnreadableObject,
    concerning,
    look_once,
    report_json,
    standing,
    tenants_to_ask,
)
from butler.reports.fsck.finding import DropRequest, LookAgain, Relabel
from butler.rules.loadbalancer.service import Balancer
from unit.reports.fsck_estate import HOME, LABEL, NOW, Town, announced, cluster, held, pool, town

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.reports.fsck import FsckFinding


def spec(name: str, **fields: Any) -> Callable[[Town], object]:
    return lambda found: found.pools[name]["spec"].update(fields)


def status(name: str, **fields: Any) -> Callable[[Town], object]:
    return lambda found: found.allocations[name]["status"].update(fields)


def add(allocation: dict[str, Any]) -> Callable[[Town], object]:
    return lambda found: found.allocations.update({allocation["metadata"]["name"]: allocation})


def labels(name: str, **values: str) -> Callable[[Town], object]:
    return lambda found: found.allocations[name]["metadata"]["labels"].update(
        {LABEL + key.replace("_", "-"): value for key, value in values.items()}
    )


def intent(start: str, end: str, name: str = "web-lb") -> Callable[[Town], object]:
    said = {"uid": f"uid-of-{name}", "name": name, "startAddress": start, "endAddress": end}
    return lambda found: found.pools["east"]["status"].update(intents=[said])


def pending(name: str = "late-lb", tenant: str = "web") -> dict[str, Any]:
    return {**held(name, "east", "10.1.0.30", "10.1.0.31", tenant), "status": {"phase": "Pending"}}


def both(*steps: Callable[[Town], object]) -> Callable[[Town], object]:
    def all_of(found: Town) -> None:
        for step in steps:
            step(found)

    return all_of


def by_hand(allocation: dict[str, Any]) -> dict[str, Any]:
    """Made by hand: no labels, and no owner seen yet."""
    meta = {**allocation["metadata"], "labels": {}}
    said = {key: value for key, value in allocation["status"].items() if key != "tenantClusterUID"}
    return {**allocation, "metadata": meta, "status": said}


def test_an_estate_in_which_all_is_well_is_clean() -> None:
    assert town().findings() == []


CASES: dict[str, tuple[Callable[[Town], object], list[str]]] = {
    "a pool that makes no sense": (
        lambda found: found.pools.update(bad=pool("bad", "10.9.0.0/24", reserved=[{"cidr": "10.8.0.0/24"}])),
        ["IPAM-POOL-INVALID"],
    ),
    "a pool whose status is of another cluster": (
        lambda found: found.pools["east"]["status"].update(allocationsSeen="999999999"),
        ["IPAM-POOL-VERSIONS"],
    ),
    "two pools with the same addresses": (
        lambda found: found.pools.update(wide=pool("wide", "10.1.0.0/16", tenantAllocation={})),
        ["IPAM-POOL-OVERLAP"],
    ),
    "two allocations with the same address, of two pools": (
        add(held("twin-lb", "nodes", "10.1.0.19", "10.1.0.19", "shop")),
        ["IPAM-S1-DUPLICATE", "IPAM-S2-OUTSIDE-POOL", "IPAM-METALLB-MISSING"],
    ),
    "an address that is reserved": (
        lambda found: found.allocations.update(
            {"web-nodes": held("web-nodes", "east", "10.1.0.1", "10.1.0.3", kind="nodes")}
        ),
        ["IPAM-S2-OUTSIDE-POOL", "IPAM-NODE-OUTSIDE", "IPAM-NODE-OUTSIDE"],
    ),
    "a pool that is gone": (lambda found: found.pools.pop("nodes"), ["IPAM-POOL-MISSING", "IPAM-POOL-MISSING"]),
    "a range that is none": (
        status("web-nodes", endAddress="10.2.0.300"),
        ["IPAM-STATUS", "IPAM-NODE-OUTSIDE", "IPAM-NODE-OUTSIDE"],
    ),
    "a count that is another than the range's": (status("web-lb", allocatedCount=5), ["IPAM-STATUS"]),
    "a list that is another than the range": (status("web-lb", addresses=["10.1.0.16"]), ["IPAM-STATUS"]),
    "a network that is another than the range": (status("web-lb", cidr="10.1.0.16/31"), ["IPAM-STATUS"]),
    "more than was asked for": (
        lambda found: found.allocations["web-lb"]["spec"].update(count=3),
        ["IPAM-STATUS"],
    ),
    "other addresses than were asked for": (
        lambda found: found.allocations["web-lb"]["spec"].update(
            pinnedRange={"startAddress": "10.1.0.40", "endAddress": "10.1.0.43"}
        ),
        ["IPAM-STATUS"],
    ),
    "addresses of a request that waits": (
        lambda found: found.allocations.update(
            {"x": {**pending("x"), "status": {"phase": "Failed", "startAddress": "10.1.0.99"}}}
        ),
        ["IPAM-STATUS"],
    ),
    "a label that says another pool": (labels("web-lb", network_pool="west"), ["IPAM-LABELS"]),
    "a label that says another cluster's UID": (
        labels("web-nodes", tenant_uid="uid-shop"),
        ["IPAM-OWNER", "IPAM-NODE-OUTSIDE", "IPAM-NODE-OUTSIDE"],
    ),
    "a cluster that is gone": (lambda found: found.clusters.pop("web"), ["IPAM-ORPHAN", "IPAM-ORPHAN"]),
    "a cluster that was made anew": (
        lambda found: (
            found.clusters.update(web=cluster("web", "another")),
            found.metallb.update(web=[]),
            found.services.pop("web"),
            found.nodes.pop("web"),
        ),
        ["IPAM-ORPHAN", "IPAM-ORPHAN"],
    ),
    "a cluster that never was": (
        add(by_hand(held("x", "east", "10.1.0.40", "10.1.0.40", "new"))),
        ["IPAM-TENANT-NEVER-SEEN"],
    ),
    "an owner that was never written down": (
        both(
            add(by_hand(held("x", "east", "10.1.0.40", "10.1.0.40"))),
            lambda found: found.metallb["web"].append(announced("10.1.0.40/32", name="more")),
        ),
        ["IPAM-OWNER", "IPAM-METALLB-MISSING"],
    ),
    "a grant that contradicts the allocation": (intent("10.1.0.16", "10.1.0.18"), ["IPAM-INTENT-WRONG"]),
    "a grant that is no range": (intent("10.1.0.18", "10.1.0.16"), ["IPAM-INTENT-WRONG"]),
    "a grant that does not arrive": (
        both(add(pending()), intent("10.1.0.30", "10.1.0.31", "late-lb")),
        ["IPAM-INTENT-STUCK"],
    ),
    "a grant of what another holds": (
        both(add(pending()), intent("10.1.0.19", "10.1.0.19", "late-lb")),
        ["IPAM-INTENT-STUCK", "IPAM-S1-DUPLICATE"],
    ),
    "a grant that arrived": (intent("10.1.0.16", "10.1.0.19"), []),
    "a request that waits": (add(pending()), []),
    "a released one, for the record": (
        status("web-nodes", phase="Released"),
        ["IPAM-NODE-OUTSIDE", "IPAM-NODE-OUTSIDE"],
    ),
    # On the tenants.
    "a tenant that does not answer": (
        lambda found: found.trouble.update(web="it did not answer within 15 s"),
        ["IPAM-TENANT-UNREACHABLE"],
    ),
    "a hand-edited pool with another tenant's addresses": (
        lambda found: found.metallb.update(web=[announced("10.1.0.16-10.1.0.19", "10.1.0.20/31")]),
        ["IPAM-S5-ANNOUNCED"],
    ),
    "a hand-edited pool with too little": (
        lambda found: found.metallb.update(web=[announced("10.1.0.16-10.1.0.17")]),
        ["IPAM-METALLB-MISSING"],
    ),
    "a pool that is not there": (lambda found: found.metallb.update(web=[]), ["IPAM-METALLB-MISSING"]),
    "the same in other words": (
        lambda found: found.metallb.update(web=[announced("10.1.0.16/30")]),
        ["IPAM-METALLB-DRIFT"],
    ),
    "a pool that hands out nothing": (
        lambda found: found.metallb.update(web=[announced("10.1.0.16-10.1.0.19", autoAssign=False)]),
        ["IPAM-METALLB-DRIFT"],
    ),
    "a drain under way": (
        both(
            status("web-lb", drainingSince="2026-02-15T10:00:00Z"),
            lambda found: found.metallb.update(web=[announced("10.1.0.16-10.1.0.17", autoAssign=False)]),
        ),
        [],
    ),
    "a grant of a moment ago": (
        both(
            status("web-lb", allocatedAt="2026-02-15T09:59:50Z"),
            lambda found: found.metallb.update(web=[]),
        ),
        [],
    ),
    "no advertisement": (lambda found: found.announcement.update(web=None), ["IPAM-METALLB-DRIFT"]),
    "no MetalLB": (lambda found: found.metallb.update(web=None), ["IPAM-METALLB-MISSING"]),
    "another pool, with addresses of no tenant": (
        lambda found: found.metallb["web"].append(announced("192.0.2.0/28", name="own")),
        ["IPAM-METALLB-FOREIGN"],
    ),
    "another pool, with addresses that Butler hands out": (
        lambda found: found.metallb["web"].append(announced("10.1.0.200-10.1.0.201", name="own")),
        ["IPAM-S5-ANNOUNCED"],
    ),
    "another pool, with a whole network that Butler hands out from": (
        both(
            lambda found: found.pools.update(west=pool("west", "10.40.0.0/24")),
            lambda found: found.metallb["web"].append(announced("10.40.0.0/24", name="own")),
        ),
        ["IPAM-S5-ANNOUNCED"],
    ),
    "another pool, with far more than a network that Butler hands out from": (
        both(
            lambda found: found.pools.update(west=pool("west", "172.16.5.0/24")),
            lambda found: found.metallb["web"].append(announced("172.16.0.0/12", name="own")),
        ),
        ["IPAM-S5-ANNOUNCED"],
    ),
    "another pool, with what a pool of Butler's keeps back": (
        lambda found: found.metallb["web"].append(announced("10.1.0.4/30", name="own")),
        ["IPAM-METALLB-FOREIGN"],
    ),
    "a Service with another's address": (
        lambda found: found.services["web"].append(Balancer("default", "x", "9", addresses=("10.1.0.20",))),
        ["IPAM-SERVICE-OUTSIDE", "IPAM-SERVICE-DUPLICATE"],
    ),
    "a Service with an address of no tenant": (
        lambda found: found.services["web"].append(Balancer("default", "x", "9", addresses=("192.0.2.7",))),
        ["IPAM-SERVICE-OUTSIDE"],
    ),
    "a Service of another load balancer": (
        lambda found: found.services["web"].append(
            Balancer("default", "x", "9", addresses=("192.0.2.7", "2001:db8::7"), class_name="cloud")
        ),
        [],
    ),
    "two Services that share an address": (
        lambda found: found.services["web"].append(Balancer("default", "x", "9", addresses=("10.1.0.16",))),
        [],
    ),
    "a node with another's address": (
        lambda found: found.nodes["web"].append(NodeAddresses("x", ("10.2.0.4",))),
        ["IPAM-NODE-OUTSIDE", "IPAM-NODE-DUPLICATE"],
    ),
    "nodes with addresses of the network itself": (
        lambda found: (
            found.allocations.pop("web-nodes"),
            found.nodes.update(web=[NodeAddresses("x", ("172.31.0.1",))]),
        ),
        [],
    ),
}


@pytest.mark.parametrize("story", CASES)
def test_what_is_found(story: str) -> None:
    spoil, codes = CASES[story]
    found = town().spoiled(spoil, recount=story != "a pool that makes no sense")
    assert found.codes() == sorted(codes), "\n".join(f"{finding.code}: {finding.what}" for finding in found.findings())


@pytest.mark.parametrize("counter", ["totalIPs", "allocatedIPs", "availableIPs", "allocationCount", "largestFreeBlock"])
def test_a_counter_that_is_wrong_is_told_with_both_numbers(counter: str) -> None:
    right = town().pools["east"]["status"][counter]
    found = town().spoiled(lambda it: it.pools["east"]["status"].update({counter: 77}), recount=False).findings()
    assert [finding.what for finding in found] == [f"{counter} says 77, a recount gives {right}"]
    assert found[0].repair == LookAgain("NetworkPool", Key(HOME, "east"))


def test_what_a_pool_keeps_for_one_that_comes_back_is_counted() -> None:
    def come_back(found: Town) -> None:
        lost = held("old", "renamed", "10.1.0.40", "10.1.0.47")
        lost["metadata"]["annotations"] = {f"{LABEL}granted": "10.1.0.40-10.1.0.47 of-another-life"}
        lost["status"] = {"phase": "Failed"}
        found.allocations["old"] = lost

    before, after = town().pools["east"]["status"], town().spoiled(come_back).pools["east"]["status"]
    assert after["allocatedIPs"] == before["allocatedIPs"] + 8


def test_a_pool_that_was_edited_and_not_looked_at_is_told_as_that_and_not_as_miscounted() -> None:
    def edit(found: Town) -> None:
        found.pools["east"]["metadata"]["generation"] = 2
        found.pools["east"]["spec"]["reserved"] = []

    assert town().spoiled(edit, recount=False).codes() == ["IPAM-POOL-UNSEEN"]
    fresh = town().spoiled(lambda found: found.pools.update(new=pool("new", "10.7.0.0/24")), recount=False)
    assert fresh.codes() == ["IPAM-POOL-UNSEEN"]


def the(found: Town) -> FsckFinding:
    (only,) = found.findings()
    return only


def test_a_finding_says_whose_the_address_is_and_where_it_lies() -> None:
    stray = lambda it: it.services["web"].append(Balancer("default", "x", "9", addresses=("10.1.0.200",)))  # noqa: E731
    assert the(town().spoiled(stray)).what == (
        "it has 10.1.0.200, which is not a load-balancer address of team/web: pool east may give it to another tenant"
    )
    reserved = both(
        lambda it: it.allocations.pop("web-nodes"),
        lambda it: it.nodes.pop("web"),
        add(held("x", "east", "10.1.0.14", "10.1.0.15", kind="nodes")),
    )
    assert the(town().spoiled(reserved)).what == (
        "2 of its 2 addresses not handed out by pool east: 10.1.0.14-10.1.0.15 (reserved: 10.1.0.0/28, Switches)"
    )


def test_a_request_whose_cluster_is_gone_may_be_dropped_unless_something_was_promised_to_it() -> None:
    orphan = add(pending("gone-lb", "gone"))
    found = the(town().spoiled(orphan))
    assert found.repair == DropRequest(Key(HOME, "gone-lb"), "uid-of-gone-lb", "5", Key("team", "gone"), ("uid-gone",))
    promised = town().spoiled(both(orphan, intent("10.1.0.30", "10.1.0.31", "gone-lb"))).findings()
    assert [finding.repair for finding in promised if finding.code is Code.ORPHAN] == [None]


def test_addresses_of_a_cluster_that_is_gone_are_never_released_by_a_repair() -> None:
    found = town().spoiled(lambda it: it.clusters.pop("web")).findings()
    assert [finding.repair for finding in found] == [None, None]


def test_labels_are_put_right_for_the_version_that_was_read() -> None:
    found = the(town().spoiled(labels("web-lb", network_pool="west", tenant="wob")))
    right = ((f"{LABEL}network-pool", "east"), (f"{LABEL}tenant", "web"))
    assert found.repair == Relabel(Key(HOME, "web-lb"), "uid-of-web-lb", "5", right)


def test_a_pool_that_a_service_uses_too_much_of_is_left_to_people() -> None:
    def use(found: Town) -> None:
        found.metallb.update(web=[announced("10.1.0.16-10.1.0.19", "192.0.2.0/31")])
        found.services["web"].append(Balancer("default", "x", "9", addresses=("192.0.2.1",)))

    found = {finding.code: finding for finding in town().spoiled(use).findings()}
    assert found[Code.ANNOUNCED].repair is None
    assert "Service default/x gets another address" in found[Code.ANNOUNCED].todo


@pytest.mark.parametrize("used", [False, True])
def test_nothing_of_a_cluster_is_repaired_while_a_repair_would_take_an_address_from_a_service(used: bool) -> None:
    def spoil(found: Town) -> None:
        found.metallb.update(web=[announced("10.1.0.16-10.1.0.17", "192.0.2.0/31")], shop=[])
        found.announcement.update(web=None)
        if used:
            found.services["web"].append(Balancer("default", "x", "9", addresses=("192.0.2.1",)))

    found = town().spoiled(spoil).findings()
    web = {finding.code: finding for finding in found if finding.tenants == {"team/web"}}
    assert {Code.ANNOUNCED, Code.METALLB_MISSING, Code.METALLB_DRIFT} <= set(web)
    assert {code.repair for code in web.values()} == {None if used else LookAgain("TenantCluster", Key("team", "web"))}
    assert all(("--repair" in code.todo) is not used for code in web.values())
    shop = LookAgain("TenantCluster", Key("team", "shop"))
    assert [finding.repair for finding in found if finding.tenants == {"team/shop"}] == [shop]


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({"ipAddressPools": [1, "mine"]}, "1, mine"), ({"ipAddressPools": "mine"}, "every pool"),
        ({"ipAddressPools": ["x" * 5000]}, "x" * 128), (None, "every pool"), ("rubbish", "every pool"),
    ],
)  # fmt: skip
def test_an_advertisement_that_makes_no_sense_is_told_as_one_that_is_wrong(spec: Any, names: str) -> None:
    found = the(town().spoiled(lambda it: it.announcement.update(web={**(it.announcement["web"] or {}), "spec": spec})))
    assert found.code is Code.METALLB_DRIFT
    assert found.what == f"it announces {names}, and should announce default-pool"


def test_a_paused_cluster_is_not_repaired() -> None:
    def pause(found: Town) -> None:
        found.clusters["web"]["spec"]["paused"] = True
        found.metallb.update(web=[announced("10.1.0.16/32")])

    found = the(town().spoiled(pause))
    assert found.repair is None
    assert "paused" in found.todo


def test_what_cannot_be_read_is_told_and_keeps_counters_from_being_judged() -> None:
    strange = [UnreadableObject("IPAllocation", Key(HOME, "x"), "Expected `int`")]
    spoiled = town().spoiled(lambda it: it.pools["east"]["status"].update(allocatedIPs=9), recount=False)
    found = look_once(spoiled.estate(), spoiled.sides(), NOW, strange)
    assert [finding.code for finding in found] == [Code.UNREADABLE]
    assert concerning(found, "nodes", None) == found, "it may concern any tenant"


def test_only_what_stands_both_times_is_told() -> None:
    lagging = town().spoiled(lambda it: it.pools["east"]["status"].update(allocatedIPs=9), recount=False)
    written = lagging.spoiled(lambda it: it.pools["east"]["metadata"].update(resourceVersion="8"), recount=False)
    assert standing(lagging.findings(), town().findings()) == ()
    assert standing(lagging.findings(), written.findings()) == (), "it was written in between"
    assert len(standing(lagging.findings(), lagging.findings())) == 1


def test_findings_can_be_picked_by_pool_and_by_tenant() -> None:
    both_wrong = both(labels("web-nodes", tenant="x"), lambda it: it.metallb.update(shop=[]))
    found = town().spoiled(both_wrong).findings()
    assert [finding.code for finding in concerning(found, "nodes", "team/web")] == [Code.LABELS]
    assert [finding.code for finding in concerning(found, "east", None)] == [Code.METALLB_MISSING]
    assert concerning(found, None, "team/other") == []


def test_clusters_that_come_or_go_or_have_no_pools_are_not_asked() -> None:
    found = town()
    found.clusters["web"]["status"] = {}
    found.clusters["shop"]["metadata"]["deletionTimestamp"] = "2026-02-15T10:00:00Z"
    found.clusters["sky"] = cluster("sky", providerConfigRef={"name": "cloud"})
    found.providers["cloud"] = {
        "apiVersion": "butler.butlerlabs.dev/v1alpha1",
        "kind": "ProviderConfig",
        "metadata": {"name": "cloud", "namespace": HOME},
        "spec": {"provider": "gcp", "credentialsRef": {"name": "x"}, "network": {"mode": "cloud"}},
    }
    assert tenants_to_ask(found.estate()) == ((), 2, 1)


def test_a_report_is_clean_with_notes_and_reads_as_json() -> None:
    noted = town().spoiled(add(by_hand(held("x", "east", "10.1.0.40", "10.1.0.40", "new"))))
    report = Report(tuple(noted.findings()), pools=2, allocations=5, tenants=2)
    assert report.is_clean
    said = report_json(report)
    assert said["checked"] == {"pools": 2, "allocations": 5, "tenants": 2}
    assert said["findings"][0] == {
        "severity": "note",
        "code": "IPAM-TENANT-NEVER-SEEN",
        "objects": [{"kind": "IPAllocation", "namespace": HOME, "name": "x"}],
        "what": "its addresses are kept for TenantCluster team/new, which has never been seen",
        "todo": "create the cluster, or release the addresses if you know that nothing uses them: Butler cannot tell",
        "repair": None,
    }


def test_every_code_has_a_meaning_and_a_case() -> None:
    assert set(MEANINGS) == set(Code)
    shown = {code for _, codes in CASES.values() for code in codes}
    assert set(map(str, Code)) - shown == {"IPAM-S6-COUNTERS", "IPAM-POOL-UNSEEN", "IPAM-UNREADABLE"}


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 8)), max_size=12), st.data())
def test_any_estate_without_overlaps_is_clean_and_any_overlap_is_found(
    wanted: list[tuple[int, int]], data: st.DataObject
) -> None:
    taken: list[Range] = []
    for start, size in wanted:
        new = Range((10 << 24) + (5 << 16) + 1 + start, (10 << 24) + (5 << 16) + start + size)
        if not any(new.overlaps(span) for span in taken):
            taken.append(new)
    found = Town(pools={"p": pool("p", "10.5.0.0/24")}, clusters={"web": cluster("web")}, metallb={"web": None})
    for number, each in enumerate(taken):
        ends = (address_text(each.first, Family.V4), address_text(each.last, Family.V4))
        add(held(f"a{number}", "p", *ends, kind="nodes"))(found)
    assert found.recount().findings() == []
    if taken:
        victim = data.draw(st.sampled_from(taken))
        at = address_text(data.draw(st.integers(victim.first, victim.last)), Family.V4)
        assert found.spoiled(add(held("thief", "p", at, at, kind="nodes"))).codes() == ["IPAM-S1-DUPLICATE"]
