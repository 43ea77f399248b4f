"""Who owns which field after creates, updates and patches."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agreement import CUSTOM, SCHEMA, custom_status
from kubeserver.patching.comparison import field_set
from kubeserver.patching.fieldsets import difference, union
from kubeserver.patching.managed_fields import (
    Writer,
    keep_times_if_unchanged,
    manager_name,
    stripped,
    track_scale,
    track_write,
)
from kubeserver.patching.shapes import shape_of
from kubeserver.schemas.schema import Schema, parse, parse_named

Json = dict[str, Any]

EVERYTHING = parse(SCHEMA)
VERSION = CUSTOM.api_version
MAIN: tuple[str, ...] = ("status",)
STATUS: tuple[str, ...] = ("metadata", "spec")


def at(manager: str, second: int = 0, subresource: str = "", version: str = VERSION) -> Writer:
    return Writer(manager, subresource, version, f"2026-01-01T00:00:{second:02}Z")


def everything(spec: Json, **metadata: Any) -> Json:
    return {"apiVersion": VERSION, "kind": "Everything", "metadata": {"name": "x", **metadata}, "spec": spec}


def stored(obj: Json, entries: list[Json], **more: Any) -> Json:
    metadata = {**obj["metadata"], "uid": "1", "managedFields": entries}
    return {**obj, **more, "metadata": metadata}


def created(spec: Json, manager: str = "creator", **metadata: Any) -> Json:
    obj = everything(spec, **metadata)
    return stored(obj, track_write(EVERYTHING, None, obj, at(manager), reset_fields=MAIN))


def changed(live: Json, spec: Json, writer: Writer, **query: Any) -> Json:
    new = {**live, "spec": {**live["spec"], **spec}}
    return stored(new, track_write(EVERYTHING, live, new, writer, reset_fields=MAIN, **query))


def owned(obj: Json) -> dict[str, Json]:
    """Fields by manager, with its subresource."""
    return {
        "/".join(filter(None, (managed_field["manager"], managed_field.get("subresource")))): managed_field["fieldsV1"]
        for managed_field in obj["metadata"].get("managedFields", [])
    }


def test_a_creator_owns_all_it_set_and_nothing_that_every_object_has() -> None:
    obj = everything(
        {"text": "x", "map": {"k": "v"}, "names": ["a"], "ports": [{"port": 80, "protocol": "TCP"}], "plain": ["a"]},
        labels={"l": "1"},
        namespace="n",
        finalizers=["f/1"],
        generateName="g",
    )
    assert track_write(EVERYTHING, None, obj, at("creator"), reset_fields=MAIN) == [
        {
            "apiVersion": VERSION,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {
                    "f:finalizers": {".": {}, 'v:"f/1"': {}},
                    "f:generateName": {},
                    "f:labels": {".": {}, "f:l": {}},
                },
                "f:spec": {
                    ".": {},
                    "f:map": {".": {}, "f:k": {}},
                    "f:names": {".": {}, 'v:"a"': {}},
                    "f:plain": {},
                    "f:ports": {
                        ".": {},
                        'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:protocol": {}},
                    },
                    "f:text": {},
                },
            },
            "manager": "creator",
            "operation": "Update",
            "time": "2026-01-01T00:00:00Z",
        }
    ]


SHAPES = [
    ("a scalar", {"text": "x"}, {".": {}, "f:text": {}}),
    ("an empty map is a thing of its own", {"map": {}}, {".": {}, "f:map": {}}),
    ("so is an empty list", {"names": []}, {".": {}, "f:names": {}}),
    ("null too", {"maybe": None}, {".": {}, "f:maybe": {}}),
    ("an atomic map has one owner", {"selector": {"a": "b"}}, {".": {}, "f:selector": {}}),
    ("an atomic list has one owner", {"atoms": [{"a": "b"}]}, {".": {}, "f:atoms": {}}),
    (
        "a key that is left out has its default",
        {"ports": [{"port": 1}]},
        {".": {}, "f:ports": {".": {}, 'k:{"port":1,"protocol":"TCP"}': {".": {}, "f:port": {}}}},
    ),
    (
        "unknown content: maps are granular, lists atomic",
        {"free": {"a": {"b": [1, {"c": 2}]}}},
        {".": {}, "f:free": {".": {}, "f:a": {".": {}, "f:b": {}}}},
    ),
    ("items that are there twice are owned once", {"names": ["a", "a"]}, {".": {}, "f:names": {".": {}, 'v:"a"': {}}}),
]


@pytest.mark.parametrize(("spec", "fields"), [case[1:] for case in SHAPES], ids=[case[0] for case in SHAPES])
def test_fields_are_owned_as_their_schema_says(spec: Json, fields: Json) -> None:
    assert owned(created(spec))["creator"] == {"f:spec": fields}


def test_a_writer_takes_what_it_changes_from_every_other() -> None:
    live = created({"text": "x", "number": 1})
    live = changed(live, {"text": "y"}, at("second", 1))
    assert owned(live) == {"creator": {"f:spec": {".": {}, "f:number": {}}}, "second": {"f:spec": {"f:text": {}}}}


def test_what_is_removed_leaves_every_entry_and_an_empty_entry_goes() -> None:
    live = changed(created({"text": "x"}), {"number": 1}, at("second", 1))
    new = {**live, "spec": {"text": "x"}}
    entries = track_write(EVERYTHING, live, new, at("third", 2), reset_fields=MAIN)
    assert [entry["manager"] for entry in entries] == ["creator"]


def test_a_write_of_nothing_changes_no_time_and_keeps_the_very_list() -> None:
    live = created({"text": "x", "ports": [{"port": 1, "protocol": "TCP"}]})
    again = copy.deepcopy(live)
    assert track_write(EVERYTHING, live, again, at("second", 9), reset_fields=MAIN) is live["metadata"]["managedFields"]


def test_one_manager_has_one_entry_with_the_time_of_its_last_change() -> None:
    live = changed(created({"text": "x"}, "me"), {"number": 1}, at("me", 5))
    (entry,) = live["metadata"]["managedFields"]
    assert entry["time"] == "2026-01-01T00:00:05Z"
    assert entry["fieldsV1"] == {"f:spec": {".": {}, "f:number": {}, "f:text": {}}}


def test_versions_and_subresources_are_told_apart() -> None:
    live = changed(created({"text": "x"}, "me"), {"number": 1}, at("me", 1, version="agreement.example.com/v1beta1"))
    new = {**live, "status": {"phase": "y"}}
    entries = track_write(EVERYTHING, live, new, at("me", 2, "status"), reset_fields=STATUS)
    assert [(entry["apiVersion"], entry.get("subresource")) for entry in entries] == [
        (VERSION, None),
        ("agreement.example.com/v1beta1", None),
        (VERSION, "status"),
    ]


def test_each_endpoint_owns_only_what_it_may_write() -> None:
    obj = everything({"text": "x"}) | {"status": {"phase": "z"}}
    live = stored(obj, track_write(EVERYTHING, None, obj, at("creator"), reset_fields=MAIN))
    assert owned(live) == {"creator": {"f:spec": {".": {}, "f:text": {}}}}
    new = {**live, "spec": {"text": "y"}, "status": {"phase": "y"}}
    entries = track_write(EVERYTHING, live, new, at("reporter", 1, "status"), reset_fields=STATUS)
    assert owned(stored(new, entries)) == {
        "creator": {"f:spec": {".": {}, "f:text": {}}},
        "reporter/status": {"f:status": {"f:phase": {}}},
    }


def test_a_one_that_becomes_true_is_a_change() -> None:
    live = changed(created({"free": {"a": 1}}), {"free": {"a": True}}, at("second", 1))
    assert owned(live)["second"] == {"f:spec": {"f:free": {"f:a": {}}}}
    live = changed(live, {"free": {"a": [1]}}, at("third", 2))
    live = changed(live, {"free": {"a": [True]}}, at("fourth", 3))
    assert owned(live)["fourth"] == {"f:spec": {"f:free": {"f:a": {}}}}


def test_clients_may_edit_ownership() -> None:
    live = created({"text": "x"})
    new = copy.deepcopy(live)
    new["metadata"]["managedFields"][0] |= {
        "manager": "renamed",
        "time": "2026-01-01T02:00:00+02:00",
        "fieldsV1": {"f:spec": {"f:text": {".": {}}}},
    }
    (entry,) = track_write(EVERYTHING, live, new, at("editor"), reset_fields=MAIN)
    assert (entry["manager"], entry["time"]) == ("renamed", "2026-01-01T00:00:00Z")
    assert entry["fieldsV1"] == {"f:spec": {"f:text": {}}}


@pytest.mark.parametrize(
    "nonsense",
    [
        [{"manager": "x", "operation": "Foo", "apiVersion": "v1", "fieldsType": "FieldsV1"}],
        [{"manager": "x", "operation": "Update", "apiVersion": "", "fieldsType": "FieldsV1"}],
        [{"manager": "x", "operation": "Update", "apiVersion": "v1"}],
        [{"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"x": {}}}],
        [{"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "time": "yesterday"}],
        ["x"],
        [{}, {}],
    ],
)
def test_ownership_that_makes_no_sense_is_ignored(nonsense: list[Any]) -> None:
    live = created({"text": "x"})
    new = {**live, "metadata": {**live["metadata"], "managedFields": nonsense}}
    entries = track_write(EVERYTHING, live, new, at("editor"), reset_fields=MAIN)
    assert entries == live["metadata"]["managedFields"]


def test_ownership_cannot_be_edited_through_a_subresource() -> None:
    live = created({"text": "x"})
    new = {**live, "metadata": {**live["metadata"], "managedFields": [{}]}}
    entries = track_write(EVERYTHING, live, new, at("editor", 1, "status"), reset_fields=STATUS)
    assert entries == live["metadata"]["managedFields"]


def test_an_empty_entry_resets_ownership_and_tracking_rests() -> None:
    live = created({"text": "x"})
    reset = {**live, "metadata": {**live["metadata"], "managedFields": [{}]}}
    assert track_write(EVERYTHING, live, reset, at("editor", 1), reset_fields=MAIN) == []
    bare = stored(reset, [])
    new = {**bare, "spec": {"text": "y"}}
    assert track_write(EVERYTHING, bare, new, at("editor", 2), reset_fields=MAIN) == []


def test_an_empty_list_resets_built_in_kinds_only() -> None:
    live = created({"text": "x"})
    emptied = {**live, "metadata": {**live["metadata"], "managedFields": []}}
    assert track_write(EVERYTHING, live, emptied, at("editor"), reset_fields=MAIN) == live["metadata"]["managedFields"]
    built_in = Schema(name="io.k8s.Everything", type="object", properties=EVERYTHING.properties)
    assert track_write(built_in, live, emptied, at("editor"), reset_fields=MAIN) == []


def test_at_most_ten_updaters_are_told_apart() -> None:
    live = created({"map": {}}, "u00")
    for second in range(1, 14):
        spec = {"map": {**live["spec"]["map"], f"k{second}": "x"}}
        live = changed(live, spec, at(f"u{second:02}", second))
    managers = [managed_field["manager"] for managed_field in live["metadata"]["managedFields"]]
    assert managers == ["ancient-changes", *(f"u{second:02}" for second in range(5, 14))]
    assert live["metadata"]["managedFields"][0]["time"] == "2026-01-01T00:00:04Z"
    assert sorted(owned(live)["ancient-changes"]["f:spec"]["f:map"]) == [".", "f:k1", "f:k2", "f:k3", "f:k4"]


def test_a_field_that_became_atomic_is_owned_as_a_whole() -> None:
    live = created({"names": ["a"], "map": {"k": "v"}, "text": "x"})
    atomic = copy.deepcopy(SCHEMA)
    atomic["properties"]["spec"]["properties"]["names"]["x-kubernetes-list-type"] = "atomic"
    atomic["properties"]["spec"]["properties"]["map"]["x-kubernetes-map-type"] = "atomic"
    new = {**live, "spec": {**live["spec"], "text": "y"}}
    entries = track_write(parse(atomic), live, new, at("second", 1), reset_fields=MAIN)
    assert entries[0]["fieldsV1"] == {"f:spec": {".": {}, "f:map": {}, "f:names": {}}}


def test_versions_that_are_gone_are_dropped_or_stop_tracking() -> None:
    live = created({"text": "x"})
    new = {**live, "spec": {"text": "x", "number": 1}}
    writer = at("second", 1, version="agreement.example.com/v2")
    only = {"agreement.example.com/v2": EVERYTHING}
    stuck = track_write(EVERYTHING, live, new, writer, reset_fields=MAIN, schemas=only)
    assert stuck == live["metadata"]["managedFields"], "a custom kind's entry cannot be read, so nothing is"
    built_in = Schema(name="io.k8s.Everything", type="object", properties=EVERYTHING.properties)
    (entry,) = track_write(built_in, live, new, writer, schemas={"agreement.example.com/v2": built_in})
    assert entry["manager"] == "second"


SERVICE = parse_named(
    {
        "io.k8s.Service": {
            "type": "object",
            "properties": {
                "metadata": {"default": {}, "allOf": [{"$ref": "#/io.k8s.Meta"}]},
                "spec": {"default": {}, "allOf": [{"$ref": "#/io.k8s.ServiceSpec"}]},
                "status": {"default": {}, "allOf": [{"$ref": "#/io.k8s.ServiceStatus"}]},
            },
        },
        "io.k8s.Meta": {"type": "object"},
        "io.k8s.ServiceSpec": {
            "type": "object",
            "required": ["containers"],
            "properties": {
                "type": {"type": "string"},
                "selector": {"type": "object", "additionalProperties": {"type": "string"}},
                "containers": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "properties": {"name": {"type": "string"}}},
                },
            },
        },
        "io.k8s.ServiceStatus": {"type": "object"},
    }
)["io.k8s.Service"]


def test_what_go_always_writes_is_not_owned_by_the_creator_of_a_built_in_kind() -> None:
    obj = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "x"},
        "spec": {"type": "ClusterIP", "selector": {"a": "b"}, "containers": [{"name": "c"}]},
        "status": {},
    }
    (entry,) = track_write(SERVICE, None, obj, at("creator", version="v1"))
    assert entry["fieldsV1"] == {
        "f:spec": {
            "f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}}},
            "f:selector": {".": {}, "f:a": {}},
            "f:type": {},
        }
    }


def test_times_are_kept_if_nothing_else_changed() -> None:
    old = created({"text": "x"})
    new = copy.deepcopy(old)
    new["metadata"]["managedFields"][0]["time"] = "2026-01-01T00:09:00Z"
    assert keep_times_if_unchanged(old, new) == old
    new["spec"]["text"] = "y"
    assert keep_times_if_unchanged(old, new) is new
    new["spec"]["text"] = "x"
    new["metadata"]["managedFields"][0]["manager"] = "other"
    assert keep_times_if_unchanged(old, new) is new


def test_the_number_of_replicas_goes_to_who_scaled() -> None:
    applied = {**created({"number": 1, "text": "x"})["metadata"]["managedFields"][0], "operation": "Apply"}
    scaled = track_scale([applied], ("spec", "number"), at("scaler", 3), changed=True)
    assert [(obj["manager"], obj.get("subresource"), obj.get("time")) for obj in scaled] == [
        ("creator", None, "2026-01-01T00:00:00Z"),
        ("scaler", "scale", None),
    ]
    assert scaled[1]["fieldsV1"] == {"f:spec": {"f:number": {}}}
    assert track_scale(scaled, ("spec", "number"), at("scaler", 4), changed=False) == scaled


def test_a_manager_is_named_by_the_request_or_its_user_agent() -> None:
    assert manager_name("me", "kubectl/v1.37") == "me"
    assert manager_name("", "kubectl/v1.37 (linux)") == "kubectl"
    assert manager_name("", "a\x00b\n/x") == "ab"
    assert manager_name("", "é" * 100) == "é" * 64


seeds = st.integers(0, 2**32)


@given(seeds)
def test_after_any_writes_every_leaf_has_an_owner_and_nothing_else_is_owned(seed: int) -> None:
    rng = random.Random(seed)
    obj = CUSTOM.request(rng, "n", "x")
    live = stored(obj, track_write(EVERYTHING, None, obj, at("u0"), reset_fields=MAIN))
    for second in range(1, 6):
        if rng.random() < 0.3:
            new = {**live, "status": custom_status(rng)}
            writer, reset = at(f"s{second % 2}", second, "status"), STATUS
        else:
            body = CUSTOM.request(rng, "n", "x")
            new = {**live, **body, "metadata": {**body["metadata"], "uid": "1"}}
            writer, reset = at(f"u{second % 3}", second), MAIN
        live = stored(new, track_write(EVERYTHING, live, new, writer, reset_fields=reset))
    everyone: Json = {}
    for managed_field in live["metadata"]["managedFields"]:
        everyone = union(everyone, managed_field["fieldsV1"])
    bare = {**live, "metadata": {key: each for key, each in live["metadata"].items() if key != "managedFields"}}
    leaves = stripped(field_set(shape_of(EVERYTHING), bare))
    assert difference(leaves, everyone) == {}
    assert difference(everyone, whole_of(bare)) == {}


def whole_of(obj: Json) -> Json:
    """Every field of an object, the maps and lists around them included."""
    (entry,) = track_write(EVERYTHING, None, obj, at("x"))
    found: Json = entry["fieldsV1"]
    return found


@given(seeds)
def test_owning_is_the_same_whether_objects_share_branches_or_not(seed: int) -> None:
    rng = random.Random(seed)
    live = created(CUSTOM.request(rng, "n", "x")["spec"])
    part = CUSTOM.request(rng, "n", "x")["spec"]
    sharing = {**live, "spec": {**live["spec"], **part}}
    apart = copy.deepcopy(sharing)
    ours, theirs = (track_write(EVERYTHING, live, new, at("second", 1), reset_fields=MAIN) for new in (sharing, apart))
    assert ours == theirs
