"""What a new cluster costs the API server: how often the controllers ask it for anything, from created to Ready.

Each cluster is some objects that have to be written and a few things that have to be read, and they are counted here
one by one. What goes beyond is a write that tells the same twice, or a read of what was known.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from controller_process import ControllerProcess
from tenants.estate import HOME, Estate
from tenants.witness import CLUSTER_API, OWN, Witness
from world_process import WorldProcess

if TYPE_CHECKING:
    from pathlib import Path

    from control_planes import ControlPlane

CLUSTERS = 20
"""More than a few, so that how far each is on its way is told in phases only, however slow the machine is."""
QUICK = {"machine_seconds": 0.0, "control_plane_seconds": 0.0, "addon_seconds": 0.0}
NEEDED = {
    "patch tenantclusters": 4,  # its finalizer, that it is begun, that its addons come, that it can be used
    "create ipallocations": 2,
    # Two grants, and two records of them in the metadata, for a restore. The records are also what asks whether the
    # addresses are still the cluster's, before machines are given them and before a new pool of MetalLB is written.
    "patch ipallocations": 4,
    "get ipallocations": 1,  # before that pool hands out
    "apply namespaces": 1,
    "apply secrets": 1,
    "apply proxmoxclusters": 1,
    "apply proxmoxmachinetemplates": 1,
    "apply kubeadmconfigtemplates": 1,
    "apply stewardcontrolplanes": 1,
    "apply clusters": 1,
    "apply machinedeployments": 1,
    "create secrets": 1,  # the kubeconfig, where Cluster API looks for it: as the watch brought it, without a read
    "apply tenantaddons": 5,
    "create events": 1.5,  # that it is Ready, and those of the pool, which tells of many grants at a time
    "patch networkpools": 0.5,  # one write grants to all who wait; a slow machine has fewer at a time
}
GRANTED = "butler.butlerlabs.dev/granted"
SPARE = 0.5
"""For each kind of request: what all clusters share, such as the provider's Secret."""


@pytest.mark.timeout(300)
def test_a_new_cluster_costs_no_request_that_could_be_spared(
    control_plane: ControlPlane, cluster_api: None, tmp_path: Path
) -> None:
    with (
        WorldProcess(control_plane.kubeconfig, tmp_path, **QUICK),
        ControllerProcess(control_plane.kubeconfig, tmp_path) as butler,
        Witness(control_plane, OWN | CLUSTER_API) as witness,
        closing(Estate(control_plane, witness, tmp_path)) as estate,
    ):
        # Its first cluster has a controller learn which kinds there are; that is no other cluster's cost. Nor is a pool
        # that runs low, and says so.
        site = estate.site(size=8 * (CLUSTERS + 1))
        site.cluster("first").ready()
        _all_recorded(witness, 2)
        before = butler.requests()
        tenants = [site.tenant(f"c{number:02}") for number in range(CLUSTERS)]
        estate.apply(*(site.describe_cluster(tenant.name, replicas=2) for tenant in tenants))
        for tenant in tenants:
            tenant.ready()
        _all_recorded(witness, 2 * (CLUSTERS + 1))
        asked = butler.requests() - before
        estate.delete_clusters()
        estate.until(lambda: not witness.list("tenantclusters"), "all clusters are gone")
    each = Counter({name: count / CLUSTERS for name, count in asked.items()})
    said = "\n".join(f"{count:6.2f} {name}" for name, count in each.most_common())
    print(f"{sum(each.values()):.2f} requests for each cluster on {control_plane.name}:\n{said}")
    above = {name: count for name, count in each.items() if count > NEEDED.get(name, 0) + SPARE}
    assert not above, f"more than needed: {above}; of all:\n{said}"
    assert sum(each.values()) < 28, f"{sum(each.values())} for each cluster:\n{said}"


def _all_recorded(witness: Witness, expected: int) -> None:
    """Wait until this many grants, and no fewer than there are allocations, are on record in the metadata."""

    def missing() -> list[str]:
        found = witness.list("ipallocations", HOME)
        return [obj["metadata"]["name"] for obj in found if GRANTED not in obj["metadata"].get("annotations", {})]

    def look() -> bool:
        return len(witness.list("ipallocations", HOME)) >= expected and not missing()

    witness.until(look, lambda: f"{expected} grants are on record; without one: {missing()}")
