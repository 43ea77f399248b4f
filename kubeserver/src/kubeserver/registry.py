"""Which resources a logical cluster serves right now: the built-ins, and what its CRDs added.

Whatever is derived from the whole set (discovery, OpenAPI) is computed on first request, kept encoded, and
thrown away when the set changes: `revision` counts the changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kubeserver.resources import Resource
    from kubeserver.schemas.schema import Schema


class Registry:
    def __init__(self, builtin: Iterable[Resource]) -> None:
        self._builtin = list(builtin)
        self._by_path = {_path(resource): resource for resource in self._builtin}
        self._schemas: dict[tuple[str, str], dict[str, Schema]] = {}  # of custom kinds; built-ins have one version
        self._custom: dict[str, list[Resource]] = {}
        self._stored: dict[str, Resource] = {}  # of the same definitions: in whose version objects are kept
        self._closed: set[tuple[str, str]] = set()  # tables of definitions on their way out
        self._documents: dict[str, bytes] = {}
        self.revision = 0

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._by_path.get((group, version, plural))

    def resources(self) -> list[Resource]:
        return list(self._by_path.values())

    def group_version(self, group: str, version: str) -> list[Resource]:
        return [pair for pair in self._by_path.values() if (pair.group, pair.version) == (group, version)]

    def serves_builtin(self, group: str, version: str) -> bool:
        return any((resource.group, resource.version) == (group, version) for resource in self._builtin)

    def knows_group(self, path: str) -> bool:
        """Whether a path lies in a built-in group: what is missing there is told as a Status, elsewhere as text."""
        parts = path.strip("/").split("/")
        if parts[0] == "api":
            return len(parts) > 1
        return parts[0] == "apis" and len(parts) > 2 and any(resource.group == parts[1] for resource in self._builtin)

    def storage(self, group: str, plural: str) -> Resource | None:
        """The resource in whose version the objects of a table are kept."""
        if stored := self._stored.get(f"{plural}.{group}"):
            return stored
        return next(
            (resource for resource in self._builtin if (resource.group, resource.plural) == (group, plural)), None
        )

    def is_builtin(self, group: str, plural: str) -> bool:
        return any((resource.group, resource.plural) == (group, plural) for resource in self._builtin)

    def schemas(self, group: str, plural: str) -> dict[str, Schema]:
        """The schema of every served version of a kind, by apiVersion."""
        return self._schemas.get((group, plural), {})

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        return next(
            (pair for pair in self._by_path.values() if pair.api_version == api_version and pair.kind == kind), None
        )

    def serve(self, definition: str, resources: list[Resource], stored: Resource) -> None:
        """Serve exactly these resources for a definition, whose objects are kept in the form of `stored`."""
        self._custom[definition] = resources
        self._stored[definition] = stored
        self._closed.discard(stored.table)
        self._rebuild()

    def forget(self, definition: str) -> None:
        """Serve nothing of a definition any more."""
        if self._custom.pop(definition, None) is not None:
            del self._stored[definition]
            self._rebuild()

    def _rebuild(self) -> None:
        self._by_path = {_path(resource): resource for each_list in self._custom.values() for resource in each_list}
        self._by_path |= {
            _path(resource): resource for resource in self._builtin
        }  # nothing takes the place of a built-in kind
        self._schemas = {}
        for pair in self._by_path.values():
            self._schemas.setdefault((pair.group, pair.plural), {})[pair.api_version] = pair.schema
        self._documents.clear()
        self.revision += 1

    def close(self, group: str, plural: str) -> None:
        """From now on no object of a definition is created, until it is served anew."""
        self._closed.add((group, plural))

    def takes_new(self, resource: Resource) -> bool:
        """Whether objects of a resource may be created."""
        return not resource.custom or resource.table not in self._closed

    def definitions(self) -> set[str]:
        """The definitions whose resources are served."""
        return set(self._custom)

    def document(self, name: str, make: Callable[[], bytes]) -> bytes:
        """A document about the whole set, made once for each change of it."""
        if name not in self._documents:
            made = make()
            if not made:
                return made  # not kept: there are more paths that lead to nothing than there is memory
            self._documents[name] = made
        return self._documents[name]


def _path(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.plural
