"""Stand-in for Cluster API's MachineDeployment controller: one MachineSet for each template, and rolling updates.

A change of the template makes a new MachineSet, named by what the template says, so that one that a crash cut off
half way is found again instead of made twice. Who is told to have how many machines is decided in `rollout`. A
MachineDeployment that is paused itself is still scaled, but not rolled out; one of a paused Cluster is not touched.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from butler.api.objects import is_being_deleted, key_of, labels_of, name_of, namespace_of, uid_of
from butler.kube.controller import After, Controller
from butler.kube.errors import AlreadyExists, NotFound
from butler.kube.objects import owner_reference
from butler.local.world import kinds, rollout
from butler.local.world.conditions import judged, merged
from butler.local.world.view import WorldView, adoption, cluster_key, owner_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from butler.api.objects import Json, Key
    from butler.kube.operator import Operator
    from butler.local.world.settings import WorldSettings

REVISION = "machinedeployment.clusters.x-k8s.io/revision"


def add_machine_deployments(operator: Operator, view: WorldView, settings: WorldSettings) -> None:
    stand_in = MachineDeployments(view)
    controller = Controller(
        "world-machinedeployments", stand_in.reconcile, workers=settings.workers, metrics=operator.metrics
    )
    controller.watches(view.deployments)
    controller.watches(view.sets, _deployment_of)
    controller.watches(view.clusters, lambda cluster: map(key_of, view.deployments.by("cluster", key_of(cluster))))
    operator.add(controller)


def _deployment_of(machine_set: Json) -> Iterable[Key]:
    key = owner_key(machine_set, kinds.MACHINE_DEPLOYMENTS)
    return () if key is None else (key,)


class MachineDeployments:
    def __init__(self, view: WorldView) -> None:
        self._view = view

    async def reconcile(self, key: Key) -> After | None:
        view = self._view
        deployment = view.deployments.get(key)
        if deployment is None or view.is_paused(deployment):
            return None
        sets = view.sets_of(deployment)
        if is_being_deleted(deployment):
            await view.delete_all(view.sets, sets)
            if not sets:
                await view.release(view.deployments, deployment, kinds.DEPLOYMENT_FINALIZER)
            return None
        cluster = view.clusters.get(cluster_key(deployment))
        if cluster is None or is_being_deleted(cluster):
            return None
        change = adoption(deployment, cluster, kinds.CLUSTERS, controller=False, finalizer=kinds.DEPLOYMENT_FINALIZER)
        if change is not None:
            deployment = await view.patch(view.deployments, deployment, change)
        living = [machine_set for machine_set in sets if not is_being_deleted(machine_set)]
        newest = find_newest(deployment, living)
        if newest is None:
            if deployment["spec"].get("paused") and living:
                newest = max(living, key=revision)  # not rolled out, but scaled
            else:
                newest = await self._begin(deployment, cluster, living)
                if newest is None:
                    return After(1.0)
                living.append(newest)
        living = await self._scale(deployment, newest, living)
        await self._tidy(deployment, newest, living)
        told = status(
            deployment,
            next(machine_set for machine_set in living if uid_of(machine_set) == uid_of(newest)),
            living,
            view.now,
        )
        await view.write_status(view.deployments, deployment, told)
        return None

    async def _begin(self, deployment: Json, cluster: Json, sets: Sequence[Json]) -> Json | None:
        """A set for a template that has none; its templates belong to the Cluster from now on."""
        spec = deployment["spec"]["template"]["spec"]
        references = [spec["infrastructureRef"], (spec.get("bootstrap") or {}).get("configRef")]
        for reference in filter(None, references):
            await self._adopt_template(reference, cluster)
        body = new_set(deployment, _first_replicas(deployment, sets), 1 + max(map(revision, sets), default=0))
        try:
            return await self._view.create(self._view.sets, body)
        except AlreadyExists:
            return None  # an older one of that name is about to go, or we have yet to hear of it

    async def _adopt_template(self, reference: Json, cluster: Json) -> None:
        resource = kinds.MACHINE_TEMPLATES.get(reference["kind"])
        if reference["kind"] == kinds.KUBEADM_CONFIG_TEMPLATES.kind:
            resource = kinds.KUBEADM_CONFIG_TEMPLATES
        if resource is None:
            return
        namespace = reference.get("namespace") or namespace_of(cluster)
        with suppress(NotFound):  # those who clone from it complain
            template = await self._view.client.get(resource, reference["name"], namespace)
            change = adoption(template, cluster, kinds.CLUSTERS, controller=False)
            if change is not None:
                await self._view.client.patch(resource, reference["name"], change, namespace)

    async def _scale(self, deployment: Json, newest: Json, sets: Sequence[Json]) -> list[Json]:
        view, wanted = self._view, replicas_of(deployment)
        allowed = rollout.limits(deployment["spec"].get("strategy") or {}, wanted)
        older = [_summary(machine_set) for machine_set in sets if uid_of(machine_set) != uid_of(newest)]
        if deployment["spec"].get("paused"):
            others = sum(machine_set.replicas for machine_set in older)
            told = {name_of(newest): max(0, wanted - others)}
        else:
            told = rollout.plan(wanted, allowed, _summary(newest), older)
        scaled = []
        for machine_set in sets:
            count = told.get(name_of(machine_set), replicas_of(machine_set))
            changed = count != replicas_of(machine_set)
            scaled.append(
                await view.patch(view.sets, machine_set, {"spec": {"replicas": count}}) if changed else machine_set
            )
        return scaled

    async def _tidy(self, deployment: Json, newest: Json, sets: Sequence[Json]) -> None:
        """Sets without machines are kept for going back, as many as the history may have."""
        empty = [
            machine_set
            for machine_set in sets
            if uid_of(machine_set) != uid_of(newest)
            and not replicas_of(machine_set)
            and not self._view.machines_of(machine_set)
        ]
        empty.sort(key=revision)
        history = deployment["spec"].get("revisionHistoryLimit", 1)
        await self._view.delete_all(self._view.sets, empty[: max(0, len(empty) - history)])


def replicas_of(obj: Json) -> int:
    return int(obj["spec"].get("replicas", 1))


def revision(machine_set: Json) -> int:
    return int((machine_set["metadata"].get("annotations") or {}).get(REVISION, 0))


def find_newest(deployment: Json, sets: Sequence[Json]) -> Json | None:
    """The set whose machines are as the template says."""
    wanted = rollout.template_hash(deployment["spec"]["template"])
    return next(
        (machine_set for machine_set in sets if labels_of(machine_set).get(kinds.TEMPLATE_HASH) == wanted), None
    )


def _first_replicas(deployment: Json, sets: Sequence[Json]) -> int:
    if not sets:
        return replicas_of(deployment)
    allowed = rollout.limits(deployment["spec"].get("strategy") or {}, replicas_of(deployment))
    empty = rollout.MachineSet("", 0, 0)
    return rollout.plan(replicas_of(deployment), allowed, empty, [_summary(machine_set) for machine_set in sets]).get(
        "", 0
    )


def _summary(machine_set: Json) -> rollout.MachineSet:
    available = (machine_set.get("status") or {}).get("availableReplicas", 0)
    age = machine_set["metadata"].get("creationTimestamp", "")
    return rollout.MachineSet(name_of(machine_set), replicas_of(machine_set), available, age)


def new_set(deployment: Json, replicas: int, number: int) -> Json:
    """The MachineSet of a deployment's template as it is now."""
    spec, template = deployment["spec"], deployment["spec"]["template"]
    chosen_by = {kinds.TEMPLATE_HASH: rollout.template_hash(template)}
    labels = {
        **((template.get("metadata") or {}).get("labels") or {}),
        **chosen_by,
        kinds.CLUSTER_NAME: spec["clusterName"],
        kinds.DEPLOYMENT_NAME: name_of(deployment),
    }
    return {
        "metadata": {
            "name": f"{name_of(deployment)[: kinds.STEM]}-{chosen_by[kinds.TEMPLATE_HASH][:5]}",
            "namespace": namespace_of(deployment),
            "labels": labels,
            "annotations": {REVISION: str(number)},
            "finalizers": [kinds.SET_FINALIZER],
            "ownerReferences": [owner_reference(deployment, kinds.MACHINE_DEPLOYMENTS)],
        },
        "spec": {
            "clusterName": spec["clusterName"],
            "replicas": replicas,
            "selector": {"matchLabels": {**((spec.get("selector") or {}).get("matchLabels") or {}), **chosen_by}},
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }


def status(deployment: Json, newest: Json, sets: Sequence[Json], now: str) -> Json:
    """What a deployment says of all its machines."""
    counted = [machine_set.get("status") or {} for machine_set in sets]
    wanted, told = replicas_of(deployment), sum(map(replicas_of, sets))
    ready, available = (sum(seen.get(field, 0) for seen in counted) for field in ("readyReplicas", "availableReplicas"))
    allowed = rollout.limits(deployment["spec"].get("strategy") or {}, wanted)
    enough = available >= wanted - allowed.unavailable
    least = f"Minimum availability requires {wanted - allowed.unavailable} replicas, current {available} available"
    conditions = (
        judged("Available", enough, "WaitingForAvailableMachines", least, "Warning"),
        judged("MachineSetReady", ready == told, "WaitingForMachines", f"{ready} of {told} ready"),
        judged("Ready", enough, "WaitingForAvailableMachines", least, "Warning"),
    )
    phase = "Running" if ready == wanted else "ScalingUp" if ready < wanted else "ScalingDown"
    selected = (deployment["spec"].get("selector") or {}).get("matchLabels") or {}
    return {
        "observedGeneration": deployment["metadata"].get("generation", 1),
        "selector": ",".join(f"{key}={value}" for key, value in sorted(selected.items())),
        "replicas": sum(seen.get("replicas", 0) for seen in counted),
        "updatedReplicas": (newest.get("status") or {}).get("replicas", 0),
        "readyReplicas": ready,
        "availableReplicas": available,
        "unavailableReplicas": max(0, told - available),
        "phase": phase,
        "conditions": merged(deployment, conditions, now),
    }
