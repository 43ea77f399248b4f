"""The questions asked of the caches: how calmly a cluster is looked at while many are built."""

from __future__ import annotations

import msgspec

from butler.api.objects import key_of
from butler.api.tenantcluster import TenantCluster, TenantClusterPhase, TenantClusterStatus
from butler.controllers.tenant_caches import CALMEST
from butler.rules.tenant.status_urgency import A_FEW
from unit.controllers.tenantcluster.site import Site
from unit.controllers.tenantcluster.values import cluster, with_status


def built(number: int, **status: object) -> TenantCluster:
    said = {"phase": TenantClusterPhase.PROVISIONING, "tenant_namespace": f"c{number}-ns"} | status
    made = cluster(f"c{number}", uid=f"{number:08}-0000")
    return with_status(made, msgspec.structs.replace(TenantClusterStatus(), **said))


def site_with(count: int) -> Site:
    site = Site()
    for number in range(count):
        site.management.put("tenantclusters", built(number))
    return site


def test_where_a_few_are_built_each_is_looked_at_at_once() -> None:
    assert site_with(A_FEW).views.calm(key_of(built(0))) == 0.0


def test_the_more_are_built_the_longer_changes_are_collected_up_to_a_limit() -> None:
    twice, many = (site_with(count).views.calm(key_of(built(0))) for count in (2 * A_FEW, 40 * A_FEW))
    assert 0.0 < twice < many == CALMEST


def test_a_cluster_that_has_yet_to_ask_for_addresses_or_that_is_ready_does_not_wait() -> None:
    site = site_with(10 * A_FEW)
    new = built(1000, phase=TenantClusterPhase.PENDING, tenant_namespace=None)
    ready = built(1001, phase=TenantClusterPhase.READY)
    for each in (new, ready):
        site.management.put("tenantclusters", each)
        assert site.views.calm(key_of(each)) == 0.0


def test_only_the_namespace_of_a_cluster_that_is_built_is_one_of_a_cluster_that_comes_up() -> None:
    site = Site()
    for wanted, phase in ((True, TenantClusterPhase.PROVISIONING), (False, TenantClusterPhase.READY)):
        site.management.put("tenantclusters", built(1, phase=phase))
        namespace = "c1-00000001"
        assert site.views.is_coming_up(namespace) is wanted
    assert not site.views.is_coming_up("elsewhere")
