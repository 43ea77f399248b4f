"""Writes down what both sides commit: the management cluster and every tenant that was named to it.

Each kind on each side is followed by one watch that is resumed where it was, and the record must be whole: a revision
that cannot follow the one before it is a gap, and with a gap nothing is concluded (`ipam.history`). The moment of a
revision is its number where both sides are one store; else it is bounded by looks at the counter of its store, some
twenty a second (`moments.Clock`). A look is a list of one object: a list is answered with the counter of the whole
store, read consistently.

The record goes straight to the servers, whatever proxy the controllers have in their way.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from elastic.chronicle import ADDRESS_POOL, ADVERTISEMENT, PROVIDER, SERVICE, TENANT, Chronicle, Dated
from elastic.moments import Clock, Moment
from ipam.history import ALLOCATION, CLAIMS, CLAIMS_NAME, POOL, Gap, History, Revision, _Watched
from tenants.witness import CLUSTER_API, OWN, Witness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from control_planes import ControlPlane
    from tenants.witness import Json

LOOKS_APART = 0.05
PATIENCE = 60.0
CLAIMS_PATH = "/api/v1/namespaces/butler-system/configmaps"
MANAGEMENT = {**OWN, **CLUSTER_API, "configmaps": CLAIMS_PATH}
METALLB = "/apis/metallb.io/v1beta1"
INSIDE = {
    "services": "/api/v1/services",
    "ipaddresspools": f"{METALLB}/ipaddresspools",
    "l2advertisements": f"{METALLB}/l2advertisements",
    "serviceevents": "/api/v1/events",
}
KINDS = {
    "networkpools": POOL,
    "ipallocations": ALLOCATION,
    "configmaps": CLAIMS,
    "tenantclusters": TENANT,
    "providerconfigs": PROVIDER,
    "services": SERVICE,
    "ipaddresspools": ADDRESS_POOL,
    "l2advertisements": ADVERTISEMENT,
}


class Side(Witness):
    """One API server or logical cluster, followed by kind; kinds that do not exist yet are followed once they do."""

    def __init__(self, plane: ControlPlane, paths: Mapping[str, str]) -> None:
        super().__init__(plane, paths)
        self.plane = plane
        self.revisions: list[Revision] = []
        self._watched = {plural: _Watched(KINDS.get(plural, plural), path) for plural, path in paths.items()}
        self._record_gaps: list[str] = []
        self._read: dict[str, threading.Event] = {plural: threading.Event() for plural in paths}

    def follow(self, paths: Mapping[str, str]) -> None:
        for plural, path in paths.items():
            self._now[plural] = {}
            thread = threading.Thread(target=self._keep_following, args=(plural, path), daemon=True)
            thread.start()
            self._threads.append(thread)
        for plural, path in paths.items():
            if not path.startswith(METALLB):
                assert self._read[plural].wait(PATIENCE), f"{path} is not served"

    def close(self) -> None:
        self.__exit__(None, None, None)

    def written(self) -> list[Revision]:
        """The record so far; raises Gap when it is not whole."""
        with self._news:
            if self._record_gaps:
                raise Gap("; ".join(self._record_gaps[:3]))
            return sorted(self.revisions, key=lambda revision: revision.version)

    def catch_up(self, *plurals: str) -> None:
        """Read on until everything that a consistent list shows now has been seen."""
        for plural in plurals:
            code, answer = self.plane.request("GET", self._paths[plural])
            if code == 404:
                continue
            assert code == 200, answer
            wanted = {_key(item): _version(item) for item in answer["items"]}
            listed_at = _version(answer)
            told = f"the watch of {plural} came as far as a list at {listed_at}"
            self.until(partial(self._has_seen, plural, wanted, listed_at), partial(str, told))

    def _has_seen(self, plural: str, wanted: dict[tuple[str, str], int], listed_at: int) -> bool:
        with self._news:
            now = {key: _version(obj) for key, obj in self._now[plural].items()}
            position = self._watched[plural].position
        if position > listed_at:
            return True  # a watch is in order
        return all(now.get(key, 0) >= version for key, version in wanted.items()) and now.keys() <= wanted.keys()

    # Following.

    def _keep_following(self, plural: str, path: str) -> None:
        version = ""
        while not self._done:
            try:
                if not version:
                    version = self._first(plural, path)
                    self._read[plural].set()
                for event in self._lines_of(path, version):
                    if event["type"] == "ERROR":
                        if event["object"].get("code") == 410:
                            self._gap(f"the server forgot {plural} at {version}")
                            return
                        break
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._keep(plural, event["type"], event["object"])
            except (OSError, http.client.HTTPException, ValueError, AttributeError, KeyError):
                pass  # hung up, by us or by the server, or not served (yet); it goes on where it was
            if not self._done:
                time.sleep(0.02)

    def _first(self, plural: str, path: str) -> str:
        code, answer = self.plane.request("GET", path)
        if code != 200:
            raise ConnectionError(path)
        watched = self._watched[plural]
        with self._news:
            for obj in answer["items"]:
                self._now[plural][_key(obj)] = watched.live[_key(obj)] = obj
                meta = obj["metadata"]
                self.revisions.append(
                    Revision(_version(obj), watched.kind, *_key(obj), meta["uid"], None, obj, time.monotonic())
                )
            watched.position = _version(answer)
            self._news.notify_all()
        return str(answer["metadata"]["resourceVersion"])

    def _lines_of(self, path: str, version: str) -> Iterator[Json]:
        url = urlsplit(self.plane.url)
        line = http.client.HTTPSConnection(url.netloc, context=self.plane.tls, timeout=600)
        self._lines.append(line)
        query = f"?watch=true&resourceVersion={version}&allowWatchBookmarks=true"
        with contextlib.closing(line):
            line.request("GET", url.path + path + query, headers=dict(self.plane.headers))
            answer = line.getresponse()
            if answer.status == 410:
                self._gap(f"the server forgot {path} at {version}")
            if answer.status != 200:
                raise ConnectionError(path)
            while text := answer.readline():
                yield json.loads(text)

    def _keep(self, plural: str, kind: str, obj: Json) -> None:
        with self._news:
            try:
                revision = self._watched[plural].take(kind, obj)
            except Gap as gap:
                self._record_gaps.append(str(gap))
                revision = None
            if revision is not None:
                self.revisions.append(revision)
        super()._keep(plural, kind, obj)

    def _gap(self, what: str) -> None:
        with self._news:
            self._record_gaps.append(what)


def _key(obj: Json) -> tuple[str, str]:
    return str(obj["metadata"].get("namespace", "")), str(obj["metadata"]["name"])


def _version(obj: Json) -> int:
    return int(obj["metadata"]["resourceVersion"])


class Watch:
    """Looks at the counter of one server again and again, from `start` to `stop`."""

    def __init__(self, plane: ControlPlane) -> None:
        self.clock = Clock()
        self._plane = plane
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join(10)

    def _look(self) -> None:
        url = urlsplit(self._plane.url)
        line = http.client.HTTPSConnection(url.netloc, context=self._plane.tls, timeout=30)
        with contextlib.closing(line):
            while not self._done.wait(LOOKS_APART):
                began = time.monotonic()
                try:
                    line.request("GET", url.path + "/api/v1/namespaces?limit=1", headers=dict(self._plane.headers))
                    answer = line.getresponse()
                    body = json.loads(answer.read())
                except (OSError, http.client.HTTPException, ValueError):
                    line.close()
                    continue
                if answer.status == 200:
                    self.clock.looked(_version(body), began, time.monotonic())


class Record:
    """Both sides. `one_store`: management and tenants are numbered by one counter."""

    def __init__(self, plane: ControlPlane, *, one_store: bool) -> None:
        self.one_store = one_store
        self.management = Side(plane, MANAGEMENT)
        self._tenants: dict[str, Side] = {}
        self._clocks: dict[str, Watch] = {}
        self._edits: set[tuple[str, int]] = set()
        self._lock = threading.Lock()
        self._watch(plane)

    def __enter__(self) -> Record:
        self.management.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        for side in (*self._tenants.values(), self.management):
            side.close()
        for clock in self._clocks.values():
            clock.stop()

    def _watch(self, plane: ControlPlane) -> None:
        """One clock for each server: all tenants of the world are in one store."""
        host = urlsplit(plane.url).netloc
        with self._lock:
            if not self.one_store and host not in self._clocks:
                self._clocks[host] = Watch(plane)

    def tenant(self, uid: str, plane: ControlPlane) -> Side:
        """Follow a tenant from now on."""
        self._watch(plane)
        with self._lock:
            side = self._tenants[uid] = Side(plane, INSIDE)
        side.follow(INSIDE)
        return side

    def leave(self, uid: str) -> None:
        """Follow a tenant no more, because it is about to be deleted."""
        with self._lock:
            side = self._tenants.get(uid)
        if side is not None:
            side.close()

    def edited(self, uid: str, version: int) -> None:
        """A user wrote this version of the tenant's default-pool."""
        with self._lock:
            self._edits.add((uid, version))

    def chronicle(self, uids: Iterable[str]) -> Chronicle:
        """Everything up to now, of the management cluster and of some tenants."""
        tenants = {uid: self._tenants[uid] for uid in uids}
        for side in tenants.values():
            side.catch_up("services", "ipaddresspools")
        self.management.catch_up("ipallocations", "networkpools", "tenantclusters", "providerconfigs")
        with self._lock:
            edits = frozenset(self._edits)
        inside = {uid: self._dated(side, _of_tenants) for uid, side in tenants.items()}
        return Chronicle(self._dated(self.management, _of_management), inside, edits)

    def now(self, uids: Iterable[str]) -> Chronicle:
        """The latest state alone, as far as it was seen."""
        inside = {uid: _current(self._tenants[uid], ("services", "ipaddresspools")) for uid in uids}
        kinds = ("ipallocations", "networkpools", "tenantclusters", "providerconfigs")
        return Chronicle(_current(self.management, kinds), inside)

    def history(self, pools: Iterable[str] | None = None) -> History:
        """What `ipam.invariants` judges: of these pools, or of all."""
        chosen = None if pools is None else set(pools)
        found = [revision for revision in self.management.written() if _is_about(revision, chosen)]
        return History(found, 0)

    def _dated(self, side: Side, wanted: Callable[[Revision], bool]) -> list[Dated]:
        found = [revision for revision in side.written() if wanted(revision)]
        if self.one_store:
            return [Dated(Moment.exact(revision.version), revision) for revision in found]
        clock = self._clocks[urlsplit(side.plane.url).netloc].clock
        return [Dated(clock.moment(revision.version, revision.seconds), revision) for revision in found]


def _current(side: Side, plurals: Iterable[str]) -> list[Dated]:
    found = []
    for plural in plurals:
        for obj in side.list(plural):
            revision = Revision(_version(obj), KINDS[plural], *_key(obj), obj["metadata"]["uid"], None, obj)
            found.append(Dated(Moment.exact(0), revision))
    return found


def _of_management(revision: Revision) -> bool:
    return revision.kind in (POOL, ALLOCATION, TENANT, PROVIDER)


def _of_tenants(revision: Revision) -> bool:
    return revision.kind in (SERVICE, ADDRESS_POOL)


def _is_about(revision: Revision, pools: set[str] | None) -> bool:
    if revision.kind == CLAIMS:
        return revision.name == CLAIMS_NAME
    if revision.kind == POOL:
        return pools is None or revision.name in pools
    return revision.kind == ALLOCATION and (pools is None or revision.obj["spec"]["poolRef"]["name"] in pools)
