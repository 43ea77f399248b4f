"""What `kubectl explain` says of built-in kinds: it is there, it is short, and it is about things that exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kubeserver.builtin.catalog import SUBRESOURCES, builtin_resources, type_name
from kubeserver.schemas.builtin_descriptions import ANYWHERE, ITSELF, LIKE, Descriptions, read_table, short
from kubeserver.schemas.builtin_types import builtin_types
from kubeserver.views.openapi import document

if TYPE_CHECKING:
    from kubeserver.schemas.schema import Schema

TABLE = read_table()
TYPES = {short(name): schema for name, schema in builtin_types().items()}
RESOURCES = builtin_resources(builtin_types().__getitem__)
SERVED = sorted(
    {resource.schema.name for resource in RESOURCES}
    | {type_name(subresource.kind_group, subresource.kind_version, subresource.kind) for subresource in SUBRESOURCES}
)


def sentences() -> list[tuple[str, str, str]]:
    return [(name, field, text) for name, entries in TABLE.items() for field, text in entries.items() if field != LIKE]


def test_the_short_names_of_types_are_unique() -> None:
    assert len(TYPES) == len(builtin_types())


def test_every_key_names_a_real_type_and_a_real_field() -> None:
    unknown = [
        f"{name}: {field}"
        for name, field, _ in sentences()
        if name != ANYWHERE and (name not in TYPES or (field != ITSELF and field not in TYPES[name].properties))
    ]
    assert unknown == []


def test_what_is_said_of_a_field_anywhere_is_shown_somewhere() -> None:
    def falls_through(name: str, schema: Schema, field: str) -> bool:
        own = TABLE.get(name, {})
        return field in schema.properties and field not in own and field not in TABLE.get(own.get(LIKE, ""), {})

    for field in TABLE[ANYWHERE]:
        assert any(falls_through(name, schema, field) for name, schema in TYPES.items()), field


def test_a_type_is_like_one_that_shares_fields_with_it_and_is_like_no_other() -> None:
    for name, entries in TABLE.items():
        if model := entries.get(LIKE):
            assert LIKE not in TABLE[model], f"{name} is like {model}, which is like another"
            borrowed = TYPES[name].properties.keys() & TABLE[model].keys() - entries.keys()
            assert borrowed, f"{name} takes nothing from {model}"


@pytest.mark.parametrize("name", SERVED)
def test_every_served_kind_is_described_with_its_spec_and_status(name: str) -> None:
    entries = TABLE[short(name)]
    assert entries[ITSELF]
    for field in {"spec", "status"} & TYPES[short(name)].properties.keys():
        assert entries[field], field


@pytest.mark.parametrize("name", SERVED)
def test_nearly_every_field_of_a_served_kind_and_of_its_spec_is_described(name: str) -> None:
    """Fields that only experiments use may be without a sentence; what people meet may not."""
    descriptions = Descriptions(TABLE)
    kind = builtin_types()[name]
    shown = [(kind.name, field) for field in kind.properties]
    if "spec" in kind.properties:
        spec = kind.properties["spec"]
        shown += [(spec.name, field) for field in spec.properties]
    bare = [field for owner, field in shown if field not in descriptions.of_fields(owner)]
    assert len(bare) <= max(1, len(shown) // 10), bare


def test_no_sentence_is_long_or_unfinished() -> None:
    wrong = [
        f"{name}: {field}"
        for name, field, text in sentences()
        if len(text) > 200 or text != text.strip() or not text.endswith(".") or "  " in text
    ]
    assert wrong == []


def test_a_field_and_its_type_do_not_say_the_same() -> None:
    """kubectl explain prints one below the other."""
    descriptions = Descriptions(TABLE)
    twice = [
        f"{schema.name}.{field}"
        for schema in TYPES.values()
        for field, node in schema.properties.items()
        if (text := descriptions.of_fields(schema.name).get(field))
        and text == descriptions.of_type((node.items or node.additional or node).name)
    ]
    assert twice == []


def test_the_nearest_sentence_wins() -> None:
    descriptions = Descriptions(
        {
            "a.v1.Near": {"": "Near.", "=": "a.v1.Far", "own": "Own."},
            "a.v1.Far": {"own": "Far own.", "far": "Far.", "any": "Far any."},
            "*": {"own": "Any own.", "any": "Any.", "else": "Else."},
        }
    )
    said = descriptions.of_fields("io.k8s.a.v1.Near")
    assert [said.get(field) for field in ("own", "far", "any", "else", "no")] == [
        "Own.",
        "Far.",
        "Far any.",
        "Else.",
        None,
    ]
    assert descriptions.of_type("io.k8s.a.v1.Near") == "Near."
    assert descriptions.of_type("io.k8s.a.v1.Unknown") == ""


def test_a_document_carries_the_sentences_of_types_and_fields() -> None:
    service = schemas("", "v1")["io.k8s.api.core.v1.Service"]
    assert service["description"] == TABLE["core.v1.Service"][ITSELF]
    spec = service["properties"]["spec"]
    assert spec["description"] == TABLE["core.v1.Service"]["spec"]
    assert spec["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.core.v1.ServiceSpec"}]
    ports = schemas("", "v1")["io.k8s.api.core.v1.ServiceSpec"]["properties"]["ports"]
    assert ports["description"] == TABLE["core.v1.ServiceSpec"]["ports"]
    assert ports["items"] == {"$ref": "#/components/schemas/io.k8s.api.core.v1.ServicePort"}


def test_the_schemas_themselves_stay_without_prose() -> None:
    schemas("", "v1")
    assert not any(builtin_type.description for builtin_type in builtin_types().values())
    assert not any(
        field.description for builtin_type in builtin_types().values() for field in builtin_type.properties.values()
    )


def schemas(group: str, version: str) -> dict[str, Any]:
    made = document(group, version, RESOURCES, builtin_types())
    assert made is not None
    found: dict[str, Any] = made["components"]["schemas"]
    return found
