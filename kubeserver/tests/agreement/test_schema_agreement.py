"""Our judgement of custom resources and their definitions, held against a real kube-apiserver's.

Every case of `schema_cases` goes to the real server as a dry run, and to our functions directly. They must agree on
what is accepted, on what is left of it (defaults, pruning) and on every cause of a refusal.
"""

from __future__ import annotations

import copy
import json
import re
import time
from typing import TYPE_CHECKING, Any

import cost_cases
import pytest
import schema_cases

from kubeserver.cel import types as cel_types
from kubeserver.cel.extents import extent_of
from kubeserver.cel.rules import compile_rules
from kubeserver.definitions.costs import RULE_LIMIT
from kubeserver.definitions.definition import default_crd, resources_of
from kubeserver.definitions.validation import validate_crd
from kubeserver.resources import Resource
from kubeserver.schemas.builtin_types import builtin_types
from kubeserver.schemas.decode import builtin, strict_error, take
from kubeserver.schemas.defaults import apply_defaults
from kubeserver.schemas.schema import Schema, parse
from kubeserver.verbs.validation import validate
from kubeserver.wire.names import validate_metadata
from kubeserver.wire.status import ApiError, FieldError

if TYPE_CHECKING:
    from api_servers import ControlPlane

Json = dict[str, Any]

GROUP = "agreement.example.org"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
only_kubernetes = pytest.mark.parametrize("control_plane", ["kubernetes"], indirect=True)


def definition(kind: str, spec: Json, **version: Any) -> Json:
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "properties": {"spec": spec}}
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": plural, "kind": kind},
            "versions": [served],
        },
    }


def install(server: ControlPlane, crd: Json) -> Resource:
    """Establish a definition on the real server; the resource is our reading of it."""
    status, answer = server.request("POST", DEFINITIONS, crd)
    assert status == 201, answer
    ours = copy.deepcopy(crd)
    default_crd(ours)
    assert [error.text() for error in validate_crd(ours)] == []
    resource = resources_of(ours, 1)[0]
    wait_until_served(server, resource)
    return resource


def wait_until_served(server: ControlPlane, resource: Resource) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        status, _ = server.request("GET", f"/apis/{GROUP}/v1/{resource.plural}")
        if status == 200:
            return
        time.sleep(0.1)
    raise AssertionError(f"{resource.plural} were not served in 30 seconds")


def causes_of(answer: Json) -> list[list[str]]:
    found = (answer.get("details") or {}).get("causes") or []
    return sorted([item.get("reason", ""), item.get("field", ""), item.get("message", "")] for item in found)


def our_causes(errors: list[FieldError]) -> list[list[str]]:
    return sorted([error.kind, error.path, error.body()] for error in errors)


def their_judgement(status: int, answer: Json) -> Any:
    if status == 422:
        return causes_of(answer)
    return answer["spec"] if status in (200, 201) else answer["message"]


def our_judgement(resource: Resource, obj: Json, old: Json | None = None) -> Any:
    obj = copy.deepcopy(obj)
    try:
        decoded = take(obj, resource)
    except ApiError as refusal:
        return refusal.message
    if decoded.complaints:
        return strict_error(decoded, resource).message
    apply_defaults(resource.schema, obj)
    return our_causes(validate(resource.schema, obj, old)) or obj["spec"]


def disagreements(server: ControlPlane, kind: str, table: dict[str, tuple[Json, list[Any]]]) -> list[str]:
    spec = {"type": "object", "properties": {name: schema for name, (schema, _) in table.items()}}
    resource = install(server, definition(kind, spec))
    path = f"/apis/{GROUP}/v1/{resource.plural}?dryRun=All&fieldValidation=Strict"
    found = []
    for name, (_, values) in table.items():
        for value in values:
            obj = {
                "apiVersion": f"{GROUP}/v1",
                "kind": kind,
                "metadata": {"name": "x"},
                "spec": {name: value},
            }
            theirs = their_judgement(*server.request("POST", path, obj))
            ours = our_judgement(resource, obj)
            if theirs != ours:
                found.append(f"{name} {json.dumps(value)}\n  theirs {theirs}\n  ours   {ours}")
    return found


@only_kubernetes
def test_values_are_judged_as_kubernetes_judges_them(control_plane: ControlPlane) -> None:
    assert disagreements(control_plane, "Value", schema_cases.VALUES) == []


@only_kubernetes
def test_formats_are_judged_as_kubernetes_judges_them(control_plane: ControlPlane) -> None:
    table = {name: ({"type": "string", "format": name}, texts) for name, texts in schema_cases.FORMATS.items()}
    assert disagreements(control_plane, "Form", table) == []


@only_kubernetes
def test_rules_are_judged_as_kubernetes_judges_them(control_plane: ControlPlane) -> None:
    assert disagreements(control_plane, "Ruled", schema_cases.RULES) == []


@only_kubernetes
def test_an_update_is_forgiven_what_it_did_not_change(control_plane: ControlPlane) -> None:
    lax, strict = schema_cases.RATCHETED
    resource = install(control_plane, definition("Ratchet", lax))
    path = f"/apis/{GROUP}/v1/{resource.plural}"
    status, stored = control_plane.request(
        "POST",
        path,
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Ratchet",
            "metadata": {"name": "x"},
            "spec": schema_cases.RATCHET_START,
        },
    )
    assert status == 201, stored
    status, current = control_plane.request("GET", f"{DEFINITIONS}/ratchets.{GROUP}")
    current["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = strict
    status, answer = control_plane.request("PUT", f"{DEFINITIONS}/ratchets.{GROUP}", current)
    assert status == 200, answer
    default_crd(current)
    resource = resources_of(current, 2)[0]
    wait_until_strict(control_plane, path)
    found = []
    for spec in schema_cases.RATCHET_UPDATES:
        obj = {**stored, "spec": spec}
        status, answer = control_plane.request("PUT", f"{path}/x?dryRun=All&fieldValidation=Strict", obj)
        theirs = their_judgement(status, answer)
        ours = our_judgement(resource, obj, copy.deepcopy(stored))
        if theirs != ours:
            found.append(f"{json.dumps(spec)}\n  theirs {theirs}\n  ours   {ours}")
    assert found == []


def wait_until_strict(server: ControlPlane, path: str) -> None:
    """Until the changed schema is in force, which takes the real server a moment."""
    deadline = time.monotonic() + 30
    bad = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Ratchet",
        "metadata": {"name": "new"},
        "spec": schema_cases.RATCHET_START,
    }
    while time.monotonic() < deadline:
        status, _ = server.request("POST", f"{path}?dryRun=All", bad)
        if status == 422:
            return
        time.sleep(0.1)
    raise AssertionError("the changed definition was not in force in 30 seconds")


def definition_disagreements(server: ControlPlane, definitions: dict[str, Json]) -> list[str]:
    shape = builtin_types()["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"]
    found = []
    for name, crd in definitions.items():
        status, answer = server.request("POST", f"{DEFINITIONS}?dryRun=All&fieldValidation=Strict", crd)
        theirs: Any = causes_of(answer) if status == 422 else "" if status == 201 else answer["message"]
        ours_of = copy.deepcopy(crd)
        complaints = builtin(ours_of, shape)
        default_crd(ours_of)
        named = validate_metadata(DEFINITION, ours_of["metadata"])
        ours: Any = our_causes([*named, *validate_crd(ours_of)]) or ""
        if complaints:
            ours = f"{STRICT}{', '.join(complaints)}"
        # Kubernetes names the type of an object after the time of day.
        if re.sub(r"selfType\d+[\w@.]*", "object", json.dumps(theirs)) != json.dumps(ours):
            found.append(f"{name}\n  theirs {theirs}\n  ours   {ours}")
    return found


DEFINITION = Resource("apiextensions.k8s.io", "v1", "", "", "", namespaced=False, schema=Schema())
STRICT = (
    'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: strict decoding error: '
)


@only_kubernetes
def test_schemas_are_refused_as_kubernetes_refuses_them(control_plane: ControlPlane) -> None:
    definitions = {name: definition("Bad", spec) for name, spec in schema_cases.SPECS.items()}
    assert definition_disagreements(control_plane, definitions) == []


@only_kubernetes
def test_rules_are_refused_as_kubernetes_refuses_them(control_plane: ControlPlane) -> None:
    definitions = {
        json.dumps(rule): definition("Bad", {**schema_cases.RULED_OBJECT, "x-kubernetes-validations": [rule]})
        for rule in schema_cases.BAD_RULES
    }
    assert definition_disagreements(control_plane, definitions) == []


@only_kubernetes
def test_definitions_are_refused_as_kubernetes_refuses_them(control_plane: ControlPlane) -> None:
    definitions = {}
    for name, changes in schema_cases.DEFINITIONS.items():
        crd = definition("Bad", {"type": "object"})
        for path, value in changes.items():
            schema_cases.put(crd, path, value)
        definitions[name] = crd
    assert definition_disagreements(control_plane, definitions) == []


# Kubernetes tells the cost of a rule only where it is over the limit, and to the unit only where it is just over. So
# every rule is put below a list that may have just enough items for that: if our estimate were off by one, the factor
# in the answer would be another, or there would be no refusal.

CORRELATED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key"]}


def cost_of(schema: Json, text: str) -> int:
    parsed = parse(schema_cases.ruled(schema, text))
    kind = cel_types.of_schema(parsed, root=parsed.embedded_resource)
    extent = extent_of(parsed, root=parsed.embedded_resource)
    assert kind is not None
    (compiled,) = compile_rules(parsed.rules, kind, parsed, extent)
    assert not compiled.problem
    return compiled.cost


def just_over(schema: Json, text: str) -> Json:
    """The rule on items of a list that may be so long that its cost is a little over the limit."""
    often = RULE_LIMIT // max(cost_of(schema, text), 1) + 1
    items: Json = {"type": "object", "required": ["key"], "properties": {"key": {"type": "string"}}}
    items["properties"]["value"] = schema_cases.ruled(schema, text)
    return schema_cases.list_of(items, maxItems=often, **CORRELATED)


@only_kubernetes
def test_costs_are_estimated_to_the_unit(control_plane: ControlPlane) -> None:
    definitions = {
        f"{name}: {text} ({cost_of(schema, text)})": definition("Dear", just_over(schema, text))
        for name, (schema, texts) in cost_cases.EXACT.items()
        for text in texts
    }
    assert definition_disagreements(control_plane, definitions) == []


@only_kubernetes
def test_schemas_are_refused_for_their_costs_as_kubernetes_refuses_them(control_plane: ControlPlane) -> None:
    definitions = {name: definition("Dear", spec) for name, spec in cost_cases.SPECS.items()}
    assert definition_disagreements(control_plane, definitions) == []


@only_kubernetes
@pytest.mark.parametrize("case", cost_cases.LIMITS)
def test_rules_run_out_of_budget_where_kubernetes_does(control_plane: ControlPlane, case: str) -> None:
    kind = "Limit" + case.title().replace("-", "")
    assert disagreements(control_plane, kind, {case: cost_cases.LIMITS[case]}) == []
