"""The life of a namespace: it is furnished when it comes and emptied when it goes.

A new namespace gets the service account `default`, as pods and many charts expect. One that is asked to go loses its
content first; while something holds out (a finalizer), its status says what, and it goes the moment the last object
is gone.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from kubeserver.background.follower import Follower
from kubeserver.storage.store import Entry, ObjectKey, StoredChange, Table
from kubeserver.verbs.glance import glance
from kubeserver.wire.messages import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kubeserver.background.actor import Actor

Json = dict[str, Any]

_MANAGER = "kube-controller-manager"


class NamespaceKeeper(Follower[str]):
    at_once = 16  # a namespace that a slow webhook holds up does not hold up all others

    def __init__(self, actor: Actor) -> None:
        super().__init__()
        self._actor = actor
        self._leaving: set[str] = set()

    def concerns(self, change: StoredChange) -> Iterable[str]:
        key = change.key
        if (key.group, key.plural) == ("", "namespaces"):
            if change.type == "DELETED":
                self._leaving.discard(key.name)
                return ()
            if glance(change.value).deletion_timestamp:
                self._leaving.add(key.name)
            return (key.name,)
        if change.type == "DELETED" and (key.namespace in self._leaving or _furniture(key)):
            return (key.namespace,)
        return ()

    async def work(self, item: str) -> None:
        cluster = self._actor.cluster
        entry = cluster.store.get(ObjectKey(cluster.name, "", "namespaces", "", item))
        if entry is None:
            return
        namespace = decode(entry.value)
        if namespace["metadata"].get("deletionTimestamp"):
            await self._empty(item, entry.key)
        else:
            await self._furnish(item)

    async def _furnish(self, namespace: str) -> None:
        cluster = self._actor.cluster
        accounts = cluster.registry.find("", "v1", "serviceaccounts")
        assert accounts is not None
        if cluster.store.latest(ObjectKey(cluster.name, "", "serviceaccounts", namespace, "default")) is None:
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
            await self._actor.create(accounts, namespace, account, _MANAGER)

    async def _empty(self, namespace: str, key: ObjectKey) -> None:
        refusals = await self._actor.delete_all(
            entry.key for entry in self._content(namespace) if not glance(entry.value).deletion_timestamp
        )
        remaining = self._content(namespace)
        if remaining:
            conditions = self._explain(remaining)
            await self._actor.change(key, _with_conditions(conditions), subresource="status", manager=_MANAGER)
        else:
            await self._actor.change(key, _finalized, subresource="finalize", manager=_MANAGER)
        for refusal in refusals:
            raise refusal

    def _content(self, namespace: str) -> list[Entry]:
        cluster = self._actor.cluster
        tables = {resource.table for resource in cluster.registry.resources() if resource.namespaced}
        return [
            entry
            for table in sorted(tables)
            for entry in cluster.store.entries_latest(Table(cluster.name, *table), namespace)
        ]

    def _explain(self, remaining: list[Entry]) -> list[Json]:
        """Who holds a namespace back, as conditions."""
        now = self._actor.cluster.now()
        keys = [entry.key for entry in remaining]
        kinds = Counter(f"{key.plural}.{key.group}" if key.group else f"{key.plural}." for key in keys)
        holders = Counter(finalizer for entry in remaining for finalizer in glance(entry.value).finalizers or ())
        content = ", ".join(f"{kind} has {count} resource instances" for kind, count in sorted(kinds.items()))
        finalizers = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(holders.items()))
        states = [
            (
                "NamespaceContentRemaining",
                "SomeResourcesRemain",
                f"Some resources are remaining: {content}",
            )
        ]
        if finalizers:
            message = f"Some content in the namespace has finalizers remaining: {finalizers}"
            states.append(("NamespaceFinalizersRemaining", "SomeFinalizersRemain", message))
        return [
            {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now}
            for kind, reason, message in states
        ]


def _furniture(key: ObjectKey) -> bool:
    """Whether this is an object that a namespace gets again after a user deletes it."""
    return (key.group, key.plural, key.name) == ("", "serviceaccounts", "default")


def _finalized(namespace: Json) -> Json:
    kept = [finalizer for finalizer in namespace["spec"].get("finalizers") or [] if finalizer != "kubernetes"]
    namespace["spec"] = {"finalizers": kept} if kept else {}
    return namespace


def _with_conditions(conditions: list[Json]) -> Callable[[Json], Json]:
    def changed(namespace: Json) -> Json:
        before = {condition["type"]: condition for condition in namespace["status"].get("conditions") or []}
        for condition in conditions:
            known = before.get(condition["type"])
            since = known if known and known["status"] == condition["status"] else condition
            before[condition["type"]] = {**condition, "lastTransitionTime": since["lastTransitionTime"]}
        namespace["status"]["conditions"] = list(before.values())
        return namespace

    return changed
