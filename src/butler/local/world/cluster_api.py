"""Stand-in for Cluster API's Cluster controller, and for what providers do for a cluster as a whole.

A Cluster takes possession of the objects that it refers to, passes on what they say (is the infrastructure ready, is
the control plane, where is it reached), and goes in Cluster API's order: MachineDeployments, MachineSets and Machines
first, then the control plane, then the infrastructure, then the Cluster itself.

The providers' part: a cluster is ready when its object names the control plane's endpoint. Harvester's provider does
not wait for that; it makes a Service and writes its address over the endpoint, useless as that is for a control plane
that runs elsewhere. Butler has to live with it, so it is done here, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.api.objects import is_being_deleted, key_of, version_of, with_finalizer
from butler.kube.controller import After, Controller
from butler.local.world import kinds
from butler.local.world.conditions import judged, merged
from butler.local.world.view import WorldView, adoption, cluster_key, owner_key

if TYPE_CHECKING:
    from butler.api.objects import Json, Key
    from butler.kube.cache import Cache
    from butler.kube.operator import Operator
    from butler.local.world.settings import WorldSettings

HARVESTER_PLACEHOLDER: Final = {"host": "172.31.255.254", "port": 6443}
"""Where the Service is that Harvester's provider makes for a cluster without control-plane machines."""


def add_clusters(operator: Operator, view: WorldView, settings: WorldSettings) -> None:
    stand_in = ClusterController(view)
    controller = Controller("world-clusters", stand_in.reconcile, workers=settings.workers, metrics=operator.metrics)
    controller.watches(view.clusters)
    controller.watches(view.control_planes, lambda found: [owner_key(found, kinds.CLUSTERS) or key_of(found)])
    for cache in view.infrastructure_clusters.values():
        controller.watches(cache, lambda found: [owner_key(found, kinds.CLUSTERS) or key_of(found)])
    for cache in (view.deployments, view.sets, view.machines):
        controller.watches(cache, lambda found: [cluster_key(found)], when=lambda old, new: old is None or new is None)
    operator.add(controller)


class ClusterController:
    def __init__(self, view: WorldView) -> None:
        self._view = view

    async def reconcile(self, key: Key) -> After | None:
        view = self._view
        cluster = view.clusters.get(key)
        if cluster is None or view.is_paused(cluster):
            return None
        if is_being_deleted(cluster):
            await self._end(cluster)
            return None
        finalizers = with_finalizer(cluster, kinds.CLUSTER_FINALIZER)
        if finalizers is not None:
            patch = {"metadata": {"finalizers": finalizers, "resourceVersion": version_of(cluster)}}
            cluster = await view.patch(view.clusters, cluster, patch)
        control_plane = view.control_plane(cluster)
        if control_plane is not None:
            control_plane = await self._adopt(view.control_planes, control_plane, cluster)
        infrastructure = await self._infrastructure(cluster)
        cluster = await self._endpoint(cluster, control_plane, infrastructure)
        await view.write_status(view.clusters, cluster, status(cluster, control_plane, infrastructure, view.now))
        return None

    async def _adopt(self, cache: Cache[Json], obj: Json, cluster: Json) -> Json:
        change = None if is_being_deleted(obj) else adoption(obj, cluster, kinds.CLUSTERS, controller=True)
        return obj if change is None else await self._view.patch(cache, obj, change)

    async def _infrastructure(self, cluster: Json) -> Json | None:
        """The provider's part of the cluster, made ready as its provider would."""
        found = self._view.infrastructure_cluster(cluster)
        if found is None:
            return None
        cache, infrastructure = found
        infrastructure = await self._adopt(cache, infrastructure, cluster)
        if infrastructure.get("kind", cache.resource.kind) == "HarvesterCluster" and not endpoint_of(infrastructure):
            placeholder = {"spec": {"controlPlaneEndpoint": HARVESTER_PLACEHOLDER}}
            infrastructure = await self._view.patch(cache, infrastructure, placeholder)
        if endpoint_of(infrastructure):
            infrastructure = await self._view.write_status(cache, infrastructure, {"ready": True})
        return infrastructure

    async def _endpoint(self, cluster: Json, control_plane: Json | None, infrastructure: Json | None) -> Json:
        """Cluster API keeps the first endpoint that it hears of, from the infrastructure or the control plane."""
        if endpoint_of(cluster):
            return cluster
        ready = infrastructure is not None and (infrastructure.get("status") or {}).get("ready")
        found = (endpoint_of(infrastructure) if infrastructure and ready else None) or endpoint_of(control_plane or {})
        if found is None:
            return cluster
        return await self._view.patch(self._view.clusters, cluster, {"spec": {"controlPlaneEndpoint": found}})

    async def _end(self, cluster: Json) -> None:
        view, key = self._view, key_of(cluster)
        await view.write_status(view.clusters, cluster, {"phase": "Deleting"})
        members = [(cache, cache.by("cluster", key)) for cache in (view.deployments, view.sets, view.machines)]
        for cache, found in members:
            # Sets and Machines of a MachineDeployment go with it, in its order.
            await view.delete_all(cache, (obj for obj in found if _is_direct(obj, cluster)))
        if any(found for _, found in members):
            return
        control_plane = view.control_plane(cluster)
        if control_plane is not None:
            await view.delete(view.control_planes, control_plane)
            return
        infrastructure = view.infrastructure_cluster(cluster)
        if infrastructure is not None:
            await view.delete(*infrastructure)
            return
        await view.release(view.clusters, view.clusters.get(key) or cluster, kinds.CLUSTER_FINALIZER)


def _is_direct(obj: Json, cluster: Json) -> bool:
    """Whether an object hangs on the Cluster itself, or on nothing, as one that was made a moment ago."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return not owners or any(owner["uid"] == cluster["metadata"]["uid"] for owner in owners)


def endpoint_of(obj: Json) -> Json | None:
    """Where an object says that the control plane is reached; None where it leaves the host out."""
    found: Json | None = (obj.get("spec") or {}).get("controlPlaneEndpoint")
    return found if found and found.get("host") else None


def status(cluster: Json, control_plane: Json | None, infrastructure: Json | None, now: str) -> Json:
    """What a Cluster says of its parts."""
    told = (control_plane or {}).get("status") or {}
    before = cluster.get("status") or {}
    # Ready once is ready for good, as in Cluster API: a later doubt shows in the conditions only.
    infrastructure_ready = bool(((infrastructure or {}).get("status") or {}).get("ready"))
    serves, initialized = bool(told.get("ready")), bool(told.get("initialized"))
    provisioned = infrastructure_ready and endpoint_of(cluster) is not None
    started = bool(cluster["spec"].get("infrastructureRef"))
    both = infrastructure_ready and serves
    conditions = (
        judged("InfrastructureReady", infrastructure_ready, "WaitingForInfrastructure"),
        judged("ControlPlaneInitialized", initialized, "WaitingForControlPlaneProviderInitialized"),
        judged("ControlPlaneReady", serves, "WaitingForControlPlane"),
        judged("Ready", both, "WaitingForInfrastructure" if not infrastructure_ready else "WaitingForControlPlane"),
    )
    return {
        "phase": "Provisioned" if provisioned else "Provisioning" if started else "Pending",
        "infrastructureReady": infrastructure_ready or bool(before.get("infrastructureReady")),
        "controlPlaneReady": serves,
        "observedGeneration": cluster["metadata"].get("generation", 1),
        "conditions": merged(cluster, conditions, now),
    }
