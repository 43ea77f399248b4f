"""The paths of an OpenAPI v3 document: what can be asked of one resource, and how.

Clients read three things here: which kind a path is about (`x-kubernetes-group-version-kind`, for
`kubectl explain`), which query parameters PATCH takes (kubectl relies on the server's field validation only if it
finds `fieldValidation` there), and which forms of patch there are (kubectl sends a strategic merge patch only
where it is listed; custom resources have none).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kubeserver.resources import Resource

Json = dict[str, Any]

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
PATCH: Final = f"{_META}.Patch"
SCALE: Final = "io.k8s.api.autoscaling.v1.Scale"
_STATUS: Final = f"{_META}.Status"
_DELETE_OPTIONS: Final = f"{_META}.DeleteOptions"

_MEDIA_TYPES: Final = ("application/json", "application/yaml")
_CUSTOM_PATCHES: Final = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)
_PATCHES: Final = (*_CUSTOM_PATCHES, "application/strategic-merge-patch+json")


def _parameter(name: str, kind: str, description: str, *, place: str = "query") -> Json:
    found: Json = {"name": name, "in": place, "description": description}
    if place == "path":
        found["required"] = True
    return {**found, "schema": {"type": kind, "uniqueItems": True}}


_PRETTY: Final = _parameter("pretty", "string", "If 'true', the answer is indented for people.")
_NAMESPACE: Final = _parameter("namespace", "string", "The namespace of the object.", place="path")
_DRY_RUN: Final = _parameter("dryRun", "string", "With 'All', do everything but keep the result.")
_MANAGER: Final = _parameter("fieldManager", "string", "Who will own the fields that change.")
_VALIDATION: Final = _parameter(
    "fieldValidation", "string", "What to do about unknown or repeated fields: Ignore, Warn or Strict."
)
_FORCE: Final = _parameter("force", "boolean", "For apply: take fields over from other managers.")
_RESOURCE_VERSION: Final = _parameter("resourceVersion", "string", "How recent the answer must be.")
_LIST: Final = (
    _parameter("allowWatchBookmarks", "boolean", "Whether a watch may send BOOKMARK events."),
    _parameter("continue", "string", "Where an earlier answer with a limit stopped."),
    _parameter("fieldSelector", "string", "Only objects whose fields match."),
    _parameter("labelSelector", "string", "Only objects whose labels match."),
    _parameter("limit", "integer", "At most so many objects in one answer."),
    _RESOURCE_VERSION,
    _parameter("resourceVersionMatch", "string", "How resourceVersion is meant: Exact or NotOlderThan."),
    _parameter("sendInitialEvents", "boolean", "Whether a watch starts with the objects there are."),
    _parameter("timeoutSeconds", "integer", "When to end the request."),
    _parameter("watch", "boolean", "Send changes as they happen instead of a list."),
)
_DELETE: Final = (
    _DRY_RUN,
    _parameter("gracePeriodSeconds", "integer", "How long the object may take to end; 0 is at once."),
    _parameter("orphanDependents", "boolean", "Deprecated: use propagationPolicy."),
    _parameter("propagationPolicy", "string", "What becomes of dependents: Orphan, Background or Foreground."),
)
_WRITE: Final = (_DRY_RUN, _MANAGER, _VALIDATION)


def _content(name: str, media_types: tuple[str, ...] = _MEDIA_TYPES) -> Json:
    return {media_type: {"schema": {"$ref": f"#/components/schemas/{name}"}} for media_type in media_types}


class _Operations:
    """Makes the operations of one resource."""

    def __init__(self, resource: Resource, type_name: str) -> None:
        self._resource = resource
        self._type = type_name
        package, _, _ = type_name.rpartition(".")
        self._list_type = f"{package}.{resource.list_kind or f'{resource.kind}List'}"
        group = resource.group.removesuffix(".k8s.io") or "core"
        camel = "".join(part[:1].upper() + part[1:] for part in re.split(r"[.-]", group))
        self._tag = f"{camel[:1].lower()}{camel[1:]}_{resource.version}"
        self._scope = camel + resource.version[:1].upper() + resource.version[1:]

    def _operation(
        self,
        action: str,
        verb: str,
        answers: dict[str, str],
        *,
        parameters: tuple[Json, ...] = (),
        body: Json | None = None,
        prefix: str = "",
        suffix: str = "",
        gvk: tuple[str, str, str] | None = None,
    ) -> Json:
        resource = self._resource
        group, version, kind = gvk or (resource.group, resource.version, resource.kind)
        within = prefix + ("Namespaced" if resource.namespaced else "")
        found: Json = {
            "tags": [self._tag],
            "description": " ".join(filter(None, (verb, prefix.lower(), suffix.lower(), resource.kind))),
            "operationId": f"{verb}{self._scope}{within}{resource.kind}{suffix}",
        }
        if parameters:
            found["parameters"] = list(parameters)
        if body is not None:
            found["requestBody"] = {"content": body, "required": True}
        found["responses"] = {
            code: {"description": _CODES[code], "content": _content(name)} for code, name in answers.items()
        }
        found["responses"]["401"] = {"description": "Unauthorized"}
        found["x-kubernetes-action"] = action
        found["x-kubernetes-group-version-kind"] = {"group": group, "version": version, "kind": kind}
        return found

    def collection(self) -> Json:
        found: Json = {}
        if "list" in self._resource.verbs:
            found["get"] = self._operation("list", "list", {"200": self._list_type}, parameters=_LIST)
        if "create" in self._resource.verbs:
            found["post"] = self._operation(
                "post",
                "create",
                {"200": self._type, "201": self._type, "202": self._type},
                parameters=_WRITE,
                body=_content(self._type),
            )
        if "deletecollection" in self._resource.verbs:
            found["delete"] = self._operation(
                "deletecollection",
                "delete",
                {"200": _STATUS},
                parameters=(*_LIST[1:], *_DELETE),
                body=_content(_DELETE_OPTIONS),
                prefix="Collection",
            )
        return found

    def everywhere(self) -> Json:
        """The list over all namespaces."""
        found = self._operation("list", "list", {"200": self._list_type}, parameters=_LIST)
        found["operationId"] = f"list{self._scope}{self._resource.kind}ForAllNamespaces"
        return {"get": found}

    def item(self) -> Json:
        found: Json = {}
        verbs = self._resource.verbs
        if "get" in verbs:
            found["get"] = self._operation("get", "read", {"200": self._type})
        if "update" in verbs:
            found["put"] = self._operation(
                "put",
                "replace",
                {"200": self._type, "201": self._type},
                parameters=_WRITE,
                body=_content(self._type),
            )
        if "delete" in verbs:
            found["delete"] = self._operation(
                "delete",
                "delete",
                {"200": _STATUS, "202": _STATUS},
                parameters=_DELETE,
                body=_content(_DELETE_OPTIONS),
            )
        if "patch" in verbs:
            found["patch"] = self._patch(self._type)
        return found

    def _patch(self, type_name: str, suffix: str = "", gvk: tuple[str, str, str] | None = None) -> Json:
        forms = _CUSTOM_PATCHES if self._resource.custom else _PATCHES
        return self._operation(
            "patch",
            "patch",
            {"200": type_name, "201": type_name},
            parameters=(*_WRITE, _FORCE),
            body=_content(PATCH, forms),
            suffix=suffix,
            gvk=gvk,
        )

    def subresource(self, name: str, type_name: str, gvk: tuple[str, str, str] | None = None) -> Json:
        suffix = name[:1].upper() + name[1:]
        return {
            "get": self._operation("get", "read", {"200": type_name}, suffix=suffix, gvk=gvk),
            "put": self._operation(
                "put",
                "replace",
                {"200": type_name, "201": type_name},
                parameters=_WRITE,
                body=_content(type_name),
                suffix=suffix,
                gvk=gvk,
            ),
            "patch": self._patch(type_name, suffix, gvk),
        }


_CODES: Final = {"200": "OK", "201": "Created", "202": "Accepted"}


def paths(resource: Resource, type_name: str) -> Json:
    """Every path of a resource, with its operations."""
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    collection = f"{root}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else ""
    collection = collection or f"{root}/{resource.plural}"
    scoped = [_NAMESPACE] if resource.namespaced else []
    name = _parameter("name", "string", f"The name of the {resource.kind}.", place="path")
    make = _Operations(resource, type_name)
    found: Json = {}

    def add(path: str, operations: Json, parameters: list[Json]) -> None:
        if operations:
            found[path] = {**operations, "parameters": [*parameters, _PRETTY]}

    add(collection, make.collection(), scoped)
    add(f"{collection}/{{name}}", make.item(), [name, *scoped])
    if resource.status:
        add(f"{collection}/{{name}}/status", make.subresource("status", type_name), [name, *scoped])
    if resource.scale:
        # Kubernetes says "Scale" for its own kinds, and the scaled kind for custom ones.
        gvk = None if resource.custom else ("autoscaling", "v1", "Scale")
        add(f"{collection}/{{name}}/scale", make.subresource("scale", SCALE, gvk), [name, *scoped])
    if resource.namespaced and "list" in resource.verbs:
        add(f"{root}/{resource.plural}", make.everywhere(), [])
    return found
