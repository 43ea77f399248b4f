"""The life of a CustomResourceDefinition: its names are accepted, it is served, and its objects go before it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from butler.local.apiserver.background.follower import Follower
from butler.local.apiserver.builtin.catalog import EXTENSIONS
from butler.local.apiserver.definitions.meaning import accept_names, resources_of
from butler.local.apiserver.storage.store import Change, Entry, Key, Table
from butler.local.apiserver.verbs.lifecycle import CLEANUP
from butler.local.apiserver.wire.messages import decode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.local.apiserver.background.actor import Actor

Json = dict[str, Any]

_PLURAL: Final = "customresourcedefinitions"
_MANAGER: Final = "kube-apiserver"


class DefinitionKeeper(Follower[str]):
    def __init__(self, actor: Actor) -> None:
        super().__init__()
        self._actor = actor
        self._leaving: dict[tuple[str, str], str] = {}  # table -> name of the definition that waits for it

    def serve_what_is_established(self) -> None:
        """Before the first request after a start: what was served is served again."""
        for entry in self._definitions():
            definition = decode(entry.value)
            if _is_true(definition, "Established"):
                self._serve(definition)
            self.look_at(entry.key.name)

    def served(self) -> set[str]:
        """The names of the definitions whose resources are served."""
        return self._actor.cluster.registry.definitions()

    def concerns(self, change: Change) -> Iterable[str]:
        key = change.key
        if (key.group, key.plural) == (EXTENSIONS, _PLURAL):
            if change.type == "DELETED":
                self._actor.cluster.registry.set_custom(key.name, [])
                # its names are free now: another definition may have waited for them
                return [entry.key.name for entry in self._definitions()]
            return (key.name,)
        if change.type == "DELETED" and (key.group, key.plural) in self._leaving:
            return (self._leaving[key.group, key.plural],)
        return ()

    async def work(self, item: str) -> None:
        cluster = self._actor.cluster
        entry = cluster.store.get(Key(cluster.name, EXTENSIONS, _PLURAL, "", item))
        if entry is None:
            return
        definition = decode(entry.value)
        if definition["metadata"].get("deletionTimestamp"):
            await self._remove(definition, entry.key)
        else:
            await self._establish(definition, entry.key)

    async def _establish(self, definition: Json, key: Key) -> None:
        others = [decode(entry.value) for entry in self._definitions() if entry.key != key]
        status = accept_names(definition, others, self._actor.cluster.now())
        established = any(each["type"] == "Established" and each["status"] == "True" for each in status["conditions"])
        if established and _is_true(definition, "Established"):
            self._serve(definition)
        if status != definition.get("status"):

            def changed(current: Json) -> Json:
                current["status"] = status
                return current

            await self._actor.change(key, changed, subresource="status", manager=_MANAGER)

    async def _remove(self, definition: Json, key: Key) -> None:
        spec, cluster = definition["spec"], self._actor.cluster
        table = spec["group"], spec["names"]["plural"]
        self._leaving[table] = key.name
        for entry in list(cluster.store.entries_latest(Table(cluster.name, *table))):
            await self._actor.delete(entry.key)
        if cluster.store.count(Table(cluster.name, *table)) == 0:
            cluster.registry.set_custom(key.name, [])
            self._leaving.pop(table, None)
            await self._actor.change(key, _let_go, manager=_MANAGER)

    def _serve(self, definition: Json) -> None:
        name, revision = definition["metadata"]["name"], int(definition["metadata"]["resourceVersion"])
        self._actor.cluster.registry.set_custom(name, resources_of(definition, revision))

    def _definitions(self) -> Iterable[Entry]:
        cluster = self._actor.cluster
        return cluster.store.entries(Table(cluster.name, EXTENSIONS, _PLURAL))


def _is_true(definition: Json, condition: str) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or []
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)


def _let_go(definition: Json) -> Json:
    definition["metadata"]["finalizers"] = [
        each for each in definition["metadata"].get("finalizers") or [] if each != CLEANUP
    ]
    return definition
