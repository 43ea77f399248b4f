"""Positions and the past of the live stream."""

from __future__ import annotations

from butler.api.objects import Key
from butler.server.cache.cluster_state import KIND_NAMES, KindName
from butler.server.cursor import decode_cursor, encode_cursor
from butler.server.stream.changes import MOST_REPLAYED, Past, StreamPosition, Touch, merged, resumed


def pool(name: str) -> Touch:
    return Touch("pool", Key("home", name), frozenset({name}))


def pasts(**given: Past) -> dict[KindName, Past]:
    return {kind: given.get(kind, Past()) for kind in KIND_NAMES}


def position(version: int = 0, **sights: str) -> StreamPosition:
    return StreamPosition(dict.fromkeys(KIND_NAMES, version), dict(sights))


def test_a_position_is_text_that_any_server_reads() -> None:
    here = position(7, pool="*")
    assert decode_cursor(encode_cursor(here), StreamPosition) == here


def test_what_no_server_has_written_is_no_position() -> None:
    for text in ("", "x", "ä", "%%%", "W10", "e30", "a" * 5000, encode_cursor(position(1))[:-3]):
        assert decode_cursor(text, StreamPosition) is None, text


def test_what_happened_after_a_version_is_told_once() -> None:
    past = Past()
    past.begin(10)
    for version in (11, 12, 13):
        past.add(version, [pool("a"), pool(f"b{version}")])
    found = resumed(pasts(pool=past), position(11, pool="*"), {"pool": "*"})
    assert [touch.key.name for touch in found.touches] == ["a", "b12", "b13"]
    assert found.reset == []


def test_what_is_older_than_the_past_is_not_known() -> None:
    past = Past(most=2)
    for version in (1, 2, 3, 4):
        past.add(version, [pool("a")])
    assert past.after(1) is None
    assert past.after(2) == [pool("a"), pool("a")]
    assert past.after(9) == []


def test_a_list_begins_a_new_past() -> None:
    past = Past()
    past.add(3, [pool("a")])
    past.begin(8)
    assert past.after(7) is None
    assert past.after(8) == []


def test_a_change_that_came_ahead_of_its_turn_is_never_dropped_in_silence() -> None:
    past = Past(most=1)
    past.add(10, [pool("written here")])
    past.add(7, [pool("a")])
    assert past.after(8) is None


def test_kinds_that_show_something_of_a_source_are_loaded_again_when_its_past_is_unknown() -> None:
    past = Past()
    past.begin(50)
    sights: dict[KindName, str] = {"pool": "*", "allocation": "*", "activity": "*"}
    found = resumed(pasts(allocation=past), position(7, **sights), sights)
    assert found.reset == ["pool", "allocation"]


def test_who_may_see_something_else_than_before_loads_it_again() -> None:
    found = resumed(pasts(), position(7, pool="*", tenant="a"), {"pool": "*", "tenant": "b", "activity": "*"})
    assert found.reset == ["tenant", "activity"]


def test_without_a_position_everything_is_loaded_again() -> None:
    assert resumed(pasts(), None, {"tenant": "*", "pool": "*"}).reset == ["pool", "tenant"]


def test_a_client_that_missed_very_much_loads_lists() -> None:
    past = Past()
    for number in range(MOST_REPLAYED + 1):
        past.add(number + 1, [Touch("activity", Key("home", f"e{number}"))])
    found = resumed(pasts(activity=past), position(0, pool="*", activity="*"), {"pool": "*", "activity": "*"})
    assert (found.touches, found.reset) == ([], ["activity"])


def test_an_object_that_was_touched_twice_is_told_with_all_that_it_concerns() -> None:
    key = Key("home", "x")
    both = merged([Touch("allocation", key, frozenset({"a"})), pool("a"), Touch("allocation", key, frozenset({"b"}))])
    assert both == [Touch("allocation", key, frozenset({"a", "b"})), pool("a")]
