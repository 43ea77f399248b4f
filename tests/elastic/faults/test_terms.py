"""Terms that change in the middle of a shrink: MetalLB hands out addresses again, whatever they change to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from elastic.faults.drill import Moments, writes_pool

if TYPE_CHECKING:
    from elastic.estate import ElasticTenant
    from elastic.faults.drill import Drill

CLUSTERS = "/apis/butler.butlerlabs.dev/v1alpha1/namespaces/{}/tenantclusters/{}"
PROVIDERS = "/apis/butler.butlerlabs.dev/v1alpha1/namespaces/butler-system/providerconfigs/{}"


def to_cloud(drill: Drill, _: ElasticTenant) -> None:
    path = PROVIDERS.format(drill.place.provider)
    found = drill.estate.send("GET", path)
    drill.estate.send("PUT", path, {**found, "spec": {**found["spec"], "network": {"mode": "cloud"}}})


def to_ipam(drill: Drill, _: ElasticTenant) -> None:
    path = PROVIDERS.format(drill.place.provider)
    found, wanted = drill.estate.send("GET", path), drill.place.describe_provider()
    drill.estate.send("PUT", path, {**found, "spec": {**found["spec"], "network": wanted["spec"]["network"]}})


def pause(drill: Drill, web: ElasticTenant, paused: bool = True) -> None:
    path = CLUSTERS.format(web.namespace, web.name)
    drill.estate.send("PATCH", path, {"spec": {"paused": paused}}, "application/merge-patch+json")


def go_on(drill: Drill, web: ElasticTenant) -> None:
    pause(drill, web, False)


@pytest.mark.parametrize(("change", "back"), [(to_cloud, to_ipam), (pause, go_on)], ids=["cloud", "paused"])
def test_a_drain_ends_though_its_terms_change_in_its_middle(drill: Drill, change: Any, back: Any) -> None:
    web = drill.tenant()
    with drill.replica() as butler:
        drill.grow(web, "a")
        moments = Moments(writes_pool, moment="after", then=lambda: change(drill, web))
        butler.lines.tenants[web.name].on_write = moments
        web.remove("a")
        try:
            moments.comes()
            web.add("b")
            web.gets("b")
            web.sees(lambda: (web.pool() or {}).get("spec", {}).get("autoAssign") is True, "MetalLB hands out again")
            web.until(
                lambda: not any(growth["status"].get("drainingSince") for growth in web.growths()), "no mark is left"
            )
        finally:
            back(drill, web)
        drill.verdict(web)
