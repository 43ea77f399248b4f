"""Records of the console as one who has its key can rewrite them, for tests that let time pass."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from butler.server.access.keys import SigningKey
from butler.server.access.store import NAME

if TYPE_CHECKING:
    from control_planes import ControlPlane

RECORDS = "butler-console"


def content(secret: dict[str, Any]) -> Any:
    return json.loads(base64.b64decode(secret["data"]["record"]))


def rewrite(plane: ControlPlane, name: str, *, records: str = RECORDS, **changes: object) -> None:
    """Change what a record says, and seal it as the server does."""
    path = f"/api/v1/namespaces/{records}/secrets/{name}"
    status, secret = plane.request("GET", path)
    assert status == 200, secret
    raw = json.dumps({**content(secret), **changes}).encode()
    kind = secret["metadata"]["labels"]["butler.butlerlabs.dev/console"]
    sealed = (records, kind, name, secret["metadata"]["uid"])
    secret["data"] = {
        "record": base64.b64encode(raw).decode(),
        "seal": _key(plane, records).mark(*(part.encode() for part in sealed), raw),
    }
    status, said = plane.request("PUT", path, secret)
    assert status == 200, said


def _key(plane: ControlPlane, records: str) -> SigningKey:
    status, secret = plane.request("GET", f"/api/v1/namespaces/{records}/secrets/{NAME}")
    assert status == 200, secret
    return SigningKey(base64.b64decode(content(secret)["key"]))
