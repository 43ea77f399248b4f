"""Strategic merge patch, on a Pod-like schema written by hand. The results are those of a real kube-apiserver."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeserver.patching.strategic import strategic_merge
from kubeserver.schemas.schema import parse_named
from kubeserver.wire.status import ApiError

Json = dict[str, Any]

TEXT: Json = {"type": "string"}


def keyed(items: Json, key: str, strategy: str = "merge") -> Json:
    return {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": [key],
        "x-kubernetes-patch-merge-key": key,
        "x-kubernetes-patch-strategy": strategy,
    }


ENV: Json = {"type": "object", "properties": {"name": TEXT, "value": TEXT}}
CONTAINER: Json = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "image": TEXT,
        "args": {"type": "array", "items": TEXT},
        "env": keyed(ENV, "name"),
    },
}
SCHEMA = parse_named(
    {
        "io.k8s.api.core.v1.Pod": {
            "type": "object",
            "properties": {
                "metadata": {
                    "type": "object",
                    "properties": {
                        "labels": {"type": "object", "additionalProperties": TEXT},
                        "finalizers": {
                            "type": "array",
                            "items": TEXT,
                            "x-kubernetes-list-type": "set",
                            "x-kubernetes-patch-strategy": "merge",
                        },
                    },
                },
                "spec": {
                    "type": "object",
                    "properties": {
                        "containers": keyed(CONTAINER, "name"),
                        "strategy": {
                            "type": "object",
                            "x-kubernetes-patch-strategy": "retainKeys",
                            "properties": {
                                "type": TEXT,
                                "rollingUpdate": {"type": "object", "properties": {"a": TEXT}},
                            },
                        },
                        "selector": {
                            "type": "object",
                            "x-kubernetes-patch-strategy": "replace",
                            "properties": {"a": TEXT, "b": TEXT},
                        },
                        "raw": {"type": "object", "additionalProperties": {"type": "object"}},
                        "nested": {
                            "type": "array",
                            "items": {"type": "object"},
                            "x-kubernetes-patch-strategy": "merge",
                        },
                    },
                },
            },
        }
    }
)["io.k8s.api.core.v1.Pod"]


def pod(*containers: Json, **spec: Any) -> Json:
    return {"spec": {"containers": list(containers), **spec}}


def box(name: str, **rest: Any) -> Json:
    return {"name": name, **rest}


def delete(name: str) -> Json:
    return {"name": name, "$patch": "delete"}


def order(*names: str) -> Json:
    return {"$setElementOrder/containers": [{"name": name} for name in names]}


CASES = [
    (
        "maps merge",
        {"metadata": {"labels": {"a": "1"}}},
        {"metadata": {"labels": {"b": "2"}}},
        {"metadata": {"labels": {"a": "1", "b": "2"}}},
    ),
    (
        "null removes",
        {"metadata": {"labels": {"a": "1"}}},
        {"metadata": {"labels": {"a": None}}},
        {"metadata": {"labels": {}}},
    ),
    (
        "nulls are dropped from what is new",
        {},
        {"metadata": {"labels": {"a": None, "b": "1"}}},
        {"metadata": {"labels": {"b": "1"}}},
    ),
    (
        "items merge by their key",
        pod(box("a", image="1")),
        pod(box("a", args=["x"])),
        pod(box("a", image="1", args=["x"])),
    ),
    (
        "new items come first, in the patch's order",
        pod(box("a"), box("b")),
        pod(box("d"), box("c")),
        pod(box("d"), box("c"), box("a"), box("b")),
    ),
    (
        "known items keep the patch's order",
        pod(box("a"), box("b"), box("c")),
        pod(box("c"), box("a")),
        pod(box("b"), box("c"), box("a")),
    ),
    ("atomic lists are replaced", pod(box("a", args=["1", "2"])), pod(box("a", args=["3"])), pod(box("a", args=["3"]))),
    ("an item can be deleted", pod(box("a"), box("b")), pod(delete("a")), pod(box("b"))),
    ("deleting what is not there does nothing", pod(box("a")), pod(delete("z")), pod(box("a"))),
    (
        "lists inside items merge too",
        pod(box("a", env=[{"name": "x", "value": "1"}])),
        pod(box("a", env=[{"name": "y", "value": "2"}])),
        pod(box("a", env=[{"name": "y", "value": "2"}, {"name": "x", "value": "1"}])),
    ),
    ("a list can be replaced as a whole", pod(box("a"), box("b")), pod(box("c"), {"$patch": "replace"}), pod(box("c"))),
    (
        "a map can be replaced as a whole",
        {"metadata": {"labels": {"a": "1"}}},
        {"metadata": {"labels": {"$patch": "replace", "b": "2"}}},
        {"metadata": {"labels": {"b": "2"}}},
    ),
    (
        "a map can be emptied",
        {"metadata": {"labels": {"a": "1"}}},
        {"metadata": {"labels": {"$patch": "delete"}}},
        {"metadata": {"labels": {}}},
    ),
    (
        "a directive on what is not there leaves nothing",
        {"metadata": {}},
        {"metadata": {"labels": {"$patch": "replace", "b": "2"}}},
        {"metadata": {}},
    ),
    (
        "scalars are united",
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"finalizers": ["c", "b"]}},
        {"metadata": {"finalizers": ["c", "a", "b"]}},
    ),
    (
        "scalars can be taken out",
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
        {"metadata": {"finalizers": ["b"]}},
    ),
    (
        "scalars can be put in order",
        {"metadata": {"finalizers": ["a", "b", "c"]}},
        {"metadata": {"$setElementOrder/finalizers": ["c", "a"]}},
        {"metadata": {"finalizers": ["b", "c", "a"]}},
    ),
    (
        "items can be put in order",
        pod(box("a"), box("b"), box("c")),
        {"spec": order("c", "b", "a")},
        pod(box("c"), box("b"), box("a")),
    ),
    (
        "merged items can be put in order",
        pod(box("a"), box("s")),
        {"spec": {"containers": [box("b")], **order("b", "a")}},
        pod(box("b"), box("a"), box("s")),
    ),
    (
        "a new item takes the room of a deleted one",
        pod(box("a"), box("b"), box("s")),
        {"spec": {"containers": [box("d"), delete("b")], **order("a", "d")}},
        pod(box("a"), box("s"), box("d")),
    ),
    (
        "retainKeys clears the rest",
        {"spec": {"strategy": {"type": "R", "rollingUpdate": {"a": "1"}}}},
        {"spec": {"strategy": {"$retainKeys": ["type"], "type": "X"}}},
        {"spec": {"strategy": {"type": "X"}}},
    ),
    (
        "a struct may be replaced",
        {"spec": {"selector": {"a": "1"}}},
        {"spec": {"selector": {"b": "2"}}},
        {"spec": {"selector": {"b": "2"}}},
    ),
    ("a null for a patch changes nothing", {"metadata": {}}, None, {"metadata": {}}),
]


@pytest.mark.parametrize(("document", "patch", "result"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_strategic_merge_patch_follows_the_schema(document: Json, patch: Json, result: Json) -> None:
    kept = copy.deepcopy((document, patch))
    assert strategic_merge(SCHEMA, document, patch) == result
    assert (document, patch) == kept, "nothing is changed in place"


REFUSED = [
    ("retainKeys that is no list", {"$retainKeys": 1}, 400, "invalid patch format of retainKeys"),
    (
        "a field that is not retained",
        {"$retainKeys": ["metadata"], "spec": {}},
        400,
        "invalid patch format of retainKeys",
    ),
    (
        "a parallel list for nothing",
        {"metadata": {"$deleteFromPrimitiveListfinalizers": ["a"]}},
        400,
        "invalid patch format of primitive list",
    ),
    (
        "an order that is no list",
        {"metadata": {"$setElementOrder/finalizers": "a"}},
        500,
        "expected a []interface {}, but received a string",
    ),
    (
        "an order that leaves out an item",
        {"metadata": {"$setElementOrder/finalizers": ["a"], "finalizers": ["z"]}},
        500,
        "The order in patch list:\n[z]\n doesn't match $setElementOrder list:\n[a]\n",
    ),
    (
        "an order of an unknown field",
        {"spec": {"$setElementOrder/foo": ["a"]}},
        500,
        'unable to find api field in struct  for the json field "foo"',
    ),
    (
        "mixed scalars",
        {"metadata": {"finalizers": ["b", 3]}},
        500,
        "list element types are not identical: [[a] [b 3]]",
    ),
    (
        "an item without its key",
        {"spec": {"containers": [{"image": "x"}]}},
        500,
        "map: map[image:x] does not contain declared merge key: name",
    ),
    (
        "a deletion without a key",
        {"spec": {"containers": [{"$patch": "delete"}]}},
        500,
        "map: map[$patch:delete] does not contain declared merge key: name",
    ),
    (
        "an unknown directive",
        {"spec": {"containers": [{"name": "a", "$patch": "foo"}]}},
        500,
        "unknown patch type: foo in map: map[$patch:foo name:a]",
    ),
    (
        "a directive to merge",
        {"spec": {"containers": [{"name": "a", "$patch": "merge"}]}},
        500,
        "merging lists cannot yet be specified in the patch",
    ),
    (
        "objects in a map without a struct",
        {"spec": {"raw": {"k": {"a": {"b": 1}}}}},
        500,
        "merging an object in json but data type is not struct, instead is: map",
    ),
    (
        "a list that has no merge key",
        {"spec": {"nested": [{"a": 1}]}},
        500,
        "cannot merge lists without merge key for struct",
    ),
]


@pytest.mark.parametrize(
    ("patch", "code", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_a_patch_that_makes_no_sense_is_refused_in_kubernetes_words(patch: Json, code: int, message: str) -> None:
    live = pod(box("a"), raw={"k": {"a": {"b": 2}}}, nested=[{"a": 2}]) | {"metadata": {"finalizers": ["a"]}}
    with pytest.raises(ApiError) as refused:
        strategic_merge(SCHEMA, live, patch)
    assert (refused.value.code, refused.value.message) == (code, message)


names = st.sampled_from("abcdef")
containers = st.lists(
    st.builds(box, names, image=st.sampled_from("12")), unique_by=lambda item: item["name"], max_size=4
)
labels = st.dictionaries(names, st.sampled_from("123"), max_size=3)
pods = st.builds(lambda items, marks: pod(*items) | {"metadata": {"labels": marks}}, containers, labels)


@given(pods)
def test_an_empty_patch_changes_nothing(document: Json) -> None:
    assert strategic_merge(SCHEMA, document, {}) == document


@given(pods, pods)
def test_patching_twice_is_patching_once(document: Json, patch: Json) -> None:
    once = strategic_merge(SCHEMA, document, patch)
    assert strategic_merge(SCHEMA, once, patch) == once


@given(pods, pods)
def test_no_item_is_lost_and_none_is_doubled(document: Json, patch: Json) -> None:
    result = [container["name"] for container in strategic_merge(SCHEMA, document, patch)["spec"]["containers"]]
    wanted = {container["name"] for container in document["spec"]["containers"] + patch["spec"]["containers"]}
    assert sorted(result) == sorted(wanted)
