"""One object, written on a real kube-apiserver and by our functions alike (tests/agreement/test_apply_agreement.py).

`Run` holds the object as the server returned it last. Each step sends one write, computes from the same object and
request what must come out (the merged object, the conflicts, managedFields with their order and times), and
compares. Steps are chosen by a seeded generator, so a seed replays a run.
"""

from __future__ import annotations

import copy
import http.client
import json
import random
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from agreement import Kind, sample
from kubeserver.patching.apply import apply
from kubeserver.patching.managed_fields import Writer, keep_times_if_unchanged, track_write
from kubeserver.patching.patches import json_patch, merge_patch
from kubeserver.patching.strategic import strategic_merge
from kubeserver.schemas.defaults import apply_defaults, drop_nulls, fill
from kubeserver.wire.status import ApiError

if TYPE_CHECKING:
    from api_servers import ControlPlane

    from agreement import Kind
    from kubeserver.schemas.schema import Schema

Json = dict[str, Any]

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"


class Wire:
    """One kept-alive connection to the real server."""

    def __init__(self, plane: ControlPlane) -> None:
        url = urlsplit(plane.url)
        self._headers = dict(plane.headers)
        self._connection = http.client.HTTPSConnection(str(url.hostname), url.port, context=plane.tls, timeout=30)
        self.date = datetime.now(UTC)

    def send(self, method: str, path: str, body: object = None, kind: str = "application/json", **query: str) -> Any:
        where = f"{path}?{urlencode(query)}" if query else path
        data = None if body is None else json.dumps(body)
        self._connection.request(method, where, data, {**self._headers, "Content-Type": kind})
        answer = self._connection.getresponse()
        self.date = parsedate_to_datetime(answer.headers["Date"])
        text = answer.read()
        return answer.status, json.loads(text) if text.startswith((b"{", b"[")) else text.decode()

    def close(self) -> None:
        self._connection.close()


def stored(kind: Kind, schema: Schema, obj: Json) -> Json:
    """An object after decoding: empty members of metadata are gone, a custom resource has its defaults."""
    found = copy.deepcopy(obj)
    empty = [key for key, value in found["metadata"].items() if not value and key != "managedFields"]
    for key in empty:
        del found["metadata"][key]
    if not kind.strategic:
        apply_defaults(schema, found)
    return found


def content(obj: Json) -> Json:
    """What a client wrote of an object: all but what the server keeps about it."""
    kept = ("labels", "annotations", "finalizers", "ownerReferences")
    metadata = {key: value for key, value in obj["metadata"].items() if key in kept and value}
    return {**{key: value for key, value in obj.items() if key != "metadata"}, "metadata": metadata}


class Run:
    """One object and the writes it gets, on the real server and in our functions."""

    def __init__(self, wire: Wire, kind: Kind, schema: Schema, namespace: str, name: str) -> None:
        self.wire = wire
        self.kind = kind
        self.schema = schema
        self.namespace = namespace
        self.name = name
        self.rng = random.Random(f"{kind.kind} {name}")
        self.live: Json | None = None
        self.version = kind.api_version

    def step(self) -> str:
        if not self.kind.strategic and self.rng.random() < 0.2:
            # Another version of the same kind: nothing but the name of the version differs.
            self.use_version(self.rng.choice(["agreement.example.com/v1", "agreement.example.com/v1beta1"]))
        choices = [self.apply] * 5
        if self.live is None:
            choices += [self.create] * 3
        else:
            choices += [self.update, self.update, self.merge, self.json, self.fiddle]
            if self.kind.strategic:
                choices += [self.strategic, self.strategic]
            if self.kind.status is not None:
                choices += [self.status_update, self.status_merge, self.status_apply]
        return self.rng.choice(choices)()

    def use_version(self, version: str) -> None:
        self.version = version
        self.kind = self.kind.in_version(version)
        self.live = self.live and {**self.live, "apiVersion": version}

    def writer(self, manager: str, subresource: str = "") -> list[Writer]:
        """The writer with each time the server may have noted."""
        return [
            Writer(manager, subresource, self.version, (self.wire.date - late).strftime("%Y-%m-%dT%H:%M:%SZ"))
            for late in (timedelta(0), timedelta(seconds=1), timedelta(seconds=-1))
        ]

    def send(self, method: str, path: str, body: object, kind: str, manager: str, **query: str) -> tuple[int, Json]:
        status, answer = self.wire.send(method, path, body, kind, fieldManager=manager, **query)
        self.story = f"{method} {path} {query} as {manager}: {json.dumps(body)}\n  on {json.dumps(self.live)}"
        return status, answer

    def path(self, subresource: str = "") -> str:
        return self.kind.path(self.namespace, self.name, subresource)

    def accept(self, status: int, answer: Json, expected: list[list[Json]], obj: Json | None = None) -> str:
        """Compare what the server made of a write with what we make of it."""
        if status not in (200, 201):
            # Not valid as a whole, which is for validation to say: nothing was written, nothing to compare.
            assert status in (400, 422), f"{self.story}\n  {answer}"
            return f"refused: {answer['message'][:100]}"
        found = answer["metadata"].get("managedFields", [])
        assert any(found == row for row in expected), (
            f"{self.story}\n  real {json.dumps(found)}\n  ours {json.dumps(expected[0])}"
        )
        if obj is not None:
            assert content(answer) == content(obj), self.story
        if answer["metadata"].get("deletionTimestamp"):
            self.live = None
        else:
            self.live = answer
        return "ok"

    def decoded(self, answer: Json, sent: Json) -> Json:
        """The request as the server saw it once decoded: with defaults, without what it fills in later."""
        request = stored(self.kind, self.schema, sent)
        if not self.kind.strategic or "metadata" not in answer:
            return request
        found = {**answer, "metadata": request["metadata"]}
        if "spec" in found:
            asked = sent.get("spec") or {}
            kept = {key: value for key, value in found["spec"].items() if key not in self.kind.filled or key in asked}
            found["spec"] = kept
        return found

    def create(self) -> str:
        body = self.kind.request(self.rng, self.namespace, self.name)
        return self.create_as(self.rng.choice(["creator", "u1"]), body)

    def tracked(self, status: int, answer: Json, new: Json, manager: str, subresource: str = "") -> str:
        reset = self.kind.status_reset if subresource else self.kind.main_reset
        decoded = self.decoded(answer, new)
        ours = [
            track_write(self.schema, self.live, decoded, writer, reset_fields=reset)
            for writer in self.writer(manager, subresource)
        ]
        return self.accept(status, answer, ours)

    def changed(self) -> Json:
        """The live object as a client would change it."""
        assert self.live is not None
        body = self.kind.request(self.rng, self.namespace, self.name)
        found = copy.deepcopy(self.live)
        for part, value in body.items():
            if part == "metadata":
                found["metadata"] |= {key: each for key, each in value.items() if self.rng.random() < 0.5}
            elif isinstance(value, dict) and isinstance(found.get(part), dict) and self.rng.random() < 0.7:
                for key, each in value.items():
                    if self.rng.random() < 0.5:
                        found[part][key] = each
                for key in sample(self.rng, list(found[part]))[:1]:
                    if key not in ("selector", "template", "ports") and key not in self.kind.filled:
                        del found[part][key]
            elif not self.kind.strategic:
                found[part] = value
        return found

    def update(self) -> str:
        body = self.changed()
        if self.rng.random() < 0.2:
            body["metadata"].pop("managedFields", None)
        return self.update_as(self.rng.choice(["u1", "u2", "u3", "alpha"]), body)

    def update_as(self, manager: str, body: Json) -> str:
        status, answer = self.send("PUT", self.path(), body, "application/json", manager)
        return self.tracked(status, answer, body, manager)

    def create_as(self, manager: str, body: Json) -> str:
        status, answer = self.send("POST", self.kind.path(self.namespace), body, "application/json", manager)
        return self.tracked(status, answer, body, manager)

    def fiddle(self) -> str:
        """An update by a client that edits managedFields."""
        assert self.live is not None
        body = copy.deepcopy(self.live)
        entries = body["metadata"].get("managedFields", [])
        choice = self.rng.randrange(5)
        if choice == 0 and self.rng.random() < 0.3:
            entries = self.rng.choice([[], [{}]])
        elif choice == 1 and entries:
            entries = self.rng.sample(entries, len(entries))[1:] or entries
        elif choice == 2 and entries:
            entries[0]["manager"] = "renamed"
        elif choice == 3 and entries:
            entries[0]["operation"] = "Foo"
        elif entries:
            entries[-1]["fieldsV1"] = {"f:metadata": {"f:labels": {"f:k1": {}}}, ".": {}, "x:y": {}}
        body["metadata"]["managedFields"] = entries
        return self.update_as("fiddler", body)

    def merge(self) -> str:
        assert self.live is not None
        patch = self.kind.request(self.rng, self.namespace, self.name)
        for part in sample(self.rng, [part for part in patch if part not in ("apiVersion", "kind", "metadata")])[:1]:
            for key in sample(self.rng, list(patch[part]))[:1]:
                patch[part][key] = None
        status, answer = self.send("PATCH", self.path(), patch, MERGE, "patcher")
        new = merge_patch(self.live, patch)
        self.same_content(status, answer, new)
        return self.tracked(status, answer, new, "patcher")

    def same_content(self, status: int, answer: Json, new: Json) -> None:
        """What a patch makes of a custom resource or ConfigMap, which have no defaults in Go."""
        if status == 200 and self.kind.kind in ("Everything", "ConfigMap"):
            ours = content(stored(self.kind, self.schema, new))
            assert content(answer) == {k: v for k, v in ours.items() if v or k not in ("data", "binaryData")}, (
                self.story
            )

    def json(self) -> str:
        assert self.live is not None
        part = self.rng.choice([part for part in self.live if part not in ("apiVersion", "kind", "status")])
        operations: list[Json] = [{"op": "test", "path": "/metadata/name", "value": self.name}]
        if part == "metadata":
            operations.append({"op": "add", "path": "/metadata/labels", "value": {"k1": self.rng.choice("xyz")}})
        else:
            body = self.kind.request(self.rng, self.namespace, self.name).get(part) or {}
            operations += [
                {"op": "add", "path": f"/{part}/{key.replace('/', '~1')}", "value": body[key]}
                for key in sample(self.rng, list(body))[:2]
            ]
            removable = [key for key in self.live[part] if key not in ("selector", "template", "ports")]
            for key in sample(self.rng, removable)[:1]:
                if key not in self.kind.filled and not any(key in operation["path"] for operation in operations):
                    operations.append({"op": "remove", "path": f"/{part}/{key.replace('/', '~1')}"})
        status, answer = self.send("PATCH", self.path(), operations, JSON_PATCH, "jsoner")
        new = json_patch(self.live, operations)
        self.same_content(status, answer, new)
        return self.tracked(status, answer, new, "jsoner")

    def strategic(self) -> str:
        assert self.live is not None
        patch = self.kind.request(self.rng, self.namespace, self.name)
        if "finalizers" not in patch["metadata"] and self.rng.random() < 0.3:
            patch["metadata"]["$deleteFromPrimitiveList/finalizers"] = ["example.com/a"]
        if self.kind.kind == "Deployment":
            direct(self.rng, patch)
        status, answer = self.send("PATCH", self.path(), patch, STRATEGIC, "strategist")
        try:
            new = strategic_merge(self.schema, self.live, patch)
        except ApiError as error:
            return self.same_refusal(status, answer, error)
        self.same_content(status, answer, new)
        if status == 200:
            assert covers(answer, {**new, "metadata": content(new)["metadata"]}), (
                f"{self.story}\n  ours {new}\n  real {answer}"
            )
        return self.tracked(status, answer, new, "strategist")

    def status_update(self) -> str:
        assert self.live is not None
        assert self.kind.status is not None
        body = self.changed() | {"status": self.kind.status(self.rng)}
        status, answer = self.send("PUT", self.path("status"), body, "application/json", "u1")
        return self.tracked(status, answer, body, "u1", "status")

    def status_merge(self) -> str:
        assert self.live is not None
        assert self.kind.status is not None
        patch = {"status": self.kind.status(self.rng), "metadata": {"labels": {"k1": "status"}}}
        status, answer = self.send("PATCH", self.path("status"), patch, MERGE, "reporter")
        return self.tracked(status, answer, merge_patch(self.live, patch), "reporter", "status")

    def apply(self) -> str:
        body = self.kind.request(self.rng, self.namespace, self.name)
        return self.applied(body, "", self.kind.main_reset)

    def status_apply(self) -> str:
        assert self.kind.status is not None
        body = self.kind.request(self.rng, self.namespace, self.name)
        body["status"] = self.kind.status(self.rng)
        return self.applied(body, "status", self.kind.status_reset)

    def applied(self, body: Json, subresource: str, reset: tuple[str, ...]) -> str:
        if self.rng.random() < 0.2:
            spoil(self.rng, body)
        manager = self.rng.choice(["alpha", "alpha", "beta", "kubectl"])
        return self.apply_as(manager, body, subresource, reset, force=self.rng.random() < 0.6)

    def apply_as(
        self, manager: str, body: Json, subresource: str = "", reset: tuple[str, ...] = (), *, force: bool = False
    ) -> str:
        reset = reset or self.kind.main_reset
        query = {"force": str(force).lower()}
        status, answer = self.send("PATCH", self.path(subresource), body, APPLY, manager, **query)
        ours: list[Json] = []
        try:
            for writer in self.writer(manager, subresource):
                result = copy.deepcopy(
                    apply(self.schema, self.live, body, writer, force=force, kind=self.kind.kind, reset_fields=reset)
                )
                if not self.kind.strategic:
                    fill(self.schema, result)
                ours.append(result)
        except ApiError as error:
            return self.same_refusal(status, answer, error)
        if not self.kind.strategic:
            self.refused_if_null(status, answer, ours[0])
            for own in ours:
                drop_nulls(self.schema, own)
        new = ours[0]
        if subresource and self.live is not None and "metadata" in answer:
            rest = {key: value for key, value in self.live.items() if key != "status"}
            new = {**rest, **({"status": new["status"]} if "status" in new else {})}
        elif not subresource and self.live is not None:
            new = {**new, **({"status": self.live["status"]} if "status" in self.live else {})}
        if self.live is not None and status == 200:
            ours = [keep_times_if_unchanged(self.live, self.finished(own, answer)) for own in ours]
        return self.accept(
            status,
            answer,
            [own["metadata"].get("managedFields", []) for own in ours],
            None if self.kind.strategic else new,
        )

    def refused_if_null(self, status: int, answer: Json, new: Json) -> None:
        """What an apply empties while others own it is null: refused where a type forbids it, else dropped later."""
        typed = copy.deepcopy(new)
        if typed.get("spec") and typed["spec"].get("any", "") is None:
            del typed["spec"]["any"]
        without = copy.deepcopy(typed)
        drop_nulls(self.schema, without)
        assert (status == 422) == (without != typed), f"{self.story}\n  real {answer}\n  ours {new}"

    def finished(self, new: Json, answer: Json) -> Json:
        """An applied object as it would be stored: the rest of the server is taken at its word."""
        metadata = {**answer["metadata"]}
        assert self.live is not None
        for key in ("resourceVersion", "generation"):
            if key in self.live["metadata"]:
                metadata[key] = self.live["metadata"][key]
        metadata["managedFields"] = new["metadata"].get("managedFields", [])
        return {**answer, "metadata": metadata}

    def same_refusal(self, status: int, answer: Json, error: ApiError) -> str:
        ours = error.status()
        assert status == error.code, f"{self.story}\n  real {json.dumps(answer)}\n  ours {json.dumps(ours)}"
        for obj in (answer, ours):
            causes = obj.get("details", {}).get("causes", [])
            causes.sort(key=lambda cause: (cause["message"], cause["field"]))
        assert answer == ours, f"{self.story}\n  real {json.dumps(answer)}\n  ours {json.dumps(ours)}"
        return f"refused: {error.message[:100]}"


def direct(rng: random.Random, patch: Json) -> None:
    """Put directives into the patch of a Deployment."""
    pod = patch["spec"]["template"]["spec"]
    names = [item["name"] for item in pod["containers"]]
    if rng.random() < 0.4:
        order = sample(rng, ["c1", "c2", "c3"])
        pod["$setElementOrder/containers"] = [{"name": name} for name in order or names]
    if rng.random() < 0.2:
        pod["containers"].append({"name": rng.choice(["c1", "c2"]), "$patch": rng.choice(["delete", "merge", "foo"])})
    if rng.random() < 0.1:
        pod["containers"].append({"$patch": "replace"})
    container = pod["containers"][0]
    if rng.random() < 0.2 and "env" in container:
        container["$setElementOrder/env"] = [{"name": item} for item in sample(rng, ["A", "B"])]
    if rng.random() < 0.1:
        container["env"] = [{"value": "no name"}]
    if rng.random() < 0.2:
        patch["spec"]["strategy"] = {"$retainKeys": ["type"], "type": rng.choice(["Recreate", "RollingUpdate"])}
    if rng.random() < 0.1:
        patch["spec"]["template"]["metadata"]["labels"] = {"$patch": "replace", "app": "x"}
    if rng.random() < 0.1:
        patch["spec"][rng.choice(["replicas", "paused", "strategy"])] = None


def covers(real: Any, ours: Any) -> bool:
    """Whether an object holds all of another, lists in the same order; empty parts may have been left out."""
    if isinstance(ours, dict):
        return not ours or (
            isinstance(real, dict)
            and all(
                covers(real[key], each) if key in real else not each or key.startswith("$")
                for key, each in ours.items()
            )
        )
    if isinstance(ours, list):
        return not ours or (isinstance(real, list) and len(real) == len(ours) and all(map(covers, real, ours)))
    return bool(real == ours)


def spoil(rng: random.Random, body: Json) -> None:
    """Make a configuration one that cannot be applied."""
    spec = body.get("spec", {})
    kind = rng.randrange(5)
    if kind == 0:
        body["metadata"]["managedFields"] = []
    elif kind == 1:
        body["kind"] = "Other"
    elif kind == 2 and spec.get("ports"):
        spec["ports"].append(copy.deepcopy(spec["ports"][0]))
    elif kind == 3 and "spec" in body:
        spec["unheardOf"] = 1
    elif "names" in spec:
        spec["names"] = ["a", "a"]
