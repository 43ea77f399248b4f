"""How much the server does at a time: counted in objects and bytes for each round of the event loop, not in seconds.

A control plane runs in this process without a client in between, so that what it does on the loop can be counted.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from kubeserver import ControlPlane, hosted_cluster
from kubeserver import cluster as cluster_module
from kubeserver.access import authorization
from kubeserver.access.authentication import MASTERS, User
from kubeserver.access.authorization import Attributes, Authorizer, RbacObjects
from kubeserver.builtin.escalation import refuse_escalation
from kubeserver.registry import Registry
from kubeserver.storage.store import ObjectKey, StoredChange
from kubeserver.storage.watch import WOKEN_AT_ONCE, Feed
from kubeserver.verbs import reads, watches, writes
from kubeserver.views import representations
from kubeserver.wire.messages import LARGE, Request, Response, Stream
from kubeserver.wire.paths import ROOT, read_path
from kubeserver.wire.status import ApiError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from kubeserver.hosted_cluster import HostedCluster

Json = dict[str, Any]

OBJECTS = 3000
CONFIGS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@pytest.fixture
async def hosted(tmp_path: Path) -> AsyncIterator[HostedCluster]:
    control_plane = await ControlPlane.start(tmp_path)
    try:
        yield control_plane._server.clusters[ROOT]
    finally:
        await control_plane.stop()


async def fill(hosted: HostedCluster, count: int = OBJECTS) -> None:
    """Objects straight into the store: as they are there, but for fields that nothing here looks at."""

    def encoded(name: str) -> Callable[[int], bytes]:
        def text(revision: int) -> bytes:
            metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(revision)}
            metadata |= {"labels": {"a": "b"}, "creationTimestamp": "2026-01-01T00:00:00Z"}  # type: ignore[dict-item]
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "x" * 300}}
            return json.dumps(obj, separators=(",", ":")).encode()

        return text

    store = hosted.cluster.store
    made = [
        store.create(ObjectKey(ROOT, "", "configmaps", "default", f"c{n:05}"), encoded(f"c{n:05}"))
        for n in range(count)
    ]
    await asyncio.gather(*made)


async def ask(
    hosted: HostedCluster, method: str, path: str, body: Json | None = None, **headers: str
) -> Response | Stream:
    path, _, text = path.partition("?")
    query = dict(part.split("=", 1) for part in text.split("&") if part)
    info = read_path(method, path, watch="watch" in query)
    resource = hosted.cluster.registry.find(info.group, info.version, info.resource)
    assert resource is not None
    user = User("jane", groups=(MASTERS,))
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    request = Request(info, user, query, given, body=json.dumps(body).encode() if body else b"")
    return await hosted.verbs.answer(resource, request)


async def whole(answer: Response | Stream) -> bytes:
    if isinstance(answer, Response):
        return answer.body
    return b"".join([chunk async for chunk in answer.chunks])


class Counted:
    """How often something was done in each round of the loop, at most."""

    def __init__(self) -> None:
        self.now = self.most = self.total = 0

    def note(self, amount: int = 1) -> None:
        self.now += amount
        self.total += amount
        self.most = max(self.most, self.now)

    @asynccontextmanager
    async def rounds(self) -> AsyncIterator[None]:
        async def go_round() -> None:
            while True:
                await asyncio.sleep(0)
                self.now = 0

        going = asyncio.create_task(go_round())
        try:
            yield
        finally:
            going.cancel()


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Counts objects that are decoded, shown or held against a selector."""
    counted = Counted()

    def counting(function: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            counted.note()
            return function(*arguments, **options)

        return call

    for owner, name in ((cluster_module.LogicalCluster, "load"), (cluster_module.LogicalCluster, "show")):
        monkeypatch.setattr(owner, name, counting(getattr(owner, name)))
    monkeypatch.setattr(reads, "labels", counting(reads.labels))
    return counted


@pytest.mark.parametrize(
    ("method", "path", "accept"),
    [
        ("GET", CONFIGS, ""),
        ("GET", CONFIGS, TABLE),
        ("GET", CONFIGS, PARTIAL),
        ("GET", f"{CONFIGS}?fieldSelector=metadata.name!=x", ""),
        ("GET", f"{CONFIGS}?labelSelector=a", TABLE),
        ("GET", f"{CONFIGS}?watch=true&timeoutSeconds=1", ""),
        ("GET", f"{CONFIGS}?watch=true&timeoutSeconds=1", TABLE),
        ("GET", f"{CONFIGS}?watch=true&timeoutSeconds=1&labelSelector=a", ""),
        ("DELETE", f"{CONFIGS}?dryRun=All", ""),
        ("DELETE", CONFIGS, ""),
    ],
)
async def test_thousands_of_objects_are_looked_at_a_few_at_a_time(
    hosted: HostedCluster, looked_at: Counted, method: str, path: str, accept: str
) -> None:
    await fill(hosted)
    looked_at.total = looked_at.most = 0
    async with looked_at.rounds():
        bodies = await asyncio.gather(*(answered(hosted, method, path, accept) for _ in range(3)))
    assert looked_at.total >= OBJECTS
    assert looked_at.most <= OBJECTS // 3, "looked at in one round of the loop"
    if path == CONFIGS:
        for body in bodies[:1]:
            shown = json.loads(body)
            assert len(shown["rows" if "rows" in shown else "items"]) == OBJECTS


async def answered(hosted: HostedCluster, method: str, path: str, accept: str) -> bytes:
    return await whole(await ask(hosted, method, path, accept=accept))


@pytest.mark.parametrize("accept", ["", TABLE, PARTIAL])
async def test_a_long_list_is_never_in_memory_as_a_whole(hosted: HostedCluster, accept: str) -> None:
    await fill(hosted)
    answer = await ask(hosted, "GET", CONFIGS, accept=accept)
    assert isinstance(answer, Stream)
    sizes = [len(chunk) async for chunk in answer.chunks]
    assert max(sizes) < 400_000 < sum(sizes)


async def test_a_long_selector_makes_each_object_count_for_more(hosted: HostedCluster, looked_at: Counted) -> None:
    await fill(hosted)
    selector = ",".join([*(f"k{number}!=v" for number in range(2000)), "zz"])  # what selects nothing is last
    looked_at.total = looked_at.most = 0
    async with looked_at.rounds():
        shown = json.loads(await answered(hosted, "GET", f"{CONFIGS}?labelSelector={selector}", ""))
    assert shown["items"] == []
    assert looked_at.total == OBJECTS
    assert looked_at.most <= 20


async def test_filtered_watches_of_one_user_take_turns(hosted: HostedCluster, looked_at: Counted) -> None:
    """Each decides about every change for itself: a hundred of them must not do so in one round of the loop."""
    await fill(hosted, 1)

    async def follow() -> bytes:
        answer = await ask(hosted, "GET", f"{CONFIGS}?watch=true&resourceVersion={since}&labelSelector=b", accept=TABLE)
        assert isinstance(answer, Stream)
        return await anext(aiter(answer.chunks))

    since = hosted.cluster.store.revision
    decided = Counted()
    original = watches.Lines.of_change
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(watches.Lines, "of_change", lambda *given: decided.note() or original(*given))
        watchers = [asyncio.create_task(follow()) for _ in range(100)]
        await asyncio.sleep(0.2)
        async with decided.rounds():
            body = {"metadata": {"name": "new", "labels": {"b": "c"}}}
            await ask(hosted, "POST", CONFIGS, body)
            await asyncio.gather(*watchers)
    assert decided.total == 100
    assert decided.most <= 4


async def test_of_a_large_change_fewer_watchers_are_told_at_a_time() -> None:
    feed, woken = Feed(), Counted()

    class Sleeper:
        def wake(self) -> None:
            woken.note()

    for size, most in ((100, WOKEN_AT_ONCE), (1 << 20, 1)):
        woken.now = woken.most = 0
        feed.sleepers = {None: {Sleeper() for _ in range(100)}}  # type: ignore[misc]
        async with woken.rounds():
            feed.publish(StoredChange("ADDED", ObjectKey("", "", "configmaps", "default", "a"), 1, b"x" * size))
            while feed.waking:  # noqa: ASYNC110 - goes round the loop, which is what is counted
                await asyncio.sleep(0)
        assert woken.most <= 2 * most


async def test_a_watcher_is_owed_little_at_a_time(hosted: HostedCluster) -> None:
    """Lines are shared, but what is being sent is a copy for each watcher."""
    since = hosted.cluster.store.revision
    for number in range(8):
        await ask(hosted, "POST", CONFIGS, {"metadata": {"name": f"l{number}"}, "data": {"a": "x" * 100_000}})
    answer = await ask(hosted, "GET", f"{CONFIGS}?watch=true&resourceVersion={since}&timeoutSeconds=1")
    assert isinstance(answer, Stream)
    sizes = [len(chunk) async for chunk in answer.chunks]
    assert sum(sizes) > 800_000
    assert max(sizes) < 300_000


@pytest.mark.parametrize("accept", ["", "application/yaml", TABLE])
async def test_large_objects_are_not_worked_on_in_the_loop(
    hosted: HostedCluster, monkeypatch: pytest.MonkeyPatch, accept: str
) -> None:
    here = threading.current_thread()
    seen: list[str] = []

    def apart(owner: Any, name: str) -> None:
        """Note where a function is called for something large; encoding and small things may be on the loop."""
        original = getattr(owner, name)

        def call(*given: Any, **options: Any) -> Any:
            if threading.current_thread() is here and any(is_large(item) for item in given):
                seen.append(name)
            return original(*given, **options)

        monkeypatch.setattr(owner, name, call)

    for owner, name in (
        (cluster_module, "decode"),
        (writes, "same"),
        (writes, "keep_times_if_unchanged"),
        (writes.copy, "deepcopy"),
        (writes.lifecycle, "default"),
        (representations.yaml, "dump"),
        (representations, "decode"),
    ):
        apart(owner, name)
    data = {f"key-{number}": "x" * 20 for number in range(4 * LARGE // 30)}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": data}
    merge = {"content_type": "application/merge-patch+json", "accept": accept}
    await ask(hosted, "POST", CONFIGS, config, accept=accept)
    await ask(hosted, "GET", f"{CONFIGS}/large", accept=accept)
    await ask(hosted, "PUT", f"{CONFIGS}/large", {**config, "data": {**data, "key-0": "y"}}, accept=accept)
    await ask(hosted, "PATCH", f"{CONFIGS}/large", {"data": {"key-0": "z"}}, **merge)
    await ask(hosted, "PATCH", f"{CONFIGS}/large", {"metadata": {"finalizers": ["example.com/held"]}}, **merge)
    await ask(hosted, "DELETE", f"{CONFIGS}/large", accept=accept)
    await ask(hosted, "PATCH", f"{CONFIGS}/large", {"metadata": {"finalizers": None}}, **merge)
    await ask(hosted, "PUT", f"{CONFIGS.replace('configmaps', 'endpoints')}/large", endpoints(), accept=accept)
    assert seen == []


def endpoints() -> Json:
    """A kind that a PUT creates."""
    addresses = [{"ip": f"10.{n >> 8}.{n & 255}.1"} for n in range(2000)]
    subsets = [{"addresses": addresses, "ports": [{"port": 80}]}]
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "large"}, "subsets": subsets}


def is_large(given: Any) -> bool:
    if isinstance(given, bytes):
        return len(given) > LARGE
    return isinstance(given, dict | list) and len(json.dumps(given)) > LARGE


def test_documents_that_do_not_exist_are_not_remembered() -> None:
    registry = Registry([])
    assert registry.document("/apis/no-such-group", lambda: b"") == b""
    assert registry.document("/apis", lambda: b"{}") == b"{}"
    assert list(registry._documents) == ["/apis"]


# Roles and bindings.


def role(name: str, rules: list[Json], namespace: str = "team") -> Json:
    return {"metadata": {"name": name, "namespace": namespace}, "rules": rules}


def binding(name: str, users: list[str], to: str, namespace: str = "team") -> Json:
    subjects = [{"kind": "User", "name": user} for user in users]
    return {
        "metadata": {"name": name, "namespace": namespace},
        "subjects": subjects,
        "roleRef": {"kind": "Role", "name": to},
    }


def words(prefix: str) -> list[str]:
    return [f"{prefix}{number}" for number in range(3000)]


BILLIONS = {"verbs": words("v"), "apiGroups": words("g"), "resources": words("r"), "resourceNames": words("n")}


def test_a_role_costs_what_its_text_is_long_and_not_what_it_spells_out() -> None:
    objects = RbacObjects([role("r", [BILLIONS])], [binding("b", ["eve"], "r")])
    authorizer = Authorizer(lambda: objects, lambda: 1)
    asked = Attributes(User("eve"), "v7", group="g8", resource="r9", namespace="team", name="n3")
    assert authorizer.authorize(asked).allowed
    assert not authorizer.authorize(dataclasses.replace(asked, group="h")).allowed


def test_what_cannot_be_checked_piece_by_piece_cannot_be_granted() -> None:
    own = [{"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]}]
    own.append({"verbs": ["create"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"]})
    objects = RbacObjects([role("r", own)], [binding("b", ["eve"], "r")])
    authorizer = Authorizer(lambda: objects, lambda: 1)
    with pytest.raises(ApiError, match="spells out 81000000000000 permissions"):
        refuse_escalation(authorizer, User("eve"), plural="roles", namespace="team", new=role("new", [BILLIONS]))
    many = {"verbs": words("v"), "apiGroups": [""], "resources": ["pods"]}
    refuse_escalation(authorizer, User("eve"), plural="roles", namespace="team", new=role("new", [many]))


def test_of_many_roles_and_bindings_only_those_that_changed_are_indexed(monkeypatch: pytest.MonkeyPatch) -> None:
    roles = [role(f"r{number}", [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]) for number in range(50)]
    bindings = [binding(f"b{number}", [f"user-{number}", "eve"], f"r{number}") for number in range(50)]
    version = 1
    authorizer = Authorizer(lambda: RbacObjects(roles, bindings), lambda: version)
    asked = Attributes(User("eve"), "get", resource="pods", namespace="team")
    assert authorizer.authorize(asked).allowed
    indexed = []
    rules, subjects = authorization.Rules, authorization._subjects
    monkeypatch.setattr(authorization, "Rules", lambda given: indexed.append("role") or rules(given))
    monkeypatch.setattr(authorization, "_subjects", lambda *given: indexed.append("binding") or subjects(*given))
    version, bindings[7] = 2, binding("b7", ["jane"], "r7")
    assert authorizer.authorize(asked).allowed
    assert not authorizer.authorize(dataclasses.replace(asked, user=User("user-7"))).allowed
    assert authorizer.authorize(dataclasses.replace(asked, user=User("jane"))).allowed
    assert indexed == ["binding", "binding"]  # one left, one came
    version, roles[3] = 3, role("r3", [])
    assert authorizer.authorize(asked).allowed
    assert not authorizer.authorize(dataclasses.replace(asked, user=User("user-3"))).allowed
    assert indexed == ["binding", "binding", "role"]
    version, bindings[:] = 4, []
    assert not authorizer.authorize(asked).allowed


async def test_roles_that_did_not_change_are_not_decoded_again(
    hosted: HostedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosted._rbac_objects()
    decoded = Counted()
    original = hosted_cluster.decode
    monkeypatch.setattr(hosted_cluster, "decode", lambda value: decoded.note() or original(value))
    new = {"metadata": {"name": "new"}, "rules": [], "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}
    await ask(hosted, "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", new)
    hosted._rbac_objects()
    assert decoded.total == 1
