"""Server-side apply: merging, conflicts, giving up, and what cannot be applied."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agreement import CUSTOM, SCHEMA
from kubeserver.patching.apply import LAST_APPLIED, apply
from kubeserver.patching.managed_fields import Writer, track_write
from kubeserver.patching.patches import json_patch
from kubeserver.schemas.schema import parse
from kubeserver.wire.status import ApiError

Json = dict[str, Any]

EVERYTHING = parse(SCHEMA)
VERSION = CUSTOM.api_version
KEY_80 = 'k:{"port":80,"protocol":"TCP"}'


def by(manager: str, second: int = 0, subresource: str = "") -> Writer:
    return Writer(manager, subresource, VERSION, f"2026-01-01T00:00:{second:02}Z")


def config(spec: Json, **metadata: Any) -> Json:
    return {"apiVersion": VERSION, "kind": "Everything", "metadata": {"name": "x", **metadata}, "spec": spec}


def applied(live: Json | None, spec: Json, manager: str = "alpha", second: int = 0, *, force: bool = False) -> Json:
    found = apply(EVERYTHING, live, config(spec), by(manager, second), force=force, reset_fields=("status",))
    return {**found, "metadata": {**found["metadata"], "uid": "1"}}


def updated(live: Json | None, spec: Json, manager: str, second: int = 0) -> Json:
    new = {**(live or config({})), "spec": spec}
    entries = track_write(EVERYTHING, live, new, by(manager, second), reset_fields=("status",))
    return {**new, "metadata": {**new["metadata"], "uid": "1", "managedFields": entries}}


def owned(obj: Json) -> dict[str, Json]:
    return {
        f"{managed_field['manager']} {managed_field['operation']}": managed_field["fieldsV1"]
        for managed_field in obj["metadata"]["managedFields"]
    }


def refusal(live: Json | None, body: Json, manager: str = "alpha") -> ApiError:
    with pytest.raises(ApiError) as refused:
        apply(EVERYTHING, live, body, by(manager), force=False, kind="Everything")
    return refused.value


def test_applying_creates_and_owns_exactly_what_was_named() -> None:
    live = applied(None, {"text": "x", "map": {"k": "v"}, "ports": [{"port": 80}], "struct": {"inner": {"b": "y"}}})
    assert live["spec"]["struct"] == {"inner": {"b": "y"}}
    assert live["metadata"]["managedFields"] == [
        {
            "apiVersion": VERSION,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:spec": {
                    "f:map": {"f:k": {}},
                    "f:ports": {KEY_80: {".": {}, "f:port": {}}},
                    "f:struct": {"f:inner": {"f:b": {}}},
                    "f:text": {},
                }
            },
            "manager": "alpha",
            "operation": "Apply",
            "time": "2026-01-01T00:00:00Z",
        }
    ]


MERGED = [
    ("scalars are overwritten", {"text": "x", "number": 1}, {"text": "y"}, {"text": "y", "number": 1}),
    ("maps are merged", {"map": {"a": "1"}}, {"map": {"b": "2"}}, {"map": {"a": "1", "b": "2"}}),
    ("atomic maps are replaced", {"selector": {"a": "1"}}, {"selector": {"b": "2"}}, {"selector": {"b": "2"}}),
    ("atomic lists are replaced", {"plain": ["a"]}, {"plain": ["b"]}, {"plain": ["b"]}),
    ("sets are united, the known in place", {"names": ["a", "b"]}, {"names": ["c", "a"]}, {"names": ["c", "a", "b"]}),
    (
        "new items of a set follow those before them",
        {"names": ["a", "b"]},
        {"names": ["a", "c"]},
        {"names": ["a", "b", "c"]},
    ),
    (
        "items merge by all their keys",
        {"ports": [{"port": 80, "protocol": "TCP", "name": "a"}, {"port": 80, "protocol": "UDP"}]},
        {"ports": [{"port": 80, "options": {"x": "y"}}]},
        {
            "ports": [
                {"port": 80, "protocol": "TCP", "name": "a", "options": {"x": "y"}},
                {"port": 80, "protocol": "UDP"},
            ]
        },
    ),
    ("a null takes nothing away", {"maybe": {"a": "x"}}, {"maybe": None}, {"maybe": {"a": "x"}}),
    (
        "unknown content is merged where it is a map",
        {"free": {"a": {"b": 1}}},
        {"free": {"a": {"c": 2}}},
        {"free": {"a": {"b": 1, "c": 2}}},
    ),
    ("and replaced where its kind changes", {"any": {"a": 1}}, {"any": [1]}, {"any": [1]}),
]


@pytest.mark.parametrize(("before", "spec", "after"), [case[1:] for case in MERGED], ids=[case[0] for case in MERGED])
def test_a_configuration_is_merged_into_the_live_object(before: Json, spec: Json, after: Json) -> None:
    live = updated(None, before, "creator")
    kept = copy.deepcopy((live, spec))
    assert applied(live, spec, force=True)["spec"] == after
    assert (live, spec) == kept, "nothing is changed in place"


def test_one_conflict_is_one_sentence_and_one_cause() -> None:
    live = updated(None, {"text": "x"}, "kubectl-client-side-apply")
    assert refusal(live, config({"text": "y"})).status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Apply failed with 1 conflict: conflict with "
        f'"kubectl-client-side-apply" using {VERSION}: .spec.text',
        "reason": "Conflict",
        "details": {
            "causes": [
                {
                    "reason": "FieldManagerConflict",
                    "message": f'conflict with "kubectl-client-side-apply" using {VERSION}',
                    "field": ".spec.text",
                }
            ]
        },
        "code": 409,
    }


def test_several_conflicts_are_listed_by_manager() -> None:
    live = updated(None, {"text": "x", "ports": [{"port": 80, "protocol": "TCP", "name": "a"}]}, "creator")
    live = applied(live, {"number": 1, "plain": ["a"]}, "beta")
    error = refusal(live, config({"text": "y", "number": 2, "plain": [], "ports": [{"port": 80, "name": "b"}]}))
    assert error.message == (
        'Apply failed with 4 conflicts: conflicts with "beta":\n- .spec.number\n- .spec.plain\n'
        f'conflicts with "creator" using {VERSION}:\n- .spec.text\n- .spec.ports[port=80,protocol="TCP"].name'
    )
    assert error.details is not None
    assert [cause["field"] for cause in error.details["causes"]] == [
        ".spec.number",
        ".spec.plain",
        ".spec.text",
        '.spec.ports[port=80,protocol="TCP"].name',
    ]


def test_force_takes_the_fields() -> None:
    live = applied(updated(None, {"text": "x", "number": 1}, "creator"), {"text": "y"}, force=True)
    assert owned(live) == {
        "alpha Apply": {"f:spec": {"f:text": {}}},
        "creator Update": {"f:spec": {".": {}, "f:number": {}}},
    }


def test_the_same_value_may_have_several_owners() -> None:
    live = applied(applied(None, {"text": "x"}), {"text": "x"}, "beta", 5)
    assert owned(live) == {"alpha Apply": {"f:spec": {"f:text": {}}}, "beta Apply": {"f:spec": {"f:text": {}}}}
    assert "time" not in live["metadata"]["managedFields"][0], "beta changed nothing"


def test_what_is_no_longer_applied_goes() -> None:
    live = applied(None, {"text": "x", "map": {"a": "1", "b": "2"}, "names": ["a", "b"], "ports": [{"port": 80}]})
    live = applied(live, {"map": {"a": "1"}, "names": ["b"]}, second=1)
    assert live["spec"] == {"map": {"a": "1"}, "names": ["b"]}


def test_what_others_own_stays() -> None:
    live = applied(None, {"text": "x", "ports": [{"port": 80, "name": "a"}]})
    live = applied(live, {"text": "x", "ports": [{"port": 80, "options": {"o": "1"}}]}, "beta")
    live = applied(live, {"number": 1}, second=1)
    assert live["spec"] == {"text": "x", "number": 1, "ports": [{"port": 80, "options": {"o": "1"}}]}
    live = applied(live, {}, "beta", 2)
    assert live["spec"] == {"number": 1}


def test_what_has_no_owner_stays() -> None:
    live = applied(None, {"text": "x", "ports": [{"port": 80, "name": "a"}]})
    live["spec"]["ports"][0]["protocol"] = "TCP"
    live["spec"]["number"] = 7
    assert applied(live, {"ports": [{"port": 80}]})["spec"] == {
        "ports": [{"port": 80, "protocol": "TCP"}],
        "number": 7,
    }


def test_what_is_emptied_while_others_own_it_is_null_for_validation_to_see() -> None:
    live = applied(updated(None, {"map": {}}, "creator"), {"map": {"a": "1"}})
    assert applied(live, {"text": "x"}, second=1)["spec"] == {"map": None, "text": "x"}


def test_applying_the_same_again_changes_nothing_at_all() -> None:
    spec = {"text": "x", "ports": [{"port": 80}], "free": {"a": {"b": [1]}}}
    live = applied(None, spec)
    assert applied(live, spec, second=9) == live


def test_an_object_without_owners_belongs_to_before_first_apply() -> None:
    live = updated(None, {"text": "x"}, "creator")
    del live["metadata"]["managedFields"]
    after = applied(live, {"number": 1})
    assert owned(after) == {
        "alpha Apply": {"f:spec": {"f:number": {}}},
        "before-first-apply Update": {"f:spec": {".": {}, "f:text": {}}},
    }
    assert refusal(live, config({"text": "y"})).message.endswith(
        '"before-first-apply" using ' + VERSION + ": .spec.text"
    )


def test_a_configuration_of_nothing_owns_nothing() -> None:
    bare = {"apiVersion": VERSION, "kind": "Everything", "metadata": {"name": "x"}}
    assert "managedFields" not in apply(EVERYTHING, None, bare, by("alpha"), force=False)["metadata"]


def test_status_is_owned_through_its_own_endpoint() -> None:
    live = applied(None, {"text": "x"})
    body = config({"text": "y"}) | {"status": {"phase": "z"}}
    after = apply(EVERYTHING, live, body, by("alpha", 1, "status"), force=False, reset_fields=("metadata", "spec"))
    assert [
        (managed_field.get("subresource"), managed_field["fieldsV1"])
        for managed_field in after["metadata"]["managedFields"]
    ] == [
        (None, {"f:spec": {"f:text": {}}}),
        ("status", {"f:status": {"f:phase": {}}}),
    ]


TYPED = f"failed to create typed patch object (/x; {VERSION}, Kind=Everything): "
NO_KEY = (
    'associative list with keys has an element that omits all key fields ["type"] '
    "(and doesn't have default values for any key fields)"
)
REFUSED = [
    ("another kind", config({}) | {"kind": "Other"}, 400, f"invalid object type: {VERSION}, Kind=Other"),
    ("another version", config({}) | {"apiVersion": "v1"}, 400, "invalid object type: /v1, Kind=Everything"),
    ("no kind", {"apiVersion": VERSION}, 400, f"invalid object type: {VERSION}, Kind="),
    ("ownership", config({}, managedFields=[]), 400, "metadata.managedFields must be nil"),
    ("an unknown field", config({"foo": 1}), 500, f"{TYPED}.spec.foo: field not declared in schema"),
    (
        "a number as text",
        config({"text": 1}),
        500,
        f"{TYPED}.spec.text: expected string, got &value.valueUnstructured{{Value:1}}",
    ),
    (
        "text as a number",
        config({"number": "x"}),
        500,
        f"{TYPED}.spec.number: expected numeric (int or float), got string",
    ),
    ("text as a flag", config({"flag": "x"}), 500, f"{TYPED}.spec.flag: expected boolean, got &{{x}}"),
    ("a scalar as a map", config({"struct": 3}), 500, f"{TYPED}.spec.struct: expected map, got &{{3}}"),
    ("a map as a list", config({"names": {"a": 1}}), 500, f"{TYPED}.spec.names: expected list, got &{{map[a:1]}}"),
    ("twice in a set", config({"names": ["a", "a"]}), 500, f'{TYPED}.spec.names: duplicate entries for key [="a"]'),
    (
        "twice in a keyed list, once by default",
        config({"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]}),
        500,
        f'{TYPED}.spec.ports: duplicate entries for key [port=80,protocol="TCP"]',
    ),
    (
        "null in a keyed list",
        config({"ports": [None]}),
        500,
        f"{TYPED}.spec.ports: element 0: associative list with keys may not have a null element",
    ),
    (
        "no key and no default",
        {"apiVersion": VERSION, "kind": "Everything", "metadata": {"name": "x"}, "status": {"conditions": [{}]}},
        500,
        f"{TYPED}.status.conditions: element 0: {NO_KEY}",
    ),
]


@pytest.mark.parametrize(("body", "code", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_cannot_be_applied_is_refused_in_kubernetes_words(body: Json, code: int, message: str) -> None:
    error = refusal(None, body)
    assert (error.code, error.message) == (code, message)


def test_all_that_is_wrong_is_listed() -> None:
    assert refusal(None, config({"flag": 1, "text": 1})).message == (
        f"{TYPED}errors:\n  .spec.flag: expected boolean, got &{{1}}\n"
        "  .spec.text: expected string, got &value.valueUnstructured{Value:1}"
    )


def client_side(spec: Json) -> Json:
    body = config(spec)
    noted = config(spec, annotations={LAST_APPLIED: json.dumps(body)})
    entries = track_write(EVERYTHING, None, noted, by("kubectl-client-side-apply"), reset_fields=("status",))
    return {**noted, "metadata": {**noted["metadata"], "uid": "1", "managedFields": entries}}


def test_kubectl_takes_over_from_client_side_apply_and_keeps_the_annotation_in_step() -> None:
    live = client_side({"text": "x", "map": {"a": "<"}})
    assert refusal(live, config({"text": "y"}), "other").code == 409
    after = applied(live, {"text": "y", "map": {"a": "<"}}, "kubectl", 1)
    assert after["spec"]["text"] == "y"
    assert after["metadata"]["annotations"][LAST_APPLIED] == (
        f'{{"apiVersion":"{VERSION}","kind":"Everything","metadata":{{"name":"x"}},'
        '"spec":{"map":{"a":"\\u003c"},"text":"y"}}\n'
    )


def test_kubectl_does_not_take_what_another_writer_changed_since() -> None:
    live = client_side({"text": "x", "number": 1})
    live = updated(live, {"text": "changed", "number": 1}, "editor", 1)
    error = refusal(live, config({"text": "y", "number": 2}), "kubectl")
    assert error.message == f'Apply failed with 1 conflict: conflict with "editor" using {VERSION}: .spec.text'


def test_kubectl_can_hand_its_updates_over_to_its_applies() -> None:
    """What `kubectl apply --server-side` sends first to an object of client-side apply."""
    live = client_side({"text": "x", "number": 1})
    (entry,) = copy.deepcopy(live["metadata"]["managedFields"])
    entry |= {"manager": "kubectl", "operation": "Apply"}
    handed = json_patch(live, [{"op": "replace", "path": "/metadata/managedFields", "value": [entry]}])
    entries = track_write(EVERYTHING, live, handed, by("kubectl", 1), reset_fields=("status",))
    handed["metadata"]["managedFields"] = entries
    assert [(obj["manager"], obj["operation"]) for obj in entries] == [("kubectl", "Apply")]
    after = applied(handed, {"text": "x"}, "kubectl", 2)
    assert after["spec"] == {"text": "x"}, "what kubectl no longer applies goes"


seeds = st.integers(0, 2**32)


@given(seeds)
def test_applying_twice_is_applying_once(seed: int) -> None:
    """Of what is not empty: Kubernetes removes a list when [] is applied, and adds the [] the next time."""
    rng = random.Random(seed)
    live = None
    for manager in ("alpha", "beta", "alpha"):
        live = applied(live, present(CUSTOM.request(rng, "n", "x")["spec"]), manager, force=True)
    spec = present(CUSTOM.request(rng, "n", "x")["spec"])
    once = applied(live, spec, "beta", 1, force=True)
    assert applied(once, spec, "beta", 2, force=True) == once


@given(seeds)
def test_what_one_manager_alone_applied_is_what_there_is(seed: int) -> None:
    rng = random.Random(seed)
    first, second = (CUSTOM.request(rng, "n", "x")["spec"] for _ in range(2))
    alone = applied(applied(None, first), second, second=1)
    fresh = applied(None, second, second=1)
    assert present(alone.get("spec") or {}) == present(fresh["spec"])


def present(value: Any) -> Any:
    """A value without what is empty: giving up all of a granular list or map may leave it so."""
    if isinstance(value, dict):
        pairs = {key: present(each) for key, each in value.items()}
        return {key: each for key, each in pairs.items() if each not in (None, {}, [])}
    return [present(item) for item in value] if isinstance(value, list) else value
