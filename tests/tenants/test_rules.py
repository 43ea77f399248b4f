"""A checker that cannot fail proves nothing: each rule about tenants is broken here once, and must be found."""

from __future__ import annotations

from ipam.history import ALLOCATION, History, Json, Revision
from ipam.oracle import number
from tenants.rules import MACHINE, Tenant, machines_keep_their_addresses, tenant_of, wrong_tenants

UID = "5f0c9d1e-7a77-4c3f-9a51-0c2f5d8f2b10"
HOME = "web-5f0c9d1e"


def allocation(first: str, last: str, kind: str = "nodes", phase: str = "Allocated", uid: str = UID) -> Json:
    return {
        "metadata": {"labels": {"butler.butlerlabs.dev/tenant-uid": uid}},
        "spec": {"tenantClusterRef": {"name": "web"}, "type": kind},
        "status": {"phase": phase, "startAddress": first, "endAddress": last},
    }


def machine(*addresses: str) -> Json:
    return {
        "metadata": {},
        "status": {"addresses": [{"type": "InternalIP", "address": address} for address in addresses]},
    }


def told(*steps: tuple[str, str, Json | None], home: str = HOME) -> list[str]:
    """What the checker says of (kind, name, object) in this order; None: it is gone."""
    history, before = History(), dict[str, Json | None]()
    for version, (kind, name, after) in enumerate(steps, 100):
        namespace = home if kind == MACHINE else "butler-system"
        history.revisions.append(Revision(version, kind, namespace, name, name, before.get(name), after))
        before[name] = after
    return [violation.what for violation in machines_keep_their_addresses(history)]


HELD = (ALLOCATION, "web-nodes", allocation("10.0.0.1", "10.0.0.2"))
RUNS = (MACHINE, "m1", machine("10.0.0.1"))


def test_a_life_in_the_right_order_breaks_no_rule() -> None:
    assert not told(HELD, RUNS, (MACHINE, "m1", None), (ALLOCATION, "web-nodes", None))


def test_a_machine_on_an_address_that_is_not_held_is_found() -> None:
    assert told(RUNS) == [f"{HOME}/m1 runs with 10.0.0.1, held by no allocation"]


def test_a_machine_on_the_address_of_another_cluster_is_found() -> None:
    assert told(HELD, RUNS, home="shop-11111111") == ["shop-11111111/m1 runs with 10.0.0.1, held by web-nodes"]


def test_a_machine_on_a_load_balancer_address_is_found() -> None:
    balancers = (ALLOCATION, "web-lb", allocation("10.0.0.1", "10.0.0.2", "loadbalancer"))
    assert told(balancers, RUNS) == [f"{HOME}/m1 runs with 10.0.0.1, held by web-lb"]


def test_addresses_given_up_under_a_running_machine_are_found() -> None:
    released = allocation("10.0.0.1", "10.0.0.2", phase="Released")
    for end in (released, None):
        found = told(HELD, RUNS, (ALLOCATION, "web-nodes", end))
        assert found == [f"web-nodes gave up 10.0.0.1-10.0.0.2, which {HOME}/m1 uses"]


def test_two_machines_on_one_address_are_found() -> None:
    assert told(HELD, RUNS, (MACHINE, "m2", machine("10.0.0.1"))) == ["m2 and m1 both run with 10.0.0.1"]


def test_a_tenant_is_read_as_it_is() -> None:
    pool: Json = {"spec": {"addresses": ["10.0.0.8-10.0.0.9", "10.0.0.16/30"]}}
    service: Json = {"status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.8"}]}}}
    found = tenant_of(HOME, [machine("10.0.0.1")], [pool], [service, {}])
    spans = [(number("10.0.0.8"), number("10.0.0.9")), (number("10.0.0.16"), number("10.0.0.19"))]
    assert found == Tenant(HOME, [number("10.0.0.1")], spans, [number("10.0.0.8")])


def test_a_tenant_that_may_announce_more_than_it_holds_is_found() -> None:
    held = [allocation("10.0.0.1", "10.0.0.2"), allocation("10.0.0.8", "10.0.0.9", "loadbalancer")]
    fine = Tenant(HOME, [number("10.0.0.1")], [(number("10.0.0.8"), number("10.0.0.9"))], [number("10.0.0.9")])
    assert not wrong_tenants([fine], held)
    assert wrong_tenants([fine._replace(announced=[(number("10.0.0.8"), number("10.0.0.10"))])], held)
    assert wrong_tenants([fine._replace(nodes=[number("10.0.0.8")])], held)
    assert wrong_tenants([fine._replace(balancers=[number("10.0.0.1")])], held)
    assert len(wrong_tenants([fine, fine], held)) == 2
