"""The event recorder: many notes, few writes, never in the way."""

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from butler.kube.errors import Status, Unreachable, error_from_status
from butler.kube.events import ALLOWANCE, COMBINE_AFTER, EventRecorder
from butler.kube.metrics import Metrics
from butler.kube.resource import CONFIGMAPS, NAMESPACES

if TYPE_CHECKING:
    from butler.kube.client import Client

Json = dict[str, Any]


class Board:
    """Where events end up."""

    def __init__(self) -> None:
        self.events: dict[str, Json] = {}
        self.writes = 0
        self.down = False

    async def create(self, _resource: Any, event: Json, *, timeout: float) -> Json:
        self._reach()
        self.events[event["metadata"]["name"]] = copy.deepcopy(event)
        return event

    async def patch(self, _resource: Any, name: str, patch: Json, namespace: str, *, timeout: float) -> Json:
        self._reach()
        if name not in self.events:
            raise error_from_status(Status(reason="NotFound", code=404))
        assert self.events[name]["metadata"]["namespace"] == namespace
        self.events[name] |= patch
        return self.events[name]

    def _reach(self) -> None:
        self.writes += 1
        if self.down:
            raise Unreachable("down")

    def told(self) -> list[tuple[str, int]]:
        return [(event["message"], event["count"]) for event in self.events.values()]


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def thing(name: str = "a") -> Json:
    return {"metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": "7"}}


@asynccontextmanager
async def recording(board: Board, clock: Clock, **options: Any) -> AsyncIterator[EventRecorder]:
    recorder = EventRecorder(cast("Client", board), "butler", wall=clock, **options)
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder
        await recorder.flush(5)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_an_event_says_what_happened_to_whom() -> None:
    board = Board()
    async with recording(board, Clock()) as recorder:
        recorder.record(thing(), CONFIGMAPS, "Grew", "by 4 addresses", "Warning")
    (event,) = board.events.values()
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "a",
        "namespace": "ns",
        "uid": "uid-a",
        "resourceVersion": "7",
    }
    assert (event["reason"], event["message"], event["type"], event["count"]) == (
        "Grew",
        "by 4 addresses",
        "Warning",
        1,
    )
    assert event["metadata"]["namespace"] == "ns"
    name, _, moment = event["metadata"]["name"].rpartition(".")
    assert name == "a"
    assert abs(int(moment, 16) / 1e9 - Clock.now) < 1
    assert event["source"] == {"component": "butler"}
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2027-01-15T08:00:00Z"


async def test_a_repeated_event_bumps_a_count() -> None:
    board, clock = Board(), Clock()
    async with recording(board, clock) as recorder:
        for _ in range(4):
            recorder.record(thing(), CONFIGMAPS, "Grew", "again")
            clock.now += 60
    assert board.told() == [("again", 4)]
    (event,) = board.events.values()
    assert (event["firstTimestamp"], event["lastTimestamp"]) == ("2027-01-15T08:00:00Z", "2027-01-15T08:03:00Z")


async def test_many_different_messages_of_one_reason_are_combined() -> None:
    board = Board()
    async with recording(board, Clock()) as recorder:
        for number in range(COMBINE_AFTER + 5):
            recorder.record(thing(), CONFIGMAPS, "Failed", f"attempt {number}")
    assert board.told() == [
        *((f"attempt {number}", 1) for number in range(COMBINE_AFTER)),
        (f"(combined from similar events): attempt {COMBINE_AFTER + 4}", 5),
    ]


async def test_a_chatty_object_runs_out_of_its_allowance_and_others_do_not() -> None:
    board, clock, metrics = Board(), Clock(), Metrics()
    async with recording(board, clock, metrics=metrics) as recorder:
        for _ in range(100):
            recorder.record(thing(), CONFIGMAPS, "Grew", "again")
        recorder.record(thing("b"), CONFIGMAPS, "Grew", "once")
        await recorder.flush(5)
        assert board.told() == [("again", int(ALLOWANCE)), ("once", 1)]
        clock.now += 600
        recorder.record(thing(), CONFIGMAPS, "Grew", "again")
    assert board.told()[0] == ("again", int(ALLOWANCE) + 1), "the allowance refills with time"
    dropped = metrics.registry.get_sample_value("butler_events_dropped_total", {"reason": "rate"})
    assert dropped == 100 - ALLOWANCE


async def test_a_chatty_reason_does_not_silence_another_on_the_same_object() -> None:
    board = Board()
    async with recording(board, Clock()) as recorder:
        for _ in range(100):
            recorder.record(thing(), CONFIGMAPS, "Released", "again")
        recorder.record(thing(), CONFIGMAPS, "Full", "once")
    assert board.told() == [("again", int(ALLOWANCE)), ("once", 1)]


async def test_an_event_that_expired_on_the_server_is_written_anew() -> None:
    board = Board()
    async with recording(board, Clock()) as recorder:
        recorder.record(thing(), CONFIGMAPS, "Grew", "again")
        await recorder.flush(5)
        board.events.clear()
        recorder.record(thing(), CONFIGMAPS, "Grew", "again")
    assert board.told() == [("again", 1)]


async def test_a_server_that_is_down_costs_events_and_nothing_else() -> None:
    board, metrics = Board(), Metrics()
    async with recording(board, Clock(), metrics=metrics) as recorder:
        board.down = True
        recorder.record(thing(), CONFIGMAPS, "Grew", "lost")
        await recorder.flush(5)
        board.down = False
        recorder.record(thing(), CONFIGMAPS, "Grew", "told")
    assert board.told() == [("told", 1)]
    assert metrics.registry.get_sample_value("butler_events_dropped_total", {"reason": "unreachable"}) == 1


async def test_the_buffer_is_bounded() -> None:
    metrics = Metrics()
    recorder = EventRecorder(cast("Client", Board()), "butler", buffer=3, metrics=metrics)
    for number in range(10):
        recorder.record(thing(str(number)), CONFIGMAPS, "Grew", "x")
    assert metrics.registry.get_sample_value("butler_events_dropped_total", {"reason": "buffer_full"}) == 7


async def test_events_about_cluster_wide_objects_live_in_default_and_long_messages_are_cut() -> None:
    board = Board()
    async with recording(board, Clock()) as recorder:
        recorder.record({"metadata": {"name": "team", "uid": "u"}}, NAMESPACES, "Grew", "x" * 5000)
    (event,) = board.events.values()
    assert event["metadata"]["namespace"] == "default"
    assert "namespace" not in event["involvedObject"]
    assert len(event["message"]) == 1024
