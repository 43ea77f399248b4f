"""The checker of the storm sees what it is there to see: each rule, given a record in which it is broken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chaos.eras import Held, changed_unseen, holdings, overlapping
from chaos.judge import WORST_WAIT, Look, Patience, granted_in_sight, rest, sampled, still_lost
from ipam.history import ALLOCATION, POOL, History, Revision
from ipam.oracle import number
from tenants.rules import MACHINE, TENANT, Tenant, home_of

if TYPE_CHECKING:
    from collections.abc import Collection

TENANT_UID = "butler.butlerlabs.dev/tenant-uid"
Json = dict[str, Any]


def span(first: str, last: str = "") -> tuple[int, int]:
    return number(first), number(last or first)


ONE = Held("one-lb", "one", span("10.41.0.16", "10.41.0.17"))
TWO = Held("two-lb", "two", span("10.41.0.18", "10.41.0.19"))


def told(violations: Any) -> list[str]:
    return [violation.rule for violation in violations]


class TestSamples:
    def test_an_address_that_another_tenant_holds_is_seen_in_use(self) -> None:
        look = Look("one", "one", {"web": [number("10.41.0.18")]}, [])
        held = {"a": ONE, "b": TWO}
        assert told(sampled([look], held, held, set())) == ["S4"]

    def test_a_range_that_changes_hands_during_the_look_proves_nothing(self) -> None:
        look = Look("one", "one", {"web": [number("10.41.0.18")]}, [])
        assert not list(sampled([look], {"a": ONE}, {"a": ONE, "b": TWO}, set()))

    def test_a_published_range_that_its_tenant_never_held_is_seen(self) -> None:
        look = Look("one", "one", {}, [span("10.41.0.16", "10.41.0.17"), span("10.41.0.30")])
        assert told(sampled([look], {"a": ONE}, {"a": ONE}, set())) == ["S5"]

    def test_what_a_restore_took_is_not_held_against_butler(self) -> None:
        look = Look("one", "one", {}, [span("10.41.0.30")])
        assert not list(sampled([look], {"a": ONE}, {"a": ONE}, {("one", number("10.41.0.30"))}))

    def test_a_holder_that_came_with_the_snapshot_is_not_held_against_butler(self) -> None:
        look = Look("one", "one", {"web": [number("10.41.0.18")]}, [])
        held, lost = {"a": ONE, "b": TWO}, {("one", number("10.41.0.18"))}
        assert not list(sampled([look], held, held, lost))
        assert told(sampled([look], held, held, {("one", number("10.41.0.19"))})) == ["S4"]
        assert told(sampled([look], held, held, {("three", number("10.41.0.18"))})) == ["S4"]

    def test_what_a_restore_took_is_granted_to_another_only_before_its_service_could_be_seen(self) -> None:
        look = Look("one", "one", {"web": [number("10.41.0.18")]}, [])
        held, lost = {"uid-a": ONE, "uid-b": TWO}, {("one", number("10.41.0.18"))}
        record = history(
            (ALLOCATION, an_allocation("a", "one", "loadbalancer", ONE.span)),
            (ALLOCATION, an_allocation("b", "two", "loadbalancer", None)),
            (ALLOCATION, an_allocation("b", "two", "loadbalancer", TWO.span)),
            seconds=(1.0, 2.0, 30.0),
        )
        late = granted_in_sight(record, [(0.0, 15.0)])
        assert late == {"uid-b"}
        assert told(sampled([look], held, held, lost, late)) == ["S4"]
        assert not granted_in_sight(record, [(0.0, 15.0), (29.0, 31.0)])

    def test_a_tenant_that_a_restore_took_away_keeps_its_excuse_until_it_is_back(self) -> None:
        lost = {("one", 1), ("two", 2)}
        assert still_lost(lost, ["one"]) == {("two", 2)}
        assert not still_lost(lost, ["one", "two"])


class TestStates:
    def test_two_holders_of_one_address_are_seen(self) -> None:
        assert told(overlapping({"a": ONE, "b": Held("x", "x", span("10.41.0.17", "10.41.0.18"))})) == ["S1"]
        assert not overlapping({"a": ONE, "b": TWO})

    def test_a_range_that_moved_between_two_looks_is_seen(self) -> None:
        assert told(changed_unseen({"a": ONE}, {"a": Held("one-lb", "one", TWO.span)})) == ["S3"]
        assert not changed_unseen({"a": ONE}, {"a": ONE, "b": TWO})

    def test_only_what_is_allocated_is_held(self) -> None:
        objects = [an_allocation("a", "one", "loadbalancer", ONE.span), an_allocation("b", "one", "nodes", None)]
        assert set(holdings(objects)) == {"uid-a"}


# Records.


def a_pool(name: str, network: str) -> Json:
    spec = {"cidr": f"{network}.0/24", "tenantAllocation": {"start": f"{network}.16", "end": f"{network}.19"}}
    status = {"claimedCIDR": f"{network}.0/24"}
    meta = {"name": name, "namespace": "home", "uid": f"uid-{name}", "resourceVersion": "1"}
    return {"metadata": meta, "spec": spec, "status": status}


def an_allocation(name: str, owner: str, kind: str, held: tuple[int, int] | None, pool: str = "pool") -> Json:
    meta: Json = {"name": name, "namespace": "home", "uid": f"uid-{name}", "labels": {TENANT_UID: owner}}
    meta["finalizers"] = ["butler.butlerlabs.dev/ipallocation"]
    spec = {"poolRef": {"name": pool}, "tenantClusterRef": {"name": owner}, "type": kind, "count": 2}
    status: Json = {"phase": "Pending"}
    if held is not None:
        addresses = [
            f"10.{(item >> 16) & 255}.{(item >> 8) & 255}.{item & 255}" for item in range(held[0], held[1] + 1)
        ]
        status = {"phase": "Allocated", "startAddress": addresses[0], "endAddress": addresses[-1]}
        status |= {"addresses": addresses, "allocatedCount": len(addresses), "cidr": None}
    return {"metadata": meta, "spec": spec, "status": status}


def a_cluster(name: str, phase: str, **conditions: str) -> Json:
    meta = {"name": name, "namespace": "team", "uid": name}
    told = [{"type": kind, "status": status} for kind, status in conditions.items()]
    return {"metadata": meta, "spec": {}, "status": {"phase": phase, "conditions": told}}


def a_machine(owner: str, address: str) -> Json:
    meta = {"name": f"{owner}-m", "namespace": home_of(owner, owner), "uid": f"uid-{owner}-m"}
    return {"metadata": meta, "status": {"addresses": [{"type": "InternalIP", "address": address}]}}


def history(*steps: tuple[str, Json], seconds: tuple[float, ...] = ()) -> History:
    found, known = [], dict[str, Json]()
    for version, (kind, obj) in enumerate(steps, start=1):
        meta = obj["metadata"]
        when = seconds[version - 1] if seconds else float(version)
        before = known.get(meta["uid"])
        found.append(Revision(version, kind, meta["namespace"], meta["name"], meta["uid"], before, obj, when))
        known[meta["uid"]] = obj
    return History(found, 0)


def rules_of_rest(
    *steps: tuple[str, Json],
    services: dict[str, list[Json]] | None = None,
    shown: Collection[tuple[str, int]] = (),
) -> list[str]:
    found = rest(history(*steps), [], services or {}, shown)
    return [violation.rule for violation in found if violation.rule != "S6"]  # these records have no counters


class TestRest:
    def test_a_tenant_with_one_of_two_blocks_is_seen(self) -> None:
        half = (ALLOCATION, an_allocation("a", "one", "loadbalancer", ONE.span))
        assert rules_of_rest((TENANT, a_cluster("one", "Pending")), half) == ["all or nothing"]
        other = (ALLOCATION, an_allocation("n", "one", "nodes", span("10.40.0.16", "10.40.0.17")))
        assert not rules_of_rest((TENANT, a_cluster("one", "Pending")), half, other)

    def test_an_allocation_whose_tenant_is_gone_is_seen(self) -> None:
        assert rules_of_rest((ALLOCATION, an_allocation("a", "gone", "nodes", ONE.span))) == ["L2"]

    def test_a_network_that_is_called_ready_while_a_machine_is_outside_is_seen(self) -> None:
        blocks = [
            (ALLOCATION, an_allocation("a", "one", "loadbalancer", ONE.span)),
            (ALLOCATION, an_allocation("n", "one", "nodes", span("10.40.0.16", "10.40.0.17"))),
        ]
        cluster, machine = a_cluster("one", "Ready", NetworkReady="True"), a_machine("one", "10.40.0.99")
        assert rules_of_rest(*blocks, (TENANT, cluster), (MACHINE, machine)) == ["conditions"]
        honest = a_cluster("one", "Ready", NetworkReady="False")
        assert not rules_of_rest(*blocks, (TENANT, honest), (MACHINE, machine))
        inside = a_machine("one", "10.40.0.16")
        assert not rules_of_rest(*blocks, (TENANT, cluster), (MACHINE, inside))

    def test_load_balancers_that_are_called_ready_while_a_service_waits_are_seen(self) -> None:
        service = {"metadata": {"name": "web"}, "spec": {"type": "LoadBalancer"}, "status": {}}
        waiting = {home_of("one", "one"): [service]}
        cluster = (TENANT, a_cluster("one", "Ready", LoadBalancersReady="True"))
        assert rules_of_rest(cluster, services=waiting) == ["conditions"]
        honest = (TENANT, a_cluster("one", "Ready", LoadBalancersReady="False"))
        assert not rules_of_rest(honest, services=waiting)

    def test_a_tenant_that_waits_although_both_blocks_fit_is_seen(self) -> None:
        pools = ((POOL, a_pool("pool", "10.40.0")), (POOL, a_pool("balancers", "10.41.0")))
        asked = (
            (ALLOCATION, an_allocation("n", "one", "nodes", None)),
            (ALLOCATION, an_allocation("a", "one", "loadbalancer", None, "balancers")),
        )
        assert rules_of_rest(*pools, *asked, (TENANT, a_cluster("one", "Pending"))) == ["L1"]
        full = (ALLOCATION, an_allocation("x", "two", "loadbalancer", span("10.41.0.16", "10.41.0.19"), "balancers"))
        both = (ALLOCATION, an_allocation("y", "two", "nodes", span("10.40.0.30", "10.40.0.31")))
        other = (TENANT, a_cluster("two", "Pending"))
        assert not rules_of_rest(*pools, full, both, other, *asked, (TENANT, a_cluster("one", "Pending")))

    def test_a_pool_may_keep_back_what_a_service_really_showed_and_nothing_else(self) -> None:
        nodes, balancers = a_pool("pool", "10.40.0"), a_pool("balancers", "10.41.0")
        balancers["status"]["foreignAddresses"] = [
            {"address": f"10.41.0.{last}", "tenantClusterRef": {"name": "two"}} for last in (16, 18)
        ]
        steps = (
            (POOL, nodes),
            (POOL, balancers),
            (ALLOCATION, an_allocation("n", "one", "nodes", None)),
            (ALLOCATION, an_allocation("a", "one", "loadbalancer", None, "balancers")),
            (TENANT, a_cluster("one", "Pending")),
        )
        shown = [("two", number("10.41.0.16")), ("two", number("10.41.0.18"))]
        assert not rules_of_rest(*steps, shown=shown)
        assert rules_of_rest(*steps, shown=shown[:1]) == ["L1"]

    def test_a_tenant_that_may_announce_what_it_does_not_hold_is_seen(self) -> None:
        record = history(
            (TENANT, a_cluster("one", "Ready")), (ALLOCATION, an_allocation("b", "two", "nodes", TWO.span))
        )
        tenant = Tenant(home_of("one", "one"), [], [TWO.span], [number("10.41.0.18")])
        assert {"S4", "S5"} <= {violation.rule for violation in rest(record, [tenant], {})}


class TestPatience:
    def story(self, granted_at: float) -> History:
        return history(
            (POOL, a_pool("plain", "10.42.0")),
            (ALLOCATION, an_allocation("a", "", "nodes", None, "plain")),
            (ALLOCATION, an_allocation("a", "", "nodes", span("10.42.0.16", "10.42.0.17"), "plain")),
            seconds=(0.0, 1.0, granted_at),
        )

    def test_the_wait_for_room_that_is_there_is_measured(self) -> None:
        patience = Patience()
        patience.read(self.story(1.5), "plain", [])
        assert patience.waited == [0.5]
        assert not patience.violations

    def test_a_wait_that_no_outage_excuses_is_a_fault(self) -> None:
        patience = Patience()
        patience.read(self.story(WORST_WAIT + 6), "plain", [])
        assert told(patience.violations) == ["L1"]
        excused = Patience()
        excused.read(self.story(WORST_WAIT + 6), "plain", [(2.0, 12.0)])
        assert not excused.violations
