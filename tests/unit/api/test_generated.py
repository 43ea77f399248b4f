"""The CRDs and reference pages: what is committed is what the types say, and the generator refuses poor types."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml

from butler.api.crd import crd_files, custom_resource_definition, write_files
from butler.api.ipallocation import IPAllocation
from butler.api.kinds import KINDS
from butler.api.networkpool import NetworkPool
from butler.api.reference import reference_pages
from butler.api.resource import CustomResource
from butler.api.schema import ListType, Part, about
from butler.api.structural import NotStructuralError, structural_schema
from butler.api.tenantcluster import TenantCluster
from butler.api.text import TIME

ROOT = Path(__file__).parents[3]


def committed(folder: str) -> dict[str, str]:
    return {path.name: path.read_text() for path in (ROOT / folder).iterdir()}


def test_the_committed_crds_are_what_the_types_generate() -> None:
    assert committed("charts/butler/crds") == crd_files(), "run `make generate` and commit the outcome"


def test_the_committed_reference_is_what_the_types_generate() -> None:
    assert committed("docs/reference") == reference_pages(), "run `make generate` and commit the outcome"


def test_writing_removes_what_is_no_longer_generated(tmp_path: Path) -> None:
    (tmp_path / "old.yaml").write_text("")
    (tmp_path / "notes.txt").write_text("")
    write_files(tmp_path, {"new.yaml": "a: 1\n"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.yaml", "notes.txt"]


def schema_of(kind: type[CustomResource]) -> dict[str, Any]:
    version = custom_resource_definition(kind)["spec"]["versions"][0]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from fields(field, f"{path}.{name}")
        yield from fields(field.get("items", {}), f"{path}.{name}[]")


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_described_in_a_sentence(kind: type[CustomResource]) -> None:
    for path, field in fields(schema_of(kind)):
        if path.startswith(".metadata"):
            continue  # the API server describes it itself
        description = field["description"]
        assert description.endswith("."), f"{path}: {description}"
        assert description[0].isupper() or description.split()[0] in ("ipam", "platform", "static"), path


@pytest.mark.parametrize("kind", KINDS)
def test_every_list_has_a_limit_and_says_how_it_merges(kind: type[CustomResource]) -> None:
    for path, field in fields(schema_of(kind)):
        if field.get("type") == "array":
            assert field["maxItems"] > 0, path
            assert field["x-kubernetes-list-type"] in ("atomic", "map", "set"), path


@pytest.mark.parametrize("kind", KINDS)
def test_every_rule_has_a_message_and_blames_a_field_that_exists(kind: type[CustomResource]) -> None:
    root = schema_of(kind)
    known = {path.replace("[]", "") for path, _ in fields(root)}
    for path, part in [("", root), *fields(root)]:
        for rule in [
            *part.get("x-kubernetes-validations", ()),
            *part.get("items", {}).get("x-kubernetes-validations", ()),
        ]:
            assert rule["message"], rule
            assert not rule["message"].endswith("."), "Kubernetes' own messages end without one"
            if "fieldPath" in rule:
                assert path.replace("[]", "") + rule["fieldPath"] in known, rule


@pytest.mark.parametrize("kind", KINDS)
def test_status_defaults_are_a_phase_or_nothing(kind: type[CustomResource]) -> None:
    status = schema_of(kind)["properties"]["status"]
    defaults = {path: field["default"] for path, field in fields(status) if "default" in field}
    assert set(defaults) <= {".phase"}


def test_a_new_allocation_shows_pending_by_a_default() -> None:
    for kind in (IPAllocation, TenantCluster):
        assert schema_of(kind)["properties"]["status"]["default"] == {"phase": "Pending"}
    assert "default" not in schema_of(NetworkPool)["properties"]["status"]


def test_a_default_of_an_object_is_spelled_out_to_the_leaves() -> None:
    spec = schema_of(TenantCluster)["properties"]["spec"]["properties"]
    assert spec["networking"]["default"] == {"podCIDR": "10.244.0.0/16", "serviceCIDR": "10.96.0.0/12"}
    assert spec["addons"]["default"] == {"ingress": {"enabled": True}}
    assert spec["workers"]["properties"]["machineTemplate"]["default"]["os"] == {"type": "rocky", "version": "9.5"}


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("networkpools", ["CIDR", "Available", "Allocated", "Total", "Age"]),
        ("ipallocations", ["Pool", "Cluster", "Type", "Phase", "Start", "End", "Age"]),
        ("providerconfigs", ["Provider", "Scope", "Ready", "Validated", "Age"]),
        ("tenantclusters", ["Phase", "K8s Version", "Workers", "Endpoint", "Age"]),
    ],
)
def test_the_columns_are_those_that_the_documentation_shows(kind: str, columns: list[str]) -> None:
    crd = yaml.safe_load(crd_files()[f"butler.butlerlabs.dev_{kind}.yaml"])
    printed = crd["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [column["name"] for column in printed] == columns


class Recursive(Part):
    inner: Annotated["Recursive | None", about("Itself.")] = None


class Undescribed(Part):
    name: str


class LooseList(Part):
    names: Annotated[tuple[str, ...], about("Names.", max_items=3)] = ()


class EndlessList(Part):
    names: Annotated[tuple[str, ...], about("Names.", list_type=ListType.SET)] = ()


class Either(Part):
    value: Annotated[bool | str, about("A truth or a text.")]


class Fraction(Part):
    value: Annotated[float, about("A share.")]


@pytest.mark.parametrize(
    ("part", "complaint"),
    [
        (Recursive, r"Recursive\.inner: Recursive contains itself"),
        (Undescribed, r"Undescribed\.name: has no description"),
        (LooseList, r"LooseList\.names: a list must say how it merges"),
        (EndlessList, r"EndlessList\.names: a list must have a limit"),
        (Either, r"Either\.value: a union"),
        (Fraction, r"Fraction\.value: FloatType has no form"),
    ],
)
def test_a_type_that_makes_a_poor_crd_is_refused(part: type[Part], complaint: str) -> None:
    with pytest.raises(NotStructuralError, match=complaint):
        structural_schema(part)


class Everything(Part):
    wanted: Annotated[int | str, about("An amount.")]
    when: Annotated[datetime | None, about("A moment.")] = None
    labels: Annotated[dict[str, Annotated[str, about("A value.", max_length=63)]], about("Labels.")]
    values: Annotated[dict[str, Any], about("Anything.")]


def test_each_type_has_its_form() -> None:
    assert structural_schema(Everything) == {
        "type": "object",
        "required": ["wanted", "labels", "values"],
        "properties": {
            "wanted": {
                "description": "An amount.",
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "x-kubernetes-int-or-string": True,
            },
            "when": {"description": "A moment.", "type": "string", "format": "date-time", "pattern": TIME},
            "labels": {
                "description": "Labels.",
                "type": "object",
                "additionalProperties": {"type": "string", "description": "A value.", "maxLength": 63},
            },
            "values": {
                "description": "Anything.",
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
            },
        },
    }
