"""A webhook that refuses objects of a kind while it stands: address pools, in place of MetalLB's own, or others."""

from __future__ import annotations

import json
import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

from tls_files import certificate_for_loopback

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ipam.history import Json

MESSAGE = "addresses overlap with the pool of another owner"


class _Judge(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        verdict = {"uid": review["request"]["uid"], "allowed": False, "status": {"code": 403, "message": MESSAGE}}
        body = json.dumps({**review, "request": None, "response": verdict}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class' name)
        pass


@contextmanager
def refusing_webhook(
    directory: Path,
    *,
    name: str = "metallb-webhook-configuration",
    kind: tuple[str, str, str] = ("metallb.io", "v1beta1", "ipaddresspools"),
    only: dict[str, str] | None = None,
) -> Iterator[Json]:
    """The ValidatingWebhookConfiguration to put on a cluster, while its webhook is served; `only` are labels."""
    directory.mkdir(parents=True, exist_ok=True)
    file, bundle = certificate_for_loopback(directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server = HTTPServer(("127.0.0.1", 0), _Judge)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    answering = threading.Thread(target=server.serve_forever, daemon=True)
    answering.start()
    group, version, resources = kind
    rule = {"operations": ["CREATE", "UPDATE"], "apiGroups": [group], "apiVersions": [version]}
    hook = {
        "name": f"{resources}.refused.example.com",
        "objectSelector": {"matchLabels": only or {}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
        "clientConfig": {"url": f"https://127.0.0.1:{server.server_port}/", "caBundle": bundle},
        "rules": [{**rule, "resources": [resources]}],
    }
    try:
        yield {"metadata": {"name": name}, "webhooks": [hook]}
    finally:
        server.shutdown()
        server.server_close()
        answering.join(10)
