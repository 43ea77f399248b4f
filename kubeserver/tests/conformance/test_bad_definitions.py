"""Custom resource definitions that a server refuses, and what it says about each."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from conformance.kinds import STRING, definition

if TYPE_CHECKING:
    from conformance.wire import Api, Object

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ROOT = "spec.validation.openAPIV3Schema"
FIELD = f"{ROOT}.properties[spec].properties[a]"
RULE = f"{FIELD}.x-kubernetes-validations[0]"
STRING_SCHEMA: Object = {"type": "object", "properties": {"k": STRING}}


def rule(text: str, **more: object) -> Object:
    return {"type": "string", "x-kubernetes-validations": [{"rule": text, **more}]}


def printed(text: str) -> str:
    return (
        f'Invalid value: {{"Rule":"{text}","Message":"","MessageExpression":"","Reason":null,"FieldPath":"",'
        '"OptionalOldSelf":null}: '
    )


SCHEMAS: dict[str, tuple[Object, list[tuple[str, str, str]]]] = {
    "a field without a type": (
        {},
        [
            (
                "FieldValueRequired",
                f"{FIELD}.type",
                "Required value: must not be empty for specified object fields",
            )
        ],
    ),
    "an unknown type": (
        {"type": "thing"},
        [
            (
                "FieldValueNotSupported",
                f"{FIELD}.type",
                (
                    'Unsupported value: "thing": supported values: '
                    '"array", "boolean", "integer", "number", "object", "string"'
                ),
            )
        ],
    ),
    "a reference": (
        {"$ref": "#/x"},
        [("FieldValueForbidden", f"{FIELD}.$ref", "Forbidden: $ref is not supported")],
    ),
    "a default of the wrong type": (
        {"type": "integer", "default": "x"},
        [
            (
                "FieldValueTypeInvalid",
                f"{FIELD}.default",
                'Invalid value: "string":  in body must be of type integer: "string"',
            )
        ],
    ),
    "a default with unknown fields": (
        {"type": "object", "default": {"b": 1}},
        [
            (
                "FieldValueInvalid",
                f"{FIELD}.default",
                'Invalid value: {"b":1}: must not have unknown fields',
            )
        ],
    ),
    "a list without items": (
        {"type": "array"},
        [("FieldValueRequired", f"{FIELD}.items", "Required value: must be specified")],
    ),
    "properties and additional ones": (
        {"type": "object", "properties": {"b": STRING}, "additionalProperties": STRING},
        [
            (
                "FieldValueForbidden",
                f"{FIELD}.additionalProperties",
                "Forbidden: additionalProperties and properties are mutual exclusive",
            )
        ],
    ),
    "a broken pattern": (
        {"type": "string", "pattern": "("},
        [
            (
                "FieldValueInvalid",
                f"{FIELD}.pattern",
                (
                    'Invalid value: "(": must be a valid regular expression, but isn\'t: '
                    "error parsing regexp: missing closing ): `(`"
                ),
            )
        ],
    ),
    "a map list without keys": (
        {"type": "array", "x-kubernetes-list-type": "map", "items": STRING_SCHEMA},
        [
            (
                "FieldValueRequired",
                f"{FIELD}.x-kubernetes-list-map-keys",
                "Required value: must not be empty if x-kubernetes-list-type is map",
            )
        ],
    ),
    "a map list with a key that is no field": (
        {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["z"],
            "items": STRING_SCHEMA,
        },
        [
            (
                "FieldValueInvalid",
                f"{FIELD}.x-kubernetes-list-map-keys",
                'Invalid value: ["z"]: entries must all be names of item properties',
            )
        ],
    ),
    "a map list with an optional key": (
        {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": STRING_SCHEMA,
        },
        [
            (
                "FieldValueRequired",
                f"{FIELD}.items.properties[k].default",
                (
                    "Required value: this property is in x-kubernetes-list-map-keys, "
                    "so it must have a default or be a required property"
                ),
            )
        ],
    ),
    "an unknown kind of list": (
        {"type": "array", "x-kubernetes-list-type": "heap", "items": STRING},
        [
            (
                "FieldValueNotSupported",
                f"{FIELD}.x-kubernetes-list-type",
                'Unsupported value: "heap": supported values: "atomic", "set", "map"',
            )
        ],
    ),
    "types inside a oneOf": (
        {"type": "object", "oneOf": [{"type": "object", "properties": {"b": {"type": "string"}}}]},
        [
            (
                "FieldValueForbidden",
                f"{FIELD}.oneOf[0].properties[b].type",
                "Forbidden: must be empty to be structural",
            ),
            ("FieldValueForbidden", f"{FIELD}.oneOf[0].type", "Forbidden: must be empty to be structural"),
        ],
    ),
    "unique items": (
        {"type": "array", "uniqueItems": True, "items": STRING},
        [
            (
                "FieldValueForbidden",
                f"{FIELD}.uniqueItems",
                "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            )
        ],
    ),
    "a rule about an unknown field": (
        {
            "type": "object",
            "properties": {"b": STRING},
            "x-kubernetes-validations": [{"rule": 'self.c == "x"'}],
        },
        [
            (
                "FieldValueInvalid",
                f"{RULE}.rule",
                printed('self.c == \\"x\\"') + "compilation failed: ERROR: <input>:1:5: undefined field 'c'\n"
                ' | self.c == "x"\n | ....^',
            )
        ],
    ),
    "a rule that is no question": (
        rule("self"),
        [("FieldValueInvalid", f"{RULE}.rule", printed("self") + "cel expression must evaluate to a bool")],
    ),
    "an empty rule": (
        rule(""),
        [("FieldValueRequired", f"{RULE}.rule", "Required value: rule is not specified")],
    ),
    "a message of two lines": (
        rule("true", message="a\nb"),
        [
            (
                "FieldValueInvalid",
                f"{RULE}.message",
                'Invalid value: "a\\nb": must not contain line breaks',
            )
        ],
    ),
    "an unknown reason": (
        rule("true", reason="Nope"),
        [
            (
                "FieldValueNotSupported",
                f"{RULE}.reason",
                (
                    'Unsupported value: "Nope": supported values: "FieldValueDuplicate", "FieldValueForbidden", '
                    '"FieldValueInvalid", "FieldValueRequired"'
                ),
            )
        ],
    ),
    "a rule with a bad field path": (
        {
            "type": "object",
            "properties": {"b": STRING},
            "x-kubernetes-validations": [{"rule": "true", "fieldPath": ".zz"}],
        },
        [("FieldValueInvalid", f"{RULE}.fieldPath", 'Invalid value: ".zz": must be a valid path')],
    ),
    "a transition rule in an atomic list": (
        {"type": "array", "maxItems": 3, "items": rule("self==oldSelf")},
        [
            (
                "FieldValueInvalid",
                f"{FIELD}.items.x-kubernetes-validations[0].rule",
                (
                    'Invalid value: "self==oldSelf": oldSelf cannot be used on the uncorrelatable portion of the '
                    f"schema within {FIELD}"
                ),
            )
        ],
    ),
    "a rule that may take for ever": (
        {"type": "array", "items": {"type": "array", "items": rule("self.contains(self)")}},
        [
            (
                "FieldValueForbidden",
                f"{FIELD}.items.items.x-kubernetes-validations[0].rule",
                (
                    "Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the "
                    "rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
                    "declared)"
                ),
            ),
            (
                "FieldValueForbidden",
                f"{FIELD}.items.items.x-kubernetes-validations[0].rule",
                (
                    "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 "
                    "schema"
                ),
            ),
            (
                "FieldValueForbidden",
                ROOT,
                (
                    "Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema "
                    "exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, "
                    "maxProperties, and maxLength where arrays, maps, and strings are declared)"
                ),
            ),
        ],
    ),
}


@pytest.mark.parametrize("case", SCHEMAS)
async def test_a_bad_schema_is_refused(api: Api, unique: str, case: str) -> None:
    schema, causes = SCHEMAS[case]
    group = f"bad-{unique}.example.com"
    body = definition("Bad", {"spec": {"type": "object", "properties": {"a": schema}}}, group=group)
    answer = await api.post(PATH, body)
    assert answer.status == 422
    assert answer.causes == causes
    assert answer.body["details"]["kind"] == "CustomResourceDefinition"
    assert answer.body["details"]["name"] == f"bads.{group}"


async def test_a_rule_with_broken_syntax_is_refused(api: Api, unique: str) -> None:
    schema = {"spec": {"type": "object", "properties": {"a": rule("self ==")}}}
    answer = await api.post(PATH, definition("Bad", schema, group=f"bad-{unique}.example.com"))
    assert answer.status == 422
    ((reason, field, message),) = answer.causes
    assert (reason, field) == ("FieldValueInvalid", f"{RULE}.rule")
    # What follows is the parser's own text.
    assert message.startswith(printed("self ==") + "compilation failed: ERROR: <input>:1:8: Syntax error: ")


def changed(**paths: Any) -> Object:
    """A good definition with some parts replaced; `a__b` is the path a.b, and None removes."""
    body = definition("Bad", {}, group="bad.example.com")
    for path, value in paths.items():
        *parents, last = [int(part) if part.isdigit() else part for part in path.split("__")]
        place: Any = body
        for part in parents:
            place = place[part]
        if value is None:
            del place[last]
        else:
            place[last] = copy.deepcopy(value)
    return body


VERSION = definition("Bad", {})["spec"]["versions"][0]
DEFINITIONS: dict[str, tuple[Object, list[tuple[str, str, str]]]] = {
    "a name that is not plural and group": (
        changed(metadata__name="wrong.bad.example.com"),
        [
            (
                "FieldValueInvalid",
                "metadata.name",
                'Invalid value: "wrong.bad.example.com": must be spec.names.plural+"."+spec.group',
            )
        ],
    ),
    "an unknown scope": (
        changed(spec__scope="Galaxy"),
        [
            (
                "FieldValueNotSupported",
                "spec.scope",
                'Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"',
            )
        ],
    ),
    "no kind": (
        changed(spec__names__kind=None),
        [
            ("FieldValueRequired", "spec.names.kind", "Required value"),
            ("FieldValueRequired", "spec.names.listKind", "Required value"),
        ],
    ),
    "no schema": (
        changed(spec__versions__0__schema=None),
        [("FieldValueRequired", "spec.versions[0].schema.openAPIV3Schema", "Required value")],
    ),
    "no versions": (
        changed(spec__versions=[]),
        [
            (
                "FieldValueInvalid",
                "spec.versions",
                "Invalid value: []: must have exactly one version marked as storage version",
            ),
            (
                "FieldValueInvalid",
                "status.storedVersions",
                "Invalid value: null: must have at least one stored version",
            ),
        ],
    ),
    "a group without a dot": (
        changed(spec__group="nodots", metadata__name="bads.nodots"),
        [
            (
                "FieldValueInvalid",
                "spec.group",
                'Invalid value: "nodots": should be a domain with at least one dot',
            )
        ],
    ),
    "unknown fields preserved everywhere": (
        changed(spec__preserveUnknownFields=True),
        [
            (
                "FieldValueInvalid",
                "spec.preserveUnknownFields",
                (
                    "Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
                    "spec.versions[*].schema instead"
                ),
            )
        ],
    ),
    "a bad column": (
        changed(spec__versions__0__additionalPrinterColumns=[{"name": "x", "type": "thing", "jsonPath": "spec"}]),
        [
            (
                "FieldValueInvalid",
                "spec.additionalPrinterColumns[0].type",
                'Invalid value: "thing": must be one of boolean,date,integer,number,string',
            ),
            (
                "FieldValueInvalid",
                "spec.additionalPrinterColumns[0].JSONPath",
                'Invalid value: "spec": must be a simple json path starting with .',
            ),
        ],
    ),
    "a schema for metadata": (
        changed(
            spec__versions__0__schema__openAPIV3Schema__properties={
                "metadata": {"type": "object", "properties": {"foo": STRING}}
            }
        ),
        [
            (
                "FieldValueForbidden",
                f"{ROOT}.properties[metadata]",
                (
                    "Forbidden: must not specify anything other than name and generateName, but metadata is "
                    "implicitly specified"
                ),
            )
        ],
    ),
    "a root that is no object": (
        changed(spec__versions__0__schema__openAPIV3Schema__type="string"),
        [("FieldValueInvalid", f"{ROOT}.type", 'Invalid value: "string": must be object at the root')],
    ),
    "a bad scale path": (
        changed(
            spec__versions__0__subresources={
                "scale": {"specReplicasPath": "spec.x", "statusReplicasPath": ".status.replicas"}
            }
        ),
        [
            (
                "FieldValueInvalid",
                "spec.subresources.scale.specReplicasPath",
                'Invalid value: "spec.x": must be a simple json path starting with .',
            )
        ],
    ),
}


@pytest.mark.parametrize("case", DEFINITIONS)
async def test_a_bad_definition_is_refused(api: Api, case: str) -> None:
    body, causes = DEFINITIONS[case]
    answer = await api.post(PATH, body)
    assert answer.status == 422
    assert answer.causes == causes


@pytest.mark.parametrize(
    ("versions", "ending"),
    [
        ([VERSION | {"storage": False}], "must have exactly one version marked as storage version"),
        ([VERSION, VERSION | {"name": "v2"}], "must have exactly one version marked as storage version"),
        ([VERSION, VERSION | {"storage": False}], "must contain unique version names"),
    ],
    ids=["none stored", "two stored", "one twice"],
)
async def test_versions_must_add_up(api: Api, versions: list[Object], ending: str) -> None:
    answer = await api.post(PATH, changed(spec__versions=versions))
    assert answer.status == 422
    reason, field, message = answer.causes[0]
    assert (reason, field) == ("FieldValueInvalid", "spec.versions")
    assert message.endswith(f"]: {ending}")
