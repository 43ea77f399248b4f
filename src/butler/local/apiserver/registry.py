"""Which resources a logical cluster serves right now: the built-ins, and what its CRDs added.

Whatever is derived from the whole set (discovery, OpenAPI) is computed on first request, kept encoded, and
thrown away when the set changes: `revision` counts the changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from butler.local.apiserver.resources import Resource
    from butler.local.apiserver.schemas.schema import Schema


class Registry:
    def __init__(self, builtin: Iterable[Resource]) -> None:
        self._builtin = list(builtin)
        self._by_path = {_path(resource): resource for resource in self._builtin}
        self._schemas: dict[tuple[str, str], dict[str, Schema]] = {}  # of custom kinds; built-ins have one version
        self._custom: dict[str, list[Resource]] = {}
        self._documents: dict[str, bytes] = {}
        self.revision = 0

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._by_path.get((group, version, plural))

    def resources(self) -> list[Resource]:
        return list(self._by_path.values())

    def group_version(self, group: str, version: str) -> list[Resource]:
        return [each for each in self._by_path.values() if (each.group, each.version) == (group, version)]

    def serves_builtin(self, group: str, version: str) -> bool:
        return any((each.group, each.version) == (group, version) for each in self._builtin)

    def knows_group(self, path: str) -> bool:
        """Whether a path lies in a built-in group: what is missing there is told as a Status, elsewhere as text."""
        parts = path.strip("/").split("/")
        if parts[0] == "api":
            return len(parts) > 1
        return parts[0] == "apis" and len(parts) > 2 and any(each.group == parts[1] for each in self._builtin)

    def storage(self, group: str, plural: str) -> Resource | None:
        """The resource in whose version the objects of a table are kept."""
        found = [each for each in self._by_path.values() if (each.group, each.plural) == (group, plural)]
        return next((each for each in found if each.storage_version in ("", each.version)), None) or (
            found[0] if found else None
        )

    def schemas(self, group: str, plural: str) -> dict[str, Schema]:
        """The schema of every served version of a kind, by apiVersion."""
        return self._schemas.get((group, plural), {})

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        return next(
            (each for each in self._by_path.values() if each.api_version == api_version and each.kind == kind), None
        )

    def set_custom(self, definition: str, resources: list[Resource]) -> None:
        """Serve exactly these resources for a definition; an empty list takes them away."""
        if not resources and definition not in self._custom:
            return
        self._custom[definition] = resources
        if not resources:
            del self._custom[definition]
        self._by_path = {_path(each): each for each in self._builtin}
        for each_list in self._custom.values():
            self._by_path.update({_path(each): each for each in each_list})
        self._schemas = {}
        for each in self._by_path.values():
            self._schemas.setdefault((each.group, each.plural), {})[each.api_version] = each.schema
        self._documents.clear()
        self.revision += 1

    def definitions(self) -> set[str]:
        """The definitions whose resources are served."""
        return set(self._custom)

    def document(self, name: str, make: Callable[[], bytes]) -> bytes:
        """A document about the whole set, made once for each change of it."""
        if name not in self._documents:
            self._documents[name] = make()
        return self._documents[name]


def _path(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.plural
