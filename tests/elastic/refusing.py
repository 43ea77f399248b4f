"""A webhook in place of MetalLB's own, which refuses address pools until it is told otherwise."""

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

MESSAGE = "addresses overlap with the pool of somebody else"


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
def refusing_webhook(directory: Path) -> Iterator[Json]:
    """The ValidatingWebhookConfiguration to put on a tenant, while somebody answers for it."""
    directory.mkdir(parents=True, exist_ok=True)
    file, bundle = certificate_for_loopback(directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server = HTTPServer(("127.0.0.1", 0), _Judge)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    answering = threading.Thread(target=server.serve_forever, daemon=True)
    answering.start()
    rule = {"operations": ["CREATE", "UPDATE"], "apiGroups": ["metallb.io"], "apiVersions": ["v1beta1"]}
    hook = {
        "name": "ipaddresspoolvalidationwebhook.metallb.io",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
        "clientConfig": {"url": f"https://127.0.0.1:{server.server_port}/", "caBundle": bundle},
        "rules": [{**rule, "resources": ["ipaddresspools"]}],
    }
    try:
        yield {"metadata": {"name": "metallb-webhook-configuration"}, "webhooks": [hook]}
    finally:
        server.shutdown()
        server.server_close()
        answering.join(10)
