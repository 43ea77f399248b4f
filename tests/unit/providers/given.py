"""ProviderConfigs and Secrets as tests write them, and a provider on the loopback interface that speaks real HTTPS."""

from __future__ import annotations

import base64
import json
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import yaml
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tls_files import certificate_for_loopback

from butler.api.codec import from_json
from butler.api.providerconfig import ProviderConfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

Json = dict[str, Any]
UUID = "7a2c8a40-5f9e-4d0c-9b0a-3f1d7c6e5b21"
SUBSCRIPTION = "0b1f6471-1bf0-4dda-aec3-cb9272f09590"
PASSWORD = "correct-horse-battery"

BLOCKS: Json = {
    "harvester": {"networkName": "default/vlan60"},
    "nutanix": {"endpoint": "https://prism.example.com", "clusterUUID": UUID, "subnetUUID": UUID},
    "proxmox": {"endpoint": "https://pve.example.com:8006", "nodes": ["pve1"], "storage": "local-lvm"},
    "aws": {"region": "eu-central-1"},
    "gcp": {"projectID": "butler-lab", "region": "europe-west3"},
    "azure": {"subscriptionID": SUBSCRIPTION, "resourceGroup": "butler"},
    "local": {},
}


def config(provider: str, *, key: str | None = None, name: str = "lab", **settings: Any) -> ProviderConfig:
    """A ProviderConfig in butler-system with what its provider needs, and some settings over it."""
    reference = {"name": "login"} | ({"key": key} if key else {})
    spec: Json = {"provider": provider, provider: BLOCKS[provider] | settings}
    if provider != "local":
        spec["credentialsRef"] = reference
    metadata = {"name": name, "namespace": "butler-system", "uid": f"uid-{name}", "generation": 1}
    return from_json(ProviderConfig, {"kind": "ProviderConfig", "metadata": metadata, "spec": spec})


def kubeconfig(server: str = "https://harvester.example.com", *, ca: str = "", **changes: Any) -> bytes:
    """A kubeconfig with a token; `cluster` and `user` are merged over its entries."""
    cluster = {"server": server} | ({"certificate-authority-data": ca} if ca else {}) | changes.pop("cluster", {})
    user = {"token": PASSWORD} | changes.pop("user", {})
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
        **changes,
    }
    return yaml.safe_dump(document).encode()


_RSA = rsa.generate_private_key(65537, 2048)
PUBLIC_KEY = _RSA.public_key()
PRIVATE_KEY = _RSA.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()


def service_account(**changes: Any) -> bytes:
    document = {
        "type": "service_account",
        "project_id": "butler-lab",
        "private_key_id": "k1",
        "private_key": PRIVATE_KEY,
        "client_email": "butler@butler-lab.iam.gserviceaccount.com",
        "token_uri": "https://oauth2.googleapis.com/token",
    }
    return json.dumps(document | changes).encode()


def secret(provider: str, **changes: bytes | None) -> dict[str, bytes]:
    """Data of a Secret that is right; None takes a key out."""
    right: dict[str, dict[str, bytes | None]] = {
        "harvester": {"kubeconfig": kubeconfig()},
        "nutanix": {"username": b"butler", "password": PASSWORD.encode()},
        "proxmox": {"username": b"butler@pve!ci", "password": UUID.encode()},
        "aws": {"accessKeyID": b"AKIAIOSFODNN7EXAMPLE", "secretAccessKey": b"wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"},
        "gcp": {"serviceAccountKey": service_account()},
        "azure": {
            "clientID": UUID.encode(),
            "tenantID": SUBSCRIPTION.encode(),
            "clientSecret": b"zR~8Q~v.fake.fake.fake.fake.fake.fake",
        },
        "local": {},
    }
    found = right[provider] | {key.replace("__", "."): value for key, value in changes.items()}
    return {key: value for key, value in found.items() if value is not None}


class Appliance:
    """A provider's API: each path has its answer, and what was asked is remembered."""

    def __init__(self, url: str, ca_bundle: str) -> None:
        self.url = url
        self.ca_bundle = ca_bundle
        self.ca = base64.b64decode(ca_bundle)
        self.answers: dict[str, Callable[[web.Request, bytes], Awaitable[web.StreamResponse] | web.StreamResponse]] = {}
        self.asked: list[str] = []

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.ca.decode())

    def on(self, what: str, body: Any = None, status: int = 200, **headers: str) -> None:
        """Answer `GET /path` with JSON, or with text."""
        text = body if isinstance(body, str) else json.dumps(body)
        self.answers[what] = lambda request, sent: web.Response(status=status, text=text, headers=headers)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        sent = await request.read()
        what = f"{request.method} {request.path}"
        self.asked.append(what)
        answer = self.answers.get(what)
        if answer is None:
            return web.Response(status=404, text="404 page not found")
        found = answer(request, sent)
        return found if isinstance(found, web.StreamResponse) else await found


@asynccontextmanager
async def appliance(directory: Path) -> AsyncIterator[Appliance]:
    """A server with a certificate of its own on a free port of 127.0.0.1."""
    directory.mkdir(exist_ok=True)
    pem, bundle = certificate_for_loopback(directory)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pem)
    found = Appliance("", bundle)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", found.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    found.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield found
    finally:
        await runner.cleanup()
