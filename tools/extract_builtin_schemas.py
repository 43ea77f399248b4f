"""Write builtin_schemas.json of the embedded API server: the shapes of the built-in kinds it serves.

The source is the set of OpenAPI v3 documents in the Go module k8s.io/kubernetes (`api/openapi-spec/v3`). Only facts are
taken: names and types of fields, what is required, defaults, enums, how lists merge. Descriptions stay behind.
Defaults are kept also where they are empty: `{}` tells that a field is a struct, which field ownership needs.

Kubernetes decodes built-in kinds into Go structs, which shows: error messages name the Go type of a field, and empty
values vanish where the struct says so. Both facts are read from the Go sources next to that module (`k8s.io/api` and
its neighbours in the module cache) and noted as `go` on a field and `omit` on a type.

    python tools/extract_builtin_schemas.py "$(go list -m -f '{{.Dir}}' k8s.io/kubernetes)"
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]

TARGET = Path(__file__).parent.parent / "kubeserver/src/kubeserver/schemas/builtin_schemas.json"

_API = "io.k8s.api."
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
WANTED = {
    "api__v1": [
        *(
            f"{_API}core.v1.{kind}"
            for kind in (
                "Binding",
                "ConfigMap",
                "Endpoints",
                "Event",
                "Namespace",
                "Node",
                "PersistentVolume",
                "PersistentVolumeClaim",
                "Pod",
                "ReplicationController",
                "Secret",
                "Service",
                "ServiceAccount",
            )
        ),
        f"{_API}authentication.v1.TokenRequest",
        f"{_API}autoscaling.v1.Scale",
        f"{_API}policy.v1.Eviction",
        f"{_META}DeleteOptions",
        f"{_META}Status",
    ],
    "apis__admissionregistration.k8s.io__v1": [
        f"{_API}admissionregistration.v1.MutatingWebhookConfiguration",
        f"{_API}admissionregistration.v1.ValidatingWebhookConfiguration",
    ],
    "apis__apiextensions.k8s.io__v1": [
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
    ],
    "apis__apps__v1": [f"{_API}apps.v1.{kind}" for kind in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")],
    "apis__authentication.k8s.io__v1": [
        f"{_API}authentication.v1.{kind}" for kind in ("SelfSubjectReview", "TokenReview")
    ],
    "apis__authorization.k8s.io__v1": [
        f"{_API}authorization.v1.{kind}"
        for kind in (
            "LocalSubjectAccessReview",
            "SelfSubjectAccessReview",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
        )
    ],
    "apis__autoscaling__v2": [f"{_API}autoscaling.v2.HorizontalPodAutoscaler"],
    "apis__batch__v1": [f"{_API}batch.v1.CronJob", f"{_API}batch.v1.Job"],
    "apis__coordination.k8s.io__v1": [f"{_API}coordination.v1.Lease"],
    "apis__discovery.k8s.io__v1": [f"{_API}discovery.v1.EndpointSlice"],
    "apis__events.k8s.io__v1": [f"{_API}events.v1.Event"],
    "apis__networking.k8s.io__v1": [
        f"{_API}networking.v1.{kind}" for kind in ("Ingress", "IngressClass", "NetworkPolicy")
    ],
    "apis__policy__v1": [f"{_API}policy.v1.PodDisruptionBudget"],
    "apis__rbac.authorization.k8s.io__v1": [
        f"{_API}rbac.v1.{kind}" for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    ],
    "apis__scheduling.k8s.io__v1": [f"{_API}scheduling.v1.PriorityClass"],
    "apis__storage.k8s.io__v1": [f"{_API}storage.v1.StorageClass"],
}


def main() -> None:
    module = Path(sys.argv[1])
    source = module / "api/openapi-spec/v3"
    found: dict[str, Json] = {}
    for document, names in WANTED.items():
        schemas = json.loads((source / f"{document}_openapi.json").read_text())["components"]["schemas"]
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = facts(schemas[name])
                waiting += sorted(references(found[name]))
    note_go_types(found, go_fields(module.parent, module.name.partition("@")[2].replace("v1.", "v0.", 1)))
    lines = [f"{json.dumps(name)}:{json.dumps(found[name], separators=(',', ':'))}" for name in sorted(found)]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(found)} types, {TARGET.stat().st_size} bytes")


def facts(schema: Json) -> Json:
    """A schema without prose, and with a reference as its last part alone."""
    kept: Json = {}
    for key, value in schema.items():
        if key == "description":
            continue
        if key == "$ref":
            kept[key] = value.rsplit("/", 1)[-1]
        elif key == "properties":
            kept[key] = {name: facts(each) for name, each in value.items()}
        elif key in ("allOf", "anyOf", "oneOf"):
            kept[key] = [facts(item) for item in value]
        elif key in ("items", "additionalProperties", "not") and isinstance(value, dict):
            kept[key] = facts(value)
        else:
            kept[key] = value
    return kept


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*(references(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*(references(item) for item in value))
    return set()


STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r'^\t\w+\s+([\w.*\[\]]+)\s+`[^`]*json:"([^",]+)([^"]*)"', re.MULTILINE)


def go_fields(modules: Path, version: str) -> dict[tuple[str, str, str], tuple[str, bool]]:
    """(package, struct, field in JSON) -> the field's Go type and whether it is left out when empty."""
    found: dict[tuple[str, str, str], tuple[str, bool]] = {}
    for module in ("api", "apimachinery", "apiextensions-apiserver"):
        root = modules / f"{module}@{version}"
        for path in sorted(root.rglob("types*.go")):
            package = ".".join(path.parent.relative_to(root).parts)
            for struct, body in STRUCT.findall(path.read_text()):
                for kind, name, tags in FIELD.findall(body):
                    found[package, struct, name] = kind, ",omitempty" in tags
    return found


def names_a_type(schema: Json) -> bool:
    """Whether OpenAPI has a name for what a field holds; of a map it has one for the values at most."""
    return bool(references({key: each for key, each in schema.items() if key != "additionalProperties"}))


def note_go_types(types: dict[str, Json], fields: dict[tuple[str, str, str], tuple[str, bool]]) -> None:
    """Add what the Go structs know: names of types that OpenAPI calls string, and what vanishes when empty."""
    for name, schema in types.items():
        package, _, struct = name.rpartition(".")
        for prefix in ("io.k8s.api.", "io.k8s.apimachinery.", "io.k8s.apiextensions-apiserver."):
            package = package.removeprefix(prefix)
        omitted = []
        for field, each in schema.get("properties", {}).items():
            kind, optional = fields.get((package, struct, field), ("", False))
            plain = each["items"] if kind.startswith("[]") and "items" in each else each
            own = kind.lstrip("*").removeprefix("[]")
            if not names_a_type(plain) and (own[:1].isupper() or re.fullmatch(r"[a-z]\w*\.[A-Z]\w*", own)):
                plain["go"] = own.replace("metav1.", "v1.") if "." in own else f"{package.rpartition('.')[2]}.{own}"
            struct_like = bool(references(each)) and each.get("type") is None
            if optional and not kind.startswith("*") and not struct_like:
                omitted.append(field)
        if omitted:
            schema["omit"] = omitted


if __name__ == "__main__":
    main()
