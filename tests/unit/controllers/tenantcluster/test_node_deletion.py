"""Node ranges that a person deletes: marked, withdrawn and then released, whatever another process has seen.

What goes wrong otherwise was found by the search through all orders of events (tests/model/nodes.py).
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from butler.controllers.tenantcluster.bring_up import NoLongerWanted
from unit.controllers.tenantcluster.site import NAMESPACE, Site
from unit.controllers.tenantcluster.values import HOME, NOW, allocation, cluster, started

MORE = "10.40.0.90"


@pytest.fixture
async def site() -> Site:
    """A cluster with a second node range, and no machine yet."""
    found = Site()
    found.management.put("ipallocations", allocation("web-nodes-2", "nodes", 2, start=MORE, growth=True))
    found.wish()
    await found.building.bring_up(found.wished())
    assert MORE in named(found)
    return found


def named(site: Site) -> str:
    """The addresses that machines are to get, as the provider's object says."""
    (found,) = site.management.objects["proxmoxclusters"].values()
    return str(found["spec"]["ipv4Config"]["addresses"])


def change(site: Site, name: str, **metadata: Any) -> None:
    found = site.management.find("ipallocations", HOME, name)
    assert found is not None
    site.management.put("ipallocations", {**found, "metadata": {**found["metadata"], **metadata}})


def delete(site: Site, name: str) -> None:
    change(site, name, deletionTimestamp=NOW.isoformat())


def mark(site: Site, name: str) -> None:
    found = site.management.find("ipallocations", HOME, name)
    assert found is not None
    status = {**found["status"], "drainingSince": NOW.isoformat()}
    site.management.put("ipallocations", {**found, "status": status})


def is_marked(site: Site, name: str) -> bool:
    found = site.management.find("ipallocations", HOME, name)
    return found is not None and bool(found["status"].get("drainingSince"))


async def test_a_range_is_marked_then_withdrawn_then_released(site: Site) -> None:
    delete(site, "web-nodes-2")
    await site.building.bring_up(site.wished())
    assert is_marked(site, "web-nodes-2")
    assert MORE in named(site)
    await site.building.bring_up(site.wished())
    assert MORE not in named(site)
    assert site.released() == ["web-nodes-2"]


async def test_who_has_not_heard_of_the_deletion_writes_nothing_with_the_range(site: Site) -> None:
    """Another process has withdrawn it, and is about to release it."""
    site.views.allocations.freeze()  # type: ignore[attr-defined]
    delete(site, "web-nodes-2")
    mark(site, "web-nodes-2")
    (withdrawn,) = site.management.objects["proxmoxclusters"].values()
    withdrawn["spec"]["ipv4Config"]["addresses"] = ["10.40.0.10-10.40.0.14"]
    with pytest.raises(NoLongerWanted):
        await site.building.bring_up(site.wished())
    assert MORE not in named(site)


async def test_a_marked_range_is_not_used_again_though_more_machines_are_wanted(site: Site) -> None:
    delete(site, "web-nodes-2")
    mark(site, "web-nodes-2")
    wished = site.wished()
    workers = msgspec.structs.replace(wished.spec.workers, replicas=6)
    spec = msgspec.structs.replace(wished.spec, workers=workers)
    site.management.put("tenantclusters", msgspec.structs.replace(wished, spec=spec))
    for _ in range(3):
        await site.building.bring_up(site.wished())
    assert MORE not in named(site)


async def test_the_only_range_stays_where_machines_are_asked_for_that_the_view_does_not_show() -> None:
    site = Site()
    site.wish(of=started(cluster(replicas=0)))
    await site.building.bring_up(site.wished())
    site.live.views["machinedeployments"].freeze()
    (workers,) = site.management.objects["machinedeployments"].values()
    workers["spec"]["replicas"] = 1  # by another process, which has heard that one is wanted
    delete(site, "web-nodes")
    mark(site, "web-nodes")
    await site.building.bring_up(site.wished())
    assert site.released() == []


async def test_the_only_range_of_a_cluster_without_machines_goes() -> None:
    site = Site()
    site.wish(of=started(cluster(replicas=0)))
    await site.building.bring_up(site.wished())
    delete(site, "web-nodes")
    for _ in range(2):
        await site.building.bring_up(site.wished())
    assert site.released() == ["web-nodes"]


async def test_a_range_of_a_cluster_that_is_about_to_be_built_is_not_released_beside_it() -> None:
    """Another process has said that it is built, and sleeps before it makes anything."""
    site = Site()
    site.wish(of=started(cluster()))
    site.stands("namespaces", NAMESPACE, "")
    delete(site, "web-nodes")
    await site.building.bring_up(site.wished())
    assert site.released() == []
