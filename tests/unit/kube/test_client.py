"""What the client sends, what it makes of the answers, and when it asks again."""

import asyncio
from contextlib import aclosing
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from butler.api.objects import Key
from butler.kube import errors
from butler.kube.client import Client
from butler.kube.config import Connection
from butler.kube.metrics import Metrics
from butler.kube.resource import CONFIGMAPS, NAMESPACES, Resource
from butler.kube.retry import Backoff
from butler.kube.transport import ApiRequest, Timeouts, explain
from unit.kube.fake_api import FakeApi, refusal, status

MAPS = "/api/v1/namespaces/default/configmaps"


class Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""


class Widget(msgspec.Struct):
    metadata: Meta
    data: dict[str, str] = {}


WIDGETS = Resource("", "v1", "configmaps", "ConfigMap", Widget)


async def test_an_object_decodes_to_the_type_of_its_resource(api: FakeApi, client: Client) -> None:
    api.put(f"{MAPS}/a", {"data": {"x": "1"}})
    widget = await client.get(WIDGETS, "a", "default")
    assert (widget.metadata.name, widget.data) == ("a", {"x": "1"})
    assert (await client.get(CONFIGMAPS, "a", "default"))["data"] == {"x": "1"}


async def test_a_created_struct_carries_its_api_version_and_kind(api: FakeApi, client: Client) -> None:
    await client.create(WIDGETS, Widget(Meta(name="a", namespace="default")))
    assert api.objects[f"{MAPS}/a"]["kind"] == "ConfigMap"
    assert api.objects[f"{MAPS}/a"]["apiVersion"] == "v1"


async def test_a_list_is_read_in_pages_at_one_version(api: FakeApi, client: Client) -> None:
    for n in range(7):
        api.put(f"{MAPS}/m{n}")
    listed = await client.list(CONFIGMAPS, "default", limit=3)
    assert [item["metadata"]["name"] for item in listed.items] == [f"m{n}" for n in range(7)]
    assert listed.resource_version == str(api.version)
    assert api.counts["GET"] == 3


async def test_a_list_that_expires_between_pages_starts_again(api: FakeApi, client: Client) -> None:
    for n in range(4):
        api.put(f"{MAPS}/m{n}")

    async def compact_before_second_page(request: web.Request) -> None:
        if "continue" in request.query:
            api.put(f"{MAPS}/late")
            api.compact()

    api.before = compact_before_second_page
    listed = await client.list(CONFIGMAPS, "default", limit=2)
    assert len(listed.items) == 5
    assert "limit" not in api.requests[-1][1], "the third attempt asks for everything at once"


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (410, "Expired", errors.Expired),
        (410, "Gone", errors.Expired),
        (413, "RequestEntityTooLarge", errors.AnswerTooLarge),
        (422, "Invalid", errors.Invalid),
        (500, "InternalError", errors.ServerError),
        (504, "Timeout", errors.ServerTimeout),
    ],
)
async def test_a_refusal_becomes_its_own_type(
    api: FakeApi, client: Client, code: int, reason: str, kind: type[errors.ApiError]
) -> None:
    api.refuse.append(refusal(code, reason, "because"))
    with pytest.raises(kind) as caught:
        await client.create(CONFIGMAPS, {"metadata": {"name": "a"}}, "default")
    assert type(caught.value) is kind
    assert (caught.value.reason, caught.value.message, caught.value.code) == (reason, "because", code)


async def test_an_invalid_object_names_its_fields(api: FakeApi, client: Client) -> None:
    cause = {"reason": "FieldValueInvalid", "message": "too big", "field": "spec.size"}
    api.refuse.append((422, status(422, "Invalid", causes=[cause]), {}))
    with pytest.raises(errors.Invalid) as caught:
        await client.patch(CONFIGMAPS, "a", {}, "default")
    assert caught.value.causes == (errors.ErrorCause("FieldValueInvalid", "too big", "spec.size"),)


async def test_a_body_that_is_no_status_keeps_its_first_words(api: FakeApi, client: Client) -> None:
    async def gateway(_: web.Request) -> web.Response:
        return web.Response(status=404, text="<html>no such page</html>")

    api.before = gateway
    with pytest.raises(errors.NotFound, match="no such page"):
        await client.get(CONFIGMAPS, "a", "default")


async def test_a_throttled_write_is_repeated_when_the_server_said(api: FakeApi, client: Client) -> None:
    api.refuse.append(refusal(429, "TooManyRequests", retry_after=1))
    started = asyncio.get_running_loop().time()
    await client.create(CONFIGMAPS, {"metadata": {"name": "a"}}, "default")
    assert asyncio.get_running_loop().time() - started >= 1
    assert api.counts["POST"] == 2


@pytest.mark.parametrize("code", [500, 502, 504])
async def test_a_create_in_doubt_is_not_repeated(api: FakeApi, client: Client, code: int) -> None:
    api.refuse.append(refusal(code, "InternalError", retry_after=0))
    with pytest.raises(errors.ServerError) as caught:
        await client.create(CONFIGMAPS, {"metadata": {"name": "a"}}, "default")
    assert caught.value.outcome_unknown
    assert api.counts["POST"] == 1


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
async def test_a_read_is_repeated(api: FakeApi, client: Client, code: int) -> None:
    api.put(f"{MAPS}/a")
    api.refuse.extend([refusal(code, "Whatever")] * 2)
    await client.get(CONFIGMAPS, "a", "default")
    assert api.counts["GET"] == 3


async def test_attempts_are_limited(api: FakeApi, client: Client) -> None:
    api.refuse.extend([refusal(503, "ServiceUnavailable")] * 20)
    with pytest.raises(errors.ServiceUnavailable):
        await client.get(CONFIGMAPS, "a", "default")
    assert api.counts["GET"] == 5


async def test_the_retry_budget_runs_dry_when_nothing_succeeds(api: FakeApi, client: Client) -> None:
    api.refuse.extend([refusal(503, "ServiceUnavailable")] * 500)
    for _ in range(50):
        with pytest.raises(errors.ServiceUnavailable):
            await client.get(CONFIGMAPS, "a", "default")
    assert api.counts["GET"] == 100, "50 requests and the 50 retries that the budget holds"


async def test_a_write_cut_off_after_it_was_sent_is_of_unknown_outcome(api: FakeApi, client: Client) -> None:
    async def cut(request: web.Request) -> None:
        if request.method == "POST":
            api.put(f"{MAPS}/a")  # the server did it, and died before it could say so
            assert request.transport is not None
            request.transport.abort()

    api.before = cut
    with pytest.raises(errors.OutcomeUnknown):
        await client.create(CONFIGMAPS, {"metadata": {"name": "a"}}, "default")
    assert api.counts["POST"] == 1
    assert (await client.get(CONFIGMAPS, "a", "default"))["metadata"]["name"] == "a"


async def test_a_write_on_a_kept_connection_that_breaks_is_sent_once(api: FakeApi, client: Client) -> None:
    obj = api.put(f"{MAPS}/a")

    async def cut(request: web.Request) -> None:
        if request.method in ("PUT", "DELETE"):
            assert request.transport is not None
            request.transport.abort()

    api.before = cut
    await client.get(CONFIGMAPS, "a", "default")  # from here on there is a connection to keep
    with pytest.raises(errors.OutcomeUnknown):
        await client.replace(CONFIGMAPS, obj)
    await client.get(CONFIGMAPS, "a", "default")
    with pytest.raises(errors.OutcomeUnknown):
        await client.delete(CONFIGMAPS, "a", "default")
    assert (api.counts["PUT"], api.counts["DELETE"]) == (1, 1)


async def test_an_apply_cut_off_is_repeated_because_twice_is_once(api: FakeApi, client: Client) -> None:
    api.put(f"{MAPS}/a")
    cuts = 0

    async def cut(request: web.Request) -> None:
        nonlocal cuts
        if cuts < 2:
            cuts += 1
            assert request.transport is not None
            request.transport.abort()

    api.before = cut
    await client.apply(CONFIGMAPS, {"metadata": {"name": "a", "namespace": "default"}})
    assert api.counts["PATCH"] == 3


async def test_a_server_that_is_not_there_is_unreachable_and_nothing_happened() -> None:
    gone = FakeApi()
    await gone.start()
    await gone.stop()
    quick = Backoff(first=0.001, cap=0.002)
    async with Client(Connection(gone.url, source="test"), backoff=quick, timeouts=Timeouts(total=2)) as client:
        with pytest.raises(errors.Unreachable, match=r"127\.0\.0\.1.*\(test\)"):
            await client.create(CONFIGMAPS, {"metadata": {"name": "a"}}, "default")


async def test_a_request_takes_no_longer_than_asked(api: FakeApi, client: Client) -> None:
    async def stall(_: web.Request) -> None:
        await asyncio.sleep(30)

    api.before = stall
    started = asyncio.get_running_loop().time()
    with pytest.raises(errors.OutcomeUnknown):
        await client.get(CONFIGMAPS, "a", "default", timeout=0.3)
    assert asyncio.get_running_loop().time() - started < 10


async def test_an_answer_that_breaks_off_is_told_in_our_own_words(client: Client) -> None:
    broken = aiohttp.ClientPayloadError("Response payload is not completed: <TransferEncodingError: 400>")
    told = str(explain(broken, ApiRequest("list", "GET", "/api/v1/pods", "pods"), client.connection))
    assert told.endswith("the connection broke off in the middle of it"), told


async def test_options_of_a_write_reach_the_server(api: FakeApi, client: Client) -> None:
    api.put(f"{MAPS}/a")
    await client.patch(
        CONFIGMAPS,
        "a",
        {},
        "default",
        dry_run=True,
        field_validation="Strict",
        field_manager="me",
        subresource="status",
    )
    verb, path = api.requests[-1]
    assert verb == "PATCH"
    assert path.startswith(f"{MAPS}/a/status?")
    assert {"dryRun=All", "fieldValidation=Strict", "fieldManager=me"} <= set(path.partition("?")[2].split("&"))
    assert api.headers[-1]["Content-Type"] == "application/merge-patch+json"


async def test_a_deletion_carries_its_preconditions(api: FakeApi, client: Client) -> None:
    seen: dict[str, Any] = {}

    async def look(request: web.Request) -> None:
        seen.update(await request.json())

    api.before = look
    api.put(f"{MAPS}/a")
    await client.delete(
        CONFIGMAPS, "a", "default", uid="u", resource_version="7", propagation="Foreground", grace_period_seconds=0
    )
    assert seen["preconditions"] == {"uid": "u", "resourceVersion": "7"}
    assert (seen["propagationPolicy"], seen["gracePeriodSeconds"]) == ("Foreground", 0)


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a%2fb", "../secrets/x"])
async def test_a_name_cannot_lead_to_another_path(client: Client, name: str) -> None:
    with pytest.raises(ValueError, match="cannot be part"):
        await client.get(CONFIGMAPS, name, "default")


def test_paths_follow_scope() -> None:
    assert CONFIGMAPS.path() == "/api/v1/configmaps"
    assert CONFIGMAPS.path("ns", "a", "status") == "/api/v1/namespaces/ns/configmaps/a/status"
    assert NAMESPACES.path("", "a") == "/api/v1/namespaces/a"
    with pytest.raises(ValueError, match="namespace is needed"):
        CONFIGMAPS.path("", "a")
    with pytest.raises(ValueError, match="not namespaced"):
        NAMESPACES.path("ns", "a")
    assert str(Key("ns", "a")) == "ns/a"


async def test_a_server_below_a_path_is_addressed_there(api: FakeApi) -> None:
    async with Client(Connection(f"{api.url}/clusters/team/one")) as client:
        with pytest.raises(errors.NotFound):
            await client.get(CONFIGMAPS, "a", "default")
    assert api.requests[-1][1] == "/clusters/team/one" + f"{MAPS}/a"


async def test_a_watch_gives_events_and_bookmarks_and_ends_with_the_stream(api: FakeApi, client: Client) -> None:
    first = api.put(f"{MAPS}/a")
    seen = []
    async with aclosing(client.watch(WIDGETS, "default", resource_version="100")) as events:
        async for event in events:
            seen.append((event.type, event.resource_version))
            if len(seen) == 1:
                api.remove(f"{MAPS}/a")
                api.bookmark()
            if event.type == "BOOKMARK":
                assert event.object is None
                api.close_watches()
    assert first["metadata"]["name"] == "a"
    assert seen == [("ADDED", "101"), ("DELETED", "102"), ("BOOKMARK", "102")]


async def test_an_error_line_of_a_watch_is_raised_as_its_type(api: FakeApi, client: Client) -> None:
    api.put(f"{MAPS}/a")
    api.send_line("ERROR", status(410, "Expired", "too old"))
    with pytest.raises(errors.Expired, match="too old"):
        async for _ in client.watch(CONFIGMAPS, resource_version="100"):
            pass


async def test_a_silent_watch_is_given_up(api: FakeApi, client: Client) -> None:
    with pytest.raises(errors.OutcomeUnknown):
        async for _ in client.watch(CONFIGMAPS, resource_version="100", silence=0.2):
            pass


async def test_a_line_longer_than_any_buffer_is_read_whole(api: FakeApi, client: Client) -> None:
    api.put(f"{MAPS}/a", {"data": {"x": "y" * 2_000_000}})
    async with aclosing(client.watch(WIDGETS, "default", resource_version="100")) as events:
        event = await anext(events)
    assert event.object is not None
    assert len(event.object.data["x"]) == 2_000_000


async def test_many_requests_share_a_pool(api: FakeApi, client: Client) -> None:
    api.put(f"{MAPS}/a")
    await asyncio.gather(*(client.get(CONFIGMAPS, "a", "default") for _ in range(300)))
    assert api.counts["GET"] == 300


async def test_watches_leave_the_pool_to_requests(api: FakeApi) -> None:
    api.put(f"{MAPS}/a")
    async with (
        Client(Connection(api.url), pool=1, timeouts=Timeouts(connect=1, total=2)) as client,
        aclosing(client.watch(CONFIGMAPS, resource_version="100")) as first,
        aclosing(client.watch(CONFIGMAPS, resource_version="100")) as second,
    ):
        assert (await anext(first)).type == (await anext(second)).type == "ADDED"
        await client.get(CONFIGMAPS, "a", "default")


async def test_every_attempt_is_observed(api: FakeApi) -> None:
    seen: list[tuple[str, str, str]] = []
    observe = lambda verb, resource, code, seconds: seen.append((verb, resource, code))  # noqa: E731
    api.refuse.append(refusal(503, "ServiceUnavailable"))
    async with Client(Connection(api.url), backoff=Backoff(first=0.001), observe=observe) as client:
        await client.list(CONFIGMAPS)
    assert seen == [("list", "configmaps", "503"), ("list", "configmaps", "200")]


async def test_metrics_count_the_requests_of_a_client_they_observe(api: FakeApi) -> None:
    metrics = Metrics()
    async with Client(Connection(api.url), observe=metrics.observe_request) as client:
        await client.list(CONFIGMAPS)
        with pytest.raises(errors.NotFound):
            await client.get(CONFIGMAPS, "a", "default")
    for verb, code in (("list", "200"), ("get", "404")):
        labels = {"verb": verb, "resource": "configmaps", "code": code}
        assert metrics.registry.get_sample_value("rest_client_requests_total", labels) == 1


async def test_closing_a_client_ends_its_watches(api: FakeApi, client: Client) -> None:
    opened = asyncio.Event()

    async def follow() -> None:
        async for _ in client.watch(CONFIGMAPS, "default", on_open=opened.set):
            pass

    watching = asyncio.create_task(follow())
    await asyncio.wait_for(opened.wait(), 5)
    await asyncio.sleep(0.01)
    await client.close()
    with pytest.raises(errors.OutcomeUnknown, match="the client was closed"):
        await asyncio.wait_for(watching, 5)
