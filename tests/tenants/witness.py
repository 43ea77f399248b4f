"""A witness: watches the management cluster from outside and remembers everything, in order.

Each kind is followed by one watch over all namespaces. What the witness saw last answers "how is it now" without a
request; what it saw at all answers "what came first". Events of different kinds arrive as they please, but both
control planes number their writes across kinds, so the order is that of the resource versions and never that of
arrival. A deletion carries the number of the deletion.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

    from control_planes import ControlPlane

Json = dict[str, Any]
T = TypeVar("T")
PATIENCE = 120.0
BUTLER = "/apis/butler.butlerlabs.dev/v1alpha1"
CORE = "/apis/cluster.x-k8s.io/v1beta1"
OWN = {
    "tenantclusters": f"{BUTLER}/tenantclusters",
    "providerconfigs": f"{BUTLER}/providerconfigs",
    "networkpools": f"{BUTLER}/networkpools",
    "ipallocations": f"{BUTLER}/ipallocations",
    "tenantaddons": f"{BUTLER}/tenantaddons",
    "namespaces": "/api/v1/namespaces",
    "events": "/api/v1/events",
}
CLUSTER_API = {
    "clusters": f"{CORE}/clusters",
    "machinedeployments": f"{CORE}/machinedeployments",
    "machinesets": f"{CORE}/machinesets",
    "machines": f"{CORE}/machines",
    "stewardcontrolplanes": "/apis/controlplane.cluster.x-k8s.io/v1alpha1/stewardcontrolplanes",
}


@dataclass(frozen=True)
class Sighting:
    """One event of a watch."""

    plural: str
    type: str
    obj: Json

    @property
    def version(self) -> int:
        return int(self.obj["metadata"]["resourceVersion"])

    @property
    def name(self) -> str:
        return str(self.obj["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.obj["metadata"].get("namespace", ""))


class Expired(Exception):
    """The server no longer has the versions that the watch wants to go on from."""


class Witness:
    """Follows kinds, by their paths, from the beginning of the block to its end; of others it knows nothing."""

    def __init__(self, control_plane: ControlPlane, paths: Mapping[str, str]) -> None:
        self._plane = control_plane
        self._paths = paths
        self._seen: list[Sighting] = []
        self._now: dict[str, dict[tuple[str, str], Json]] = {}
        self._news = threading.Condition()
        self._lines: list[http.client.HTTPSConnection] = []
        self._threads: list[threading.Thread] = []
        self._gaps: set[str] = set()
        self._done = False

    def __enter__(self) -> Witness:
        self.follow(self._paths)
        return self

    def follow(self, paths: Mapping[str, str]) -> None:
        """Watch some kinds, from what there is of them now."""
        for plural, path in paths.items():
            self._now[plural] = {}
            version = self._list(plural, path)
            follow = threading.Thread(target=self._follow, args=(plural, path, version), daemon=True)
            follow.start()
            self._threads.append(follow)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done = True
        for line in self._lines:
            if line.sock is not None:
                with contextlib.suppress(OSError):
                    line.sock.shutdown(2)
        for thread in self._threads:
            thread.join(10)

    # Asking.

    def get(self, plural: str, namespace: str, name: str) -> Json | None:
        return self._now.get(plural, {}).get((namespace, name))

    def list(self, plural: str, namespace: str | None = None) -> list[Json]:
        with self._news:
            found = list(self._now.get(plural, {}).items())
        return [obj for (where, _), obj in found if namespace in (None, where)]

    def history(self, *plurals: str) -> Sequence[Sighting]:
        """Everything that was seen of these kinds, in the order in which it happened."""
        assert not self._gaps.intersection(plurals), f"a watch expired, so history is missing: {self._gaps}"
        with self._news:
            found = [sighting for sighting in self._seen if sighting.plural in plurals]
        return sorted(found, key=lambda sighting: sighting.version)

    def until(self, look: Callable[[], T], what: Callable[[], str], patience: float = PATIENCE) -> T:
        """Look whenever there is news until what is seen counts as true; gives it. `what` tells the story if not."""
        deadline = time.monotonic() + patience
        while not (seen := look()):
            assert time.monotonic() < deadline, f"not within {patience:.0f} s: {what()}"
            with self._news:
                self._news.wait(0.25)  # some of what is looked at is not in our view
            time.sleep(0.01)  # news comes in swarms
        return seen

    # Following.

    def _list(self, plural: str, path: str) -> str:
        code, answer = self._plane.request("GET", path)
        assert code == 200, f"{path}: {answer}"
        listed = {(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]) for obj in answer["items"]}
        with self._news:
            for key in self._now[plural].keys() - listed:
                del self._now[plural][key]
        for obj in answer["items"]:
            self._keep(plural, "ADDED", obj)
        return str(answer["metadata"]["resourceVersion"])

    def _follow(self, plural: str, path: str, version: str) -> None:
        while not self._done:
            try:
                version = version or self._list(plural, path)
                for event in self._watch(path, version):
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._keep(plural, event["type"], event["object"])
            except (OSError, http.client.HTTPException, ValueError, AttributeError):
                time.sleep(0.05)  # hung up, by us or by the server; it goes on where it was
            except Expired:
                # Usual for events: kube-apiserver sends no bookmarks for them, and etcd is compacted every 5 minutes.
                self._gaps.add(plural)
                version = ""

    def _watch(self, path: str, version: str) -> Iterator[Json]:
        url = urlsplit(self._plane.url)
        line = http.client.HTTPSConnection(url.netloc, context=self._plane.tls, timeout=600)
        self._lines.append(line)
        query = f"?watch=true&resourceVersion={version}&allowWatchBookmarks=true"
        with contextlib.closing(line):
            line.request("GET", url.path + path + query, headers=dict(self._plane.headers))
            answer = line.getresponse()
            while text := answer.readline():
                event = json.loads(text)
                if event["type"] == "ERROR" and event["object"].get("code") == 410:
                    raise Expired
                assert event["type"] != "ERROR", f"the watch of {path} broke: {event}"
                yield event

    def _keep(self, plural: str, kind: str, obj: Json) -> None:
        sighting = Sighting(plural, kind, obj)
        key = (sighting.namespace, sighting.name)
        with self._news:
            if kind == "DELETED":
                self._now[plural].pop(key, None)
            else:
                self._now[plural][key] = obj
            self._seen.append(sighting)
            self._news.notify_all()
