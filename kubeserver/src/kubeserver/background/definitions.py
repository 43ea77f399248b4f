"""The life of a CustomResourceDefinition: its names are accepted, it is served, and its objects go before it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Required, TypedDict

import msgspec

from kubeserver.background.follower import Follower
from kubeserver.builtin.catalog import EXTENSIONS
from kubeserver.definitions.definition import accept_names, resources_of, say_terminating, stored_resource
from kubeserver.storage.store import Entry, ObjectKey, StoredChange, Table
from kubeserver.verbs.glance import glance
from kubeserver.verbs.lifecycle import CLEANUP
from kubeserver.wire.messages import decode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kubeserver.background.actor import Actor

Json = dict[str, Any]

_PLURAL: Final = "customresourcedefinitions"
_MANAGER: Final = "kube-apiserver"


class _Spec(TypedDict):
    group: str


class _Status(TypedDict, total=False):
    acceptedNames: Json | None  # as the API spells it


class _Names(TypedDict, total=False):
    """What others have to know of a definition: next to nothing of something large."""

    spec: Required[_Spec]
    status: _Status | None


_read_names: Final = msgspec.json.Decoder(_Names).decode


class DefinitionKeeper(Follower[str]):
    def __init__(self, actor: Actor) -> None:
        super().__init__()
        self._actor = actor
        self._leaving: dict[tuple[str, str], str] = {}  # table -> name of the definition that waits for it
        self._serving: dict[str, tuple[str, int, Json]] = {}  # name -> what it is served by: uid, generation, names

    def serve_what_is_established(self) -> None:
        """Before the first request after a start: what was served is served again."""
        for entry in self._definitions():
            definition = decode(entry.value)
            if _is_true(definition, "Established"):
                self._serve(definition, int(definition["metadata"]["resourceVersion"]))
            self.look_at(entry.key.name)

    def served(self) -> set[str]:
        """The names of the definitions whose resources are served."""
        return self._actor.cluster.registry.definitions()

    def concerns(self, change: StoredChange) -> Iterable[str]:
        key = change.key
        if (key.group, key.plural) == (EXTENSIONS, _PLURAL):
            if change.type == "DELETED":
                self._stop_serving(key.name)
                # its names are free now: another definition of its group may have waited for them
                return [entry.key.name for entry in self._of_group(key.name)]
            if glance(change.value).deletion_timestamp:
                # at once: an object created from now on could escape the controller that removes the objects
                plural, _, group = key.name.partition(".")
                self._actor.cluster.registry.close(group, plural)
            return (key.name,)
        if change.type == "DELETED" and (key.group, key.plural) in self._leaving:
            return (self._leaving[key.group, key.plural],)
        return ()

    async def work(self, item: str) -> None:
        cluster = self._actor.cluster
        entry = cluster.store.get(ObjectKey(cluster.name, EXTENSIONS, _PLURAL, "", item))
        if entry is None:
            return
        definition = decode(entry.value)
        if definition["metadata"].get("deletionTimestamp"):
            await self._remove(definition, entry.key)
        else:
            await self._establish(definition, entry.key)

    async def _establish(self, definition: Json, key: ObjectKey) -> None:
        others = [_read_names(entry.value) for entry in self._of_group(key.name) if entry.key != key]
        status = accept_names(definition, others, self._actor.cluster.now())
        established = any(
            condition["type"] == "Established" and condition["status"] == "True" for condition in status["conditions"]
        )
        if established and _is_true(definition, "Established"):
            # What was decided so far is in the form of before, whenever it gets to the disk.
            self._serve(definition, self._actor.cluster.store.assigned + 1)
        if status != definition.get("status"):

            def changed(current: Json) -> Json:
                current["status"] = status
                return current

            await self._actor.change(key, changed, subresource="status", manager=_MANAGER)

    async def _remove(self, definition: Json, key: ObjectKey) -> None:
        spec, cluster = definition["spec"], self._actor.cluster
        table = Table(cluster.name, spec["group"], spec["names"]["plural"])
        self._leaving[table[1:]] = key.name
        refusals = await self._actor.delete_all(entry.key for entry in self._objects(table))
        if self._objects(table):

            def in_progress(current: Json) -> Json:
                why = "InstanceDeletionInProgress", "CustomResource deletion is in progress"
                say_terminating(current, *why, cluster.now())
                return current

            await self._actor.change(key, in_progress, subresource="status", manager=_MANAGER)
        else:
            self._stop_serving(key.name)
            self._leaving.pop(table[1:], None)
            await self._actor.change(key, _let_go, manager=_MANAGER)
        for refusal in refusals:
            raise refusal

    def _objects(self, table: Table) -> list[Entry]:
        """What goes with a definition; one that takes the name of a built-in kind has nothing of its own."""
        cluster = self._actor.cluster
        return [] if cluster.registry.is_builtin(*table[1:]) else cluster.store.entries_latest(table)

    def _serve(self, definition: Json, since: int) -> None:
        metadata, names = definition["metadata"], definition["status"]["acceptedNames"]
        name, now = metadata["name"], (metadata["uid"], metadata.get("generation", 0), names)
        if self._serving.get(name) == now:
            return
        stored = stored_resource(definition, since)
        if self._actor.cluster.registry.is_builtin(*stored.table):
            return
        self._serving[name] = now
        self._actor.cluster.registry.serve(name, resources_of(definition, since), stored)
        self._actor.cluster.store.end_watches(self._actor.cluster.table(stored))

    def _stop_serving(self, name: str) -> None:
        stored = self._actor.cluster.registry.storage(*reversed(name.split(".", 1)))
        self._actor.cluster.registry.forget(name)
        if self._serving.pop(name, None) and stored is not None:
            self._actor.cluster.store.end_watches(self._actor.cluster.table(stored))

    def _of_group(self, name: str) -> list[Entry]:
        """The definitions of the same group, within which names have to differ: `<plural>.<group>` is what each is
        called. Few of many, and each of them is large."""
        group = name.partition(".")[2]
        return [entry for entry in self._definitions() if entry.key.name.partition(".")[2] == group]

    def _definitions(self) -> Iterable[Entry]:
        cluster = self._actor.cluster
        return cluster.store.entries(Table(cluster.name, EXTENSIONS, _PLURAL))


def _is_true(definition: Json, condition: str) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or []
    return any(item["type"] == condition and item["status"] == "True" for item in conditions)


def _let_go(definition: Json) -> Json:
    definition["metadata"]["finalizers"] = [
        finalizer for finalizer in definition["metadata"].get("finalizers") or [] if finalizer != CLEANUP
    ]
    return definition
