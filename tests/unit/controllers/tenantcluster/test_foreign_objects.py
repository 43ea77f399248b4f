"""When an object is applied again, and which templates may go."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from butler.api.objects import Change, Key, covers
from butler.capi.naming import SECRET
from butler.controllers.tenantcluster import foreign_objects as live
from butler.controllers.tenantcluster.foreign_objects import (
    APPLIED,
    NAMESPACE,
    packed,
    resource_of_kind,
    unpacked,
    unused,
)
from unit.controllers.tenantcluster.management import Management
from unit.controllers.tenantcluster.site import FakeLive

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("found", "wanted", "expected"),
    [
        # More than is wanted is fine: others own fields too.
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"spec": {"a": 1, "b": {"c": 1, "d": 2}}}, {"spec": {"b": {"c": 1}}}, True),
        # What is missing or different is drift.
        ({"a": 1}, {"a": 2}, False),
        ({}, {"a": 1}, False),
        (None, {"a": 1}, False),
        ({"a": "text"}, {"a": {"b": 1}}, False),
        # Lists are compared as a whole, their entries may say more.
        ({"a": [{"x": 1, "default": True}]}, {"a": [{"x": 1}]}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({"a": [2, 1]}, {"a": [1, 2]}, False),
        ({"a": {}}, {"a": []}, False),
        # What is wanted to be null is as good as absent.
        ({}, {"a": None}, True),
        ({"a": None}, {"a": None}, True),
        ({"a": 1}, {"a": None}, False),
        # An empty block that is wanted has to be there.
        ({}, {"a": {}}, False),
        ({"a": {"b": 1}}, {"a": {}}, True),
    ],
)
def test_what_counts_as_drift(found: Any, wanted: Any, expected: bool) -> None:
    assert covers(found, wanted) is expected


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=2), VALUES, max_size=4), st.text(min_size=3, max_size=4), VALUES)
def test_an_object_covers_itself_and_goes_on_covering_when_others_add_to_it(wanted: Json, name: str, more: Any) -> None:
    assert covers(wanted, wanted)
    assert covers({**wanted, name: more}, wanted)


def marked(wanted: Json) -> Json:
    return live._marked(wanted)


def test_the_mark_follows_the_content_and_not_the_order_of_its_fields() -> None:
    one: Json = {"kind": "X", "metadata": {"name": "a"}, "spec": {"a": 1, "b": 2}}
    same: Json = {"spec": {"b": 2, "a": 1}, "metadata": {"name": "a"}, "kind": "X"}
    other: Json = {**one, "spec": {"a": 1}}
    assert marked(one) == marked(same)
    assert marked(one)["metadata"]["annotations"][APPLIED] != marked(other)["metadata"]["annotations"][APPLIED]


def test_the_mark_keeps_annotations_and_leaves_the_original_alone() -> None:
    wanted: Json = {"metadata": {"name": "a", "annotations": {"x": "y"}}}
    assert marked(wanted)["metadata"]["annotations"]["x"] == "y"
    assert wanted == {"metadata": {"name": "a", "annotations": {"x": "y"}}}


def test_a_field_that_is_no_longer_wanted_is_seen_by_the_mark() -> None:
    before: Json = {"metadata": {"name": "a"}, "spec": {"a": 1, "b": 2}}
    after: Json = {"metadata": {"name": "a"}, "spec": {"a": 1}}
    assert covers(marked(before), after), "to the eye it is all there"
    assert not covers(marked(before), marked(after)), "but it was made from something else"


def template(name: str, kind: str | None = "T") -> Json:
    return {"metadata": {"name": name}} | ({"kind": kind} if kind else {})


def test_templates_that_are_used_stay() -> None:
    found = unused([template("old"), template("new"), template("new", "Other")], [("T", "new")])
    assert [(obj["kind"], obj["metadata"]["name"]) for obj in found] == [("T", "old"), ("Other", "new")]


def test_a_template_that_does_not_say_its_kind_stays() -> None:
    assert unused([template("new", None)], [("T", "new")]) == []


def test_the_record_of_owners_is_not_kept() -> None:
    kept = packed({"metadata": {"name": "a", "namespace": "b", "managedFields": [1]}, "spec": {}})
    assert kept.namespace == "b"
    assert unpacked(kept) == {"metadata": {"name": "a", "namespace": "b"}, "spec": {}}


# What was just written.


def a_secret(**data: str) -> Json:
    meta = {"name": "web", "namespace": "team-a"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}


class Watching:
    """A view of Secrets that stands still, as one does whose watch is slow."""

    def __init__(self) -> None:
        self.now = 100.0
        self.management = Management()
        self.live = FakeLive(self.management, lambda: self.now)

    async def stand_still(self) -> None:
        (await self.live.view(SECRET)).freeze()

    async def apply(self, **data: str) -> bool:
        """Whether it was written."""
        return await self.live.apply(SECRET, a_secret(**data)) is not None


async def test_a_secret_that_the_view_does_not_show_yet_is_not_written_again() -> None:
    it = Watching()
    await it.stand_still()
    assert await it.apply(value="YQ==")
    assert not await it.apply(value="YQ==")
    assert await it.apply(value="Yg=="), "another one is"


async def test_a_secret_that_the_view_never_shows_is_written_again() -> None:
    it = Watching()
    await it.stand_still()
    assert await it.apply(value="YQ==")
    it.now += live.SHOWN_WITHIN
    assert await it.apply(value="YQ==")


async def test_a_secret_that_was_seen_to_go_is_written_again_at_once() -> None:
    it = Watching()
    await it.stand_still()
    assert await it.apply(value="YQ==")
    it.live._tell(resource_of_kind(SECRET), Change(Key("team-a", "web"), None, None))
    assert await it.apply(value="YQ==")


async def test_a_namespace_is_there_only_where_the_view_shows_it() -> None:
    """That one was made and is gone by now must not be overlooked, not even for a moment."""
    it = Watching()
    (await it.live.view(NAMESPACE)).freeze()
    body: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web-1"}}
    assert await it.live.apply(NAMESPACE, body) is not None
    assert await it.live.one(NAMESPACE, "", "web-1") is None
