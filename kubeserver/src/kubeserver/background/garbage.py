"""The garbage collector: objects go when the last of their owners is gone.

An owner is a reference by UID, so an object of the same name that came later is not the owner. Only what is certain
is collected: an owner of a kind that is not served (any more, or yet) keeps its dependents.

Foreground deletion is the other direction: the owner waits, marked, until the dependents that block it are gone.
Orphaning takes the references off the dependents first and then lets the owner go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubeserver.background.follower import Follower
from kubeserver.storage.store import ObjectKey, StoredChange
from kubeserver.verbs.glance import Metadata, OwnerReference, glance
from kubeserver.verbs.lifecycle import FOREGROUND, ORPHAN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kubeserver.background.actor import Actor

Json = dict[str, Any]


class GarbageCollector(Follower[ObjectKey]):
    at_once = 64  # deletions that are under way together share trips to the disk

    def __init__(self, actor: Actor) -> None:
        super().__init__()
        self._actor = actor
        self._dependents: dict[str, set[ObjectKey]] = {}  # owner's UID -> who names it
        self._owners: dict[ObjectKey, tuple[str, ...]] = {}  # the same, the other way round
        self._leaving: dict[str, ObjectKey] = {}  # UID -> objects in foreground deletion
        self._gone: set[str] = set()  # UIDs of deleted owners that still have dependents

    def concerns(self, change: StoredChange) -> Iterable[ObjectKey]:
        metadata = glance(change.value)
        if change.type == "DELETED":
            return self._forget(change.key, metadata)
        self._remember(change.key, metadata)
        leaving = set(metadata.finalizers or ()) & {FOREGROUND, ORPHAN} if metadata.deletion_timestamp else set()
        if FOREGROUND in leaving:
            self._leaving[metadata.uid] = change.key
        return (change.key,) if leaving or metadata.owner_references else ()

    def _remember(self, key: ObjectKey, metadata: Metadata) -> None:
        owners = tuple(owner.uid for owner in metadata.owner_references or ())
        before = self._owners.get(key, ())
        if owners == before:
            return
        self._drop(key, before)
        if owners:
            self._owners[key] = owners
            for uid in owners:
                self._dependents.setdefault(uid, set()).add(key)

    def _forget(self, key: ObjectKey, metadata: Metadata) -> list[ObjectKey]:
        owners = self._owners.get(key, ())
        self._drop(key, owners)
        self._leaving.pop(metadata.uid, None)
        waiting = [self._leaving[uid] for uid in owners if uid in self._leaving]
        if metadata.uid in self._dependents:
            self._gone.add(metadata.uid)
        return [*self._dependents.get(metadata.uid, ()), *waiting]

    def _drop(self, key: ObjectKey, owners: tuple[str, ...]) -> None:
        self._owners.pop(key, None)
        for uid in owners:
            keys = self._dependents.get(uid)
            if keys:
                keys.discard(key)
                if not keys:
                    del self._dependents[uid]
                    self._gone.discard(uid)

    async def work(self, item: ObjectKey) -> None:
        entry = self._actor.cluster.store.get(item)
        if entry is None:
            return
        metadata = glance(entry.value)
        if metadata.deletion_timestamp:
            await self._finish_leaving(item, metadata)
        elif metadata.owner_references:
            await self._judge(item, metadata)

    async def _finish_leaving(self, key: ObjectKey, metadata: Metadata) -> None:
        finalizers = metadata.finalizers or []
        dependents = sorted(self._dependents.get(metadata.uid, ()))
        if ORPHAN in finalizers:
            for dependent in dependents:
                await self._actor.change(dependent, _without_owners({metadata.uid}))
            await self._actor.change(key, _without_finalizer(ORPHAN))
        elif FOREGROUND in finalizers:
            blocked = False
            for dependent in dependents:
                blocked |= await self._clear_the_way(dependent, metadata.uid)
            if not blocked:
                await self._actor.change(key, _without_finalizer(FOREGROUND))

    async def _clear_the_way(self, dependent: ObjectKey, owner: str) -> bool:
        """Delete a dependent of an owner in foreground deletion; whether the owner must wait for it."""
        entry = self._actor.cluster.store.get(dependent)
        if entry is None:
            return False
        metadata = glance(entry.value)
        references = metadata.owner_references or []
        blocks = any(reference.uid == owner and reference.block_owner_deletion for reference in references)
        if not metadata.deletion_timestamp:
            await self._judge(dependent, metadata)
        return blocks

    async def _judge(self, key: ObjectKey, metadata: Metadata) -> None:
        gone: set[str] = set()
        leaving: set[str] = set()
        solid = False
        for owner in metadata.owner_references or ():
            state = self._state_of(owner, key.namespace)
            if state == "gone":
                gone.add(owner.uid)
            elif state == "leaving":
                leaving.add(owner.uid)
            else:
                solid = True
        if not gone and not leaving:
            return
        if solid:
            await self._actor.change(key, _without_owners(gone | leaving))
            return
        dependents = self._dependents.get(metadata.uid, ())
        if leaving and not self._leaving.keys().isdisjoint(self._uids(dependents)):
            # Owners in a circle would wait for each other for ever: so this one no longer blocks its owners.
            await self._actor.change(key, _not_blocking)
            for uid in leaving & self._leaving.keys():
                self.look_at(self._leaving[uid])
        propagation = "Foreground" if leaving and dependents else _as_marked(metadata)
        await self._actor.delete(key, uid=metadata.uid, propagation=propagation)

    def _uids(self, keys: Iterable[ObjectKey]) -> set[str]:
        entries = (self._actor.cluster.store.get(key) for key in keys)
        return {glance(entry.value).uid for entry in entries if entry is not None}

    def _state_of(self, owner: OwnerReference, namespace: str) -> str:
        if owner.uid in self._gone:  # seen going, be its kind served or not
            return "gone"
        cluster = self._actor.cluster
        resource = cluster.registry.of_kind(owner.api_version, owner.kind)
        if resource is None or (resource.namespaced and not namespace):
            return "unknown"
        entry = cluster.store.get(cluster.key(resource, namespace if resource.namespaced else "", owner.name))
        if entry is None:
            return "gone"
        metadata = glance(entry.value)
        if metadata.uid != owner.uid:
            return "gone"
        waits = metadata.deletion_timestamp and FOREGROUND in (metadata.finalizers or ())
        return "leaving" if waits else "solid"


def _as_marked(metadata: Metadata) -> str:
    """How an object's own dependents are treated when it is collected, if its finalizers say so."""
    finalizers = metadata.finalizers or ()
    return "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"


def _not_blocking(obj: Json) -> Json:
    for owner_reference in obj["metadata"].get("ownerReferences") or ():
        if owner_reference.get("blockOwnerDeletion"):
            owner_reference["blockOwnerDeletion"] = False
    return obj


def _without_finalizer(name: str) -> Callable[[Json], Json]:
    def changed(obj: Json) -> Json:
        kept = [finalizer for finalizer in obj["metadata"].get("finalizers") or [] if finalizer != name]
        obj["metadata"]["finalizers"] = kept
        if not kept:
            del obj["metadata"]["finalizers"]
        return obj

    return changed


def _without_owners(uids: set[str]) -> Callable[[Json], Json]:
    def changed(obj: Json) -> Json:
        kept = [
            owner_reference
            for owner_reference in obj["metadata"].get("ownerReferences") or []
            if owner_reference["uid"] not in uids
        ]
        obj["metadata"]["ownerReferences"] = kept
        if not kept:
            del obj["metadata"]["ownerReferences"]
        return obj

    return changed
