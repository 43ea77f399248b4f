"""Stand-in for Cluster API's Machine controller, the providers' machine controllers and the kubelets, all in one.

A Machine waits for the control plane (Pending), then gets the objects that it refers to, cloned from their templates,
and with them an address (Provisioning), and after some time its Node on the tenant (Running). An address belongs to a
machine from the moment it is written into the provider's object until the Machine is gone; a machine that finds none
free waits for one. On deletion the Node goes first, then the provider's object, then the Machine.

All that counts is in objects. What is told apart in memory (machines made to fail, Nodes made or removed) only saves
requests and may be forgotten at any time.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from butler.api.objects import Key, is_being_deleted, key_of, name_of, uid_of
from butler.kube.controller import After, Controller
from butler.kube.errors import AlreadyExists, KubeError, NotFound
from butler.kube.resource import NODES
from butler.local.world import kinds, machine_objects, machine_status
from butler.local.world.machine_status import address_of, control_plane_serves
from butler.local.world.pace import moment
from butler.local.world.provisioner import Provisioner
from butler.local.world.tenants import NoWayIn
from butler.local.world.view import WorldView, cluster_key, owner_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.api.objects import Json
    from butler.kube.cache import Cache
    from butler.kube.operator import Operator
    from butler.local.world.settings import WorldSettings
    from butler.local.world.tenants import TenantConnections

log = logging.getLogger(__name__)

NODE_DELETION_PATIENCE: Final = 10.0
"""A Node that cannot be removed within these seconds is left behind, as Cluster API does by default."""


def add_machines(operator: Operator, view: WorldView, tenants: TenantConnections, settings: WorldSettings) -> None:
    stand_in = Machines(view, tenants, settings)
    controller = Controller("world-machines", stand_in.reconcile, workers=settings.workers, metrics=operator.metrics)
    controller.watches(view.machines, stand_in.concerned)
    for cache in view.infrastructure_machines.values():
        controller.watches(cache, _machine_of)
    for cache in view.infrastructure_clusters.values():
        controller.watches(cache, lambda found: stand_in.waiting(_cluster_of(found)))
    controller.watches(
        view.clusters,
        lambda cluster: map(key_of, view.machines.by("cluster", key_of(cluster))),
        when=lambda old, new: old is None or new is None or _matters(old) != _matters(new),
    )
    controller.watches(view.deployments, stand_in.told, when=_annotations_differ)
    tenants.on_change(lambda key: _add_all(controller, stand_in.nodeless(key)))
    operator.add(controller)


def _add_all(controller: Controller, keys: Iterable[Key]) -> None:
    for key in keys:
        controller.queue.add(key)


def _machine_of(infrastructure: Json) -> Iterable[Key]:
    # By name too: the owner reference may not be there, the name always is the Machine's.
    return (owner_key(infrastructure, kinds.MACHINES) or key_of(infrastructure),)


def _cluster_of(infrastructure: Json) -> Key:
    return owner_key(infrastructure, kinds.CLUSTERS) or cluster_key(infrastructure)


def _matters(cluster: Json) -> tuple[bool, ...]:
    return (bool(cluster["spec"].get("paused")), control_plane_serves(cluster), is_being_deleted(cluster))


def _annotations_differ(old: Json | None, new: Json | None) -> bool:
    told = [(obj or {}).get("metadata", {}).get("annotations") or {} for obj in (old, new)]
    return any(told[0].get(name) != told[1].get(name) for name in (kinds.FAIL_MACHINES, kinds.MACHINE_SECONDS))


class Machines:
    def __init__(self, view: WorldView, tenants: TenantConnections, settings: WorldSettings) -> None:
        self._view = view
        self._tenants = tenants
        self._settings = settings
        self._provisioning = Provisioner(view)
        self._failing: set[Key] = set()
        self._joined: dict[Key, str] = {}  # UIDs of Machines whose Node is known to be there
        self._left: dict[Key, str] = {}  # and of those whose Node is known to be gone

    # Whom a change concerns.

    def concerned(self, machine: Json) -> Iterable[Key]:
        """A Machine itself and, as its address becomes free with its end, those that wait for one."""
        yield key_of(machine)
        if is_being_deleted(machine):
            yield from self.waiting(cluster_key(machine))

    def waiting(self, cluster: Key) -> Iterable[Key]:
        """Machines without an address."""
        for machine in self._view.machines.by("cluster", cluster):
            found = self._view.infrastructure_machine(machine)
            if found is not None and address_of(found[1]) is None:
                yield key_of(machine)

    def nodeless(self, cluster: Key) -> Iterable[Key]:
        for machine in self._view.machines.by("cluster", cluster):
            if self._joined.get(key_of(machine)) != uid_of(machine):
                yield key_of(machine)

    def told(self, deployment: Json) -> Iterable[Key]:
        for machine in self._view.machines.by("cluster", cluster_key(deployment)):
            if self._view.deployment_of(machine) is deployment:
                yield key_of(machine)

    # One Machine.

    async def reconcile(self, key: Key) -> After | None:
        machine = self._view.machines.get(key)
        if machine is None:
            await self._forget(key)
            return None
        if self._view.is_paused(machine):
            return None
        if is_being_deleted(machine):
            return await self._end(key, machine)
        cluster = self._view.clusters.get(cluster_key(machine))
        if cluster is None:
            return None
        if not control_plane_serves(cluster) and not (machine.get("status") or {}).get("nodeRef"):
            await self._write(machine, machine_status.pending(machine, self._view.now))
            return None
        return await self._live(key, machine, cluster)

    async def _live(self, key: Key, machine: Json, cluster: Json) -> After | None:
        view = self._view
        found = view.infrastructure_machine(machine)
        if found is None:
            if (machine.get("status") or {}).get("infrastructureReady"):
                gone = "the provider's machine was deleted while it was in use"
                await self._write(machine, machine_status.failed(machine, "InvalidConfiguration", gone, view.now))
                return None
            found = await self._provisioning.begin(machine, cluster)
            if found is None:
                missing = "the template that the machine is made from does not exist"
                await self._write(machine, machine_status.provisioning(machine, "TemplateMissing", missing, view.now))
                return After(1.0)
        cache, infrastructure = found
        if is_being_deleted(infrastructure):  # by a person: Cluster API deletes the Machine first
            await view.release(cache, infrastructure, kinds.INFRASTRUCTURE_FINALIZER)
            return None
        told = infrastructure.get("status") or {}
        if told.get("failureMessage"):
            reason, message = told.get("failureReason", "CreateError"), told["failureMessage"]
            await self._write(machine, machine_status.failed(machine, reason, message, view.now))
            return None
        address = address_of(infrastructure)
        if address is None:
            infrastructure, address = await self._provisioning.give_address(machine, cluster, cache, infrastructure)
        if address is None:
            no_room = "no address is free: every one that the provider's objects offer is held by another machine"
            await self._write(machine, machine_status.provisioning(machine, "NoFreeAddress", no_room, view.now))
            return After(1.0)  # as providers do: an address may come free without a word to this machine
        return await self._join(key, machine, cache, infrastructure, address)

    async def _join(
        self, key: Key, machine: Json, cache: Cache[Json], infrastructure: Json, address: str
    ) -> After | None:
        view = self._view
        if not (machine.get("status") or {}).get("nodeRef"):
            since = infrastructure["metadata"].get("creationTimestamp")
            left = view.pace.remaining(key, since, self._seconds(machine))
            if left:
                starting = machine_status.provisioning(machine, "WaitingForInfrastructure", "", view.now)
                await self._write(machine, starting)
                return After(left)
            if self._is_to_fail(key, machine):
                reason, message = "CreateError", "told to fail by the annotation " + kinds.FAIL_MACHINES
                failure = {"ready": False, "failureReason": reason, "failureMessage": message}
                await view.write_status(cache, infrastructure, failure)
                await self._write(machine, machine_status.failed(machine, reason, message, view.now))
                return None
        if cluster_key(machine) not in self._tenants:
            return None  # we hear when its kubeconfig is there
        reference = await self._register(machine, infrastructure, address)
        ready = {"ready": True, "addresses": machine_objects.addresses(machine, address)}
        await view.write_status(cache, infrastructure, ready)
        if not machine["spec"].get("providerID"):
            identity = {"spec": {"providerID": machine_objects.provider_id(machine)}}
            machine = await view.patch(view.machines, machine, identity)
        await self._write(machine, machine_status.running(machine, reference, address, view.now))
        return None

    async def _register(self, machine: Json, infrastructure: Json, address: str) -> Json:
        """Make sure that the Node is there; gives the reference to it."""
        known: Json | None = (machine.get("status") or {}).get("nodeRef")
        if known and self._joined.get(key_of(machine)) == uid_of(machine):
            return known
        body = machine_objects.node(machine, infrastructure["spec"], address, self._view.now)
        async with self._tenants.borrow(cluster_key(machine)) as tenant:
            try:
                made = await tenant.create(NODES, body)
            except AlreadyExists:
                made = {} if known else await tenant.get(NODES, name_of(machine))
        self._joined[key_of(machine)] = uid_of(machine)
        if not made and known:
            return known
        return {"apiVersion": "v1", "kind": "Node", "name": name_of(machine), "uid": uid_of(made)}

    def _seconds(self, machine: Json) -> float:
        told = self._told(machine).get(kinds.MACHINE_SECONDS)
        with suppress(ValueError, TypeError):
            return float(told)  # type: ignore[arg-type]  # None and nonsense alike
        return self._settings.machine_seconds

    def _told(self, machine: Json) -> Json:
        deployment = self._view.deployment_of(machine) or {}
        return deployment.get("metadata", {}).get("annotations") or {}

    def _is_to_fail(self, key: Key, machine: Json) -> bool:
        told = self._told(machine).get(kinds.FAIL_MACHINES, "")
        if told == "all":
            return True
        if not told.isdecimal():
            return False
        siblings = self._view.machines.by("cluster", cluster_key(machine))
        deployment = self._view.deployment_of(machine)
        failed = {
            key_of(sibling)
            for sibling in siblings
            if self._view.deployment_of(sibling) is deployment
            and (key_of(sibling) in self._failing or (sibling.get("status") or {}).get("failureMessage"))
        }
        if len(failed - {key}) < int(told):
            self._failing.add(key)
        return key in self._failing

    async def _write(self, machine: Json, status: Json) -> None:
        await self._view.write_status(self._view.machines, machine, status)

    # Its end.

    async def _end(self, key: Key, machine: Json) -> After | None:
        view = self._view
        await self._write(machine, machine_status.deleting(machine, view.now))
        found = view.infrastructure_machine(machine)
        if found is None or not is_being_deleted(found[1]):
            await self._unregister(machine)
        if found is None:
            await view.release(view.machines, view.machines.get(key) or machine, kinds.MACHINE_FINALIZER)
            return None
        cache, infrastructure = found
        await view.delete(cache, infrastructure)
        since = machine["metadata"]["deletionTimestamp"]
        left = view.pace.remaining(("end", key), since, self._settings.machine_deletion_seconds)
        if left:
            return After(left)
        ending = cache.get(key_of(infrastructure))
        if ending is not None and is_being_deleted(ending):
            await view.release(cache, ending, kinds.INFRASTRUCTURE_FINALIZER)
        return None

    async def _unregister(self, machine: Json) -> None:
        """Remove the Node, unless its cluster has gone before it."""
        if self._left.get(key_of(machine)) == uid_of(machine):
            return
        try:
            async with self._tenants.borrow(cluster_key(machine)) as tenant:
                await tenant.delete(NODES, name_of(machine))
        except (NotFound, NoWayIn):
            pass
        except KubeError as error:
            if time.time() - moment(machine["metadata"]["deletionTimestamp"]) < NODE_DELETION_PATIENCE:
                raise
            log.warning("Node %s cannot be removed from its cluster and is left behind: %s", name_of(machine), error)
        self._joined.pop(key_of(machine), None)
        self._left[key_of(machine)] = uid_of(machine)

    async def _forget(self, key: Key) -> None:
        view = self._view
        self._provisioning.forget(key)
        self._failing.discard(key)
        self._joined.pop(key, None)
        self._left.pop(key, None)
        view.pace.forget(key)
        view.pace.forget(("end", key))
        for cache in view.infrastructure_machines.values():
            left = cache.get(key)
            if left is not None and is_being_deleted(left):  # its Machine went without us
                await view.release(cache, left, kinds.INFRASTRUCTURE_FINALIZER)
