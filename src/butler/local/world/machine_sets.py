"""Stand-in for Cluster API's MachineSet controller: as many Machines of one template as were asked for.

A Machine that fails stays and is not replaced, as in Cluster API, where that is the work of a health check; a Machine
that a user deletes is. When there are too many, those go first that a user marked, then those that failed or
have no Node, then as the delete policy says.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from butler.api.objects import is_being_deleted, key_of, labels_of, name_of, namespace_of
from butler.kube.controller import After, Controller
from butler.kube.objects import owner_reference
from butler.local.world import kinds
from butler.local.world.conditions import is_true, judged, merged
from butler.local.world.view import WorldView, owner_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from butler.api.objects import Json, Key
    from butler.kube.operator import Operator
    from butler.local.world.settings import WorldSettings

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def add_machine_sets(operator: Operator, view: WorldView, settings: WorldSettings) -> None:
    stand_in = MachineSets(view)
    controller = Controller("world-machinesets", stand_in.reconcile, workers=settings.workers, metrics=operator.metrics)
    controller.watches(view.sets)
    controller.watches(view.machines, _set_of)
    controller.watches(view.clusters, lambda cluster: map(key_of, view.sets.by("cluster", key_of(cluster))))
    operator.add(controller)


def _set_of(machine: Json) -> Iterable[Key]:
    key = owner_key(machine, kinds.MACHINE_SETS)
    return () if key is None else (key,)


class MachineSets:
    def __init__(self, view: WorldView) -> None:
        self._view = view

    async def reconcile(self, key: Key) -> After | None:
        view = self._view
        machine_set = view.sets.get(key)
        if machine_set is None or view.is_paused(machine_set):
            return None
        machines = view.machines_of(machine_set)
        if is_being_deleted(machine_set):
            await view.delete_all(view.machines, machines)
            if not machines:
                await view.release(view.sets, machine_set, kinds.SET_FINALIZER)
            return None
        wanted = machine_set["spec"].get("replicas", 1)
        present = [machine for machine in machines if not is_being_deleted(machine)]
        present += [await view.create(view.machines, new_machine(machine_set)) for _ in range(wanted - len(present))]
        surplus = to_delete(present, len(present) - wanted, machine_set["spec"].get("deletePolicy", "Random"))
        await view.delete_all(view.machines, surplus)
        gone = {name_of(machine) for machine in surplus}
        left = [machine for machine in present if name_of(machine) not in gone]
        await view.write_status(view.sets, machine_set, status(machine_set, left, view.now))
        return None


def new_machine(machine_set: Json) -> Json:
    """A Machine as the set's template has it, under a name of its own.

    The objects that it refers to have its name, and come when it is looked after.
    """
    template = machine_set["spec"]["template"]
    name = f"{name_of(machine_set)[: kinds.STEM]}-{''.join(secrets.choice(_LETTERS) for _ in range(5))}"
    namespace = namespace_of(machine_set)
    spec = {**template["spec"], "clusterName": machine_set["spec"]["clusterName"]}
    spec["infrastructureRef"] = _own(spec["infrastructureRef"], name, namespace)
    bootstrap = spec.get("bootstrap") or {}
    if bootstrap.get("configRef"):
        spec["bootstrap"] = {**bootstrap, "configRef": _own(bootstrap["configRef"], name, namespace)}
    labels = {**((template.get("metadata") or {}).get("labels") or {}), **_given_labels(machine_set)}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {**labels, kinds.CLUSTER_NAME: spec["clusterName"], kinds.SET_NAME: name_of(machine_set)},
            "annotations": {**((template.get("metadata") or {}).get("annotations") or {})},
            "finalizers": [kinds.MACHINE_FINALIZER],
            "ownerReferences": [owner_reference(machine_set, kinds.MACHINE_SETS)],
        },
        "spec": spec,
    }


def _given_labels(machine_set: Json) -> dict[str, str]:
    handed_on = (kinds.DEPLOYMENT_NAME, kinds.TEMPLATE_HASH)
    return {key: value for key, value in labels_of(machine_set).items() if key in handed_on}


def _own(template: Json, name: str, namespace: str) -> Json:
    """From the reference to a template to that of the object that will be cloned from it."""
    kind = template["kind"].removesuffix("Template")
    return {"apiVersion": template["apiVersion"], "kind": kind, "name": name, "namespace": namespace}


def to_delete(machines: Sequence[Json], surplus: int, policy: str) -> list[Json]:
    """Which machines go when there are too many."""
    if surplus <= 0:
        return []
    in_order = sorted(machines, key=lambda machine: machine["metadata"].get("creationTimestamp", ""))
    if policy == "Newest":
        in_order.reverse()
    return sorted(in_order, key=_worth)[:surplus]


def _worth(machine: Json) -> int:
    if kinds.DELETE_FIRST in (machine["metadata"].get("annotations") or {}):
        return 0
    told = machine.get("status") or {}
    return 1 if told.get("failureMessage") or not told.get("nodeRef") else 2


def is_ready(machine: Json) -> bool:
    return bool((machine.get("status") or {}).get("nodeRef")) and is_true(machine, "NodeHealthy")


def status(machine_set: Json, machines: Sequence[Json], now: str) -> Json:
    """What a set says of its machines; those that are going away are no longer counted."""
    wanted, ready = machine_set["spec"].get("replicas", 1), sum(map(is_ready, machines))
    selected = machine_set["spec"].get("selector", {}).get("matchLabels") or {}
    conditions = (
        judged("MachinesCreated", True, ""),
        judged("Resized", len(machines) == wanted, "ScalingUp" if len(machines) < wanted else "ScalingDown"),
        judged("MachinesReady", ready == len(machines), "WaitingForMachines", f"{ready} of {len(machines)} ready"),
        judged("Ready", ready == wanted, "WaitingForMachines", f"{ready} of {wanted} ready"),
    )
    return {
        "observedGeneration": machine_set["metadata"].get("generation", 1),
        "selector": ",".join(f"{key}={value}" for key, value in sorted(selected.items())),
        "replicas": len(machines),
        "fullyLabeledReplicas": len(machines),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "conditions": merged(machine_set, conditions, now),
    }
