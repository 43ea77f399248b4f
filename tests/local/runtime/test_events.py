"""Events as people see them: through field selectors and kubectl."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from butler.kube.events import COMBINE_AFTER, EventRecorder
from butler.kube.resource import CONFIGMAPS, EVENTS, NAMESPACES
from local.runtime.witness import following

if TYPE_CHECKING:
    from butler.kube.client import Client
    from control_planes import ControlPlane


async def test_repeated_events_are_one_with_a_count_and_can_be_selected(
    control_plane: ControlPlane, client: Client, namespace: str
) -> None:
    chatty = await client.create(CONFIGMAPS, {"metadata": {"name": "chatty"}}, namespace)
    quiet = await client.create(CONFIGMAPS, {"metadata": {"name": "quiet"}}, namespace)
    recorder = EventRecorder(client, "butler-test")
    async with following(recorder.run()):
        for _ in range(5):
            recorder.record(chatty, CONFIGMAPS, "Same", "the same again", "Warning")
        for number in range(COMBINE_AFTER + 3):
            recorder.record(chatty, CONFIGMAPS, "Many", f"message {number}")
        recorder.record(quiet, CONFIGMAPS, "Once", "only once")
        await recorder.flush(20)
    about = "involvedObject.kind=ConfigMap,involvedObject.name=chatty"
    events = (await client.list(EVENTS, namespace, field_selector=about)).items
    by_reason: dict[str, list[int]] = {}
    for event in events:
        by_reason.setdefault(event["reason"], []).append(event["count"])
    assert by_reason["Same"] == [5]
    assert sorted(by_reason["Many"]) == [1] * COMBINE_AFTER + [3]
    warnings = await client.list(EVENTS, namespace, field_selector=f"{about},type=Warning,reason=Same")
    (warning,) = warnings.items
    assert warning["involvedObject"]["uid"] == chatty["metadata"]["uid"]
    shown = await asyncio.to_thread(control_plane.kubectl, "-n", namespace, "describe", "configmap", "chatty")
    assert "the same again" in shown.stdout
    assert "(x5 over" in shown.stdout
    assert "butler-test" in shown.stdout
    assert "only once" not in shown.stdout


async def test_an_event_about_a_cluster_wide_object_is_accepted(client: Client, namespace: str) -> None:
    recorder = EventRecorder(client, "butler-test")
    async with following(recorder.run()):
        found = await client.get(NAMESPACES, namespace)
        recorder.record(found, NAMESPACES, "Noticed", "a namespace")
        await recorder.flush(10)
    events = await client.list(EVENTS, "default", field_selector=f"involvedObject.name={namespace}")
    assert [event["reason"] for event in events.items] == ["Noticed"]


async def test_a_terminating_namespace_costs_events_and_nothing_else(client: Client, namespace: str) -> None:
    thing = await client.create(CONFIGMAPS, {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}}, namespace)
    await client.delete(NAMESPACES, namespace)
    recorder = EventRecorder(client, "butler-test")
    async with following(recorder.run()):
        recorder.record(thing, CONFIGMAPS, "Late", "too late")
        await recorder.flush(10)
        found = await client.get(NAMESPACES, namespace)
        recorder.record(found, NAMESPACES, "Noticed", "still recording")
        await recorder.flush(10)
    noticed = await client.list(EVENTS, "default", field_selector=f"involvedObject.name={namespace}")
    assert len(noticed.items) == 1
    await client.patch(CONFIGMAPS, "a", {"metadata": {"finalizers": None}}, namespace)
