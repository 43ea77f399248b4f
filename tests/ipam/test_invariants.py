"""A checker that cannot fail proves nothing: each rule is broken here once, and must be found and told."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ipam import oracle
from ipam.history import ALLOCATION, CLAIMS, POOL, Gap, History, Json, Revision, _Watched
from ipam.invariants import ALLOCATION_FINALIZER, at_rest, check, insist

SPEC: Json = {
    "cidr": "10.40.0.0/24",
    "reserved": [{"cidr": "10.40.0.16/30"}],
    "tenantAllocation": {"start": "10.40.0.8", "end": "10.40.0.39", "defaults": {"nodesPerTenant": 4}},
}


class Tale:
    """A history written by hand, a revision at a time; counters are right unless a test spoils them."""

    def __init__(self) -> None:
        self.history = History()
        self.version = 100
        self.objects: dict[tuple[str, str], Json] = {}

    def put(self, kind: str, name: str, obj: Json) -> None:
        self.version += 1
        before = self.objects.get((kind, name))
        obj = copy.deepcopy(obj)
        obj["metadata"] |= {"name": name, "resourceVersion": str(self.version)}
        self.objects[kind, name] = obj
        self._note(kind, name, before, obj)

    def remove(self, kind: str, name: str) -> None:
        self.version += 1
        self._note(kind, name, self.objects.pop((kind, name)), None)

    def _note(self, kind: str, name: str, before: Json | None, after: Json | None) -> None:
        uid = (after or before or {})["metadata"]["uid"]
        revision = Revision(self.version, kind, "ns", name, uid, before, after, float(self.version))
        self.history.revisions.append(revision)

    # What the engine does.

    def claims(self, **data: str) -> None:
        data = {f"ns.{key}": f"{cidr} u-{key} 1" for key, cidr in data.items()}
        self.put(CLAIMS, "claims", {"metadata": {"uid": "u-claims"}, "data": data})

    def pool(self, name: str = "p", spec: Json = SPEC) -> None:
        self.put(POOL, name, {"metadata": {"uid": f"u-{name}", "namespace": "ns"}, "spec": spec})

    def status(self, name: str = "p", /, recounted: bool = True, **fields: Any) -> None:
        pool = copy.deepcopy(self.objects[POOL, name])
        pool["status"] = {**pool.get("status", {}), **fields}
        if recounted:
            held = {i["uid"]: (i["startAddress"], i["endAddress"]) for i in pool["status"].get("intents") or ()}
            for (kind, _), obj in self.objects.items():
                if kind == ALLOCATION and obj["status"].get("phase") == "Allocated":
                    held[obj["metadata"]["uid"]] = (obj["status"]["startAddress"], obj["status"]["endAddress"])
            spans = [(oracle.number(first), oracle.number(last)) for first, last in held.values()]
            rules = oracle.rules_of(pool["spec"])
            assert rules is not None
            pool["status"] |= {**oracle.recount(rules, spans), "allocationCount": len(spans)}
            pool["status"] |= {key: value for key, value in fields.items() if key in pool["status"]}
        self.put(POOL, name, pool)

    def intent(self, *grants: tuple[str, str, str], pool: str = "p", **fields: Any) -> None:
        """Reserve, in place of the intents that stood."""
        intents = [{"uid": f"u-{n}", "name": n, "startAddress": a, "endAddress": b} for n, a, b in grants]
        self.status(pool, intents=intents, **fields)

    def request(self, name: str, pool: str = "p", finalizer: bool = True, **spec: Any) -> None:
        meta = {"uid": f"u-{name}", "namespace": "ns", "finalizers": [ALLOCATION_FINALIZER] if finalizer else []}
        wanted = {"poolRef": {"name": pool}, "type": "nodes", **spec}
        self.put(ALLOCATION, name, {"metadata": meta, "spec": wanted, "status": {"phase": "Pending"}})

    def write(self, name: str, **status: Any) -> None:
        allocation = copy.deepcopy(self.objects[ALLOCATION, name])
        allocation["status"] |= status
        self.put(ALLOCATION, name, allocation)

    def grant(self, name: str, first: str, last: str, **spoiled: Any) -> None:
        span = oracle.number(first), oracle.number(last)
        self.write(
            name,
            **{
                "phase": "Allocated",
                "startAddress": first,
                "endAddress": last,
                "addresses": [oracle.text((n, n)) for n in range(span[0], span[1] + 1)],
                "allocatedCount": span[1] - span[0] + 1,
                "cidr": oracle.cidr_of(span),
            }
            | spoiled,
        )

    def now(self) -> str:
        return str(self.version)


A = ("a", "10.40.0.8", "10.40.0.11")
B = ("b", "10.40.0.12", "10.40.0.15")


@pytest.fixture
def tale() -> Tale:
    """A pool with its claim, and two requests."""
    tale = Tale()
    tale.claims(p="10.40.0.0/24")
    tale.pool()
    tale.status(claimedCIDR="10.40.0.0/24", recounted=True)
    tale.request("a")
    tale.request("b")
    return tale


def found(tale: Tale) -> set[str]:
    return {violation.rule for violation in check(tale.history)}


def whole_life(tale: Tale) -> None:
    tale.intent(A, B, allocationsSeen=tale.now())
    tale.grant(*A)
    tale.grant(*B)
    tale.status(intents=[], allocationsSeen=tale.now())
    tale.write("a", phase="Released")
    tale.status(allocationsSeen=tale.now())
    tale.remove(ALLOCATION, "a")


def test_a_life_by_the_rules_passes(tale: Tale) -> None:
    whole_life(tale)
    assert not check(tale.history)
    assert not at_rest(tale.history, orphans=["u-a"])


def test_s1_two_allocations_on_one_address_are_found(tale: Tale) -> None:
    tale.intent(A)
    tale.grant(*A)
    tale.intent(("b", "10.40.0.11", "10.40.0.14"), allocationsSeen=tale.now(), recounted=False)
    tale.grant("b", "10.40.0.11", "10.40.0.14")
    assert found(tale) >= {"S1"}
    story = "\n".join(violation.told() for violation in check(tale.history))
    assert "a holds 10.40.0.8-10.40.0.11" in story


def test_s1_across_pools(tale: Tale) -> None:
    other = {"cidr": "10.40.0.0/25"}
    tale.pool("q", other)
    tale.status("q", claimedCIDR="10.40.0.0/25")
    tale.request("c", pool="q", count=4)
    tale.intent(A)
    tale.intent(("c", "10.40.0.10", "10.40.0.13"), pool="q")
    assert found(tale) >= {"S1", "claims"}


@pytest.mark.parametrize(
    "span",
    [("10.40.0.40", "10.40.0.43"), ("10.40.0.14", "10.40.0.17"), ("10.40.0.5", "10.40.0.8")],
    ids=["after the window", "into the reserved", "before the window"],
)
def test_s2_a_promise_that_the_spec_forbids_is_found(tale: Tale, span: tuple[str, str]) -> None:
    tale.intent(("a", *span))
    assert found(tale) == {"S2"}


@pytest.mark.parametrize(("first", "last"), [("10.50.0.0", "10.50.0.3"), ("10.50.0.12", "10.50.0.15")])
def test_s2_network_and_broadcast_address_of_a_pool_without_windows(first: str, last: str) -> None:
    tale = Tale()
    tale.claims(p="10.50.0.0/28")
    tale.pool(spec={"cidr": "10.50.0.0/28"})
    tale.status(claimedCIDR="10.50.0.0/28")
    tale.request("a", count=4)
    tale.intent(("a", first, last))
    assert found(tale) == {"S2"}


def test_s2_the_spec_of_that_very_revision_counts(tale: Tale) -> None:
    pool = copy.deepcopy(tale.objects[POOL, "p"])
    pool["spec"]["reserved"].append({"cidr": "10.40.0.8/30"})
    tale.put(POOL, "p", pool)
    tale.intent(A)
    assert found(tale) == {"S2"}


def test_s2_a_grant_without_a_promise_is_found(tale: Tale) -> None:
    tale.grant(*A)
    assert found(tale) == {"S2"}


def test_s2_a_grant_after_its_promise_was_dropped_is_found(tale: Tale) -> None:
    tale.intent(A)
    tale.intent()
    tale.grant(*A)
    assert found(tale) == {"intents", "S2"}


def test_s2_another_range_or_size_than_asked_for_is_found(tale: Tale) -> None:
    tale.request("c", pinnedRange={"startAddress": "10.40.0.30", "endAddress": "10.40.0.31"})
    tale.intent(("c", "10.40.0.8", "10.40.0.9"))
    tale.intent(("c", "10.40.0.8", "10.40.0.9"), ("a", "10.40.0.10", "10.40.0.14"))
    assert [violation.rule for violation in check(tale.history)] == ["S2", "S2"]


@pytest.mark.parametrize(
    "spoiled",
    [
        {"addresses": ["10.40.0.8"]},
        {"cidr": None},
        {"cidr": "10.40.0.8/29"},
        {"allocatedCount": 5},
        {"startAddress": None},
    ],
)
def test_s3_a_status_that_contradicts_itself_is_found(tale: Tale, spoiled: Json) -> None:
    tale.intent(A)
    tale.grant(*A, **spoiled)
    assert "S3" in found(tale)


@pytest.mark.parametrize("phase", ["Pending", "Failed"])
def test_s3_no_way_back_from_allocated(tale: Tale, phase: str) -> None:
    tale.intent(A)
    tale.grant(*A)
    tale.write("a", phase=phase)
    assert "S3" in found(tale)


@pytest.mark.parametrize("phase", ["Pending", "Failed", "Allocated"])
def test_s3_no_way_back_from_released(tale: Tale, phase: str) -> None:
    whole_life(tale)
    tale.write("b", phase="Released")
    tale.write("b", phase=phase)
    assert "S3" in found(tale)


def test_s3_a_range_that_moves_is_found(tale: Tale) -> None:
    tale.intent(A)
    tale.grant(*A)
    tale.grant("a", "10.40.0.12", "10.40.0.15")
    assert "S3" in found(tale)


def test_s6_counters_that_fit_no_state_are_found(tale: Tale) -> None:
    whole_life(tale)
    tale.status(allocatedIPs=5, availableIPs=23)
    assert found(tale) == {"S6"}
    assert not check(tale.history, views_in_order=False)


@pytest.mark.parametrize("name", ["totalIPs", "largestFreeBlock", "fragmentationPercent", "allocationCount"])
def test_s6_every_counter_is_recounted(tale: Tale, name: str) -> None:
    whole_life(tale)
    wrong: dict[str, Any] = {name: 7}
    tale.status(**wrong)
    assert found(tale) == {"S6"}


def test_s6_counters_may_lag_behind_but_not_behind_what_they_saw(tale: Tale) -> None:
    tale.intent(A)
    tale.grant(*A)
    tale.status(intents=[], allocationsSeen=tale.now())
    counters = copy.deepcopy(tale.objects[POOL, "p"]["status"])
    seen = tale.now()
    tale.write("a", phase="Released")
    tale.status(recounted=False, **{**counters, "allocationsSeen": seen})
    assert not check(tale.history), "decided just before the release became known"
    tale.status(recounted=False, **{**counters, "allocationsSeen": tale.now()})
    assert found(tale) == {"S6"}


def test_s6_at_rest_is_exact(tale: Tale) -> None:
    whole_life(tale)
    tale.write("b", phase="Released")
    assert not check(tale.history)
    assert {violation.rule for violation in at_rest(tale.history)} == {"S6"}


def test_an_intent_that_moves_is_found(tale: Tale) -> None:
    tale.intent(A)
    tale.intent(("a", "10.40.0.12", "10.40.0.15"))
    assert found(tale) == {"intents"}


def test_an_intent_dropped_too_early_is_found(tale: Tale) -> None:
    tale.intent(A)
    tale.intent()
    assert found(tale) == {"intents"}


def test_a_drop_that_a_stale_reader_would_not_notice_is_found(tale: Tale) -> None:
    tale.intent(A, allocationsSeen="90")
    tale.grant(*A)
    tale.intent(allocationsSeen="90")
    assert found(tale) == {"allocationsSeen"}


def test_a_view_that_goes_back_is_found(tale: Tale) -> None:
    tale.status(allocationsSeen="90")
    tale.status(allocationsSeen="89")
    assert found(tale) == {"allocationsSeen"}


def test_a_grant_without_finalizer_is_found(tale: Tale) -> None:
    tale.request("c", finalizer=False)
    tale.intent(("c", "10.40.0.8", "10.40.0.11"))
    assert found(tale) == {"finalizer"}
    tale.grant("c", "10.40.0.8", "10.40.0.11")
    assert [violation.rule for violation in check(tale.history)] == ["finalizer", "finalizer"]


def test_an_allocation_that_vanishes_is_found(tale: Tale) -> None:
    tale.intent(A)
    tale.grant(*A)
    tale.remove(ALLOCATION, "a")
    assert found(tale) == {"release"}


def test_a_released_one_that_goes_before_its_pool_knows_is_found(tale: Tale) -> None:
    tale.intent(A, allocationsSeen=tale.now())
    tale.grant(*A)
    tale.write("a", phase="Released")
    tale.remove(ALLOCATION, "a")
    assert found(tale) == {"release"}


def test_a_released_one_may_go_when_there_was_no_pool_to_take_note(tale: Tale) -> None:
    tale.request("c", pool="q")
    tale.write("c", phase="Released")
    tale.pool("q", {"cidr": "10.50.0.0/24"})
    tale.remove(ALLOCATION, "c")
    assert not found(tale)


def test_a_promise_without_the_claim_is_found() -> None:
    tale = Tale()
    tale.pool()
    tale.request("a")
    tale.intent(A)
    assert found(tale) == {"claims"}


def test_a_promise_beyond_the_claim_is_found(tale: Tale) -> None:
    pool = copy.deepcopy(tale.objects[POOL, "p"])
    pool["spec"]["cidr"] = "10.40.0.0/23"
    tale.put(POOL, "p", pool)
    tale.intent(A)
    assert found(tale) == {"claims"}


def test_overlapping_claims_are_found(tale: Tale) -> None:
    tale.claims(p="10.40.0.0/24", q="10.40.0.128/25")
    assert found(tale) == {"claims"}


def test_a_claim_that_is_not_on_record_is_found(tale: Tale) -> None:
    tale.pool("q", {"cidr": "10.41.0.0/24"})
    tale.status("q", claimedCIDR="10.41.0.0/24", recounted=False)
    assert found(tale) == {"claims"}


def test_a_claim_given_up_under_live_allocations_is_found(tale: Tale) -> None:
    whole_life(tale)
    tale.status(claimedCIDR=None)
    tale.claims(p="10.40.0.32/27")
    assert found(tale) == {"claims"}


@pytest.mark.parametrize("claim", [None, "10.40.0.0/29"])
def test_a_pool_that_gives_up_what_is_lived_in_is_found(tale: Tale, claim: str | None) -> None:
    whole_life(tale)
    tale.status(claimedCIDR=claim)
    assert found(tale) == {"claims"}


def test_a_pool_that_goes_while_in_use_is_found(tale: Tale) -> None:
    whole_life(tale)
    tale.remove(POOL, "p")
    assert found(tale) == {"pool deletion"}


def test_a_pool_that_goes_while_it_promises_is_found(tale: Tale) -> None:
    tale.intent(A)
    tale.remove(POOL, "p")
    assert found(tale) == {"pool deletion"}


def test_a_promise_by_a_pool_that_goes_is_found(tale: Tale) -> None:
    pool = copy.deepcopy(tale.objects[POOL, "p"])
    pool["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    tale.put(POOL, "p", pool)
    tale.intent(A)
    assert found(tale) == {"pool deletion"}


def test_l1_a_request_that_fits_and_waits_is_found(tale: Tale) -> None:
    whole_life(tale)
    tale.request("c", count=8)
    assert {violation.rule for violation in at_rest(tale.history)} == {"L1"}
    assert not check(tale.history)


@pytest.mark.parametrize(
    "spec", [{"count": 25}, {"pinnedRange": {"startAddress": "10.40.0.12", "endAddress": "10.40.0.12"}}]
)
def test_l1_a_request_that_does_not_fit_may_wait(tale: Tale, spec: Json) -> None:
    whole_life(tale)
    tale.request("c", **spec)
    assert not at_rest(tale.history)


def test_l2_an_orphan_that_is_kept_is_found(tale: Tale) -> None:
    whole_life(tale)
    assert {violation.rule for violation in at_rest(tale.history, orphans=["u-b"])} == {"L2"}


def test_what_stood_before_the_record_is_given(tale: Tale) -> None:
    whole_life(tale)
    latest = {}
    for revision in tale.history.in_order():
        latest[revision.uid] = Revision(
            revision.version, revision.kind, "ns", revision.name, revision.uid, None, revision.after
        )
    begun = [revision for revision in latest.values() if revision.after is not None]
    assert not check(History(begun, began=tale.version))


def test_a_violation_is_told_with_times_and_writers(tale: Tale) -> None:
    tale.grant(*A)
    with pytest.raises(AssertionError) as caught:
        insist(check(tale.history), tale.history, "seed 7: ")
    told = str(caught.value)
    assert told.startswith("seed 7: 1 broken rules")
    assert "Pending -> Allocated 10.40.0.8-10.40.0.11" in told
    assert "by an unknown writer" in told
    assert len(told.splitlines()) < 12, "a story, not a dump"


@pytest.mark.parametrize(
    ("event", "meta", "why"),
    [
        ("MODIFIED", {"name": "b", "uid": "2", "resourceVersion": "11"}, "unknown"),
        ("DELETED", {"name": "b", "uid": "2", "resourceVersion": "11"}, "unknown"),
        ("ADDED", {"name": "a", "uid": "1", "resourceVersion": "11"}, "there already"),
        ("MODIFIED", {"name": "a", "uid": "9", "resourceVersion": "11"}, "went unseen"),
        ("MODIFIED", {"name": "a", "uid": "1", "resourceVersion": "9"}, "stepped back"),
        ("MODIFIED", {"name": "a", "uid": "1", "resourceVersion": "11", "generation": 4}, "skipped"),
    ],
)
def test_a_witness_that_missed_something_says_so(event: str, meta: Json, why: str) -> None:
    known = {"metadata": {"name": "a", "uid": "1", "resourceVersion": "10", "generation": 2}}
    watched = _Watched(POOL, "", position=10, live={("", "a"): known})
    with pytest.raises(Gap, match=why):
        watched.take(event, {"metadata": meta})


# Addresses that Services show although Butler did not grant them.


@pytest.mark.parametrize("still", [True, False])
def test_an_address_that_the_pool_says_it_withholds_is_promised(tale: Tale, still: bool) -> None:
    tale.request("c", count=4)
    shown = [{"address": "10.40.0.21", "tenantClusterRef": {"namespace": "team-a", "name": "web"}}]
    tale.status("p", recounted=False, foreignAddresses=shown)
    tale.intent(("c", "10.40.0.20", "10.40.0.23"), foreignAddresses=shown if still else [])
    assert ("foreign" in {violation.rule for violation in check(tale.history)}) is still
