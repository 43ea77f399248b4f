"""Publishing to a tenant's MetalLB: what is sent, and what comes of it when the tenant's side says no or changes."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from butler.kube.client import Client
from butler.kube.config import Connection
from butler.kube.errors import BadAnswer, ServerError
from butler.kube.retry import Backoff
from butler.kube.transport import ApiRequest
from butler.tenant.metallb import ApplyOutcome, address_pool, advertisement, publish, read
from unit.kube.fake_api import Answer, FakeApi, refusal
from unit.tenant.pools import DRAINED_BY, A, B, Json, ranges, spec_of

BASE = "/apis/metallb.io/v1beta1/namespaces/metallb-system"


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[Client]:
    async with Client(Connection(api.url), backoff=Backoff(0.005, cap=0.01), attempts=2) as connected:
        yield connected


@pytest.fixture
def sent(client: Client, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Json]]:
    """The verb and the body of everything that the client writes."""
    written: list[tuple[str, Json]] = []
    send = client.transport.send

    async def listen(request: ApiRequest, **options: Any) -> bytes:
        if request.body:
            written.append((request.verb, msgspec.json.decode(request.body)))
        return await send(request, **options)

    monkeypatch.setattr(client.transport, "send", listen)
    return written


def identity(metadata: Json) -> Json:
    return {name: metadata[name] for name in ("uid", "resourceVersion")}


# Where the tenant's side says no.


def present(api: FakeApi, *texts: str) -> None:
    api.put(f"{BASE}/ipaddresspools/default-pool", address_pool(ranges(*texts)))
    api.put(f"{BASE}/l2advertisements/default", advertisement())


async def test_what_is_so_already_is_not_written(api: FakeApi, client: Client) -> None:
    present(api, A)
    result = await publish(client, await read(client), ranges(A))
    assert (result.outcome, result.before, result.is_current) == (ApplyOutcome.CURRENT, (A,), True)
    assert set(api.counts) == {"GET"}


async def test_a_change_is_applied_with_force_under_butlers_name_and_read_back(api: FakeApi, client: Client) -> None:
    present(api, A)
    result = await publish(client, await read(client), ranges(A, B))
    assert (result.outcome, result.before) == (ApplyOutcome.WRITTEN, (A,))
    (patched,) = [path for verb, path in api.requests if verb == "PATCH"]
    assert "fieldManager=butler-controller%2Fipam" in patched
    assert "force=true" in patched
    assert api.requests[-1] == ("GET", f"{BASE}/ipaddresspools/default-pool")
    assert result.pool == api.objects[f"{BASE}/ipaddresspools/default-pool"]


async def test_without_metallb_there_is_an_outcome_and_no_error(api: FakeApi, client: Client) -> None:
    for given in ([], ranges(A)):
        result = await publish(client, await read(client), given)
        assert (result.outcome, result.is_current, result.before) == (ApplyOutcome.NOT_INSTALLED, False, None)
        assert result.message.startswith("MetalLB is not installed")


@pytest.mark.parametrize("code", [400, 403, 422])
async def test_a_refusal_of_the_webhook_is_told_in_its_own_words(api: FakeApi, client: Client, code: int) -> None:
    present(api, A)
    words = 'admission webhook "ipaddresspoolvalidationwebhook.metallb.io" denied the request: overlaps'
    api.refuse.extend([None, None, refusal(code, "Whatever", words)])
    result = await publish(client, await read(client), ranges(B))
    assert (result.outcome, result.message, result.is_current) == (ApplyOutcome.REFUSED, words, False)
    assert result.drift == (), "nothing was put right"


async def test_a_webhook_that_is_not_up_yet_is_an_outcome(api: FakeApi, client: Client) -> None:
    words = 'Internal error occurred: failed calling webhook "x": connection refused'
    api.refuse.extend([None, None, refusal(500, "InternalError", words)])
    result = await publish(client, await read(client), ranges(A))
    assert (result.outcome, result.message) == (ApplyOutcome.NOT_READY, words)


async def test_a_broken_server_is_an_error(api: FakeApi, client: Client) -> None:
    present(api, A)
    api.refuse.extend([None, None, refusal(500, "InternalError", "etcd is gone")])
    with pytest.raises(ServerError):
        await publish(client, await read(client), ranges(B))


async def test_a_pool_that_is_changed_back_at_once_is_not_taken_for_published(api: FakeApi, client: Client) -> None:
    present(api, A)

    async def fight(request: Any) -> None:
        if request.method == "GET" and "PATCH" in api.counts:
            present(api, A)

    api.before = fight
    result = await publish(client, await read(client), ranges(B))
    assert (result.outcome, result.is_current) == (ApplyOutcome.CONTESTED, False)
    assert A in result.message


async def test_no_ranges_delete_the_pool_and_keep_the_advertisement(api: FakeApi, client: Client) -> None:
    present(api, A)
    result = await publish(client, await read(client), [])
    assert (result.outcome, result.before) == (ApplyOutcome.WRITTEN, (A,))
    assert list(api.objects) == [f"{BASE}/l2advertisements/default"]
    assert (await publish(client, await read(client), [])).outcome is ApplyOutcome.CURRENT


# Another client writes between reading and publishing.


async def test_a_pool_that_was_written_since_is_not_written_over(api: FakeApi, client: Client) -> None:
    present(api, A)
    standing = await read(client)
    present(api, B)
    result = await publish(client, standing, ranges(A, B))
    assert (result.outcome, result.before, result.drift, result.pool) == (ApplyOutcome.CONTESTED, (A,), (), None)
    assert api.objects[f"{BASE}/ipaddresspools/default-pool"]["spec"]["addresses"] == [B]


async def test_a_pool_that_was_created_since_is_not_written_over(api: FakeApi, client: Client) -> None:
    standing = await read(client)
    present(api, B)
    result = await publish(client, standing, ranges(A))
    assert (result.outcome, result.before, result.is_current) == (ApplyOutcome.CONTESTED, None, False)
    assert api.objects[f"{BASE}/ipaddresspools/default-pool"]["spec"]["addresses"] == [B]


async def test_a_write_over_a_pool_names_the_object_and_the_version_that_were_read(
    api: FakeApi, client: Client, sent: list[tuple[str, Json]]
) -> None:
    present(api, A)
    first = await read(client)
    await publish(client, first, ranges(B))
    second = await read(client)
    await publish(client, second, [])
    (applied, over), (deleted, options) = sent
    assert (applied, identity(over["metadata"])) == ("apply", identity((first.pool or {})["metadata"]))
    assert (deleted, options["preconditions"]) == ("delete", identity((second.pool or {})["metadata"]))


async def test_a_pool_that_is_gone_already_is_withdrawn(api: FakeApi, client: Client) -> None:
    present(api, A)
    standing = await read(client)
    api.remove(f"{BASE}/ipaddresspools/default-pool")
    result = await publish(client, standing, [])
    assert (result.outcome, result.is_current) == (ApplyOutcome.WRITTEN, True), "MetalLB is still there"


async def test_the_mark_of_a_drain_is_never_created_but_applied(
    api: FakeApi, client: Client, sent: list[tuple[str, Json]]
) -> None:
    """Only what was applied goes away again by applying less."""
    api.put(f"{BASE}/l2advertisements/default", advertisement())
    result = await publish(client, await read(client), ranges(A), auto_assign=False, drained_by="one")
    assert result.outcome is ApplyOutcome.WRITTEN
    marks = [(verb, body["metadata"].get("annotations")) for verb, body in sent]
    assert marks == [("create", None), ("apply", {DRAINED_BY: "one"})]
    assert {body["spec"]["autoAssign"] for _, body in sent} == {False}, "not handed out for a moment in between"


@pytest.mark.parametrize("metadata", [None, {}, {"uid": "u"}, {"resourceVersion": "7"}, "garbage"])
async def test_an_object_without_identity_is_never_written_over(api: FakeApi, client: Client, metadata: Any) -> None:
    answer: Answer = (200, {"metadata": metadata, "spec": spec_of(A)}, {})
    api.refuse.append(answer)
    with pytest.raises(BadAnswer):
        await read(client)
    standing = await read(client)
    api.refuse.append(answer)
    with pytest.raises(BadAnswer):
        await publish(client, standing, ranges(A), auto_assign=False, drained_by="one")
