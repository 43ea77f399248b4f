"""What people did, and where it is written down."""

from __future__ import annotations

import asyncio
import json
import logging
import stat
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pytest

from butler.api.labels import Annotation
from butler.api.objects import Key
from butler.kube import config
from butler.kube.client import Client
from butler.kube.errors import OutcomeUnknown, Status, Unreachable, error_from_status
from butler.kube.kinds import ALLOCATIONS, CLUSTERS, POOLS
from butler.kube.operator import Operator
from butler.local.directory import AUDIT_FILES_KEPT
from butler.server.actions.impersonation import MOST_CLIENTS, Deed, Impersonator, refused_write
from butler.server.audit import AuditEntry, AuditTrail, attach_file, event_of, lines, parsed
from butler.server.permissions import UserPermissions
from butler.server.problems import RequestRefused
from server.conftest import person
from server.eventually import eventually
from server.objects import allocation, create, pool
from server.rights import GROUP, RBAC, grant, reader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from butler.server.cache.cluster_state import ClusterState
    from control_planes import ControlPlane
    from server.conftest import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Lines(logging.Handler):
    """Every line of the record."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(json.loads(record.getMessage()))

    def of(self, name: str) -> list[dict[str, Any]]:
        return [obj for obj in self.found if obj["name"] == name]


@pytest.fixture
def record() -> Iterator[Lines]:
    handler = Lines()
    lines.addHandler(handler)
    yield handler
    lines.removeHandler(handler)


def events(plane: ControlPlane, name: str) -> list[Any]:
    status, found = plane.request("GET", "/api/v1/namespaces/butler-system/events")
    assert status == 200
    return [item for item in found["items"] if item["involvedObject"]["name"] == name and parsed(item)]


def entry(**more: Any) -> AuditEntry:
    said: dict[str, Any] = {
        "time": datetime(2026, 5, 4, 12, 30, tzinfo=UTC),
        "user": "ada@example.com",
        "groups": ("ops",),
        "via": "oidc",
        "session": "s-1",
        "verb": "grow",
        "kind": "NetworkPool",
        "namespace": "butler-system",
        "name": "lab",
        "detail": "by 40",
        "outcome": "done",
        "status": 200,
        "message": "",
    }
    return AuditEntry(**(said | more))


async def test_every_write_leaves_one_line_and_an_event_with_who_did_it(
    api: Api, plane: ControlPlane, network: str, record: Lines
) -> None:
    status, made, _ = await api.call("POST", "/pools", {"name": "told", "cidr": f"{network}.0.0/24"})
    assert status == 201, made
    [line] = record.of("told")
    assert (line["user"], line["via"], line["session"]) == ("admin", "link", "test")
    assert "system:masters" in line["groups"]
    assert (line["verb"], line["kind"], line["namespace"]) == ("create", "NetworkPool", "butler-system")
    assert (line["outcome"], line["status"], line["message"]) == ("done", 201, "")
    assert f"{network}.0.0/24" in line["detail"]
    assert datetime.fromisoformat(line["time"]).tzinfo is not None

    async def shown() -> None:
        found = events(plane, "told")
        assert len(found) == 1
        event, told = found[0], parsed(found[0])
        assert told is not None
        assert (told.actor, told.verb, told.outcome) == ("admin", "create", "done")
        assert event["involvedObject"]["uid"]

    await eventually(shown)

    async def on_the_page() -> None:
        found = await api.get("/activity")
        assert any(item["actor"] == "admin" and "told" in str(item["about"]) for item in found["items"]), found

    await eventually(on_the_page)


async def test_refusals_are_written_down_by_whichever_part_refused(
    api: Api, plane: ControlPlane, network: str, record: Lines
) -> None:
    create(plane, pool("firm", f"{network}.0.0/24"))
    create(plane, allocation("firm-nodes", "firm", 3))

    async def held() -> None:
        assert (await api.get("/pools/butler-system/firm"))["pool"]["allocated"] == 3

    await eventually(held)
    version = (await api.get("/pools/butler-system/firm"))["pool"]["resourceVersion"]
    looked = {"If-Match": f'"{version}"'}
    rene = reader(plane, "rene")
    await api.call("DELETE", "/pools/butler-system/firm", user=rene, headers=looked)
    await api.call("DELETE", "/pools/butler-system/firm", headers=looked)
    await api.call("PATCH", "/pools/butler-system/firm", {"cidr": "nonsense"}, headers=looked)
    await api.call("PATCH", "/pools/butler-system/firm", {"growBy": 3}, headers={"If-Match": '"1"'})
    await api.call("PATCH", "/pools/butler-system/firm", {"growBy": 3})
    await api.call("PATCH", "/pools/butler-system/firm", {"growBy": 3}, user="mallory", headers=looked)
    told = [(obj["user"], obj["verb"], obj["outcome"], obj["status"]) for obj in record.of("firm")]
    assert told == [
        ("rene", "delete", "refused", 403),
        ("admin", "delete", "refused", 409),
        ("admin", "edit", "refused", 422),
        ("admin", "grow", "refused", 412),
        ("admin", "grow", "refused", 428),
        ("mallory", "grow", "refused", 403),
    ]
    assert "firm-nodes" in record.of("firm")[1]["message"]

    async def shown() -> None:
        found = [parsed(event) for event in events(plane, "firm")]
        assert [audited.actor for audited in found if audited] == [
            "admin"
        ] * 4  # who has no right to it leaves a line alone

    await eventually(shown)


async def test_previews_and_reads_are_no_deeds(api: Api, network: str, record: Lines) -> None:
    await api.call("POST", "/pools/preview", {"name": "dreamt", "cidr": f"{network}.0.0/24"})
    await api.get("/pools")
    assert record.found == []


async def test_many_edits_of_one_pool_are_as_many_events(
    api: Api, plane: ControlPlane, network: str, record: Lines
) -> None:
    await api.call("POST", "/pools", {"name": "often", "cidr": f"{network}.0.0/24"})
    for number in range(40):
        shown = await api.get("/pools/butler-system/often")
        status, made, _ = await api.call(
            "PATCH",
            "/pools/butler-system/often",
            {"reserved": [{"cidr": f"{network}.0.{number * 4}/30", "description": "one after the other"}]},
            headers={"If-Match": f'"{shown["pool"]["resourceVersion"]}"'},
        )
        assert status == 200, made
    assert len(record.of("often")) == 41

    async def all_there() -> None:
        assert len(events(plane, "often")) == 41

    await eventually(all_there)


async def test_no_user_fills_the_events(plane: ControlPlane, record: Lines) -> None:
    async with Client(config.load(plane.kubeconfig)) as client:
        trail = AuditTrail(client, clock=lambda: 0.0)
        about = {"kind": "NetworkPool", "name": "quiet", "namespace": "butler-system"}
        for _ in range(60):
            trail.record(entry(name="quiet", user="mallory", outcome="refused", status=422), about)
            trail.record(entry(name="quiet", user="stranger", outcome="refused", status=403), None)
        for _ in range(250):
            trail.record(entry(name="quiet", user="busy"), about)
        trail.record(entry(name="quiet"), about)
        await trail.close(60.0)
    assert len(record.of("quiet")) == 371, "the record is complete"
    found = Counter(told.actor for event in events(plane, "quiet") if (told := parsed(event)) is not None)
    assert found == {"mallory": 20, "busy": 200, "ada@example.com": 1}


@pytest.mark.parametrize("rights", [[], ["get", "list", "watch"]])
async def test_who_may_not_change_an_object_leaves_no_event_anywhere(
    api: Api, plane: ControlPlane, network: str, record: Lines, rights: list[str]
) -> None:
    user = f"stranger-{len(rights)}"
    if rights:
        grant(plane, user, rights, ["networkpools", "ipallocations", "tenantclusters"])
    create(plane, pool(f"{user}-pool", f"{network}.0.0/24"))
    places = ("kube-system", "butler-system", "default")
    asked: list[tuple[str, str, object]] = []
    for where in places:
        for name in (f"{user}-pool", "any"):
            asked += [
                ("DELETE", f"/allocations/{where}/{name}", None),
                ("DELETE", f"/pools/{where}/{name}", None),
                ("PATCH", f"/pools/{where}/{name}", {"growBy": 1}),
                ("PATCH", f"/pools/{where}/{name}", {"cidr": "nonsense"}),
                ("DELETE", f"/tenants/{where}/{name}", None),
                ("POST", f"/tenants/{where}/{name}/scale", {"workers": 2}),
                ("POST", f"/tenants/{where}/{name}/upgrade", {"version": "v1.34.1"}),
                ("POST", f"/tenants/{where}/{name}/kubeconfig", None),
            ]
    asked += [("POST", "/pools", {"name": "any", "cidr": "nonsense"})]
    asked += [
        (
            "POST",
            "/allocations",
            {"name": "Any!", "pool": "any", "tenant": "a", "tenantNamespace": "b", "type": "nodes"},
        )
    ]
    for method, path, body in asked:
        for headers in ({}, {"If-Match": '"1"'}):
            status, said, _ = await api.call(method, path, body, user=user, headers=headers)
            wanted = (403, 404) if rights and path.endswith("kubeconfig") else (403,)  # they may look for the tenant
            assert status in wanted, (method, path, headers, said)
    assert len([line for line in record.found if line["user"] == user]) == 2 * len(asked)
    await asyncio.sleep(1)
    for where in places:
        status, found = plane.request("GET", f"/api/v1/namespaces/{where}/events")
        assert status == 200
        assert [event["message"] for event in found["items"] if event["message"].startswith(f"{user}:")] == []


async def test_who_may_change_one_object_by_name_changes_it(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("by-name", f"{network}.0.0/24"))
    grant(plane, "nina", ["get", "list", "watch"], ["networkpools", "ipallocations"])
    named = {"apiGroups": [GROUP], "resources": ["networkpools"], "verbs": ["patch"], "resourceNames": ["by-name"]}
    path = f"{RBAC}/namespaces/butler-system/roles/nina-networkpools-ipallocations-get-list-watch"
    status, role = plane.request("GET", path)
    assert status == 200, role
    role["rules"].append(named)
    assert plane.request("PUT", path, role)[0] == 200

    async def changes() -> None:
        version = (await api.get("/pools/butler-system/by-name", user="nina"))["pool"]["resourceVersion"]
        change = {"reserved": [{"cidr": f"{network}.0.0/30", "description": "hers"}]}
        status, said, _ = await api.call(
            "PATCH", "/pools/butler-system/by-name", change, user="nina", headers={"If-Match": f'"{version}"'}
        )
        assert status == 200, said

    await eventually(changes)


async def test_names_that_nothing_can_have_neither_fill_nor_stop_the_record(
    api: Api, plane: ControlPlane, network: str, record: Lines
) -> None:
    for path in ("/pools/%2e%2e/x", "/tenants/%25/x", "/allocations/./x"):
        status, _, _ = await api.call("DELETE", path, headers={"If-Match": '"1"'})
        assert status in (404, 405, 422)
    status, _, _ = await api.call("POST", "/pools", {"name": "x" * 500_000, "cidr": "y" * 400_000})
    assert status == 422
    assert all(len(json.dumps(obj)) < 8_000 for obj in record.found)
    status, made, _ = await api.call("POST", "/pools", {"name": "told-after", "cidr": f"{network}.0.0/24"})
    assert status == 201, made

    async def shown() -> None:
        assert len(events(plane, "told-after")) == 1

    await eventually(shown)


async def test_what_is_written_is_read_again() -> None:
    about = {"kind": "NetworkPool", "name": "lab", "namespace": "butler-system"}
    told = parsed(event_of(entry(), about))
    assert told is not None
    assert (told.actor, told.verb, told.outcome) == ("ada@example.com", "grow", "done")
    assert told.message == "ada@example.com: grow by 40"
    told = parsed(event_of(entry(outcome="refused", status=422, message="spec.cidr: too small"), about))
    assert told is not None
    assert (told.outcome, "too small" in told.message) == ("refused", True)
    told = parsed(event_of(entry(outcome="unknown", status=504, message="?" * 5000), about))
    assert told is not None
    assert len(told.message) <= 1024
    assert parsed({"reason": "Allocated", "source": {"component": "butler-controller"}}) is None
    forged = event_of(entry(), about) | {"reportingComponent": "forger", "source": {"component": "forger"}}
    assert parsed(forged) is None
    odd = event_of(entry(), about)
    odd["metadata"]["annotations"] = {Annotation.ACTOR: ["not", "text"]}
    assert parsed(odd) is None


async def test_a_file_gets_the_lines_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "audit.log"
    handler = attach_file(path)
    try:
        lines.info("%s", json.dumps({"first": 1}))
        path.rename(tmp_path / "audit.log.1")
        lines.info("%s", json.dumps({"second": "a\nb"}))
    finally:
        lines.removeHandler(handler)
        handler.close()
    assert [json.loads(line) for line in (tmp_path / "audit.log.1").read_text().splitlines()] == [{"first": 1}]
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"second": "a\nb"}]
    assert stat.S_IMODE((tmp_path / "audit.log.1").stat().st_mode) == 0o600
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


async def test_full_files_are_put_aside_and_so_many_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`local up` has no other program that rotates the file: 10 MB a file, four old ones, each for its owner alone."""
    monkeypatch.setattr(lines, "propagate", False)  # as there
    handler = attach_file(tmp_path / "audit.log", kept=AUDIT_FILES_KEPT)
    try:
        for number in range(70):
            lines.info("%s", json.dumps({"number": number, "filling": "x" * (1 << 20)}))
    finally:
        lines.removeHandler(handler)
        handler.close()
    names = ["audit.log.4", "audit.log.3", "audit.log.2", "audit.log.1", "audit.log"]
    assert {path.name for path in tmp_path.iterdir()} == set(names)
    files = [tmp_path / name for name in names]
    assert all(file.stat().st_size <= 10 << 20 for file in files)
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    numbers = [json.loads(line)["number"] for file in files for line in file.read_text().splitlines()]
    assert len(numbers) > 36, "four full ones and the last"
    assert numbers == list(range(70))[-len(numbers) :], "the newest, without a gap"


class EmptyState:
    """A cluster state that knows nothing yet."""

    def __init__(self, client: Client) -> None:
        operator = Operator(client, "test")
        self.pools, self.clusters = operator.cache(POOLS), operator.cache(CLUSTERS)
        self.allocations = operator.cache(ALLOCATIONS)
        self.caches = {"pool": self.pools, "tenant": self.clusters, "allocation": self.allocations}


async def test_a_write_without_an_answer_says_that_its_outcome_is_unknown(plane: ControlPlane, record: Lines) -> None:
    connection = config.load(plane.kubeconfig)

    async def lost(_: Client) -> None:
        raise OutcomeUnknown("patch: sent, but the answer did not come")

    async def never(_: Client) -> None:
        await asyncio.sleep(60)

    async with Client(connection) as client:
        impersonator = Impersonator(
            connection,
            AuditTrail(client),
            cast("ClusterState", EmptyState(client)),
            UserPermissions(client, "butler-system"),
        )
        deed = Deed("edit", POOLS, Key("butler-system", "lost"))
        with pytest.raises(RequestRefused) as caught:
            await impersonator.write(person("admin"), deed, lost)
        assert caught.value.status == 504
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(impersonator.write(person("admin"), deed, never), 0.1)
        await impersonator.close()
    assert [(obj["outcome"], obj["status"]) for obj in record.of("lost")] == [("unknown", 504)] * 2
    assert [parsed(event).outcome for event in events(plane, "lost")] == ["unknown"] * 2  # type: ignore[union-attr]


async def test_people_who_only_look_are_hung_up_on_as_well(plane: ControlPlane) -> None:
    connection = config.load(plane.kubeconfig)
    async with Client(connection) as client:
        impersonator = Impersonator(
            connection,
            AuditTrail(client),
            cast("ClusterState", EmptyState(client)),
            UserPermissions(client, "butler-system"),
        )
        first = impersonator.client(person("person-0"))
        for number in range(1, MOST_CLIENTS + 1):
            impersonator.client(person(f"person-{number}"))
        assert impersonator.client(person("person-0")) is not first
        assert impersonator.client(person(f"person-{MOST_CLIENTS}")) is impersonator.client(
            person(f"person-{MOST_CLIENTS}")
        )
        await asyncio.sleep(0)
        with pytest.raises(Unreachable):
            await first.raw("/readyz")
        await impersonator.close()


async def test_an_unknown_outcome_is_never_told_as_a_failure() -> None:
    for error in (
        OutcomeUnknown("patch: sent, but the answer did not come"),
        error_from_status(Status(code=504, reason="Timeout", message="etcd took too long")),
        error_from_status(Status(code=500, message="internal error")),
    ):
        refused = refused_write(error)
        assert refused.status == 504
        assert "may have been done" in refused.detail
    assert refused_write(Unreachable("no server is there")).status == 503
