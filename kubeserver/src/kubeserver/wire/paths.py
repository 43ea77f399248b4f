"""From a URL to what is being asked: the same reading of paths that RBAC rules are written against.

    /api/v1/namespaces/team-a/services/web/status   get, core v1, services "web" in team-a, subresource status
    /apis/example.com/v1/widgets                         list, across namespaces
    /healthz                                         a path that is no resource

A logical cluster is a prefix, `/clusters/<namespace>/<name>`; everything behind it reads the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

ROOT: Final = ""  # the logical cluster that has no prefix


@dataclass(slots=True, frozen=True)
class RequestInfo:
    verb: str
    path: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    beyond: bool = False  # the path goes on behind the subresource
    inside_namespace: bool = False  # the resource is named behind `namespaces/<namespace>/`


_VERBS: Final = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})


def split_cluster(path: str) -> tuple[str, str]:
    """Take the logical cluster off the front of a path: (`team-a/web`, rest) or (ROOT, path)."""
    if not path.startswith("/clusters/"):
        return ROOT, path
    parts = path.split("/", 4)
    if len(parts) < 4 or not parts[2] or not parts[3]:
        return ROOT, path
    return f"{unquote(parts[2])}/{unquote(parts[3])}", "/" + (parts[4] if len(parts) == 5 else "")


def read_path(method: str, path: str, *, watch: bool = False) -> RequestInfo:
    """`path` is percent-encoded; it is decoded before it is split, so that an encoded slash separates, as in Go."""
    decoded = unquote(path)
    segments = decoded.strip("/").split("/")
    plain = RequestInfo(verb=method.lower(), path=decoded)
    if segments[0] == "api" and len(segments) >= 3:
        group, version, rest = "", segments[1], segments[2:]
    elif segments[0] == "apis" and len(segments) >= 4:
        group, version, rest = segments[1], segments[2], segments[3:]
    else:
        return plain
    namespace, inside_namespace = "", False
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest, inside_namespace = rest[2:], True
    resource, name, subresource = rest[0], _at(rest, 1), _at(rest, 2)
    verb = _VERBS.get(method, method.lower())
    if not name and verb == "get":
        verb = "list"
    if not name and verb == "delete":
        verb = "deletecollection"
    if watch and verb == "list":  # one object is only ever got; who watches it selects it by name
        verb = "watch"
    return RequestInfo(
        verb=verb,
        path=plain.path,
        is_resource=True,
        group=group,
        version=version,
        namespace=namespace,
        resource=resource,
        subresource=subresource,
        name=name,
        beyond=len(rest) > 3,
        inside_namespace=inside_namespace,
    )


def _at(segments: list[str], index: int) -> str:
    return segments[index] if len(segments) > index else ""
