"""Turns on the loop, the lane beside it, places for large bodies, and patience with rules."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from butler.local.apiserver import patience
from butler.local.apiserver.cel.rules import check_rules
from butler.local.apiserver.lane import Lane
from butler.local.apiserver.patching.patches import json_patch
from butler.local.apiserver.patching.strategic import strategic_merge
from butler.local.apiserver.places import Places
from butler.local.apiserver.schemas.linear import Automaton
from butler.local.apiserver.schemas.schema import parse
from butler.local.apiserver.turns import Turns
from butler.local.apiserver.wire.gojson import Repeated, TextError, read_json
from butler.local.apiserver.wire.selectors import _remembered, parse_label_selector
from butler.local.apiserver.wire.status import ApiError
from unit.local.test_strategic import CONTAINER, keyed

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
    lane, done = Lane(), []
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
