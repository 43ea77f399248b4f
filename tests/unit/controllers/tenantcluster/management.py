"""A management cluster in memory, for what bringing up and taking down read and write.

`Management` is used as the client. It keeps objects of any kind, insists on namespaces, honours finalizers and UIDs,
and refuses what a test tells it to. `View` is a cache of it that may be told to stand still.
"""

from __future__ import annotations

import copy
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from butler.api.codec import from_json, to_json
from butler.api.objects import Change, Key, key_of
from butler.kube.client import Listed
from butler.kube.errors import ApiError, KubeError, Status, error_from_status
from unit.kube.fake_api import merge

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Json = dict[str, Any]
STANDING = ("", "butler-system", "team-a")
"""Namespaces that are always there."""


def refusal(code: int, reason: str, message: str, **details: str) -> ApiError:
    said = {"reason": reason, "message": message, "code": code, "details": details}
    return error_from_status(msgspec.convert(said, Status), code)


class Management:
    """Objects by kind and key."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[Key, Json]] = {"namespaces": {}}
        self.unserved: set[str] = set()
        self.refuses: dict[tuple[str, str], KubeError] = {}
        """By verb and plural."""
        self.before: Callable[[str, str], None] = lambda _verb, _plural: None
        """Called ahead of every request: what happens meanwhile."""
        self.counts: Counter[str] = Counter()
        self.told: dict[str, list[Callable[[Key, Json | None], None]]] = {}
        """Whom to tell of changes, by plural."""
        self._version = 100

    def put(self, plural: str, obj: Any) -> Json:
        """What others did."""
        found: Json = copy.deepcopy(obj if isinstance(obj, dict) else to_json(obj))
        meta = found["metadata"]
        self._version += 1
        meta.setdefault("uid", f"uid-{self._version}")
        meta["resourceVersion"] = str(self._version)
        key = Key(meta.get("namespace", ""), meta["name"])
        self.objects.setdefault(plural, {})[key] = found
        self._tell(plural, key, found)
        return found

    def drop(self, plural: str, namespace: str, name: str) -> None:
        del self.objects[plural][Key(namespace, name)]
        self._tell(plural, Key(namespace, name), None)

    def _tell(self, plural: str, key: Key, now: Json | None) -> None:
        for handler in self.told.get(plural, ()):
            handler(key, now)

    def find(self, plural: str, namespace: str, name: str) -> Json | None:
        return self.objects.get(plural, {}).get(Key(namespace, name))

    # The client.

    async def get(self, resource: Any, name: str, namespace: str = "") -> Any:
        self._ask("get", resource)
        return _typed(resource, self._one(resource, Key(namespace, name)))

    async def list(self, resource: Any, namespace: str = "", *, label_selector: str = "") -> Listed[Any]:
        self._ask("list", resource)
        found = [
            _typed(resource, obj)
            for key, obj in self.objects.get(resource.plural, {}).items()
            if namespace in ("", key.namespace) and _selects(label_selector, obj["metadata"].get("labels", {}))
        ]
        return Listed(found, str(self._version))

    async def create(self, resource: Any, obj: Any, **_: Any) -> Any:
        self._ask("create", resource)
        body = obj if isinstance(obj, dict) else to_json(obj)
        key = Key(body["metadata"].get("namespace", ""), body["metadata"]["name"])
        if key in self.objects.get(resource.plural, {}):
            raise refusal(409, "AlreadyExists", f"{key} exists")
        self._insist_on_namespace(key)
        return _typed(resource, self.put(resource.plural, body))

    async def apply(self, resource: Any, obj: Any, **_: Any) -> Any:
        self._ask("apply", resource)
        body = obj if isinstance(obj, dict) else to_json(obj)
        key = Key(body["metadata"].get("namespace", ""), body["metadata"]["name"])
        self._insist_on_namespace(key)
        old = self.objects.get(resource.plural, {}).get(key, {})
        return _typed(resource, self.put(resource.plural, merge(old, body)))

    async def patch(self, resource: Any, name: str, patch: Json, namespace: str = "", **_: Any) -> Any:
        self._ask("patch", resource)
        old = self._one(resource, Key(namespace, name))
        for field in ("uid", "resourceVersion"):
            if patch.get("metadata", {}).get(field, old["metadata"][field]) != old["metadata"][field]:
                raise refusal(409, "Conflict", f"another {field}")
        new = self.put(resource.plural, merge(old, patch))
        self._go_if_free(resource.plural, new)
        return _typed(resource, new)

    async def delete(self, resource: Any, name: str, namespace: str = "", *, uid: str, **_: Any) -> Json:
        self._ask("delete", resource)
        found = self._one(resource, Key(namespace, name))
        if found["metadata"]["uid"] != uid:
            raise refusal(409, "Conflict", "another uid")
        found["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
        self._go_if_free(resource.plural, found)
        return {}

    def _ask(self, verb: str, resource: Any) -> None:
        self.before(verb, resource.plural)
        self.counts[f"{verb} {resource.plural}"] += 1
        if resource.plural in self.unserved:
            raise error_from_status(Status(message="404 page not found"), 404)
        if (verb, resource.plural) in self.refuses:
            raise self.refuses[verb, resource.plural]

    def _one(self, resource: Any, key: Key) -> Json:
        found = self.objects.get(resource.plural, {}).get(key)
        if found is None:
            details = {"name": key.name, "group": resource.group, "kind": resource.plural}
            raise refusal(404, "NotFound", f"{resource.plural} {key.name} not found", **details)
        return found

    def _insist_on_namespace(self, key: Key) -> None:
        home = self.objects["namespaces"].get(Key("", key.namespace))
        if key.namespace not in STANDING and (home is None or home["metadata"].get("deletionTimestamp")):
            raise refusal(404, "NotFound", f"namespace {key.namespace} not found", name=key.namespace)

    def _go_if_free(self, plural: str, obj: Json) -> None:
        if obj["metadata"].get("deletionTimestamp") and not obj["metadata"].get("finalizers"):
            self.objects[plural].pop(Key(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]), None)


def _selects(selector: str, labels: dict[str, str]) -> bool:
    """`name=value`, or `!name`."""
    if selector.startswith("!"):
        return selector[1:] not in labels
    return not selector or dict([selector.split("=")]).items() <= labels.items()


def _typed(resource: Any, obj: Json) -> Any:
    return copy.deepcopy(obj) if resource.type is dict else from_json(resource.type, obj)


class View:
    """The objects of one kind, as they are, or as they were when `freeze` was called."""

    def __init__(self, management: Management, resource: Any) -> None:
        self._management = management
        self._frozen: dict[Key, Any] | None = None
        self._indexes: dict[str, Callable[[Any], Any]] = {}
        self.resource = resource
        self.is_followed = True

    def freeze(self) -> None:
        self._frozen = self._all()

    def _all(self) -> dict[Key, Any]:
        if self._frozen is not None:
            return self._frozen
        found = self._management.objects.get(self.resource.plural, {}).values()
        return {key_of(item): item for item in (_typed(self.resource, obj) for obj in found)}

    def get(self, key: Key) -> Any:
        return self._all().get(key)

    def values(self) -> list[Any]:
        return list(self._all().values())

    def __contains__(self, key: object) -> bool:
        return key in self._all()

    def index(self, name: str, function: Callable[[Any], Any]) -> None:
        self._indexes[name] = function

    def by(self, index: str, value: Hashable) -> list[Any]:
        return [key for key in self._all().values() if value in self._indexes[index](key)]

    def count(self, index: str, value: Hashable) -> int:
        return len(self.by(index, value))

    def wrote(self, obj: Any) -> None:
        """The view follows by itself, or not at all."""

    def on_change(self, handler: Callable[[Change[Any]], None]) -> None:
        """Tell of what is there, and of what people do to it; never of what was there before."""

        def told(key: Key, now: Json | None) -> None:
            handler(Change(key, None, _typed(self.resource, now) if now is not None else None))

        for key, obj in self._management.objects.get(self.resource.plural, {}).items():
            told(key, obj)
        self._management.told.setdefault(self.resource.plural, []).append(told)
