"""Objects that come back from a backup as Velero brings them: no status, new UIDs, no owners, no finalizers.

A restore into another cluster is played as one into another namespace, where nothing is left of what there was.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ipam_operator import ALLOCATIONS, POOLS, Desk, RunningOperator, fresh_desk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane

Json = dict[str, Any]
GRANTED = "butler.butlerlabs.dev/granted"
TENANT_UID = "butler.butlerlabs.dev/tenant-uid"
FORCE = "butler.butlerlabs.dev/force-delete"
API = "butler.butlerlabs.dev/v1alpha1"
QUICK: Json = {"note_after": timedelta(), "sweep_every": 0.2, "sighting_gap": 0.3}


@pytest.fixture
def before(ready_plane: ControlPlane) -> Iterator[Desk]:
    with fresh_desk(ready_plane) as desk:
        yield desk


@pytest.fixture
def after(ready_plane: ControlPlane) -> Iterator[Desk]:
    with fresh_desk(ready_plane) as desk:
        yield desk


def saved(desk: Desk, plural: str, name: str) -> Json:
    """An object as a backup has it."""
    found = desk.get(plural, name)
    assert found is not None
    meta = found["metadata"]
    kept = {key: meta[key] for key in ("name", "labels", "annotations") if key in meta}
    return {"apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": kept, "spec": found["spec"]}


def recorded(desk: Desk, name: str) -> str:
    """Waits for the record of a grant; the range in it."""

    def look() -> str | None:
        found = desk.get(ALLOCATIONS, name)
        assert found is not None
        text = found["metadata"].get("annotations", {}).get(GRANTED, "")
        return text.split(" ")[0] if text.endswith(found["metadata"]["uid"]) else None

    return str(desk.until(look, f"the grant of {name} is in its metadata"))


@pytest.fixture
def backup(before: Desk) -> dict[str, Json]:
    """A pool with three allocations, of which the one in the middle is not where it would be granted now."""
    # The sweep for orphans is off meanwhile: the tenant of `web` is not there either.
    with RunningOperator(before.control_plane, before.namespace, **QUICK | {"sweep_every": 3600.0}):
        before.pool("pool", "10.40.0.0/28", "10.40.0.0-10.40.0.15")
        before.ask("first", 2)
        before.granted("first")
        before.ask("web", 4, labels={TENANT_UID: "a-tenant-of-that-life"})
        before.ask("pinned", pinned="10.40.0.12-10.40.0.13")
        held = {name: before.granted(name) for name in ("web", "pinned")}
        before.delete(ALLOCATIONS, "first")
        before.gone(ALLOCATIONS, "first")
        for name, range_ in held.items():
            assert recorded(before, name) == range_
        assert held == {"web": "10.40.0.2-10.40.0.5", "pinned": "10.40.0.12-10.40.0.13"}
        return {
            "pool": saved(before, POOLS, "pool"),
            **{name: saved(before, ALLOCATIONS, name) for name in held},
        }


@pytest.mark.parametrize("order", ["pool first", "allocations first"])
def test_allocations_come_back_with_the_addresses_that_they_had(
    after: Desk, backup: dict[str, Json], order: str
) -> None:
    with RunningOperator(after.control_plane, after.namespace, **QUICK):
        objects = [(POOLS, backup["pool"]), (ALLOCATIONS, backup["web"]), (ALLOCATIONS, backup["pinned"])]
        for plural, obj in objects if order == "pool first" else reversed(objects):
            after.create(plural, obj)
        after.ask("new", 8)  # nothing but what the others had would be long enough
        assert after.granted("web") == "10.40.0.2-10.40.0.5"
        assert after.granted("pinned") == "10.40.0.12-10.40.0.13"
        after.failed("new", "PoolFragmented")
        # No tenant of any name is there: that is no reason to take anything from them, however often it is looked.
        after.ask("later", 2)
        after.granted("later")
        after.delete(ALLOCATIONS, "later")
        after.gone(ALLOCATIONS, "later")
        assert after.granted("web") == "10.40.0.2-10.40.0.5"


def test_one_that_comes_too_late_waits_for_what_it_had_and_for_nothing_else(
    after: Desk, backup: dict[str, Json]
) -> None:
    with RunningOperator(after.control_plane, after.namespace, **QUICK):
        after.create(POOLS, backup["pool"])
        after.ask("new", 3)
        assert after.granted("new") == "10.40.0.0-10.40.0.2"
        after.create(ALLOCATIONS, backup["web"])
        assert "new" in after.failed("web", "PinnedRangeConflict")
        after.ask("other", 6)
        assert after.granted("other") == "10.40.0.6-10.40.0.11", "what it had and is free is kept for it"
        after.delete(ALLOCATIONS, "new")
        assert after.granted("web") == "10.40.0.2-10.40.0.5"


def test_what_it_had_is_kept_for_it_though_its_pool_has_another_name_now(after: Desk, backup: dict[str, Json]) -> None:
    """A request for a pool that does not exist cannot be granted; machines may use what it had all the same."""
    with RunningOperator(after.control_plane, after.namespace, **QUICK):
        after.pool("renamed", "10.40.0.0/28", "10.40.0.0-10.40.0.15")
        after.create(ALLOCATIONS, backup["web"])
        after.failed("web", "PoolNotFound")
        after.ask("new", 4, of="renamed")
        assert after.granted("new") == "10.40.0.6-10.40.0.9"
        after.ask("rest", 8, of="renamed")
        assert "web" not in after.failed("rest", "PoolFragmented")
        after.ask("same", pinned="10.40.0.2-10.40.0.3", of="renamed")
        assert "web" in after.failed("same", "PinnedRangeConflict")
        # Who says so, by deleting it, gets the space at once.
        after.delete(ALLOCATIONS, "web")
        assert after.granted("same") == "10.40.0.2-10.40.0.3"


def test_a_record_that_a_person_edited_frees_and_grants_nothing(after: Desk, backup: dict[str, Json]) -> None:
    with RunningOperator(after.control_plane, after.namespace, **QUICK):
        after.create(POOLS, backup["pool"])
        after.ask("own", 4)
        held = after.granted("own")
        assert recorded(after, "own") == held
        uid = (after.get(ALLOCATIONS, "own") or {})["metadata"]["uid"]
        for text in (f"10.40.0.8-10.40.0.15 {uid}", None):
            after.edit(ALLOCATIONS, "own", {"metadata": {"annotations": {GRANTED: text}}})
            after.until(lambda: recorded(after, "own") == held, "the record says what is held")
        after.edit(ALLOCATIONS, "own", {"metadata": {"annotations": {GRANTED: "10.40.0.8-10.40.0.15 another"}}})
        after.ask("rest", 12)
        assert after.granted("rest") == "10.40.0.4-10.40.0.15"
        assert after.granted("own") == held
        web = backup["web"] | {"metadata": {"name": "web", "annotations": {GRANTED: "10.40.0.0-10.40.0.15 another"}}}
        after.create(ALLOCATIONS, web)
        assert "spec.count is 4" in after.failed("web", "InvalidRequest")


def test_what_was_released_does_not_come_back_to_life(before: Desk) -> None:
    with RunningOperator(before.control_plane, before.namespace, **QUICK):
        before.pool("pool", "10.40.0.0/28")
        before.ask("gone", 2)
        before.granted("gone")
        recorded(before, "gone")
        status = before.status(ALLOCATIONS, "gone") | {"phase": "Released"}
        before.edit(ALLOCATIONS, "gone", {"status": status}, "status")
        uid = (before.get(ALLOCATIONS, "gone") or {})["metadata"]["uid"]
        before.until(
            lambda: (before.get(ALLOCATIONS, "gone") or {})["metadata"]["annotations"][GRANTED] == f"released {uid}",
            "the record says so",
        )
        before.ask("web", 14)
        held = before.granted("web")
        assert recorded(before, "web") == held
        backup = [saved(before, ALLOCATIONS, name) for name in ("gone", "web")]
        for name in ("gone", "web"):
            before.delete(ALLOCATIONS, name)
            before.gone(ALLOCATIONS, name)
        before.create(ALLOCATIONS, backup[0])
        before.until(lambda: before.status(ALLOCATIONS, "gone").get("phase") == "Released", "it is Released again")
        assert "startAddress" not in before.status(ALLOCATIONS, "gone")
        before.create(ALLOCATIONS, backup[1])
        assert before.granted("web") == held


def test_one_that_is_restored_with_its_status_and_has_no_record_is_no_orphan(after: Desk) -> None:
    """So backups are restored from before there were records. The cluster that it names has another UID by now."""
    had = {"web": "10.40.0.4-10.40.0.5", "lost": "10.40.0.8-10.40.0.9"}
    after.create("tenantclusters", limited_cluster())
    for name, addresses in had.items():
        asked, owner = balancers(name, {"name": name, "namespace": after.namespace}, 2), f"the-{name}-of-that-life"
        after.create(ALLOCATIONS, asked | {"metadata": {"name": name, "labels": {TENANT_UID: owner}}})
        status = dict(zip(("startAddress", "endAddress"), addresses.split("-"), strict=True))
        status |= {"phase": "Allocated", "allocatedAt": "2026-01-02T03:04:05Z", "tenantClusterUID": owner}
        after.edit(ALLOCATIONS, name, {"status": status}, "status")
    with RunningOperator(after.control_plane, after.namespace, **QUICK):
        after.pool("pool", "10.40.0.0/28", "10.40.0.0-10.40.0.15")
        time.sleep(3)  # many searches for orphans, and many times the gap between two sightings
        assert {name: after.status(ALLOCATIONS, name)["phase"] for name in had} == dict.fromkeys(had, "Allocated")
        after.ask("new", 6)
        assert after.granted("new") == "10.40.0.10-10.40.0.15"


def limited_provider(most: int) -> Json:
    network = {"mode": "ipam", "poolRefs": [{"name": "pool"}], "quotaPerTenant": {"maxLoadBalancerIPs": most}}
    spec = {"provider": "local", "network": network}
    return {"apiVersion": API, "kind": "ProviderConfig", "metadata": {"name": "limited"}, "spec": spec}


def limited_cluster() -> Json:
    spec = {"kubernetesVersion": "v1.33.2", "providerConfigRef": {"name": "limited"}, "workers": {"replicas": 1}}
    return {"apiVersion": API, "kind": "TenantCluster", "metadata": {"name": "web"}, "spec": spec}


def balancers(name: str, tenant: Json, count: int) -> Json:
    spec = {"poolRef": {"name": "pool"}, "tenantClusterRef": tenant, "type": "loadbalancer", "count": count}
    return {"apiVersion": API, "kind": "IPAllocation", "metadata": {"name": name}, "spec": spec}


def test_a_quota_that_was_lowered_meanwhile_does_not_refuse_what_comes_back(before: Desk) -> None:
    tenant = {"name": "web", "namespace": before.namespace}
    with RunningOperator(before.control_plane, before.namespace, **QUICK):
        before.pool("pool", "10.40.0.0/28")
        before.create("providerconfigs", limited_provider(4))
        before.create("tenantclusters", limited_cluster())
        before.create(ALLOCATIONS, balancers("old", tenant, 4))
        held = before.granted("old")
        assert recorded(before, "old") == held
        backup = saved(before, ALLOCATIONS, "old")
        before.edit(ALLOCATIONS, "old", {"metadata": {"annotations": {FORCE: "old"}}})
        before.delete(ALLOCATIONS, "old")
        before.gone(ALLOCATIONS, "old")
        before.edit("providerconfigs", "limited", {"spec": {"network": {"quotaPerTenant": {"maxLoadBalancerIPs": 3}}}})
        before.create(ALLOCATIONS, balancers("fresh", tenant, 4))
        before.failed("fresh", "QuotaExceeded")
        before.create(ALLOCATIONS, backup)
        assert before.granted("old") == held
        before.create(ALLOCATIONS, balancers("more", tenant, 1))
        before.failed("more", "QuotaExceeded")


def test_the_record_of_a_grant_costs_one_write(before: Desk) -> None:
    with RunningOperator(before.control_plane, before.namespace, **QUICK) as operator:
        before.pool("pool", "10.40.0.0/28")
        for number in range(3):
            before.ask(f"a{number}", 2)
        for number in range(3):
            recorded(before, f"a{number}")
        assert operator.writes(ALLOCATIONS) == 3 * 2, "a grant and its record each"
