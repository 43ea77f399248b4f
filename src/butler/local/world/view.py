"""What the stand-ins see of the management cluster, and the few verbs with which they change it.

One set of caches serves all of them. Every write is taken into its cache at once, so the next decision knows what
the last one did; a deletion counts only when the API server has said that it is done.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from butler.api.objects import (
    Json,
    Key,
    finalizers_patch,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    owners_of,
    uid_of,
    version_of,
    without_finalizer,
)
from butler.kube.errors import NotFound
from butler.local.world import kinds
from butler.local.world.conditions import status_change
from butler.local.world.pace import Pace, timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from butler.kube.cache import Cache
    from butler.kube.operator import Operator
    from butler.kube.resource import Resource


class WorldView:
    """The objects of Cluster API, Steward and the providers, as far as this process has heard of them."""

    def __init__(self, operator: Operator) -> None:
        self.client = operator.client
        self.clusters = operator.cache(kinds.CLUSTERS)
        self.deployments = operator.cache(kinds.MACHINE_DEPLOYMENTS)
        self.sets = operator.cache(kinds.MACHINE_SETS)
        self.machines = operator.cache(kinds.MACHINES)
        self.control_planes = operator.cache(kinds.STEWARD_CONTROL_PLANES)
        self.infrastructure_clusters = {
            kind: operator.cache(resource) for kind, resource in kinds.INFRASTRUCTURE_CLUSTERS.items()
        }
        self.infrastructure_machines = {
            kind: operator.cache(resource) for kind, resource in kinds.INFRASTRUCTURE_MACHINES.items()
        }
        self.pace = Pace()
        for cache in (self.deployments, self.sets, self.machines, *self.infrastructure_machines.values()):
            cache.index("cluster", lambda obj: [cluster_key(obj)])
        for cache in (self.sets, self.machines):
            cache.index("owner", lambda obj: [owner["uid"] for owner in owners_of(obj)])

    # Finding.

    def is_paused(self, obj: Json) -> bool:
        """Whether controllers must leave an object alone: it says so itself, or its Cluster does."""
        cluster = obj if obj.get("kind") == "Cluster" else self.clusters.get(cluster_key(obj))
        told = (obj["metadata"].get("annotations") or {}).keys()
        return kinds.PAUSED in told or bool((cluster or {}).get("spec", {}).get("paused"))

    def infrastructure_cluster(self, cluster: Json) -> tuple[Cache[Json], Json] | None:
        """What the provider calls a Cluster, with its cache; None while it is not there."""
        reference = cluster["spec"].get("infrastructureRef") or {}
        return _referred(self.infrastructure_clusters, reference, namespace_of(cluster))

    def infrastructure_machine(self, machine: Json) -> tuple[Cache[Json], Json] | None:
        reference = machine["spec"].get("infrastructureRef") or {}
        return _referred(self.infrastructure_machines, reference, namespace_of(machine))

    def control_plane(self, cluster: Json) -> Json | None:
        reference = cluster["spec"].get("controlPlaneRef") or {}
        if reference.get("kind") != kinds.STEWARD_CONTROL_PLANES.kind:
            return None
        return self.control_planes.get(Key(reference.get("namespace") or namespace_of(cluster), reference["name"]))

    def sets_of(self, deployment: Json) -> list[Json]:
        return self.sets.by("owner", uid_of(deployment))

    def machines_of(self, machine_set: Json) -> list[Json]:
        return self.machines.by("owner", uid_of(machine_set))

    def deployment_of(self, machine: Json) -> Json | None:
        name = labels_of(machine).get(kinds.DEPLOYMENT_NAME, "")
        return self.deployments.get(Key(namespace_of(machine), name)) if name else None

    # Changing.

    @property
    def now(self) -> str:
        return timestamp(time.time())

    async def create(self, cache: Cache[Json], body: Json) -> Json:
        made = await self.client.create(cache.resource, body)
        cache.wrote(made)
        return made

    async def patch(self, cache: Cache[Json], obj: Json, patch: Json, *, subresource: str = "") -> Json:
        """Change some fields of exactly this object: one that was made anew under its name is another one."""
        fenced = {**patch, "metadata": {**patch.get("metadata", {}), "uid": uid_of(obj)}}
        answer = await self.client.patch(
            cache.resource, name_of(obj), fenced, namespace_of(obj), subresource=subresource
        )
        cache.wrote(answer)
        return answer

    async def write_status(self, cache: Cache[Json], obj: Json, wanted: Json) -> Json:
        """Let an object's status say what is wanted; no write when it does."""
        change = status_change(obj, wanted)
        return obj if change is None else await self.patch(cache, obj, change, subresource="status")

    async def delete(self, cache: Cache[Json], obj: Json) -> None:
        """Ask for the end of an object, once."""
        if is_being_deleted(obj):
            return
        with suppress(NotFound):
            answer = await self.client.delete(cache.resource, name_of(obj), namespace_of(obj), uid=uid_of(obj))
            if answer.get("kind") == cache.resource.kind and version_of(answer):
                cache.wrote(answer)

    async def delete_all(self, cache: Cache[Json], objects: Iterable[Json]) -> None:
        await asyncio.gather(*(self.delete(cache, obj) for obj in objects))

    async def release(self, cache: Cache[Json], obj: Json, finalizer: str) -> None:
        """Take our finalizer away: with the last one, the object goes."""
        left = without_finalizer(obj, finalizer)
        if left is None:
            return
        with suppress(NotFound):
            await self.client.patch(cache.resource, name_of(obj), finalizers_patch(obj, left), namespace_of(obj))


def cluster_key(obj: Json) -> Key:
    """The Cluster that an object belongs to."""
    name = obj.get("spec", {}).get("clusterName") or labels_of(obj).get(kinds.CLUSTER_NAME, "")
    return Key(namespace_of(obj), name)


def owner_key(obj: Json, resource: Resource[Json]) -> Key | None:
    """The owner of that kind."""
    names = [owner["name"] for owner in owners_of(obj) if owner["kind"] == resource.kind]
    return Key(namespace_of(obj), names[0]) if names else None


def adoption(
    obj: Json, owner: Json, resource: Resource[Json], *, controller: bool, finalizer: str | None = None
) -> Json | None:
    """What to patch so that an object belongs to its Cluster as Cluster API wants it; None when it does already."""
    metadata: Json = {}
    if not any(reference["uid"] == uid_of(owner) for reference in owners_of(obj)):
        reference: Json = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "name": name_of(owner),
            "uid": uid_of(owner),
        }
        if controller:
            reference |= {"controller": True, "blockOwnerDeletion": True}
        metadata["ownerReferences"] = [*owners_of(obj), reference]
    if labels_of(obj).get(kinds.CLUSTER_NAME) != name_of(owner):
        metadata["labels"] = {kinds.CLUSTER_NAME: name_of(owner)}
    if finalizer is not None and finalizer not in (present := obj["metadata"].get("finalizers") or []):
        metadata["finalizers"] = [*present, finalizer]
    # Lists are replaced whole, so the version guards what others have put there.
    return {"metadata": {**metadata, "resourceVersion": version_of(obj)}} if metadata else None


def _referred(caches: Mapping[str, Cache[Json]], reference: Json, namespace: str) -> tuple[Cache[Json], Json] | None:
    cache = caches.get(reference.get("kind", ""))
    if cache is None:
        return None
    found = cache.get(Key(reference.get("namespace") or namespace, reference["name"]))
    return None if found is None else (cache, found)
