"""Nothing is accepted and ignored: each field of TenantCluster.spec and ProviderConfig.spec changes something.

A field counts in one of four ways, and each is shown, not claimed:

1. Changing it changes the objects that are built for a cluster, or is refused with the field's name, on every provider
   that it can be set for. This is tried for every field; nothing needs to be listed.
2. Other code reads it, a controller before or after the objects are built. Then field_readers.py has a
   function that makes that decision without and with the change; the two must differ.
3. The schema refuses it. REFUSED_BY_SCHEMA has the spec, and a rule of the CRD must blame the field.
4. It belongs to something that is refused whole. REFUSED_WHOLE has a function that shows the refusal.

A new field that is in none of these makes `test_a_field_counts` fail, with its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from butler.api.crd import custom_resource_definition
from butler.api.tenantcluster import TenantCluster
from butler.rules.tenant.blueprint import Unbuildable
from kubeserver.schemas.defaults import apply_defaults
from kubeserver.schemas.schema import parse
from kubeserver.verbs.validation import validate
from unit.capi.every_field import CASES, Case, Leaf, changes, leaves, outcome
from unit.capi.field_readers import READERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.objects import Json
    from unit.capi.field_readers import Decisions

READ_ELSEWHERE: dict[str, Callable[[], Decisions]] = READERS

_ENABLED = "spec.workspaces.enabled"

REFUSED_BY_SCHEMA: dict[str, tuple[Json, str]] = {
    "TenantCluster.spec.workers.machineTemplate.os.schematicID": (
        {"workers": {"replicas": 1, "machineTemplate": {"os": {"schematicID": "changed"}}}},
        "spec.workers.machineTemplate.os.schematicID",
    ),
    # There is one to choose from.
    "TenantCluster.spec.addons.cni.provider": (
        {"addons": {"cni": {"version": "1", "provider": "changed"}}},
        "spec.addons.cni.provider",
    ),
    "TenantCluster.spec.addons.loadBalancer.provider": (
        {"addons": {"loadBalancer": {"version": "1", "provider": "changed"}}},
        "spec.addons.loadBalancer.provider",
    ),
    # Settings of workspaces act on workspaces, and these cannot be enabled.
    "TenantCluster.spec.workspaces.enabled": ({"workspaces": {"enabled": True}}, _ENABLED),
    "TenantCluster.spec.workspaces.defaultImage": (
        {"workspaces": {"enabled": True, "defaultImage": "changed"}},
        _ENABLED,
    ),
    "TenantCluster.spec.workspaces.maxWorkspaces": ({"workspaces": {"enabled": True, "maxWorkspaces": 1}}, _ENABLED),
    "TenantCluster.spec.workspaces.autoDeleteAfter": (
        {"workspaces": {"enabled": True, "autoDeleteAfter": "1h"}},
        _ENABLED,
    ),
    "TenantCluster.spec.workspaces.resourceQuota.maxCPU": (
        {"workspaces": {"enabled": True, "resourceQuota": {"maxCPU": "1"}}},
        _ENABLED,
    ),
    "TenantCluster.spec.workspaces.resourceQuota.maxMemory": (
        {"workspaces": {"enabled": True, "resourceQuota": {"maxMemory": "1Gi"}}},
        _ENABLED,
    ),
    "TenantCluster.spec.workspaces.resourceQuota.maxStorage": (
        {"workspaces": {"enabled": True, "resourceQuota": {"maxStorage": "1Gi"}}},
        _ENABLED,
    ),
}


def _no_cluster_goes_to_a_local_provider() -> None:
    case = Case("local", "harvester")
    specs = case.specs()
    specs["ProviderConfig"] = {"provider": "local", "local": {"kindNodeImage": "changed"}}
    refusal = outcome(case, specs)
    assert isinstance(refusal, Unbuildable)
    assert refusal.field == "spec.provider"


REFUSED_WHOLE: dict[str, Callable[[], None]] = {
    "ProviderConfig.spec.local.kindNodeImage": _no_cluster_goes_to_a_local_provider,
}

REFUSED_ON = {"TenantCluster.spec.workers.machineTemplate.os.talos.": "harvester"}
"""Settings of something that one provider refuses altogether, as its own tests show."""

PROVIDERS = sorted({case.provider for case in CASES})
LEAVES = {leaf.name: leaf for leaf in leaves()}
BEFORE = {case.name: outcome(case, case.specs()) for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_can_be_built(case: Case) -> None:
    """A refused case would count every field that is refused after it."""
    assert isinstance(BEFORE[case.name], str), BEFORE[case.name]


@pytest.mark.parametrize(
    "name", [name for name in LEAVES if name not in {**READ_ELSEWHERE, **REFUSED_BY_SCHEMA, **REFUSED_WHOLE}]
)
def test_a_field_counts(name: str) -> None:
    own = [provider for provider in PROVIDERS if provider in name.split(".")]
    refused_on = {provider for start, provider in REFUSED_ON.items() if name.startswith(start)}
    ignored = [
        provider
        for provider in own or PROVIDERS
        if provider not in refused_on
        and not any(_counts(LEAVES[name], case) for case in CASES if case.provider == provider)
    ]
    assert not ignored, (
        f"{name} is accepted and ignored on {', '.join(ignored)}:"
        " it does not change what is built, is not refused, and no other reader is named"
    )


def test_a_field_that_is_never_read_would_be_found() -> None:
    unread = Leaf("ProviderConfig", "spec.network.unread", str, None)
    assert not any(_counts(unread, case) for case in CASES)


@pytest.mark.parametrize("name", READ_ELSEWHERE)
def test_a_field_is_read_elsewhere(name: str) -> None:
    reader = READ_ELSEWHERE[name]
    assert reader is not None, f"nothing shows who reads {name}"
    without, with_change = reader()
    assert without != with_change, f"{name} changes nothing"


@pytest.mark.parametrize("name", REFUSED_BY_SCHEMA)
def test_a_field_is_refused_by_a_rule_of_the_schema(name: str) -> None:
    spec, blamed = REFUSED_BY_SCHEMA[name]
    *parents, last = name.removeprefix("TenantCluster.spec.").split(".")
    value: Any = spec
    for parent in parents:
        value = value[parent]
    assert last in value
    assert blamed in _refusals(spec)
    assert _refusals({}) == []


@pytest.mark.parametrize("name", REFUSED_WHOLE)
def test_a_field_belongs_to_what_is_refused_whole(name: str) -> None:
    REFUSED_WHOLE[name]()


def test_every_entry_names_a_field() -> None:
    listed = [*READ_ELSEWHERE, *REFUSED_BY_SCHEMA, *REFUSED_WHOLE]
    assert len(listed) == len(set(listed))
    assert set(listed) <= set(LEAVES)


def _counts(leaf: Leaf, case: Case) -> bool:
    *parents, last = leaf.path.removeprefix("spec.").split(".")
    for value in changes(leaf, _present(case.specs()[leaf.kind], [*parents, last])):
        specs = case.specs()
        target = specs[leaf.kind]
        for parent in parents:
            target = target.setdefault(parent, {})
        target[last] = value
        if _wrong_provider(case, specs):
            continue
        after = outcome(case, specs)
        if isinstance(after, Unbuildable):
            if leaf.path == after.field or leaf.path.startswith(f"{after.field}."):
                return True
        elif after != BEFORE[case.name]:
            return True
    return False


def _wrong_provider(case: Case, specs: dict[str, Json]) -> bool:
    """Whether the case got a block of another provider: the API refuses those, or its refusal proves nothing."""
    config, override = specs["ProviderConfig"], specs["TenantCluster"].get("infrastructureOverride", {})
    foreign = {"harvester", "nutanix", "proxmox", "aws", "gcp", "azure", "local"} - {case.provider}
    return not foreign.isdisjoint(config) or not foreign.isdisjoint(override)


def _present(spec: Json, path: list[str]) -> Any:
    value: Any = spec
    for text in path:
        if not isinstance(value, dict):
            return None
        value = value.get(text)
    return value


def _refusals(spec: Json) -> list[str]:
    definition = custom_resource_definition(TenantCluster)
    schema = parse(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    obj: Json = {
        "apiVersion": "butler.butlerlabs.dev/v1alpha1",
        "kind": "TenantCluster",
        "metadata": {"name": "payments"},
        "spec": {"kubernetesVersion": "v1.33.2", "workers": {"replicas": 1}, **spec},
    }
    apply_defaults(schema, obj)
    return [error.path for error in validate(schema, obj)]
