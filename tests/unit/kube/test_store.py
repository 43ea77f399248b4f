"""The store against a plain dict as its model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from butler.api.objects import Change, Key
from butler.ipam.addresses import Range
from butler.kube.store import ObjectStore, StoreEntry

KEYS = st.sampled_from([Key("ns", name) for name in "abc"])


def entry(version: int, uid: str = "u", group: str = "x") -> StoreEntry[str]:
    return StoreEntry(group, str(version), uid)


def test_an_older_version_is_ignored() -> None:
    store: ObjectStore[str] = ObjectStore()
    store.put(Key("", "a"), entry(10))
    assert store.put(Key("", "a"), entry(9, group="y")) == []
    assert store.put(Key("", "a"), entry(10, group="y")) == []
    assert store.get(Key("", "a")) == "x"


def test_a_deletion_older_than_the_object_is_ignored() -> None:
    store: ObjectStore[str] = ObjectStore()
    store.put(Key("", "a"), entry(10))
    assert store.remove(Key("", "a"), "9") == []
    assert store.remove(Key("", "a"), "10") != [], "an object leaves a selection at the version that changed it"


def test_versions_that_are_no_numbers_are_obeyed() -> None:
    store: ObjectStore[str] = ObjectStore()
    store.put(Key("", "a"), StoreEntry("x", "one", "u"))
    assert store.put(Key("", "a"), StoreEntry("y", "two", "u")) == [Change(Key("", "a"), "x", "y")]
    assert store.remove(Key("", "a"), "three") == [Change(Key("", "a"), "y", None)]


def test_a_recreated_object_is_a_deletion_and_an_addition() -> None:
    store: ObjectStore[str] = ObjectStore()
    key = Key("", "a")
    store.put(key, entry(1, "first", "old"))
    assert store.put(key, entry(5, "second", "new")) == [Change(key, "old", None), Change(key, None, "new")]
    assert store.replace({key: entry(9, "third", "newest")}) == [
        Change(key, "new", None),
        Change(key, None, "newest"),
    ]


def test_a_replacement_tells_only_the_difference() -> None:
    store: ObjectStore[str] = ObjectStore()
    a, b, c, kept = (Key("", name) for name in "abck")
    for key in (a, b, kept):
        store.put(key, entry(1))
    changes = store.replace({b: entry(1), c: entry(4), a: entry(3, group="y")}, keep={kept})
    assert {(change.key, change.old, change.new) for change in changes} == {(a, "x", "y"), (c, None, "x")}
    assert kept in store
    assert {change.key for change in store.replace({})} == {a, b, c, kept}
    assert len(store) == 0


@given(st.lists(st.tuples(KEYS, st.sampled_from(["put", "remove"]), st.sampled_from("xyz")), max_size=60))
def test_indexes_agree_with_a_full_scan(steps: list[tuple[Key, str, str]]) -> None:
    store: ObjectStore[str] = ObjectStore()
    store.add_index("group", lambda obj: [obj])
    for version, (key, action, group) in enumerate(steps, start=1):
        if action == "put":
            store.put(key, entry(version, group=group))
        else:
            store.remove(key, str(version))
        for value in "xyz":
            assert sorted(store.by("group", value)) == sorted(v for v in store.values() if v == value)
            assert store.count("group", value) == sum(v == value for v in store.values())


def test_an_index_added_late_covers_what_is_there() -> None:
    store: ObjectStore[str] = ObjectStore()
    store.put(Key("", "a"), entry(1))
    store.add_index("group", lambda obj: [obj])
    assert store.by("group", "x") == ["x"]
    assert store.by("group", "nothing") == []


def _spans(text: str) -> list[tuple[str, Range]]:
    """ "net 3-5,net 9-9" """
    found = []
    for part in filter(None, text.split(",")):
        space, _, ends = part.partition(" ")
        first, _, last = ends.partition("-")
        found.append((space, Range(int(first), int(last))))
    return found


def test_objects_are_found_by_the_addresses_that_they_have_now() -> None:
    store: ObjectStore[str] = ObjectStore()
    store.put(Key("", "a"), StoreEntry("net 3-5,net 9-9", "1", "u"))
    store.add_range_index("held", _spans)
    store.put(Key("", "b"), StoreEntry("other 3-5", "2", "v"))
    assert store.touching("held", "net", Range(5, 9)) == ["net 3-5,net 9-9"], "once, though twice touched"
    assert store.touching("held", "other", Range(0, 3)) == ["other 3-5"]
    assert store.touching("held", "no such space", Range(0, 9)) == []
    store.put(Key("", "a"), StoreEntry("net 3-5", "3", "u"))
    assert store.touching("held", "net", Range(6, 9)) == []
    assert store.touching("held", "net", Range(0, 9)) == ["net 3-5"]
    store.put(Key("", "a"), StoreEntry("net 7-7", "4", "another"))
    assert store.touching("held", "net", Range(0, 6)) == []
    store.remove(Key("", "b"), "5")
    assert store.touching("held", "other", Range(0, 9)) == []
    store.replace({Key("", "c"): StoreEntry("net 1-1", "6", "w")})
    assert store.touching("held", "net", Range(0, 9)) == ["net 1-1"]
    with pytest.raises(ValueError, match="already"):
        store.add_range_index("held", _spans)
