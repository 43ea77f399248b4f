"""Admission webhooks, called for real over TLS on the loopback interface."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from tls_files import certificate_for_loopback

from kubeserver.access.authentication import User
from kubeserver.webhooks.calls import Webhooks
from kubeserver.webhooks.client import RESPONSE_LIMIT
from kubeserver.webhooks.hooks import Admitted, HookTable, Served, call_for, compile_hooks
from kubeserver.wire.status import ApiError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

Json = dict[str, Any]

PODS = Served("", "v1", "pods", "Pod")
ALICE = User("alice", uid="7", groups=("devs",), extra={"k": ("v",)})


def admitted(operation: str = "CREATE", served: Served = PODS, **more: Any) -> Admitted:
    item = {"apiVersion": "v1", "kind": served.kind, "metadata": {"name": "p", "labels": {"app": "web"}}}
    more = {"obj": item, "name": "p", "namespace": "team", **more}
    return Admitted(operation, served, ALICE, **more)


def configuration(name: str = "c", **hook: Any) -> Json:
    defaults: Json = {
        "name": "hook.example.com",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "timeoutSeconds": 10,
        "rules": [rule()],
        "clientConfig": {"url": "https://127.0.0.1:1/x"},
    }
    return {"metadata": {"name": name}, "webhooks": [{**defaults, **hook}]}


def rule(
    operations: str = "CREATE", groups: str = "", versions: str = "v1", resources: str = "pods", scope: str = "*"
) -> Json:
    return {
        "operations": operations.split(),
        "apiGroups": groups.split() or [""],
        "apiVersions": versions.split(),
        "resources": resources.split(),
        "scope": scope,
    }


class TestMatching:
    @pytest.mark.parametrize(
        ("fact", "hook", "request_", "called"),
        [
            ("a plain match", {}, admitted(), True),
            ("another operation", {}, admitted("UPDATE"), False),
            ("any operation", {"rules": [rule("*")]}, admitted("DELETE", obj=None), True),
            ("another version", {"rules": [rule(versions="v2")]}, admitted(), False),
            ("any group and version", {"rules": [rule(groups="*", versions="*", resources="*")]}, admitted(), True),
            ("a star is no subresource", {"rules": [rule(resources="*")]}, admitted(subresource="status"), False),
            ("a subresource", {"rules": [rule(resources="pods/status")]}, admitted(subresource="status"), True),
            ("any subresource", {"rules": [rule(resources="pods/*")]}, admitted(subresource="status"), True),
            ("all and everything", {"rules": [rule(resources="*/*")]}, admitted(subresource="log"), True),
            ("scope of the cluster", {"rules": [rule(scope="Cluster")]}, admitted(), False),
            ("scope of a namespace", {"rules": [rule(scope="Namespaced")]}, admitted(), True),
            (
                "a namespace is of the cluster",
                {"rules": [rule(resources="namespaces", scope="Namespaced")]},
                admitted(served=Served("", "v1", "namespaces", "Namespace")),
                False,
            ),
            ("object selector", {"objectSelector": {"matchLabels": {"app": "web"}}}, admitted(), True),
            ("object selector of others", {"objectSelector": {"matchLabels": {"app": "db"}}}, admitted(), False),
            (
                "object selector sees the old object",
                {"rules": [rule("UPDATE")], "objectSelector": {"matchLabels": {"app": "db"}}},
                admitted("UPDATE", old={"metadata": {"labels": {"app": "db"}}}),
                True,
            ),
            (
                "namespace selector",
                {"namespaceSelector": {"matchLabels": {"env": "prod"}}},
                admitted(namespace_labels=lambda: {"env": "prod"}),
                True,
            ),
            (
                "namespace selector of others",
                {"namespaceSelector": {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]}},
                admitted(namespace_labels=lambda: {"env": "prod"}),
                False,
            ),
            (
                "namespace selector does not exempt the cluster's",
                {"rules": [rule(resources="nodes")], "namespaceSelector": {"matchLabels": {"env": "prod"}}},
                admitted(served=Served("", "v1", "nodes", "Node"), namespace=""),
                True,
            ),
            (
                "a namespace is selected by its own labels",
                {"rules": [rule(resources="namespaces")], "namespaceSelector": {"matchLabels": {"app": "web"}}},
                admitted(served=Served("", "v1", "namespaces", "Namespace"), namespace="p"),
                True,
            ),
            (
                "an equivalent version",
                {"rules": [rule(groups="apps", versions="v1beta1", resources="deployments")]},
                admitted(
                    served=Served("apps", "v1", "deployments", "Deployment"),
                    equivalents=(Served("apps", "v1beta1", "deployments", "Deployment"),),
                ),
                True,
            ),
            (
                "no equivalents where exactness is asked for",
                {"matchPolicy": "Exact", "rules": [rule(groups="apps", versions="v1beta1", resources="deployments")]},
                admitted(
                    served=Served("apps", "v1", "deployments", "Deployment"),
                    equivalents=(Served("apps", "v1beta1", "deployments", "Deployment"),),
                ),
                False,
            ),
            (
                "webhooks cannot guard their own configuration",
                {"rules": [rule(groups="*", versions="*", resources="*")]},
                admitted(
                    served=Served(
                        "admissionregistration.k8s.io",
                        "v1",
                        "validatingwebhookconfigurations",
                        "ValidatingWebhookConfiguration",
                    )
                ),
                False,
            ),
            (
                "a condition that holds",
                {"matchConditions": [{"name": "c", "expression": "request.userInfo.username == 'alice'"}]},
                admitted(),
                True,
            ),
            (
                "a condition that does not",
                {"matchConditions": [{"name": "c", "expression": "object.metadata.labels.app == 'db'"}]},
                admitted(),
                False,
            ),
            (
                "a condition that fails is ignored with the webhook",
                {"failurePolicy": "Ignore", "matchConditions": [{"name": "c", "expression": "object.nope.x == 1"}]},
                admitted(),
                False,
            ),
        ],
        ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
    )
    def test_who_is_asked(self, fact: str, hook: Json, request_: Admitted, called: bool) -> None:
        (compiled,) = compile_hooks([configuration(**hook)])
        assert (call_for(compiled, request_) is not None) is called

    def test_a_condition_that_fails_refuses_the_write(self) -> None:
        conditions = [{"name": "c", "expression": "object.nope.x == 1"}]
        (compiled,) = compile_hooks([configuration(matchConditions=conditions)])
        with pytest.raises(ApiError) as refused:
            call_for(compiled, admitted())
        assert refused.value.code == 403

    def test_webhooks_are_asked_in_the_order_of_their_configurations(self) -> None:
        hooks = compile_hooks([configuration("b"), configuration("a")])
        assert [hook.configuration for hook in hooks] == ["a", "b"]

    def test_configurations_are_read_again_when_the_version_changes(self) -> None:
        version, items = [1], [configuration()]
        table = HookTable(lambda: items, lambda: version[0])
        first = table.hooks()
        assert table.hooks() is first
        items.append(configuration("d"))
        version[0] = 2
        assert len(table.hooks()) == 2


class Server:
    """A webhook that answers as the test says and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Json] = []
        self.answer: Callable[[Json], Json | web.Response] = lambda _: {"allowed": True}
        self.by_path: dict[str, Callable[[Json], Json]] = {}
        self.delay = 0.0
        self.url = ""
        self.ca = ""

    async def handle(self, request: web.Request) -> web.Response:
        review = await request.json()
        self.asked.append(review)
        self.query = request.query_string
        await asyncio.sleep(self.delay)
        response = self.by_path.get(request.path, self.answer)(review["request"])
        if isinstance(response, web.Response):
            return response
        response.setdefault("uid", review["request"]["uid"])
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})

    def client(self, path: str = "/x") -> Json:
        return {"url": f"{self.url}{path}", "caBundle": self.ca}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    found = Server()
    path, found.ca = certificate_for_loopback(tmp_path, "hook.team.svc")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(path)
    app = web.Application()
    app.router.add_post("/{path:.*}", found.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    found.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    yield found
    await runner.cleanup()


@pytest.fixture
async def webhooks() -> AsyncIterator[Webhooks]:
    found = Webhooks()
    yield found
    await found.close()


def patch(*operations: Json) -> Json:
    encoded = base64.b64encode(json.dumps(list(operations)).encode()).decode()
    return {"allowed": True, "patch": encoded, "patchType": "JSONPatch"}


def add(path: str, value: Any) -> Json:
    return {"op": "add", "path": path, "value": value}


class TestValidating:
    async def test_an_allowed_write_goes_on(self, server: Server, webhooks: Webhooks) -> None:
        hooks = compile_hooks([configuration(clientConfig=server.client())])
        warnings: list[str] = []
        server.answer = lambda _: {"allowed": True, "warnings": ["think again"]}
        request = admitted(options={"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"})
        await webhooks.validate(hooks, request, warnings)
        assert warnings == ["think again"]
        asked = server.asked[0]["request"]
        assert server.asked[0]["apiVersion"] == "admission.k8s.io/v1"
        assert asked["kind"] == {"group": "", "version": "v1", "kind": "Pod"}
        assert asked["resource"] == {"group": "", "version": "v1", "resource": "pods"}
        assert (asked["name"], asked["namespace"], asked["operation"]) == ("p", "team", "CREATE")
        assert asked["userInfo"] == {"username": "alice", "uid": "7", "groups": ["devs"], "extra": {"k": ["v"]}}
        assert asked["object"] == request.obj
        assert (asked["oldObject"], asked["dryRun"]) == (None, False)
        assert asked["options"]["kind"] == "CreateOptions"
        assert server.query == "timeout=10s"

    @pytest.mark.parametrize(
        ("status", "code", "reason", "message"),
        [
            ({"message": "no", "code": 409, "reason": "Conflict"}, 409, "Conflict", ": no"),
            ({"reason": "Forbidden", "code": 403}, 403, "Forbidden", ": Forbidden"),
            ({"message": "bad", "code": 200}, 400, "", ": bad"),
            (None, 400, "", " without explanation"),
        ],
    )
    async def test_a_refusal_names_the_webhook(
        self, server: Server, webhooks: Webhooks, status: Json | None, code: int, reason: str, message: str
    ) -> None:
        hooks = compile_hooks([configuration(clientConfig=server.client())])
        server.answer = lambda _: {"allowed": False, **({"status": status} if status else {})}
        with pytest.raises(ApiError) as refused:
            await webhooks.validate(hooks, admitted(), [])
        assert (refused.value.code, refused.value.reason) == (code, reason)
        assert refused.value.message == f'admission webhook "hook.example.com" denied the request{message}'

    async def test_webhooks_are_asked_at_once(self, server: Server, webhooks: Webhooks) -> None:
        server.delay = 1.0
        hooks = compile_hooks([configuration(str(number), clientConfig=server.client()) for number in range(20)])
        started = asyncio.get_running_loop().time()
        await webhooks.validate(hooks, admitted(), [])
        assert asyncio.get_running_loop().time() - started < 10  # one after the other would take 20
        assert len(server.asked) == 20

    async def test_more_authorities_at_once_than_are_kept(self, server: Server, webhooks: Webhooks) -> None:
        server.delay = 0.2
        known = server.client()
        pem = base64.b64decode(known["caBundle"])
        bundles = [base64.b64encode(pem + b"\n" * number).decode() for number in range(40)]
        hooks = compile_hooks([configuration(b, clientConfig={**known, "caBundle": b}) for b in bundles])
        for _ in range(2):
            await webhooks.validate(hooks, admitted(), [])
        assert len(server.asked) == 80
        assert len(webhooks._client._sessions) <= 16

    async def test_an_equivalent_version_is_what_the_webhook_sees(self, server: Server, webhooks: Webhooks) -> None:
        other = Served(
            "apps", "v1beta1", "deployments", "Deployment", lambda item: {**item, "apiVersion": "apps/v1beta1"}
        )
        request = admitted(served=Served("apps", "v1", "deployments", "Deployment"), equivalents=(other,))
        rules = [rule(groups="apps", versions="v1beta1", resources="deployments")]
        hooks = compile_hooks([configuration(clientConfig=server.client(), rules=rules)])
        await webhooks.validate(hooks, request, [])
        asked = server.asked[0]["request"]
        assert asked["object"]["apiVersion"] == "apps/v1beta1"
        assert (asked["kind"]["version"], asked["requestKind"]["version"]) == ("v1beta1", "v1")


class TestFailures:
    async def failure(self, webhooks: Webhooks, client: Json, **hook: Any) -> str:
        hooks = compile_hooks([configuration(clientConfig=client, **hook)])
        with pytest.raises(ApiError) as refused:
            await webhooks.validate(hooks, admitted(), [])
        assert (refused.value.code, refused.value.reason) == (500, "InternalError")
        prefix = 'Internal error occurred: failed calling webhook "hook.example.com": '
        assert refused.value.message.startswith(prefix)
        return refused.value.message.removeprefix(prefix)

    async def test_no_server_listens(self, webhooks: Webhooks) -> None:
        words = await self.failure(webhooks, {"url": "https://127.0.0.1:1/x"})
        assert words == (
            'failed to call webhook: Post "https://127.0.0.1:1/x?timeout=10s": '
            "dial tcp 127.0.0.1:1: connect: connection refused"
        )

    async def test_the_certificate_is_unknown(self, server: Server, webhooks: Webhooks) -> None:
        words = await self.failure(webhooks, {"url": f"{server.url}/x"})
        assert words.endswith("tls: failed to verify certificate: x509: certificate signed by unknown authority")

    async def test_too_slow(self, server: Server, webhooks: Webhooks) -> None:
        server.delay = 5
        words = await self.failure(webhooks, server.client(), timeoutSeconds=1)
        assert words.endswith("context deadline exceeded")

    async def test_an_answer_without_end_is_cut(self, server: Server, webhooks: Webhooks) -> None:
        server.answer = lambda _: web.Response(body=b"x" * (RESPONSE_LIMIT + 1))
        assert "response body exceeds" in await self.failure(webhooks, server.client())

    async def test_an_error_of_the_webhook(self, server: Server, webhooks: Webhooks) -> None:
        server.answer = lambda _: web.Response(status=404)
        words = await self.failure(webhooks, server.client())
        assert words == "failed to call webhook: the server could not find the requested resource"

    async def test_not_json(self, server: Server, webhooks: Webhooks) -> None:
        server.answer = lambda _: web.Response(text="hello")
        assert "couldn't get version/kind; json parse error" in await self.failure(webhooks, server.client())

    async def test_the_answer_to_another_question(self, server: Server, webhooks: Webhooks) -> None:
        server.answer = lambda _: {"allowed": True, "uid": "other"}
        words = await self.failure(webhooks, server.client())
        assert words.startswith("received invalid webhook response: expected response.uid=")

    async def test_a_patch_of_a_validating_webhook(self, server: Server, webhooks: Webhooks) -> None:
        server.answer = lambda _: patch(add("/x", 1))
        words = await self.failure(webhooks, server.client())
        assert words == "received invalid webhook response: validating webhook may not return response.patch"

    async def test_a_bundle_that_is_none(self, server: Server, webhooks: Webhooks) -> None:
        words = await self.failure(webhooks, {**server.client(), "caBundle": "bm9wZQ=="})
        assert words.startswith("could not get REST client: unable to load root certificates")

    async def test_a_service_that_is_not_served(self, webhooks: Webhooks) -> None:
        service = {"namespace": "team", "name": "hook", "path": "/v", "port": 443}
        words = await self.failure(webhooks, {"service": service})
        assert words == (
            'failed to call webhook: Post "https://hook.team.svc:443/v?timeout=10s": service "hook" not found'
        )

    async def test_a_failure_may_be_ignored(self, webhooks: Webhooks) -> None:
        hooks = compile_hooks([configuration(failurePolicy="Ignore")])
        await webhooks.validate(hooks, admitted(), [])
        assert await webhooks.mutate(hooks, admitted(), []) == admitted().obj

    async def test_all_calls_together_end_in_time(self, server: Server) -> None:
        server.delay = 5
        impatient = Webhooks(total_seconds=0.3)
        try:
            hooks = compile_hooks([configuration(clientConfig=server.client(), failurePolicy="Ignore")])
            with pytest.raises(ApiError) as refused:
                await impatient.mutate(hooks, admitted(), [])
            assert (refused.value.code, refused.value.reason) == (504, "Timeout")
        finally:
            await impatient.close()

    async def test_dry_run_needs_a_webhook_without_side_effects(self, server: Server, webhooks: Webhooks) -> None:
        hooks = compile_hooks([configuration(clientConfig=server.client(), sideEffects="Some")])
        with pytest.raises(ApiError) as refused:
            await webhooks.validate(hooks, admitted(dry_run=True), [])
        assert refused.value.code == 400
        assert refused.value.message == 'admission webhook "hook.example.com" does not support dry run'
        assert server.asked == []
        safe = compile_hooks([configuration(clientConfig=server.client(), sideEffects="NoneOnDryRun")])
        await webhooks.validate(safe, admitted(dry_run=True), [])
        assert server.asked[0]["request"]["dryRun"] is True


class TestMutating:
    async def test_each_sees_what_the_one_before_did(self, server: Server, webhooks: Webhooks) -> None:
        server.by_path = {
            "/a": lambda _: patch(add("/metadata/labels/a", "1")),
            "/b": lambda asked: patch(add("/metadata/labels/b", asked["object"]["metadata"]["labels"]["a"])),
        }
        hooks = compile_hooks([configuration(letter, clientConfig=server.client(f"/{letter}")) for letter in "ba"])
        request = admitted()
        before = json.dumps(request.obj)
        found = await webhooks.mutate(hooks, request, [])
        assert found is not None
        assert found["metadata"]["labels"] == {"app": "web", "a": "1", "b": "1"}
        assert json.dumps(request.obj) == before

    async def test_defaults_are_applied_to_what_comes_back(self, server: Server, webhooks: Webhooks) -> None:
        server.answer = lambda _: patch(add("/spec", {}))
        hooks = compile_hooks([configuration(clientConfig=server.client())])
        request = admitted(default=lambda item: item["spec"].setdefault("x", 1))
        found = await webhooks.mutate(hooks, request, [])
        assert found is not None
        assert found["spec"] == {"x": 1}

    async def test_an_earlier_webhook_sees_later_changes_if_it_wishes(self, server: Server, webhooks: Webhooks) -> None:
        server.by_path = {"/b": lambda _: patch(add("/metadata/labels/b", "1"))}
        hooks = compile_hooks(
            [
                configuration("a", clientConfig=server.client("/a"), reinvocationPolicy="IfNeeded"),
                configuration("b", clientConfig=server.client("/b"), reinvocationPolicy="IfNeeded"),
                configuration("c", clientConfig=server.client("/c"), reinvocationPolicy="Never"),
            ]
        )
        await webhooks.mutate(hooks, admitted(), [])
        seen = ["b" in obj["request"]["object"]["metadata"]["labels"] for obj in server.asked]
        assert seen == [False, False, True, True]  # a, b, c, and a once more

    async def test_a_refusal_ends_it(self, server: Server, webhooks: Webhooks) -> None:
        server.by_path = {"/a": lambda _: {"allowed": False, "status": {"message": "no"}}}
        hooks = compile_hooks([configuration(letter, clientConfig=server.client(f"/{letter}")) for letter in "ab"])
        with pytest.raises(ApiError, match="denied the request: no"):
            await webhooks.mutate(hooks, admitted(), [])
        assert len(server.asked) == 1

    async def test_a_deletion_cannot_be_changed(self, server: Server, webhooks: Webhooks) -> None:
        server.answer = lambda _: patch(add("/x", 1))
        hooks = compile_hooks([configuration(clientConfig=server.client(), rules=[rule("DELETE")])])
        request = replace(admitted("DELETE", obj=None), old={"metadata": {}})
        with pytest.raises(ApiError, match="attempted to modify the object"):
            await webhooks.mutate(hooks, request, [])

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            ({"patch": "e30="}, "webhook returned response.patch but not response.patchType"),
            ({"patchType": "JSONPatch"}, "webhook returned response.patchType but not response.patch"),
            ({"patch": "bm9wZQ==", "patchType": "JSONPatch"}, "received undecodable patch in webhook response"),
        ],
    )
    async def test_a_patch_that_is_none(self, server: Server, webhooks: Webhooks, answer: Json, words: str) -> None:
        server.answer = lambda _: {"allowed": True, **answer}
        hooks = compile_hooks([configuration(clientConfig=server.client())])
        with pytest.raises(ApiError) as refused:
            await webhooks.mutate(hooks, admitted(), [])
        assert words in refused.value.message

    async def test_a_service_is_called_under_its_own_name(self, server: Server) -> None:
        port = int(server.url.rsplit(":", 1)[1])
        asked: list[tuple[str, str, int]] = []

        def resolve(namespace: str, name: str, number: int) -> tuple[str, int]:
            asked.append((namespace, name, number))
            return "127.0.0.1", port

        found = Webhooks(resolve_service=resolve)
        try:
            service = {"namespace": "team", "name": "hook", "path": "/v", "port": 8443}
            hooks = compile_hooks([configuration(clientConfig={"service": service, "caBundle": server.ca})])
            await found.validate(hooks, admitted(), [])
        finally:
            await found.close()
        assert asked == [("team", "hook", 8443)]
        assert len(server.asked) == 1
