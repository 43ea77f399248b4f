"""Events go an hour after they were last told, and nothing else does."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from kubeserver import ControlPlane
from kubeserver.background.events import last_told, sweep
from kubeserver.storage.store import Table
from kubeserver.wire.asgi import Body
from kubeserver.wire.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

ADMINISTRATOR = (("organizationName", "system:masters"), ("commonName", "admin"))


async def post(plane: ControlPlane, path: str, obj: dict[str, Any]) -> None:
    headers = [("content-type", "application/json"), ("user-agent", "test")]
    sent = msgspec.json.encode(obj)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": sent, "more_body": False}

    body = Body("POST", {"content-length": str(len(sent))}, receive, lambda: False)
    answer = await plane._server.answer("POST", path, {}, headers, body, ADMINISTRATOR)
    assert answer.code == 201, answer.body


async def test_an_event_goes_an_hour_after_it_was_told(tmp_path: Path) -> None:
    plane = await ControlPlane.start(tmp_path)
    try:
        about = {"involvedObject": {"kind": "ConfigMap", "name": "x", "namespace": "default"}, "reason": "Told"}
        await post(plane, "/api/v1/namespaces/default/events", {"metadata": {"name": "one"}, **about})
        await post(plane, "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "kept"}})
        actor = plane._server.clusters[ROOT].actor
        store, started = actor.cluster.store, actor.cluster.clock()

        actor.cluster.clock = lambda: started + timedelta(minutes=59)
        await sweep(actor)
        assert store.count(Table(ROOT, "", "events")) == 1

        actor.cluster.clock = lambda: started + timedelta(minutes=61)
        await sweep(actor)
        assert store.count(Table(ROOT, "", "events")) == 0
        assert store.count(Table(ROOT, "", "configmaps")) == 1
    finally:
        await plane.stop()


def test_an_event_that_is_told_again_is_young_again() -> None:
    event = {
        "metadata": {"creationTimestamp": "2026-02-15T10:00:00Z"},
        "eventTime": "2026-02-15T10:00:01.500000Z",
        "series": {"count": 3, "lastObservedTime": "2026-02-15T12:30:00.000000Z"},
    }
    assert last_told(event) == "2026-02-15T12:30:00"
