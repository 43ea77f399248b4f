"""Hundreds of requests that no client would send on purpose: never a 500, a traceback, a hang or a broken object.

Each example takes a request that is right and spoils it: a segment of the path, the query, a header, a value deep in
the body, or the bytes themselves. The server runs in this process and is asked as uvicorn would ask it, without
sockets. `make fuzz` does many thousands; FUZZ_EXAMPLES says how many.
"""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubeserver import ControlPlane
from kubeserver.verbs import reads
from kubeserver.wire.asgi import CERTIFICATE, GONE, Edge

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

Json = dict[str, Any]

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "600"))
SLOWEST_SECONDS = 20.0  # what is caught here hangs for ever; a slow machine must not look like that
ADMIN = (("organizationName", "system:masters"), ("commonName", "fuzzer"))
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
CORE = "/api/v1/namespaces/default"
GADGETS = "/apis/fuzz.example.com/v1/namespaces/default/gadgets"

DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.fuzz.example.com"},
    "spec": {
        "group": "fuzz.example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget", "shortNames": ["gg"], "categories": ["all"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "additionalPrinterColumns": [{"name": "Size", "type": "string", "jsonPath": ".spec.size"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "string", "enum": ["s", "m", "l"], "default": "m"},
                                    "replicas": {"type": "integer", "minimum": 0, "maximum": 9},
                                    "when": {"type": "string", "format": "date-time"},
                                    "host": {"type": "string", "pattern": "^[a-z]+([.][a-z]+)*$", "maxLength": 50},
                                    "port": {"x-kubernetes-int-or-string": True},
                                    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                    "tags": {
                                        "type": "array",
                                        "items": {"type": "string"},
                                        "x-kubernetes-list-type": "set",
                                    },
                                    "parts": {
                                        "type": "array",
                                        "maxItems": 10,
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {"name": {"type": "string"}, "n": {"type": "number"}},
                                        },
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                    },
                                },
                                "x-kubernetes-validations": [
                                    {"rule": "!has(self.replicas) || self.size != 's' || self.replicas < 5"}
                                ],
                            },
                            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                        },
                    }
                },
            }
        ],
    },
}
GADGET: Json = {
    "apiVersion": "fuzz.example.com/v1",
    "kind": "Gadget",
    "metadata": {"name": "g", "labels": {"a": "b"}, "annotations": {"c": "d"}},
    "spec": {
        "size": "l",
        "replicas": 2,
        "when": "2026-01-01T00:00:00Z",
        "host": "a.b",
        "port": 80,
        "any": {"x": [1, {"y": None}]},
        "tags": ["p", "q"],
        "parts": [{"name": "one", "n": 1.5}, {"name": "two"}],
    },
}
CONFIG: Json = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "c", "labels": {"app": "x"}, "finalizers": [], "ownerReferences": []},
    "data": {"k": "v"},
    "binaryData": {"b": "AAEC"},
}
SERVICE: Json = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "s"},
    "spec": {"ports": [{"port": 80, "targetPort": "http", "protocol": "TCP"}], "selector": {"a": "b"}},
}
POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}], "env": [{"name": "E"}]}]},
}
DEPLOYMENT: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}
ROLE: Json = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"name": "r"},
    "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
}
REVIEW: Json = {
    "apiVersion": "authorization.k8s.io/v1",
    "kind": "SelfSubjectAccessReview",
    "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
}
OPERATIONS = [
    {"op": "add", "path": "/metadata/labels/new", "value": "x"},
    {"op": "test", "path": "/metadata/name", "value": "c"},
    {"op": "copy", "from": "/data", "path": "/data2"},
    {"op": "move", "from": "/data/k", "path": "/data/l"},
    {"op": "remove", "path": "/data/l"},
]


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"
    query: list[tuple[str, str]] = field(default_factory=list)
    headers: list[tuple[str, str]] = field(default_factory=list)
    raw: bytes | None = None


ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RIGHT = [
    *(
        Asked("POST", path, body)
        for path, body in (
            (f"{CORE}/configmaps", CONFIG),
            (f"{CORE}/services", SERVICE),
            (f"{CORE}/pods", POD),
            (DEPLOYMENTS, DEPLOYMENT),
            (ROLES, ROLE),
            (GADGETS, GADGET),
            ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", REVIEW),
            (DEFINITIONS, json.loads(json.dumps(DEFINITION).replace("gadget", "thing").replace("Gadget", "Thing"))),
        )
    ),
    *(
        Asked("PUT", f"{path}/{body['metadata']['name']}", body)
        for path, body in (
            (f"{CORE}/configmaps", CONFIG),
            (f"{CORE}/services", SERVICE),
            (DEPLOYMENTS, DEPLOYMENT),
            (GADGETS, GADGET),
            (DEFINITIONS, DEFINITION),
        )
    ),
    *(
        Asked("PATCH", f"{path}/{body['metadata']['name']}", body, kind, [("fieldManager", "f")])
        for path, body in ((f"{CORE}/configmaps", CONFIG), (DEPLOYMENTS, DEPLOYMENT), (GADGETS, GADGET))
        for kind in (MERGE, STRATEGIC, APPLY)
    ),
    Asked("PATCH", f"{CORE}/configmaps/c", OPERATIONS, JSON_PATCH),
    Asked("PATCH", f"{GADGETS}/g/status", {"status": {"replicas": 3}}, MERGE),
    Asked("PUT", f"{GADGETS}/g/scale", {"metadata": {"name": "g"}, "spec": {"replicas": 1}}),
    Asked("PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 1}}, MERGE),
    Asked("POST", f"{CORE}/serviceaccounts/robot/token", {"spec": {"expirationSeconds": 700}}),
    Asked("POST", f"{CORE}/pods/p/binding", {"target": {"name": "node"}}),
    Asked("POST", f"{CORE}/pods/p/eviction", {"metadata": {"name": "p"}}),
    Asked("DELETE", f"{CORE}/configmaps/c", {"propagationPolicy": "Background", "preconditions": {"uid": "u"}}),
    Asked("DELETE", f"{CORE}/configmaps", None, query=[("labelSelector", "app=x")]),
    *(
        Asked("GET", path, query=query)
        for path in (f"{CORE}/configmaps", GADGETS, "/api/v1/pods", f"{CORE}/configmaps/c", f"{GADGETS}/g")
        for query in ([], [("watch", "true")], [("limit", "2")], [("labelSelector", "a in (b,c),!d")])
    ),
    *(Asked("GET", path) for path in ("/", "/api", "/apis", "/openapi/v3", "/version", "/clusters", "/readyz")),
    Asked("GET", "/openapi/v3/apis/fuzz.example.com/v1"),
]
WEIRD_TEXTS = [
    "", " ", "..", ".", "/", "%2f", "%", "\x00", "é", "\U0001f600", "-", "_", "*", "a" * 300, "A", "null", "true", "-1",
    "99999999999999999999", "1e309", "0x1", "$", "status", "namespaces", "default", "a=b", "!a", "a in (",
    "metadata.name", "spec.nodeName=x", "system:masters", "\ufffd", "~1~0", "{}", "[]", "\n", "z" * 70, "a.b/c", "/a",
    "a/", "\u0661",
]  # fmt: skip
WEIRD_VALUES: list[Any] = [
    None, True, False, 0, -1, 1 << 31, 1 << 63, 1 << 64, 1.5, 1e300, [], {}, [None], [[]], {"": None}, {"a": {"a": {}}},
    [1, "a", None, {}], "2026-13-01T00:00:00Z", "1Gi", "10m", *WEIRD_TEXTS,
]  # fmt: skip
QUERY_NAMES = [
    "watch", "limit", "continue", "resourceVersion", "resourceVersionMatch", "labelSelector", "fieldSelector", "dryRun",
    "fieldManager", "fieldValidation", "force", "timeoutSeconds", "allowWatchBookmarks", "sendInitialEvents", "pretty",
    "propagationPolicy", "gracePeriodSeconds", "orphanDependents", "includeObject", "x", "",
]  # fmt: skip
QUERY_VALUES = ["All", "Strict", "Warn", "Ignore", "Exact", "NotOlderThan", "0", "1", "true", "Foreground", "Orphan"]
ACCEPTS = [
    "application/json", "application/yaml", "*/*", "application/json;as=Table;v=v1;g=meta.k8s.io", "text/html",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    "application/vnd.kubernetes.protobuf", ";;;", "a/b;q=x",
]  # fmt: skip
CONTENT_TYPES = ["application/json", "application/yaml", MERGE, STRATEGIC, JSON_PATCH, APPLY, "text/plain", "", ";",
                 "application/vnd.kubernetes.protobuf"]  # fmt: skip


HEADERS = ["impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-%zz", "user-agent",
           "authorization", "if-none-match"]  # fmt: skip
INSERTED = [b"{", b"]", b'"', b"\\u0000", b"\xff", b"&a *a", b"\n- ", b"1e999", b","]


def spoiled(right: Asked, chance: random.Random) -> Asked:
    asked = copy.deepcopy(right)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
        chance.choice((_spoil_body, _spoil_body, _spoil_body, _spoil_path, _spoil_query, _spoil_head, _spoil_bytes))(
            asked, chance
        )
    return asked


def _spoil_body(asked: Asked, chance: random.Random) -> None:
    """Change, remove, rename or wrap something deep inside."""
    if not isinstance(asked.body, (dict, list)) or not asked.body:
        asked.body = copy.deepcopy(chance.choice(WEIRD_VALUES))
        return
    at: Any = asked.body
    while True:
        key = chance.choice(list(at) if isinstance(at, dict) else range(len(at)))
        below = at[key]
        if not (isinstance(below, (dict, list)) and below) or chance.random() < 0.25:
            break
        at = below
    match chance.randrange(6):
        case 0:
            del at[key]
        case 1 if isinstance(at, dict):
            at[chance.choice(WEIRD_TEXTS)] = at.pop(key)
        case 2:
            at[key] = [at[key]]
        case 3 if isinstance(at, dict):
            at[chance.choice(("$patch", "$retainKeys", "managedFields", "finalizers", "uid", "generateName"))] = (
                copy.deepcopy(chance.choice(WEIRD_VALUES))
            )
        case _:
            at[key] = copy.deepcopy(chance.choice(WEIRD_VALUES))


def _spoil_path(asked: Asked, chance: random.Random) -> None:
    segments = asked.path.split("/")
    place = chance.randrange(1, len(segments) + 1)
    text = chance.choice(WEIRD_TEXTS)
    new = text if chance.random() < 0.2 and text.isascii() and text.isprintable() else quote(text, safe="")
    if chance.random() < 0.5:
        segments[place : place + 1] = [new]
    else:
        segments.insert(place, new)
    asked.path = "/".join(segments).replace("?", "").replace(" ", "") or "/"


def _spoil_query(asked: Asked, chance: random.Random) -> None:
    value = chance.choice(QUERY_VALUES if chance.random() < 0.5 else WEIRD_TEXTS)
    asked.query.append((chance.choice(QUERY_NAMES), value))


def _spoil_head(asked: Asked, chance: random.Random) -> None:
    match chance.randrange(5):
        case 0 | 1:
            asked.headers.append(("accept", chance.choice(ACCEPTS)))
        case 2:
            asked.content_type = chance.choice(CONTENT_TYPES)
        case 3:
            asked.method = chance.choice(("GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"))
        case _:
            asked.headers.append((chance.choice(HEADERS), chance.choice(WEIRD_TEXTS)))


def _spoil_bytes(asked: Asked, chance: random.Random) -> None:
    raw = bytearray(json.dumps(asked.body).encode() if asked.raw is None else asked.raw)
    for _ in range(chance.randrange(1, 4)):
        place = chance.randrange(len(raw) + 1)
        match chance.randrange(3):
            case 0:
                raw[place : place + 1] = bytes([chance.randrange(256)])
            case 1:
                del raw[place : place + chance.randrange(1, 10)]
            case _:
                raw[place:place] = chance.choice(INSERTED)
    asked.raw = bytes(raw)


class Server:
    """A control plane in this process, asked without sockets."""

    def __init__(self, runner: asyncio.Runner, control_plane: ControlPlane) -> None:
        self.runner = runner
        self.control_plane = control_plane
        self._edge = Edge(control_plane._server)
        self.problems: list[logging.LogRecord] = []

    def ask(self, asked: Asked) -> tuple[int, Any]:
        return self.runner.run(self._ask(asked))

    async def _ask(self, asked: Asked) -> tuple[int, Any]:
        body = asked.raw
        if body is None:
            body = b"" if asked.body is None else json.dumps(asked.body).encode()
        headers = [*asked.headers, ("content-type", asked.content_type)]
        scope = {
            "type": "http",
            "method": asked.method,
            "path": asked.path,
            "raw_path": asked.path.encode(),
            "query_string": urlencode(asked.query).encode(),
            "headers": [(name.encode(), value.encode("utf-8", "replace")) for name, value in asked.headers]
            if asked.method in ("GET", "HEAD")
            else [(name.encode(), value.encode("utf-8", "replace")) for name, value in headers],
            CERTIFICATE: ADMIN,
            GONE: lambda: False,
        }
        messages = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[Json] = []

        async def receive() -> Json:
            if messages and asked.method not in ("GET", "HEAD"):
                return messages.pop()
            await asyncio.sleep(0.02)  # the client of a watch leaves soon
            return {"type": "http.disconnect"}

        async def send(message: Json) -> None:
            sent.append(message)

        async with asyncio.timeout(2 * SLOWEST_SECONDS):
            await self._edge(scope, receive, send)
        text = b"".join(message.get("body", b"") for message in sent[1:])
        for _, value in sent[0]["headers"]:
            assert not set(value) & set(b"\r\n\x00"), f"a header would be broken: {value!r}"
        try:
            return sent[0]["status"], json.loads(text)
        except ValueError:
            return sent[0]["status"], text

    def restore(self) -> None:
        """What the right requests are about exists again."""
        self.ask(Asked("POST", DEFINITIONS, DEFINITION))
        self.ask(Asked("POST", f"{CORE}/serviceaccounts", {"metadata": {"name": "robot"}}))
        for asked in RIGHT[:6]:
            self.ask(asked)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    patch = pytest.MonkeyPatch()
    patch.setattr(reads, "_FUTURE_WAIT", 0.05)
    with asyncio.Runner() as runner:
        control_plane = runner.run(ControlPlane.start(tmp_path_factory.mktemp("fuzz")))
        running = Server(runner, control_plane)

        class Collect(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                running.problems.append(record)

        handler = Collect(logging.WARNING)
        logging.getLogger("kubeserver").addHandler(handler)
        try:
            running.restore()
            for _ in range(100):
                if running.ask(Asked("POST", GADGETS, GADGET))[0] in (201, 409):
                    break
                runner.run(asyncio.sleep(0.05))
            yield running
        finally:
            logging.getLogger("kubeserver").removeHandler(handler)
            runner.run(control_plane.stop())
            patch.undo()


def is_by_design(answer: Any) -> bool:
    """A 500 that Kubernetes gives too: unparsable resource versions and some strategic merge patches, unexplained."""
    return isinstance(answer, dict) and answer.get("kind") == "Status" and "reason" not in answer


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize="FUZZ_EXAMPLES" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
@given(st.sampled_from(RIGHT), st.randoms(use_true_random=False))
def test_a_spoiled_request_is_answered_and_breaks_nothing(server: Server, right: Asked, chance: random.Random) -> None:
    asked = spoiled(right, chance)
    server.problems.clear()
    began = time.perf_counter()
    code, answer = server.ask(asked)
    took = time.perf_counter() - began
    told = [record.getMessage() + (record.exc_text or str(record.exc_info or "")) for record in server.problems]
    assert not told, f"{asked}: {told}"
    assert took < SLOWEST_SECONDS, f"{took:.1f} s for {asked}"
    assert code < 500 or code == 504 or is_by_design(answer) or asked.method == "HEAD", f"{code} {answer} for {asked}"
    if code >= 400 and isinstance(answer, dict):
        assert answer["kind"] == "Status", f"{answer} for {asked}"
        assert answer["code"] == code
    if code < 300 and asked.method == "DELETE":
        server.restore()


def test_every_object_that_the_spoiled_requests_left_is_whole_and_valid(server: Server) -> None:
    """Runs after the fuzzing, on what it left behind."""
    store = server.control_plane._store
    cluster = server.control_plane._server.clusters[""].cluster
    checked = 0
    for table in store.tables(""):
        resource = cluster.registry.storage(table.group, table.plural)
        if resource is None:
            continue
        for entry in store.entries(table)[:100]:
            obj = cluster.load(resource, entry)
            metadata = obj["metadata"]
            assert metadata["name"] == entry.key.name
            assert metadata.get("namespace", "") == entry.key.namespace
            assert int(metadata["resourceVersion"]) == entry.revision
            assert metadata["uid"]
            assert metadata["creationTimestamp"]
            if "update" not in resource.verbs:
                continue
            group = f"/apis/{resource.group}" if resource.group else "/api"
            space = f"/namespaces/{quote(entry.key.namespace)}" if entry.key.namespace else ""
            path = f"{group}/{resource.version}{space}/{resource.plural}/{quote(entry.key.name, safe='')}"
            code, answer = server.ask(Asked("PUT", path, obj, query=[("dryRun", "All")]))
            assert code == 200, f"a stored object is not valid: {answer} for {obj}"
            checked += 1
    assert checked > 20
