"""A webhook that misbehaves leads to the same answer here as on a real kube-apiserver.

One TLS server plays the webhook for both: the real API server calls it because of a configuration created there,
and ours because of the same configuration given to `Webhooks`. The Status objects must be equal.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from tls_files import certificate_for_loopback

from kubeserver.access.authentication import User
from kubeserver.builtin.admission_configurations import default_validating
from kubeserver.webhooks.calls import Admitted, Served, Webhooks, compile_hooks
from kubeserver.wire.status import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from api_servers import ControlPlane

Json = dict[str, Any]

API = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
ALLOWED = {"allowed": True}

pytestmark = pytest.mark.parametrize("control_plane", ["kubernetes"], indirect=True)


class Webhook(ThreadingHTTPServer):
    """Answers every review with `code` and `body`; a dict is the response of the review."""

    daemon_threads = True
    code = 200
    body: bytes | Json = ALLOWED
    ca = ""

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.server_address[1]}"


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Webhook

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = self.server.body
        if isinstance(body, dict):
            response = {"uid": review["request"]["uid"], **body}
            kind = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
            body = json.dumps({**kind, "response": response}).encode()
        self.send_response(self.server.code)
        self.send_header("Content-Type", "application/json" if self.server.code == 200 else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is inherited
        """Say nothing."""


@pytest.fixture(scope="module")
def webhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
    path, ca = certificate_for_loopback(tmp_path_factory.mktemp("webhook"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(path)
    server = Webhook(("127.0.0.1", 0), Answer)
    server.ca = ca
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def namespace(control_plane: ControlPlane) -> str:
    return control_plane.fresh_namespace("webhook")


def configuration(namespace: str, **hook: Any) -> Json:
    defaults: Json = {
        "name": "hook.example.com",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
    }
    return {"metadata": {"name": namespace}, "webhooks": [{**defaults, **hook}]}


def theirs(server: ControlPlane, namespace: str, config: Json) -> Json:
    status, answer = server.request("POST", API, config)
    assert status == 201, answer
    try:
        path = f"/api/v1/namespaces/{namespace}/configmaps?dryRun=All"
        for _ in range(100):  # the server learns of a configuration a moment after it is created
            status, answer = server.request("POST", path, {"metadata": {"name": "c"}})
            if status >= 400:
                return dict(answer)
            threading.Event().wait(0.1)
        raise AssertionError("the webhook was not called within 10 s")
    finally:
        server.request("DELETE", f"{API}/{namespace}")


def ours(namespace: str, config: Json) -> Json:
    default_validating(config)
    request = Admitted(
        "CREATE",
        Served("", "v1", "configmaps", "ConfigMap"),
        User("alice"),
        obj={"metadata": {"name": "c"}},
        name="c",
        namespace=namespace,
        namespace_labels=lambda: {"kubernetes.io/metadata.name": namespace},
    )

    async def ask() -> None:
        webhooks = Webhooks()
        try:
            await webhooks.validate(compile_hooks([config]), request, [])
        finally:
            await webhooks.close()

    with pytest.raises(ApiError) as refused:
        asyncio.run(ask())
    return refused.value.status()


DENIALS: list[tuple[str, Json]] = [
    ("no more", {"allowed": False}),
    ("a message", {"allowed": False, "status": {"message": "not today"}}),
    ("a reason", {"allowed": False, "status": {"reason": "Forbidden", "code": 403}}),
    (
        "all of a status",
        {
            "allowed": False,
            "status": {
                "message": "no",
                "reason": "Invalid",
                "code": 422,
                "details": {"kind": "X", "causes": [{"reason": "FieldValueInvalid", "message": "m", "field": "f"}]},
            },
        },
    ),
    ("success", {"allowed": False, "status": {"status": "Success", "code": 200, "message": "odd"}}),
]


@pytest.mark.parametrize(("name", "answer"), DENIALS, ids=[name.replace(" ", "-") for name, _ in DENIALS])
def test_a_denial(control_plane: ControlPlane, namespace: str, webhook: Webhook, name: str, answer: Json) -> None:
    webhook.code, webhook.body = 200, answer
    config = configuration(namespace, clientConfig={"url": f"{webhook.url}/x", "caBundle": webhook.ca})
    assert ours(namespace, config) == theirs(control_plane, namespace, config)


ANSWERS: list[tuple[str, int, bytes | Json]] = [
    ("400", 400, b"bad"),
    ("401", 401, b""),
    ("403", 403, b"no"),
    ("404", 404, b""),
    ("405", 405, b""),
    ("429", 429, b""),
    ("500", 500, b"it hurts"),
    ("500 without a word", 500, b""),
    ("503", 503, b""),
    ("504", 504, b""),
    ("a patch", 200, {"allowed": True, "patch": "e30=", "patchType": "JSONPatch"}),
]


@pytest.mark.parametrize(("name", "code", "body"), ANSWERS, ids=[name.replace(" ", "-") for name, *_ in ANSWERS])
def test_an_answer_that_is_none(
    control_plane: ControlPlane, namespace: str, webhook: Webhook, name: str, code: int, body: bytes | Json
) -> None:
    webhook.code, webhook.body = code, body
    config = configuration(namespace, clientConfig={"url": f"{webhook.url}/x", "caBundle": webhook.ca})
    assert ours(namespace, config) == theirs(control_plane, namespace, config)


def test_no_server_listens(control_plane: ControlPlane, namespace: str) -> None:
    config = configuration(namespace, clientConfig={"url": "https://127.0.0.1:1/x"})
    assert ours(namespace, config) == theirs(control_plane, namespace, config)


def test_no_authority_vouches_for_the_certificate(
    control_plane: ControlPlane, namespace: str, webhook: Webhook
) -> None:
    config = configuration(namespace, clientConfig={"url": f"{webhook.url}/x"})
    assert ours(namespace, config) == theirs(control_plane, namespace, config)


def test_a_service_that_is_not_there(control_plane: ControlPlane, namespace: str) -> None:
    service = {"namespace": namespace, "name": "missing", "path": "/x"}
    config = configuration(namespace, clientConfig={"service": service})
    assert ours(namespace, config) == theirs(control_plane, namespace, config)


def test_a_condition_that_cannot_be_decided(control_plane: ControlPlane, namespace: str, webhook: Webhook) -> None:
    config = configuration(
        namespace,
        clientConfig={"url": f"{webhook.url}/x", "caBundle": webhook.ca},
        matchConditions=[{"name": "odd", "expression": "object.nope == 'x'"}],
    )
    assert ours(namespace, config) == theirs(control_plane, namespace, config)
