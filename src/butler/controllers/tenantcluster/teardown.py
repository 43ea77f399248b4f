"""Taking a cluster down, stage by stage; `deletion` says what each stage is for and how long it is waited for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocationPhase
from butler.api.labels import Annotation, ConditionType, FieldManager, Finalizer, Label, TenantClusterReason
from butler.api.objects import Key, finalizers_patch, is_being_deleted, key_of, name_of, uid_of, without_finalizer
from butler.api.tenantcluster import DeletionStage
from butler.capi.aws import SYSTEM_NAMESPACE as AWS_NAMESPACE
from butler.capi.naming import AWS_STATIC_IDENTITY, CLUSTER, MACHINE, SECRET
from butler.controllers.tenantcluster.foreign_objects import NAMESPACE, NotServed, resource_of_kind
from butler.controllers.tenantcluster.restored import earlier_lives
from butler.kube.absence import read
from butler.kube.errors import ApiError, Conflict, NotFound
from butler.kube.kinds import ADDONS, CLUSTERS, WRITE_TIMEOUT
from butler.rules.allocation.release import Grounds
from butler.rules.tenant.deletion import (
    COURTESY,
    DeletionVerdict,
    began,
    deleting_status,
    is_forced,
    judge,
    left_over,
    seconds_to_next_look,
    starting_stage,
)
from butler.rules.tenant.observed import endpoint_of
from butler.rules.tenant_namespace import tenant_namespace

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.tenantcluster import TenantCluster, TenantClusterStatus
    from butler.controllers.ipallocation.release import Releases
    from butler.controllers.tenant_caches import Views
    from butler.controllers.tenantcluster.foreign_objects import ForeignObjects
    from butler.controllers.tenantcluster.tenant_side import TenantAccess
    from butler.kube.client import Client
    from butler.kube.events import EventRecorder
    from butler.kube.resource import Resource
    from butler.rules.tenant.settings import TenantSettings

STAGES: Final = tuple(DeletionStage)
OFTEN: Final = 5.0
"""Seconds between looks while something is waited for; most of it is heard of sooner."""
REFUSES_FOR_GOOD: Final = timedelta(minutes=1)
LONGEST_REFUSAL: Final = 500
STAGE_ENDED: Final = "DeletionStage"
FORCED: Final = "ForcedDeletion"


@dataclass(frozen=True, slots=True)
class Torn:
    """How far it came: the status to write, None when nothing is left of the cluster, and when to look again."""

    status: TenantClusterStatus | None
    again: float | None


class Teardown:
    """Takes clusters down."""

    def __init__(
        self,
        client: Client,
        views: Views,
        live: ForeignObjects,
        tenants: TenantAccess,
        releases: Releases,
        events: EventRecorder,
        settings: TenantSettings,
        clock: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._views = views
        self._live = live
        self._tenants = tenants
        self._releases = releases
        self._events = events
        self._settings = settings
        self._clock = clock

    async def take_down(self, cluster: TenantCluster) -> Torn:
        """Go through the stages as far as possible."""
        for stage in STAGES[STAGES.index(starting_stage(cluster)) :]:
            now = self._clock()
            since, forced = began(cluster, stage, now), is_forced(cluster)
            try:
                waits_for = await self._waits_for(cluster, stage)
            except ApiError as refusal:
                waits_for = f"the API server, which refuses: {str(refusal)[:LONGEST_REFUSAL]}"
                # It may be a hiccup, and force is for what will not come right by itself.
                forced = forced and now - since >= REFUSES_FOR_GOOD
            if not waits_for:
                continue
            verdict = judge(stage, since, waits_for, forced=forced, settings=self._settings, now=now)
            if not verdict.go_on:
                self._tell_if_stalled(cluster, stage, verdict)
                status = deleting_status(cluster, stage, since, verdict, now)
                return Torn(status, seconds_to_next_look(stage, since, self._settings, now, OFTEN))
            self._audit(cluster, stage, verdict)
        return Torn(None, None)

    async def let_go(self, cluster: TenantCluster) -> None:
        """Nothing is left: the object may go."""
        await self._tenants.forget(cluster.metadata.uid)
        finalizers = without_finalizer(cluster, Finalizer.TENANT_CLUSTER)
        if finalizers is not None:
            key = key_of(cluster)
            try:
                await self._client.patch(
                    CLUSTERS, key.name, finalizers_patch(cluster, finalizers), key.namespace, timeout=WRITE_TIMEOUT
                )
            except NotFound:
                return

    # The stages: do it, and say what is still there.

    async def _waits_for(self, cluster: TenantCluster, stage: DeletionStage) -> str:
        match stage:
            case DeletionStage.LOAD_BALANCERS:
                return await self._load_balancers(cluster)
            case DeletionStage.ADDONS:
                return await self._addons(cluster)
            case DeletionStage.CLUSTER_API:
                return await self._cluster_api(cluster)
            case DeletionStage.MACHINES:
                return await self._machines(cluster)
            case DeletionStage.ADDRESSES:
                return await self._addresses(cluster)
            case DeletionStage.NAMESPACE:
                return await self._namespace(cluster)

    async def _load_balancers(self, cluster: TenantCluster) -> str:
        """The status of a cluster that never came up does not say where its API server is; Cluster API does."""
        if self._views.endpoint_of(uid_of(cluster)) is None:
            try:
                found = await self._live.one(CLUSTER, tenant_namespace(cluster), cluster.metadata.name)
            except NotServed:
                found = None
            endpoint = endpoint_of(found)
            if found is not None and endpoint is None:
                return ""  # no machine could join, so nothing runs there that would have to clean up
            self._views.note_endpoint(cluster, endpoint)
        return await self._tenants.balancers_left(cluster)

    async def _addons(self, cluster: TenantCluster) -> str:
        present = self._views.addons_of(cluster)
        for addon in present:
            if not is_being_deleted(addon):
                await self._delete(ADDONS, key_of(addon), uid_of(addon))
        return left_over("TenantAddon", [name_of(addon) for addon in present]) if present else ""

    async def _cluster_api(self, cluster: TenantCluster) -> str:
        """The answer has to come from the server: addresses are given back on it."""
        resource, key = resource_of_kind(CLUSTER), Key(tenant_namespace(cluster), cluster.metadata.name)
        if await self._is_known_to_go(key):
            return f"Cluster API to delete Cluster {key}"
        try:
            found = await read(self._client, resource, key)
        except NotFound:
            return await self._unless_nothing_was_made(cluster)
        if found is None:
            return ""
        if found.get("spec", {}).get("paused"):
            # We told Cluster API to keep its hands off; it would not even delete.
            patch = {"metadata": {"uid": uid_of(found)}, "spec": {"paused": False}}
            await self._client.patch(
                resource, key.name, patch, key.namespace, field_manager=FieldManager.TENANTS, timeout=WRITE_TIMEOUT
            )
        if not is_being_deleted(found):
            await self._delete(resource, key, uid_of(found))
        return f"Cluster API to delete Cluster {key}"

    async def _is_known_to_go(self, key: Key) -> bool:
        """Whether our view has the Cluster on its way out: to wait on, that is good enough, and is asked often."""
        try:
            known = await self._live.one(CLUSTER, key.namespace, key.name)
        except NotServed:
            return False
        return known is not None and is_being_deleted(known) and not known.get("spec", {}).get("paused")

    async def _machines(self, cluster: TenantCluster) -> str:
        try:
            listed = await self._client.list(resource_of_kind(MACHINE), tenant_namespace(cluster))
        except NotFound:
            return await self._unless_nothing_was_made(cluster)
        left = [name_of(machine) for machine in listed.items]
        return left_over("machine", left) if left else ""

    async def _unless_nothing_was_made(self, cluster: TenantCluster) -> str:
        """The kind is not served: good news only where there is no place that an object could be in."""
        return "Cluster API, which the API server does not know" if await self._has_namespace(cluster) else ""

    async def _namespace(self, cluster: TenantCluster) -> str:
        resource, key = resource_of_kind(NAMESPACE), Key("", tenant_namespace(cluster))
        found = await read(self._client, resource, key)
        if found is None or is_forced(cluster):  # by then it is not needed, and it is looked for once
            await self._delete_what_lies_outside(cluster)
        if found is None:
            return ""
        if not is_being_deleted(found):
            await self._delete(resource, key, uid_of(found))
        return f"namespace {key.name} to go"

    async def _addresses(self, cluster: TenantCluster) -> str:
        if is_forced(cluster) and not self._settings.force_is_checked and await self._has_namespace(cluster):
            # Every author of the cluster can say so, and machines may still run: the search for orphans holds the
            # addresses of a cluster whose namespace is there, and releases them when it is gone.
            message = f"the addresses are held until namespace {tenant_namespace(cluster)} is gone"
            self._events.record(cluster, CLUSTERS, FORCED, f"{DeletionStage.ADDRESSES.value}: {message}", "Warning")
            return ""
        mine = self._views.allocations_of(cluster)
        left = [allocation for allocation in mine if allocation.status.phase is not IPAllocationPhase.RELEASED]
        for namespace in () if is_forced(cluster) else earlier_lives(cluster, left):
            if await read(self._client, resource_of_kind(NAMESPACE), Key("", namespace)) is not None:
                return f"namespace {namespace} to be deleted, where machines of its earlier life may use its addresses"
        by_force = f", by annotation {Annotation.FORCE_DELETE}" if is_forced(cluster) else ""
        grounds = Grounds(f"TenantCluster {key_of(cluster)} was deleted{by_force}", "released")
        # At once: a pool that hears of all of them counts once.
        await asyncio.gather(*(self._release(allocation, grounds) for allocation in left))
        return left_over("IPAllocation", [name_of(allocation) for allocation in left]) if left else ""

    async def _has_namespace(self, cluster: TenantCluster) -> bool:
        return await read(self._client, resource_of_kind(NAMESPACE), Key("", tenant_namespace(cluster))) is not None

    async def _release(self, allocation: IPAllocation, grounds: Grounds) -> None:
        try:
            await self._releases.release(allocation, grounds)
        except (Conflict, NotFound):
            return  # it changed; seen again in a moment

    async def _delete_what_lies_outside(self, cluster: TenantCluster) -> None:
        """AWS wants its credentials elsewhere than in the tenant namespace."""
        for kind, namespace in ((SECRET, AWS_NAMESPACE), (AWS_STATIC_IDENTITY, "")):
            resource, ours = resource_of_kind(kind), f"{Label.TENANT_UID}={uid_of(cluster)}"
            try:
                listed = await self._client.list(resource, namespace, label_selector=ours)
            except NotFound:
                continue  # no such kind
            for copy in listed.items:
                await self._delete(resource, key_of(copy), uid_of(copy))

    async def _delete(self, resource: Resource[Any], key: Key, uid: str) -> None:
        try:
            await self._client.delete(resource, key.name, key.namespace, uid=uid, timeout=WRITE_TIMEOUT)
        except (NotFound, Conflict):
            return  # gone already, or another by now

    # Telling.

    def _audit(self, cluster: TenantCluster, stage: DeletionStage, verdict: DeletionVerdict) -> None:
        """Leave a trace of what was not waited for."""
        reason = STAGE_ENDED if stage in COURTESY else FORCED
        self._events.record(cluster, CLUSTERS, reason, f"{stage.value}: {verdict.message}", "Warning")

    def _tell_if_stalled(self, cluster: TenantCluster, stage: DeletionStage, verdict: DeletionVerdict) -> None:
        before = find_condition(cluster.status.conditions, ConditionType.DELETING)
        told = before is not None and before.reason == TenantClusterReason.STALLED
        if verdict.reason == TenantClusterReason.STALLED and not (told and starting_stage(cluster) is stage):
            self._events.record(cluster, CLUSTERS, "DeletionStalled", f"{stage.value}: {verdict.message}", "Warning")
