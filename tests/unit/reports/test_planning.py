"""Plans, case by case; that they agree with reality is shown in test_plan_agrees.py."""

from __future__ import annotations

from typing import Any

import pytest

from butler.api.codec import from_json
from butler.api.ipallocation import IPAllocation
from butler.api.networkpool import NetworkPool
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantcluster import TenantCluster
from butler.ipam.addresses import range_text
from butler.reports.estate import Estate
from butler.reports.plan.plan import Block, CannotPlan, Edit, PlanOutcome, Single, Tenants
from butler.reports.plan.plan_json import plan_json
from butler.reports.plan.planner import rehearse
from unit.reports.random_estates import HOME, NOW

Json = dict[str, Any]


def pool(name: str, cidr: str, *, window: str = "", **spec: Any) -> NetworkPool:
    if window:
        start, _, end = window.partition("-")
        spec["tenantAllocation"] = {"start": start, "end": end}
    meta = {"name": name, "namespace": HOME, "uid": name, "generation": 1}
    return from_json(NetworkPool, {"metadata": meta, "spec": {"cidr": cidr, **spec}})


def held(name: str, of: str, holds: str) -> IPAllocation:
    start, _, end = holds.partition("-")
    return _allocation(name, of, {"count": 1}, {"phase": "Allocated", "startAddress": start, "endAddress": end})


def waits(name: str, of: str, count: int, tenant: str = "no-tenant", **labels: str) -> IPAllocation:
    return _allocation(name, of, {"count": count}, {"phase": "Failed"}, tenant, **labels)


def _allocation(name: str, of: str, spec: Json, status: Json, tenant: str = "no-tenant", **labels: str) -> IPAllocation:
    meta = {"name": name, "namespace": HOME, "uid": name, "creationTimestamp": NOW.isoformat(), "labels": labels}
    reference = {"poolRef": {"name": of}, "tenantClusterRef": {"name": tenant, "namespace": "team"}}
    return from_json(IPAllocation, {"metadata": meta, "spec": {**reference, "type": "nodes", **spec}, "status": status})


def provider(*pools: Json, name: str = "lab", ready: bool = True, **spec: Any) -> ProviderConfig:
    network = {"mode": "ipam", "poolRefs": list(pools), **spec.pop("network", {})}
    meta = {"name": name, "namespace": HOME, "uid": name}
    return from_json(
        ProviderConfig,
        {"metadata": meta, "spec": {"provider": "proxmox", "network": network, **spec}, "status": {"ready": ready}},
    )


def ref(name: str, gateway: str, **more: Any) -> Json:
    return {"name": name, "gateway": gateway, **more}


def estate(*objects: object) -> Estate:
    def kind(of: type) -> Any:
        return tuple(value for value in objects if isinstance(value, of))

    return Estate(HOME, kind(NetworkPool), kind(IPAllocation), kind(ProviderConfig), kind(TenantCluster))


def got(blocks: tuple[Block, ...]) -> list[str]:
    return [
        f"{block.pool} {range_text(block.range, block.family)}" if block.range else block.reason for block in blocks
    ]


A = pool("a", "10.1.0.0/28")  # 14 addresses
B = pool("b", "10.2.0.0/26")  # 62 addresses
LAB = provider(ref("a", "10.1.0.0", priority=1), ref("b", "10.2.0.0", priority=2))


def plan(*objects: object, **asked: Any) -> PlanOutcome:
    return rehearse(estate(*objects), NOW, **asked)


def test_tenants_fill_the_first_pool_and_fall_through_to_the_next() -> None:
    found = plan(A, B, LAB, tenants=Tenants(5))
    assert [got(tenant.blocks) for tenant in found.tenants][:2] == [
        ["a 10.1.0.1-10.1.0.5", "a 10.1.0.6-10.1.0.13"],
        ["b 10.2.0.1-10.2.0.5", "b 10.2.0.6-10.2.0.13"],
    ]
    assert (found.fits, found.shared, found.provider) == (True, True, "lab")


def test_the_first_that_fails_has_the_words_that_its_status_would_have() -> None:
    found = plan(A, B, LAB, tenants=Tenants(7))
    failed = found.first_failure
    assert failed is not None
    assert (failed.number, found.fits) == (6, False)
    assert failed.why.startswith("no load-balancer addresses: pool b: needs 8 contiguous addresses; b has 5 of 62 free")
    assert failed.why.endswith("; pool a has no run of free addresses longer than 1")
    assert plan_json(found)["firstFailure"] == {"tenant": 6, "message": failed.why}
    assert [tenant.fits for tenant in found.tenants] == [True] * 5 + [False] * 2


def test_tiers_are_told_before_and_after_with_numbers() -> None:
    found = plan(A, provider(ref("a", "10.1.0.0")), tenants=Tenants(1))
    before, after = found.pools[0].before, found.pools[0].after
    assert before is not None
    assert after is not None
    assert (before.capacity.allocated, before.tiers) == (0, ())
    assert (after.capacity.allocated, after.capacity.total) == (13, 14)
    assert [str(tier) for tier in after.tiers] == ["CapacityWarning", "CapacityCritical"]


def test_a_quota_is_the_tenants_own_and_refuses_what_is_named_above_it() -> None:
    lab = provider(ref("b", "10.2.0.0"), network={"quotaPerTenant": {"maxNodeIPs": 3, "maxLoadBalancerIPs": 4}})
    assert got(plan(B, lab, tenants=Tenants(1)).tenants[0].blocks) == ["b 10.2.0.1-10.2.0.3", "b 10.2.0.4-10.2.0.7"]
    refused = plan(B, lab, tenants=Tenants(2, nodes=4))
    assert "4 node addresses are needed, and one tenant may hold 3 (quotaPerTenant)" in refused.tenants[0].why
    assert refused.tenants[0].blocks == ()


def test_a_request_that_waits_is_served_before_a_new_one() -> None:
    found = plan(A, B, waits("old", "b", 60), tenants=Tenants(1, pools=("b",)))
    assert got(found.waiting) == ["b 10.2.0.1-10.2.0.60"]
    assert not found.fits


def test_a_cluster_that_waits_at_a_full_pool_is_moved_before_a_new_one() -> None:
    meta = {"name": "web", "namespace": "team", "uid": "web", "creationTimestamp": NOW.isoformat()}
    spec = {"kubernetesVersion": "v1.33.2", "workers": {"replicas": 5}, "providerConfigRef": {"name": "lab"}}
    web = from_json(TenantCluster, {"metadata": meta, "spec": spec})
    stuck = waits("web-nodes", "a", 5, "web", **{"butler.butlerlabs.dev/tenant-uid": "web"})
    found = plan(A, B, LAB, web, held("x", "a", "10.1.0.1-10.1.0.14"), stuck, tenants=Tenants(1))
    assert got(found.tenants[0].blocks) == ["b 10.2.0.14-10.2.0.18", "b 10.2.0.19-10.2.0.26"]


def test_single_requests_are_asked_of_their_pool_one_after_the_other() -> None:
    found = plan(A, requests=[Single("a", 10), Single("a", 5), Single("a", 4)])
    assert got(found.requests) == ["a 10.1.0.1-10.1.0.10", "PoolExhausted", "a 10.1.0.11-10.1.0.14"]
    assert "needs 5 contiguous addresses; a has 4 of 14 free" in found.requests[1].message
    assert not found.fits


def test_an_edit_that_strands_tenants_is_refused_and_nothing_else_is_tried() -> None:
    objects = (A, held("x", "a", "10.1.0.9-10.1.0.12"))
    found = plan(*objects, edit=Edit("a", cidr="10.1.0.0/29"), tenants=Tenants(1, pools=("a",)))
    assert found.edit is not None
    assert [stranded.name for stranded in found.edit.stranded] == ["x"]
    assert "10.1.0.0/29 would leave out addresses in use: x" in found.edit.problems[0].message
    assert (found.tenants, found.fits) == ((), False)
    assert (found.pools[0].after.capacity.total if found.pools[0].after else 0) == 6


def test_growing_helps_those_that_wait_and_then_the_tenants() -> None:
    objects = (A, held("x", "a", "10.1.0.1-10.1.0.12"), waits("old", "a", 4))
    assert not plan(*objects, tenants=Tenants(1, pools=("a",))).fits
    found = plan(*objects, edit=Edit("a", cidr="10.1.0.0/27"), tenants=Tenants(1, pools=("a",)))
    assert got(found.waiting) == ["a 10.1.0.13-10.1.0.16"]
    assert got(found.tenants[0].blocks) == ["a 10.1.0.17-10.1.0.21", "a 10.1.0.22-10.1.0.29"]


def test_windows_are_replaced_and_reserved_blocks_added() -> None:
    windows = (("10.2.0.1", "10.2.0.8"), ("10.2.0.32", "10.2.0.47"))
    found = plan(B, edit=Edit("b", windows=windows, reserve=("10.2.0.40/29",)))
    assert found.fits
    assert (found.pools[0].after.capacity.total if found.pools[0].after else 0) == 16
    json = plan_json(found)["edit"]
    assert json["after"]["reserved"] == ["10.2.0.40/29"]
    assert json["after"]["windows"][1] == {"start": "10.2.0.32", "end": "10.2.0.47"}


def test_an_edit_onto_another_pools_network_is_refused() -> None:
    found = plan(A, B, edit=Edit("a", cidr="10.2.0.0/24"))
    assert found.edit is not None
    assert "overlaps 10.2.0.0/26 of NetworkPool butler-system/b" in found.edit.problems[0].message


def test_a_provider_that_is_not_ready_lets_no_tenant_in() -> None:
    found = plan(A, provider(ref("a", "10.1.0.0"), ready=False), tenants=Tenants(3))
    assert [tenant.why for tenant in found.tenants] == [
        "ProviderConfig butler-system/lab is not ready: its own conditions say why, to those who may read it"
    ] * 3


def test_limits_of_a_team_count_where_the_provider_is_its_own() -> None:
    scope = {"type": "team", "teamRef": {"name": "web"}}
    lab = provider(ref("b", "10.2.0.0"), scope=scope, limits={"maxClustersPerTeam": 2})
    found = plan(B, lab, tenants=Tenants(3, nodes=1, load_balancers=1))
    assert [tenant.fits for tenant in found.tenants] == [True, True, False]
    assert "may have 2 (limits.maxClustersPerTeam)" in found.tenants[2].why


@pytest.mark.parametrize(
    ("objects", "tenants", "words"),
    [
        ((A,), Tenants(1), "nothing says where the tenants would go: name pools with --pool"),
        ((A, LAB, provider(name="two")), Tenants(1), "name one of lab, two with --provider"),
        ((A, B, LAB, pool("c", "10.3.0.0/24")), Tenants(1, provider="lab", pools=("c",)), "does not use pool c"),
        ((A,), Tenants(1, pools=("z",)), "there is no NetworkPool z"),
        ((provider(network={"mode": "cloud"}),), Tenants(1), "is in cloud mode, which has no pools"),
        ((LAB,), Tenants(1, provider="bal"), "there is no ProviderConfig bal"),
    ],
)
def test_a_question_that_makes_no_sense_is_said_to(objects: tuple[object, ...], tenants: Tenants, words: str) -> None:
    with pytest.raises(CannotPlan, match=words):
        plan(*objects, tenants=tenants)


def test_a_provider_with_a_missing_pool_says_so() -> None:
    found = plan(provider(ref("gone", "10.9.0.0")), tenants=Tenants(1))
    assert "there is no NetworkPool gone in namespace butler-system" in found.tenants[0].why


def test_tenants_that_get_nothing_are_told_like_the_first_of_them() -> None:
    found = plan(A, tenants=Tenants(1000, nodes=20, pools=("a",)))
    assert {tenant.why for tenant in found.tenants} == {found.tenants[0].why}
    assert found.tenants[-1].blocks[0].name == "planned-1000-nodes"


def test_nothing_of_the_estate_is_changed() -> None:
    given = estate(A, B, LAB, waits("old", "b", 4))
    before = repr(given)
    rehearse(given, NOW, tenants=Tenants(3), edit=Edit("a", cidr="10.1.0.0/27"))
    assert repr(given) == before
