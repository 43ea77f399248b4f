"""From the kinds to their CustomResourceDefinitions.

    python -m butler.api.crd charts/butler/crds

writes one file per kind, the same bytes each time. The rules use CEL's `ip()` and `cidr()`, so a cluster has to run
Kubernetes 1.31 or newer.
"""

import sys
from pathlib import Path
from typing import Any

import yaml

from butler.api import GROUP, VERSION
from butler.api.kinds import KINDS
from butler.api.resource import Column, CustomResource
from butler.api.structural import Schema, structural_schema

CATEGORY = "butler"
"""`kubectl get butler` shows all of them."""

HEADER = "# Generated from src/butler/api by `make generate`. Change the types there, not this file.\n"

_API_VERSION = "Version of the schema that this object is written in: butler.butlerlabs.dev/v1alpha1."
_KIND = "Kind of the object: {}."


def custom_resource_definition(kind: type[CustomResource]) -> dict[str, Any]:
    """The CRD of a kind, as a dict that can be sent to an API server."""
    definition = kind.definition
    name = kind.__name__
    subresources: dict[str, Any] = {"status": {}}
    if definition.scale:
        subresources["scale"] = {
            "specReplicasPath": definition.scale.wanted,
            "statusReplicasPath": definition.scale.present,
        }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{definition.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": name,
                "listKind": f"{name}List",
                "plural": definition.plural,
                "singular": definition.singular,
                "shortNames": [definition.short_name],
                "categories": [CATEGORY],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": subresources,
                    "additionalPrinterColumns": [_printed(column) for column in definition.columns],
                    "schema": {"openAPIV3Schema": _root_schema(kind)},
                }
            ],
        },
    }


def _root_schema(kind: type[CustomResource]) -> Schema:
    schema = structural_schema(kind)
    # The API server knows these three by itself; the name is there so that rules can blame it.
    common = {
        "apiVersion": {"type": "string", "description": _API_VERSION},
        "kind": {"type": "string", "description": _KIND.format(kind.__name__)},
        "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
    }
    return {
        **schema,
        "description": kind.definition.description,
        "properties": {**common, **schema["properties"]},
    }


def _printed(column: Column) -> dict[str, str]:
    return {
        "name": column.name,
        "type": column.type.value,
        "description": column.description,
        "jsonPath": column.json_path,
    }


class _Dumper(yaml.SafeDumper):
    """Block style throughout, entries of lists indented, nothing shared by anchors."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)


def to_yaml(definition: dict[str, Any]) -> str:
    """The CRD as YAML; the same text for the same types."""
    text = yaml.dump(definition, Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True)
    return HEADER + text


def crd_files() -> dict[str, str]:
    """File name and content of every CRD."""
    return {f"{GROUP}_{kind.definition.plural}.yaml": to_yaml(custom_resource_definition(kind)) for kind in KINDS}


def write_files(folder: Path, files: dict[str, str]) -> None:
    """Write generated files; remove what an earlier run left there that is no longer generated."""
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in {Path(name).suffix for name in files}:
        for old in folder.glob(f"*{suffix}"):
            if old.name not in files:
                old.unlink()
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m butler.api.crd FOLDER")
    write_files(Path(sys.argv[1]), crd_files())
