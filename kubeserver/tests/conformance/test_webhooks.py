"""Admission webhooks: really called over TLS, with their say on what is written."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import ssl
import threading
from typing import TYPE_CHECKING, Any

import pytest
from run_kubernetes import free_ports, write_certificates

from conformance.kinds import configmap
from conformance.wire import eventually, unexplained

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from conformance.wire import Api, Object

PATH = "/apis/admissionregistration.k8s.io/v1"
DENIED = 'admission webhook "hook.example.com" denied the request'
CONFIGMAPS: Object = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["*"],
    "resources": ["configmaps"],
    "scope": "Namespaced",
}


class Hook:
    """A webhook server whose answer each case chooses, and that remembers what it was asked."""

    def __init__(self, api: Api, namespace: str, unique: str) -> None:
        self.api = api
        self.namespace = namespace
        self.name = f"hook-{unique}"
        self.asked: list[Object] = []
        self.decide: Callable[[Object], Object] = lambda _: {"allowed": True}
        self.url = ""
        self.ca = ""
        self.made: list[str] = []

    def answer(self, review: Object) -> Object:
        self.asked.append(review["request"])
        response = {"uid": review["request"]["uid"], **self.decide(review["request"])}
        return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}

    async def register(self, flavour: str, **settings: Any) -> None:
        """Register for the config maps of this case's namespace, and wait until the server knows."""
        webhook = {
            "name": "hook.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"url": self.url, "caBundle": self.ca},
            "rules": [CONFIGMAPS],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}},
            "timeoutSeconds": 5,
            **settings,
        }
        resource = f"{flavour.lower()}webhookconfigurations"
        answer = await self.api.post(f"{PATH}/{resource}", {"metadata": {"name": self.name}, "webhooks": [webhook]})
        assert answer.status == 201, answer.text
        self.made.append(f"{PATH}/{resource}/{self.name}")

    async def called(self) -> None:
        """Wait until a write reaches the webhook, then forget about it."""

        async def reached() -> bool:
            await self.create("probe", dryRun="All")
            return bool(self.asked)

        await eventually(reached, "the webhook is called")
        self.asked.clear()

    async def create(self, name: str, **query: str) -> Any:
        return await self.api.post(
            f"/api/v1/namespaces/{self.namespace}/configmaps", configmap(name, {"a": "1"}), **query
        )


class HookServer(http.server.ThreadingHTTPServer):
    """HTTPS in threads of its own: clients that break off in the handshake must not disturb the event loop."""

    def __init__(self, hook: Hook, keys: Path) -> None:
        super().__init__(("127.0.0.1", 0), HookRequest)
        self.hook = hook
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(keys / "server.crt", keys / "server.key")

    def finish_request(self, request: Any, client_address: Any) -> None:
        with contextlib.suppress(OSError), self.tls.wrap_socket(request, server_side=True) as secured:
            super().finish_request(secured, client_address)


class HookRequest(http.server.BaseHTTPRequestHandler):
    server: HookServer

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(self.server.hook.answer(review)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
        """Say nothing: the cases look at what was asked."""


@pytest.fixture
async def hook(api: Api, namespace: str, unique: str, tmp_path: Path) -> AsyncIterator[Hook]:
    write_certificates(tmp_path)
    made = Hook(api, namespace, unique)
    made.ca = base64.b64encode((tmp_path / "ca.crt").read_bytes()).decode()
    with HookServer(made, tmp_path) as server:
        made.url = f"https://127.0.0.1:{server.server_address[1]}/hook"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield made
        for path in made.made:
            await api.delete(path)
        server.shutdown()
        thread.join()


async def test_a_webhook_is_told_everything(hook: Hook) -> None:
    await hook.register("Validating")
    await hook.called()
    created = (await hook.create("one")).made
    (request,) = hook.asked
    assert request["operation"] == "CREATE"
    assert request["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert request["requestKind"] == request["kind"]
    assert (request["name"], request["namespace"]) == ("one", hook.namespace)
    assert request["dryRun"] is False
    assert request["oldObject"] is None
    assert request["object"]["data"] == {"a": "1"}
    assert request["object"]["metadata"]["uid"] == created["metadata"]["uid"]
    assert request["userInfo"]["username"]
    assert request["options"]["kind"] == "CreateOptions"


async def test_updates_and_deletions_carry_what_was(hook: Hook) -> None:
    await hook.register("Validating")
    await hook.called()
    await hook.create("one")
    path = f"/api/v1/namespaces/{hook.namespace}/configmaps/one"
    await hook.api.merge(path, {"data": {"a": "2"}})
    await hook.api.delete(path)
    _, update, delete = hook.asked
    assert (update["operation"], delete["operation"]) == ("UPDATE", "DELETE")
    assert update["oldObject"]["data"] == {"a": "1"}
    assert update["object"]["data"] == {"a": "2"}
    assert delete["object"] is None
    assert delete["oldObject"]["data"] == {"a": "2"}


async def test_a_denial_is_told_with_its_message(hook: Hook) -> None:
    hook.decide = lambda _: {"allowed": False, "status": {"message": "not on a Monday"}}
    await hook.register("Validating")
    await hook.called()
    answer = await hook.create("one")
    assert answer.body == unexplained(400, f"{DENIED}: not on a Monday")
    assert (await hook.api.get(f"/api/v1/namespaces/{hook.namespace}/configmaps/one")).status == 404


async def test_a_denial_may_choose_its_code_and_reason(hook: Hook) -> None:
    status = {"message": "busy", "code": 429, "reason": "TooManyRequests"}
    hook.decide = lambda _: {"allowed": False, "status": status}
    await hook.register("Validating")
    await hook.called()
    answer = await hook.create("one")
    assert (answer.status, answer.body["reason"], answer.body["code"]) == (429, "TooManyRequests", 429)
    assert answer.body["message"] == f"{DENIED}: busy"


async def test_a_denial_without_words_is_a_denial(hook: Hook) -> None:
    hook.decide = lambda _: {"allowed": False}
    await hook.register("Validating")
    await hook.called()
    answer = await hook.create("one")
    assert answer.body == unexplained(400, f"{DENIED} without explanation")


async def test_a_webhook_may_warn(hook: Hook) -> None:
    hook.decide = lambda _: {"allowed": True, "warnings": ["this is old"]}
    await hook.register("Validating")
    await hook.called()
    answer = await hook.create("one")
    assert answer.status == 201
    assert answer.warnings == ["this is old"]


async def test_a_mutating_webhook_patches(hook: Hook) -> None:
    operations = [
        {"op": "add", "path": "/metadata/labels", "value": {"patched": "yes"}},
        {"op": "add", "path": "/data/b", "value": "2"},
    ]
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    hook.decide = lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": patch}
    await hook.register("Mutating")
    await hook.called()
    created = (await hook.create("one")).made
    assert created["metadata"]["labels"] == {"patched": "yes"}
    assert created["data"] == {"a": "1", "b": "2"}


async def test_what_a_webhook_makes_is_validated(hook: Hook) -> None:
    operations = [{"op": "add", "path": "/data/not ok", "value": "2"}]
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    await hook.register("Mutating")
    await hook.called()
    hook.decide = lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": patch}
    answer = await hook.create("one")
    assert answer.status == 422
    assert answer.causes[0][1] == "data[not ok]"


async def test_a_dead_webhook_stops_writes(hook: Hook) -> None:
    (port,) = free_ports(1)
    dead = f"https://127.0.0.1:{port}/hook"
    await hook.register("Validating", clientConfig={"url": dead, "caBundle": hook.ca})

    async def stopped() -> bool:
        return bool((await hook.create("one", dryRun="All")).status == 500)

    await eventually(stopped, "writes are stopped")
    answer = await hook.create("one")
    assert answer.body["reason"] == "InternalError"
    message = answer.body["message"]
    assert message.startswith(
        'Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: Post '
        f'"{dead}?timeout=5s": dial tcp 127.0.0.1:{port}: '
    )
    assert answer.body["details"]["causes"][0]["message"] == message.removeprefix("Internal error occurred: ")


async def test_a_dead_webhook_may_be_ignored(hook: Hook) -> None:
    (port,) = free_ports(1)
    dead = {"url": f"https://127.0.0.1:{port}/hook", "caBundle": hook.ca}
    await hook.register("Validating", clientConfig=dead, failurePolicy="Ignore")
    for name in ("one", "two", "three"):
        assert (await hook.create(name)).status == 201


async def test_an_untrusted_webhook_is_not_believed(hook: Hook, tmp_path: Path) -> None:
    write_certificates(tmp_path / "other")
    other = base64.b64encode((tmp_path / "other" / "ca.crt").read_bytes()).decode()
    await hook.register("Validating", clientConfig={"url": hook.url, "caBundle": other})

    async def stopped() -> bool:
        return bool((await hook.create("one", dryRun="All")).status == 500)

    await eventually(stopped, "writes are stopped")
    answer = await hook.create("one")
    assert answer.body["reason"] == "InternalError"
    assert "certificate" in answer.body["message"]


async def test_objects_can_be_selected(hook: Hook) -> None:
    hook.decide = lambda _: {"allowed": False}
    await hook.register("Validating", objectSelector={"matchLabels": {"guarded": "yes"}})
    path = f"/api/v1/namespaces/{hook.namespace}/configmaps"

    async def reached() -> bool:
        await hook.api.post(path, configmap("probe", labels={"guarded": "yes"}), dryRun="All")
        return bool(hook.asked)

    await eventually(reached, "the webhook is called")
    hook.asked.clear()
    assert (await hook.create("free")).status == 201
    assert hook.asked == []


async def test_namespaces_can_be_selected(hook: Hook) -> None:
    hook.decide = lambda _: {"allowed": False}
    await hook.register("Validating")
    await hook.called()
    answer = await hook.api.post("/api/v1/namespaces/default/configmaps", configmap("x"), dryRun="All")
    assert answer.status in (201, 409)
    assert hook.asked == []


async def test_a_condition_decides_before_the_call(hook: Hook) -> None:
    hook.decide = lambda _: {"allowed": False}
    condition = {"name": "only-one", "expression": "object.metadata.name.startsWith('guarded')"}
    await hook.register("Validating", matchConditions=[condition])

    async def reached() -> bool:
        await hook.create("guarded-probe", dryRun="All")
        return bool(hook.asked)

    await eventually(reached, "the webhook is called")
    hook.asked.clear()
    assert (await hook.create("free")).status == 201
    assert hook.asked == []
    assert (await hook.create("guarded-one")).status >= 400


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (
            {"sideEffects": "Maybe"},
            (
                "FieldValueNotSupported",
                "webhooks[0].sideEffects",
                'Unsupported value: "Maybe": supported values: "None", "NoneOnDryRun"',
            ),
        ),
        (
            {"admissionReviewVersions": []},
            (
                "FieldValueRequired",
                "webhooks[0].admissionReviewVersions",
                "Required value: must specify one of v1, v1beta1",
            ),
        ),
        (
            {"clientConfig": {"url": "http://127.0.0.1/hook"}},
            (
                "FieldValueInvalid",
                "webhooks[0].clientConfig.url",
                "Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
            ),
        ),
        (
            {"timeoutSeconds": 60},
            (
                "FieldValueInvalid",
                "webhooks[0].timeoutSeconds",
                "Invalid value: 60: the timeout value must be between 1 and 30 seconds",
            ),
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_a_bad_configuration_is_refused(
    api: Api, unique: str, change: Object, cause: tuple[str, str, str]
) -> None:
    webhook = {
        "name": "hook.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://127.0.0.1/hook"},
        **change,
    }
    body = {"metadata": {"name": f"hook-{unique}"}, "webhooks": [webhook]}
    answer = await api.post(f"{PATH}/validatingwebhookconfigurations", body)
    assert answer.status == 422
    assert answer.causes == [cause]


async def test_a_configuration_is_filled_in(hook: Hook) -> None:
    await hook.register("Validating")
    (webhook,) = (await hook.api.get(hook.made[0])).made["webhooks"]
    assert webhook["failurePolicy"] == "Fail"
    assert webhook["matchPolicy"] == "Equivalent"
    assert webhook["objectSelector"] == {}
