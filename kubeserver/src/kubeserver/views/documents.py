"""Paths that are no resources: discovery, OpenAPI, version and health.

Discovery and OpenAPI depend only on which resources are served; the registry keeps them encoded until that changes.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kubeserver.schemas.builtin_types import builtin_types
from kubeserver.version import __version__
from kubeserver.views import discovery, openapi
from kubeserver.views.tables import negotiate
from kubeserver.wire.messages import JSON, Request, Response, encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeserver.hosted_cluster import HostedCluster
    from kubeserver.storage.store import Store

Json = dict[str, Any]

KUBERNETES: Final = (1, 37, 1)  # the version whose behaviour the conformance suite holds us against
_TEXT: Final = "text/plain; charset=utf-8"
_ARCHITECTURES: Final = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64"}  # as Go calls them
_HEALTH: Final = ("/healthz", "/livez", "/readyz")


class Documents:
    """The documents of one logical cluster."""

    def __init__(self, hosted: HostedCluster) -> None:
        self._cluster = hosted.cluster
        self._registry = hosted.cluster.registry
        self._address = hosted.address

    def answer(self, method: str, request: Request) -> Response | None:
        """The document at a path; None if there is none."""
        if method not in ("GET", "HEAD"):
            return None
        path = request.info.path.rstrip("/") or "/"
        if path == "/version":
            return Response(200, msgspec.json.format(encode(version_info()), indent=2))
        for root in _HEALTH:
            if path == root or path.startswith(f"{root}/"):
                return _health(self._cluster.store, path, root, verbose="verbose" in request.query)
        if path == "/":
            return self._tagged("paths", self._paths, request)
        if path.startswith("/openapi/"):
            return self._openapi(path, request)
        if path in ("/api", "/apis") or path.startswith(("/api/", "/apis/")):
            return self._discovery(path, request)
        return None

    def _discovery(self, path: str, request: Request) -> Response | None:
        registry = self._registry
        if path in ("/api", "/apis"):
            wanted = negotiate(request.headers.get("accept", ""), discovery=True)
            core = path == "/api"
            if wanted.shape == "APIGroupDiscoveryList":
                name = f"aggregated {path}"
                answer = self._tagged(name, lambda: discovery.aggregated(registry.resources(), core=core), request)
                if answer is not None:
                    answer.content_type = wanted.content_type
                return answer
            if core:
                return self._tagged(path, lambda: discovery.api_versions(self._address), request)
            return self._tagged(path, lambda: discovery.api_group_list(registry.resources()), request)
        parts = path.strip("/").split("/")
        if parts[0] == "api" and len(parts) == 2:
            return self._tagged(path, lambda: discovery.api_resource_list("", parts[1], registry.resources()), request)
        if parts[0] == "apis" and len(parts) == 2:
            return self._tagged(path, lambda: discovery.api_group(parts[1], registry.resources()), request)
        if parts[0] == "apis" and len(parts) == 3:
            group, version = parts[1:]
            return self._tagged(
                path, lambda: discovery.api_resource_list(group, version, registry.resources()), request
            )
        return None

    def _openapi(self, path: str, request: Request) -> Response | None:
        registry = self._registry
        if path == "/openapi/v2":
            body, content_type = openapi.empty_v2(request.headers.get("accept", ""))
            return Response(200, body, content_type)
        if path == "/openapi/v3":
            return self._tagged(path, lambda: openapi.index(registry.resources(), builtin_types()), request)
        parts = path.removeprefix("/openapi/v3/").split("/")
        if parts[0] == "api" and len(parts) == 2:
            group, version = "", parts[1]
        elif parts[0] == "apis" and len(parts) == 3:
            group, version = parts[1:]
        else:
            return None
        return self._tagged(
            path, lambda: openapi.document(group, version, registry.resources(), builtin_types()), request
        )

    def _paths(self) -> Json:
        found = {"/api", "/api/v1", "/apis", *_HEALTH, "/openapi/v3", "/version"}
        for resource in self._registry.resources():
            if resource.group:
                found |= {f"/apis/{resource.group}", f"/apis/{resource.group}/{resource.version}"}
        return {"paths": sorted(found)}

    def _tagged(self, name: str, make: Callable[[], Json | None], request: Request) -> Response | None:
        """A document with an ETag, so that a client that has it already is told so instead."""
        body = self._registry.document(name, lambda: encode(made) if (made := make()) is not None else b"")
        if not body:
            return None
        tag = discovery.etag(body)
        headers = [("ETag", tag), ("Vary", "Accept")]
        if request.headers.get("if-none-match") == tag:
            return Response(304, b"", JSON, headers)
        return Response(200, body, JSON, headers)


def not_a_page() -> Response:
    return Response(404, b"404 page not found\n", _TEXT, [("X-Content-Type-Options", "nosniff")])


def version_info() -> Json:
    major, minor, patch = KUBERNETES
    machine = platform.machine()
    return {
        "major": str(major),
        "minor": str(minor),
        "gitVersion": f"v{major}.{minor}.{patch}+kubeserver-{__version__}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{_ARCHITECTURES.get(machine, machine)}",
    }


def _health(store: Store, path: str, root: str, *, verbose: bool) -> Response | None:
    checks = {"ping": "", "store": store.failure or ""}
    name = path.removeprefix(root).strip("/")
    if name:
        if name not in checks:
            return None
        checks = {name: checks[name]}
    failed = any(checks.values())
    lines = [f"[-]{check} failed: {reason}" if reason else f"[+]{check} ok" for check, reason in checks.items()]
    verdict = f"{root.strip('/')} check {'failed' if failed else 'passed'}"
    if failed or (verbose and not name):
        return Response(500 if failed else 200, ("\n".join([*lines, verdict]) + "\n").encode(), _TEXT)
    return Response(200, b"ok", _TEXT)
