"""Butler's address management at work in one namespace, for tests: the real operator, and a desk to ask it from.

The operator runs in a thread of its own with its own event loop, so that tests can be plain functions that type
kubectl and wait. Everything it sends to the server is counted. The desk speaks plain JSON, as any user would, and
knows nothing of the operator: what a test learns, it learns from the server.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
import urllib.request
from collections import Counter
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from butler.controllers.networkpool.setup import add_ipam
from butler.kube import config
from butler.kube.client import Client
from butler.kube.metrics import Metrics
from butler.kube.operator import Operator
from butler.rules.pool.settings import IpamSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from control_planes import ControlPlane

Json = dict[str, Any]
API = "/apis/butler.butlerlabs.dev/v1alpha1"
FINALIZER = "butler.butlerlabs.dev/ipallocation"
POOLS, ALLOCATIONS = "networkpools", "ipallocations"
PATIENCE = 60.0
LONGEST_IDLE = 30.0
"""Seconds that a connection is kept without use; a kube-apiserver hangs up after 90."""
READS = ("get", "list", "watch", "raw")


class RunningOperator:
    """A context manager: the operator works from the moment it has read everything until the block ends."""

    def __init__(self, control_plane: ControlPlane, namespace: str, **settings: Any) -> None:
        self.metrics = Metrics()
        self.requests: Counter[tuple[str, str]] = Counter()
        # Tests count writes; what a grant costs beside them later is told where it is looked at.
        settings.setdefault("note_after", timedelta(hours=1))
        self._settings = IpamSettings(namespace=namespace, home_namespace=namespace, **settings)
        self._kubeconfig = control_plane.kubeconfig
        self._thread = threading.Thread(target=self._work, name="operator")
        self._begun = threading.Event()
        self._stop: Callable[[], object] = lambda: None
        self._failure: BaseException | None = None

    def __enter__(self) -> RunningOperator:
        self._thread.start()
        assert self._begun.wait(PATIENCE), "the operator does not start"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the operator does not stop"
        if self._failure is not None and value is None:
            raise self._failure

    def writes(self, *plurals: str) -> int:
        """How many writes were sent for these kinds, whatever came of them; without any, for all but events."""
        return sum(
            count
            for (verb, resource), count in self.requests.items()
            if verb not in READS and (resource.split(".")[0] in plurals if plurals else resource != "events")
        )

    def series(self, pool: str) -> dict[str, float]:
        """The metrics of a pool, as a scrape would find them: name and further labels."""
        found = {}
        for family in self.metrics.registry.collect():
            for sample in family.samples:
                labels = dict(sample.labels)
                if labels.pop("pool", None) == pool and not sample.name.endswith("_created"):
                    labels.pop("namespace")
                    found[" ".join([sample.name, *labels.values()])] = sample.value
        return found

    def _observe(self, verb: str, resource: str, code: str, seconds: float) -> None:
        self.requests[verb, resource] += 1
        self.metrics.observe_request(verb, resource, code, seconds)

    def _work(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as failure:
            self._failure = failure
        finally:
            self._begun.set()

    async def _run(self) -> None:
        async with Client(config.load(self._kubeconfig), field_manager="butler", observe=self._observe) as client:
            operator = Operator(client, "butler-controller", metrics=self.metrics)
            add_ipam(operator, self._settings)
            loop = asyncio.get_running_loop()
            self._stop = lambda: loop.call_soon_threadsafe(operator.stop)
            running = asyncio.create_task(operator.run(handle_signals=False))
            while operator.why_unready() and not running.done():  # noqa: ASYNC110  # there is no event for it
                await asyncio.sleep(0.01)
            self._begun.set()
            await running


class Desk:
    """One namespace as its users have it."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        self.control_plane = control_plane
        self.namespace = namespace
        self._lines = threading.local()  # a connection for each thread that asks
        self._open: list[http.client.HTTPSConnection] = []

    def close(self) -> None:
        """Hang up."""
        for line in self._open:
            line.close()

    # Requests.

    def _line(self) -> http.client.HTTPSConnection:
        """A connection that is kept: a handshake for every look would take the machine from the server."""
        idle = time.monotonic() - getattr(self._lines, "used", 0.0)
        self._lines.used = time.monotonic()
        if not hasattr(self._lines, "line"):
            host = urlsplit(self.control_plane.url).netloc
            self._lines.line = http.client.HTTPSConnection(host, context=self.control_plane.tls, timeout=30)
            self._open.append(self._lines.line)
        elif idle > LONGEST_IDLE:
            self._lines.line.close()  # before the server does, and a write meets a line that is dead
        return cast("http.client.HTTPSConnection", self._lines.line)

    def send(self, method: str, path: str, body: Json | None = None, kind: str = "application/json") -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        line, headers = self._line(), {**self.control_plane.headers, "Content-Type": kind}
        path = urlsplit(self.control_plane.url).path + path
        try:
            line.request(method, path, data, headers)
            answer = line.getresponse()
        except (http.client.HTTPException, OSError):
            line.close()  # the server hung up meanwhile; the next request has to call again
            if method != "GET":
                raise
            line.request(method, path, data, headers)
            answer = line.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")

    def path(self, plural: str, name: str = "", subresource: str = "") -> str:
        return "/".join(part for part in (API, "namespaces", self.namespace, plural, name, subresource) if part)

    def create(self, plural: str, obj: Json) -> Json:
        code, answer = self.send("POST", self.path(plural), obj)
        assert code == 201, answer
        return dict(answer)

    def refused(self, plural: str, obj: Json) -> str:
        """Why the server does not even take this; it must not."""
        code, answer = self.send("POST", self.path(plural), obj)
        assert code == 422, f"{code}: {answer}"
        return str(answer["message"])

    def get(self, plural: str, name: str) -> Json | None:
        code, answer = self.send("GET", self.path(plural, name))
        return dict(answer) if code == 200 else None

    def edit(self, plural: str, name: str, patch: Json, subresource: str = "") -> Json:
        code, answer = self.send("PATCH", self.path(plural, name, subresource), patch, "application/merge-patch+json")
        assert code == 200, answer
        return dict(answer)

    def delete(self, plural: str, name: str) -> None:
        code, answer = self.send("DELETE", self.path(plural, name))
        assert code == 200, answer

    def history(self, plural: str, name: str, since: str) -> list[Json]:
        """Every revision of an object after a version, as a watch from there tells it; ends with its deletion."""
        query = f"?watch=true&resourceVersion={since}&fieldSelector=metadata.name={name}&timeoutSeconds=20"
        url = self.control_plane.url + self.path(plural) + query
        request = urllib.request.Request(url, headers=dict(self.control_plane.headers))
        found = []
        with urllib.request.urlopen(request, context=self.control_plane.tls, timeout=30) as stream:
            for line in stream:
                event = json.loads(line)
                found.append(event)
                if event["type"] == "DELETED":
                    break
        return found

    def version(self, plural: str) -> str:
        """Where a history may begin."""
        code, answer = self.send("GET", self.path(plural))
        assert code == 200, answer
        return str(answer["metadata"]["resourceVersion"])

    def events(self, kind: str, name: str) -> list[tuple[str, str, str]]:
        """Type, reason and message of the events about an object."""
        selector = f"involvedObject.kind={kind},involvedObject.name={name}"
        code, answer = self.send("GET", f"/api/v1/namespaces/{self.namespace}/events?fieldSelector={selector}")
        assert code == 200, answer
        return [(item["type"], item["reason"], item["message"]) for item in answer["items"]]

    # Pools and allocations.

    def pool(self, name: str, cidr: str, *windows: str, reserved: tuple[str, ...] = (), **metadata: Any) -> Json:
        """Create a pool with windows such as "10.0.0.1-10.0.0.32"."""
        return self.create(POOLS, pool(name, cidr, *windows, reserved=reserved, **metadata))

    def ask(self, name: str, count: int | None = None, **options: Any) -> Json:
        """Create a request for addresses; see `allocation`."""
        return self.create(ALLOCATIONS, allocation(name, count, **options))

    def until(self, look: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
        """Look until what is seen counts as true; gives what was seen."""
        deadline = time.monotonic() + patience
        while not (seen := look()):
            assert time.monotonic() < deadline, f"not within {patience:.0f} s: {what}; pools: {self._pools()}"
            time.sleep(0.02)
        return seen

    def _pools(self) -> Any:
        return [item.get("status") for item in self.send("GET", self.path(POOLS))[1].get("items", ())]

    def status(self, plural: str, name: str) -> Json:
        found = self.get(plural, name)
        assert found is not None, f"{name} is gone"
        return dict(found.get("status") or {})

    def granted(self, name: str) -> str:
        """Waits for a grant; the range."""

        def look() -> Json | None:
            status = self.status(ALLOCATIONS, name)
            return status if status.get("phase") == "Allocated" else None

        found = self.until(look, f"{name} is Allocated")
        return f"{found['startAddress']}-{found['endAddress']}"

    def failed(self, name: str, reason: str) -> str:
        """Waits for a refusal with this reason; the message."""

        def look() -> str | None:
            status = self.status(ALLOCATIONS, name)
            ready = condition(status, "Ready")
            said = ready.get("reason") == reason and status["phase"] == "Failed"
            return str(ready["message"]) if said else None

        return str(self.until(look, f"{name} is Failed for {reason}"))

    def gone(self, plural: str, name: str) -> None:
        self.until(lambda: self.get(plural, name) is None, f"{name} is gone")

    def ready(self, name: str, reason: str = "Ready") -> str:
        """Waits until a pool's Ready condition has this reason; the message."""

        def look() -> Json | None:
            found = self.get(POOLS, name)
            ready = condition((found or {}).get("status") or {}, "Ready")
            current = (found or {}).get("status", {}).get("observedGeneration") == (found or {})["metadata"][
                "generation"
            ]
            return ready if ready.get("reason") == reason and current else None

        found = self.until(look, f"{name} is {reason}")
        assert found["status"] == ("True" if reason == "Ready" else "False")
        return str(found["message"])

    def counted(self, name: str, **figures: object) -> Json:
        """Waits until a pool's status shows these figures; the status."""

        def look() -> Json | None:
            status = self.status(POOLS, name)
            return status if all(status.get(field) == value for field, value in figures.items()) else None

        return dict(self.until(look, f"{name} shows {figures}"))


def condition(status: Json, kind: str) -> Json:
    return next((dict(item) for item in status.get("conditions", ()) if item["type"] == kind), {})


def pool(name: str, cidr: str, *windows: str, reserved: tuple[str, ...] = (), **metadata: Any) -> Json:
    spec: Json = {"cidr": cidr}
    if reserved:
        spec["reserved"] = [{"cidr": text} for text in reserved]
    if windows:
        spec["tenantAllocation"] = tenant_allocation(*windows)
    return {
        "apiVersion": "butler.butlerlabs.dev/v1alpha1",
        "kind": "NetworkPool",
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def tenant_allocation(*windows: str) -> Json:
    return {"ranges": [dict(zip(("start", "end"), window.split("-"), strict=True)) for window in windows]}


def allocation(
    name: str,
    count: int | None = None,
    *,
    of: str = "pool",
    pinned: str | None = None,
    finalizer: bool = True,
    kind: str = "nodes",
    **metadata: Any,
) -> Json:
    """A request, as Butler itself makes them: with the finalizer from birth."""
    spec: Json = {
        "poolRef": {"name": of},
        "tenantClusterRef": {"name": name, "namespace": "team-a"},
        "type": kind,
    }
    if count is not None:
        spec["count"] = count
    if pinned is not None:
        spec["pinnedRange"] = dict(zip(("startAddress", "endAddress"), pinned.split("-"), strict=True))
    if finalizer:
        metadata.setdefault("finalizers", [FINALIZER])
    return {
        "apiVersion": "butler.butlerlabs.dev/v1alpha1",
        "kind": "IPAllocation",
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


@contextmanager
def fresh_desk(control_plane: ControlPlane) -> Iterator[Desk]:
    """A namespace of its own in which Butler's kinds are served."""
    with closing(Desk(control_plane, control_plane.fresh_namespace("ipam"))) as desk:
        yield from _served(desk)


def _served(desk: Desk) -> Iterator[Desk]:
    # A definition is established a moment before its storage starts.
    desk.until(lambda: all(desk.send("GET", desk.path(text))[0] == 200 for text in (POOLS, ALLOCATIONS)), "served")
    yield desk
    if not desk.control_plane.disposable:
        desk.send("DELETE", f"/api/v1/namespaces/{desk.namespace}")
