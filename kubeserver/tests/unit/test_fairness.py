"""Turns on the loop, the lane beside it, places for large bodies, and patience with rules."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
from typing import Any

import pytest

from kubeserver import patience
from kubeserver.cel.rules import check_rules
from kubeserver.lane import Lane
from kubeserver.patching.patches import json_patch
from kubeserver.patching.strategic import strategic_merge
from kubeserver.places import Places
from kubeserver.schemas.linear import Automaton
from kubeserver.schemas.schema import parse
from kubeserver.turns import Turns
from kubeserver.wire.gojson import Repeated, TextError, read_json
from kubeserver.wire.messages import ClientLeft
from kubeserver.wire.selectors import _remembered, parse_label_selector
from kubeserver.wire.status import ApiError
from unit.test_strategic import CONTAINER, keyed

Json = dict[str, Any]


async def test_a_caller_with_one_request_passes_one_with_a_hundred() -> None:
    turns, order = Turns(), []

    async def ask(caller: str) -> None:
        await turns.take(caller)
        order.append(caller)

    many = [asyncio.create_task(ask("many")) for _ in range(100)]
    await asyncio.sleep(0)
    one = asyncio.create_task(ask("one"))
    await asyncio.gather(one, *many)
    assert order.index("one") < 6
    assert len(order) == 101


async def test_who_leaves_while_waiting_takes_no_turn() -> None:
    turns = Turns()
    waiting = [asyncio.create_task(turns.take("a")) for _ in range(20)]
    await asyncio.sleep(0)
    for task in waiting[5:]:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await asyncio.wait_for(turns.take("a"), 5)


async def test_callers_take_the_lane_in_turns_whatever_they_queued() -> None:
    lane, done = Lane(threads=1), []
    begin = threading.Event()

    def work(name: str) -> None:
        begin.wait(10)
        done.append(name)

    hog = [asyncio.create_task(lane.run("hog", lambda n=n: work(f"hog {n}"))) for n in range(10)]  # type: ignore[misc]
    await asyncio.sleep(0)
    other = [asyncio.create_task(lane.run("other", lambda n=n: work(f"other {n}"))) for n in range(2)]  # type: ignore[misc]
    await asyncio.sleep(0)
    begin.set()
    await asyncio.gather(*hog, *other)
    assert done[:5] == ["hog 0", "hog 1", "other 0", "hog 2", "other 1"]
    lane.close()


async def test_a_caller_has_one_thread_of_the_lane_and_no_other_waits_behind_its_long_work() -> None:
    lane, finish = Lane(threads=2), threading.Event()
    began: list[int] = []

    def long(number: int) -> None:
        began.append(number)
        finish.wait(10)

    hog = [asyncio.create_task(lane.run("hog", lambda n=n: long(n))) for n in range(5)]  # type: ignore[misc]
    await asyncio.sleep(0)
    assert await asyncio.wait_for(lane.run("other", lambda: 7), 5) == 7
    assert began == [0]
    finish.set()
    await asyncio.gather(*hog)
    assert began == [0, 1, 2, 3, 4]
    lane.close()


async def test_work_whose_client_has_left_is_not_begun() -> None:
    lane, finish, done = Lane(threads=1), threading.Event(), []
    left = False
    first = asyncio.create_task(lane.run("a", lambda: finish.wait(10)))
    second = asyncio.create_task(lane.run("a", lambda: done.append(2), gone=lambda: left))
    await asyncio.sleep(0)
    left = True
    finish.set()
    await first
    with pytest.raises(ClientLeft):
        await second
    assert done == []
    lane.close()


async def test_garbage_is_collected_again_once_the_lane_is_empty() -> None:
    lane, finish = Lane(threads=2), threading.Event()
    waiting = [asyncio.create_task(lane.run(caller, lambda: finish.wait(10))) for caller in ("a", "b")]
    await asyncio.sleep(0)
    assert not gc.isenabled()
    finish.set()
    await asyncio.gather(*waiting)
    assert gc.isenabled()
    lane.close()


async def test_a_caller_with_too_much_in_the_lane_is_told_to_come_back() -> None:
    lane, begin = Lane(most_waiting=2), threading.Event()
    waiting = [asyncio.create_task(lane.run("hog", lambda: begin.wait(10))) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(ApiError) as refused:
        await lane.run("hog", lambda: None)
    assert (refused.value.code, refused.value.headers) == (429, {"Retry-After": "1"})
    begin.set()
    assert await lane.run("other", lambda: 7) == 7
    await asyncio.gather(*waiting)
    lane.close()


async def test_what_goes_wrong_in_the_lane_goes_wrong_for_its_caller_alone() -> None:
    lane = Lane()
    with pytest.raises(ZeroDivisionError):
        await lane.run("a", lambda: 1 // 0)
    assert await lane.run("a", lambda: 2) == 2
    lane.close()


async def test_a_caller_has_so_many_places_and_others_have_theirs() -> None:
    places, inside = Places(each=2), []

    async def come(caller: str, leave: asyncio.Event) -> None:
        async with places.one(caller):
            inside.append(caller)
            await leave.wait()

    leave = asyncio.Event()
    tasks = [asyncio.create_task(come(caller, leave)) for caller in ("a", "a", "a", "a", "b")]
    await asyncio.sleep(0.01)
    assert sorted(inside) == ["a", "a", "b"]
    leave.set()
    await asyncio.gather(*tasks)
    assert sorted(inside) == ["a", "a", "a", "a", "b"]
    assert not places._doors


def test_a_costly_rule_is_stopped_on_the_loop_and_decided_elsewhere() -> None:
    rule = {"rule": "self.list.all(a, self.list.all(b, a + b < 100000))"}
    numbers = {"type": "array", "maxItems": 1000, "items": {"type": "integer"}}
    schema = parse({"type": "object", "properties": {"list": numbers}, "x-kubernetes-validations": [rule]})
    small, large = {"list": [1, 2, 3]}, {"list": list(range(300))}
    with patience.limited():
        assert check_rules(schema, small, None, []) == []
    with pytest.raises(patience.Costly), patience.limited():
        check_rules(schema, large, None, [])
    assert check_rules(schema, large, None, []) == []
    assert patience.left() is None


def test_a_costly_pattern_is_stopped_on_the_loop_and_decided_elsewhere() -> None:
    text = "".join(chr(0x4E00 + number) for number in range(3000))
    with pytest.raises(patience.Costly), patience.limited():
        Automaton("(.?){60}(.?){60}y").search(text)
    assert not Automaton("(.?){6}y").search(text)


class Counted(str):
    """A text that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("kind", ["new", "known", "ordered", "deleted"])
def test_items_are_merged_without_comparing_each_with_each(kind: str) -> None:
    count = 1500
    schema = parse({"type": "object", "properties": {"containers": keyed(CONTAINER, "name")}})

    def items() -> list[Json]:
        return [{"name": Counted(f"c{number}")} for number in range(count)]

    live: Json = {"containers": [] if kind == "new" else items()}
    patch: Json = {"containers": items()}
    if kind == "ordered":
        patch["$setElementOrder/containers"] = items()
    if kind == "deleted":
        patch["containers"] = [{"$patch": "delete", **item} for item in items()]
    Counted.compared = 0
    merged = strategic_merge(schema, live, patch)
    assert len(merged.get("containers", [])) == (0 if kind == "deleted" else count)
    assert Counted.compared < 40 * count


def test_copies_of_one_value_are_changed_apart() -> None:
    patch = [
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "add", "path": "/b/x", "value": 1},
        {"op": "add", "path": "/a/y", "value": 2},
    ]
    document = {"a": {"z": 0}}
    assert json_patch(document, patch) == {"a": {"z": 0, "y": 2}, "b": {"z": 0, "x": 1}}
    assert document == {"a": {"z": 0}}


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (b"}", "invalid character '}' looking for beginning of value"),
        (b"1 2]", "invalid character '2' after array element"),
        (b'{"a" 1}]', "invalid character '1' after object key"),
        (b'{"a":1 2}]', "invalid character '2' after object key:value pair"),
        (b"{1:2}]", "invalid character '1' looking for beginning of object key string"),
        (b"1", "unexpected end of JSON input"),
        (b"1]]", "invalid character ']' after top-level value"),
        (b"x]", "invalid character 'x' looking for beginning of value"),
    ],
)
def test_a_mistake_has_the_same_words_in_short_and_long_texts(end: bytes, message: str) -> None:
    for length in (1, 50_000):
        with pytest.raises(TextError) as wrong:
            read_json(b"[" + b"1," * length + end)
        assert str(wrong.value) == message


@pytest.mark.parametrize(
    "spoiled",
    [
        (b'"a":"x"', b'"a":"\xff"'),
        (b'"a":"x"', b'"a":"\\ud800"'),
        (b"1]}", b"1}"),
    ],
    ids=["no text", "half a character", "wrong at the end"],
)
def test_a_spoiled_text_costs_about_as_much_as_a_good_one(spoiled: tuple[bytes, bytes]) -> None:
    """Each of these was read a second time, character by character: twenty times as much."""
    good = b'{"a":"x","b":[' + b'"x",' * 350_000 + b"1]}"

    def cost(text: bytes) -> float:
        """Processor time, the least of three."""
        return min(_processor_seconds(text) for _ in range(3))

    assert cost(good.replace(*spoiled)) < 6 * cost(good)


def _processor_seconds(text: bytes) -> float:
    began = time.process_time()
    with contextlib.suppress(TextError):
        read_json(text, find_repeated=True)
    return time.process_time() - began


def test_long_texts_are_read_as_go_reads_them() -> None:
    filling = b'"' + b"x" * 100_000 + b'"'
    assert read_json(b'["a\xffb",' + filling + b"]")[0] == "a\ufffdb"
    assert read_json(rb'["a\ud800b","\\ud800","\ud83d\ude00",' + filling + b"]")[:3] == ["a\ufffdb", "\\ud800", "😀"]
    assert read_json(b"[123456789012345678901234567890," + filling + b"]")[0] == 1.2345678901234568e29


def test_repeated_keys_are_told_by_looking_them_up() -> None:
    found = read_json(b'{"a":{"x":1},"b":1,"a":{"y":2},"b":2}', find_repeated=True)
    assert isinstance(found, Repeated)
    assert list(found.repeated) == ["a", "b"]
    assert isinstance(found.repeated, dict)
    assert found.merged == {"a": {"x": 1, "y": 2}}


def test_long_selectors_are_not_remembered() -> None:
    before = _remembered.cache_info().currsize
    parse_label_selector(",".join(f"key-{number}=a" for number in range(200)))
    assert _remembered.cache_info().currsize == before
