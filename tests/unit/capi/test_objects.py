"""All objects of a cluster together: their order, their names, and what makes new ones."""

from __future__ import annotations

import pytest

from blueprints import PROVIDERS, blueprint, machine_os
from butler.api.codec import from_json
from butler.api.providerconfig import ProviderConfig
from butler.capi.objects import objects
from butler.rules.tenant.blueprint import Blueprint, Unbuildable, Versions


def kinds(found: Blueprint) -> list[str]:
    return [obj["kind"] for obj in objects(found)]


def name_of(found: Blueprint, kind: str) -> str:
    (name,) = (obj["metadata"]["name"] for obj in objects(found) if obj["kind"] == kind)
    return str(name)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_each_object_comes_after_what_it_points_at(provider: str) -> None:
    seen: set[tuple[str, str]] = set()
    for obj in objects(blueprint(provider)):
        for kind, name in references(obj):
            assert (kind, name) in seen, f"{obj['kind']} points at {kind} {name}, which comes later or never"
        seen.add((obj["kind"], obj["metadata"]["name"]))
    assert [kind for kind, _ in seen if kind == "MachineDeployment"]


def references(value: object) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        own = [(value["kind"], value["name"])] if {"apiVersion", "kind", "name"} <= value.keys() else []
        return own + [reference for inner in value.values() for reference in references(inner)]
    if isinstance(value, list):
        return [reference for inner in value for reference in references(inner)]
    return []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_same_cluster_always_gives_the_same_objects(provider: str) -> None:
    assert objects(blueprint(provider)) == objects(blueprint(provider))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_new_shape_makes_a_new_machine_template_and_nothing_else(provider: str) -> None:
    plain = blueprint(provider)
    larger = blueprint(provider, {"workers": {"machineTemplate": {"diskSize": "200Gi"}}})
    template = next(kind for kind in kinds(plain) if kind.endswith("MachineTemplate"))
    assert name_of(plain, template) != name_of(larger, template)
    assert name_of(plain, "KubeadmConfigTemplate") == name_of(larger, "KubeadmConfigTemplate")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_more_workers_replace_no_machine(provider: str) -> None:
    few, many = (blueprint(provider, {"workers": {"replicas": replicas}}) for replicas in (2, 5))
    named = [[obj["metadata"]["name"] for obj in objects(found)] for found in (few, many)]
    assert named[0] == named[1]


def test_new_workers_follow_the_workers_version_and_not_the_control_planes() -> None:
    before, between, after = (
        blueprint("proxmox", versions=Versions(*pair))
        for pair in (("v1.33.2", "v1.33.2"), ("v1.34.0", "v1.33.2"), ("v1.34.0", "v1.34.0"))
    )
    names = [name_of(found, "KubeadmConfigTemplate") for found in (before, between, after)]
    assert names[0] == names[1] != names[2]


def test_talos_machines_wait_for_their_configuration() -> None:
    found = blueprint("proxmox", machine_os(type="talos"))
    assert "MachineDeployment" not in kinds(found)
    assert "KubeadmConfigTemplate" not in kinds(found)
    ready = objects(blueprint("proxmox", machine_os(type="talos"), bootstrap_secret="payments-talos-1"))
    assert ready[-1]["kind"] == "MachineDeployment"
    assert ready[-1]["spec"]["template"]["spec"]["bootstrap"] == {"dataSecretName": "payments-talos-1"}


def test_on_harvester_the_infrastructure_waits_for_the_endpoint() -> None:
    """CAPHV would make up one of its own, and Cluster API keeps the first that it sees."""
    assert "HarvesterCluster" not in kinds(blueprint("harvester", endpoint=None))
    assert "HarvesterCluster" in kinds(blueprint("harvester"))
    for provider in set(PROVIDERS) - {"harvester"}:
        assert len(kinds(blueprint(provider, endpoint=None))) == len(kinds(blueprint(provider)))


def test_settings_for_another_provider_are_refused() -> None:
    with pytest.raises(Unbuildable) as refused:
        objects(blueprint("harvester", {"infrastructureOverride": {"proxmox": {"node": "pve1"}}}))
    assert refused.value.field == "spec.infrastructureOverride.proxmox"


def test_clusters_cannot_be_put_on_the_local_provider() -> None:
    plain = blueprint("harvester")
    local = from_json(ProviderConfig, {"metadata": {"name": "here"}, "spec": {"provider": "local"}})
    moved = Blueprint(plain.cluster, local, plain.namespace, plain.versions, {}, plain.credentials_secret)
    with pytest.raises(Unbuildable) as refused:
        objects(moved)
    assert refused.value.field == "spec.provider"


def test_no_credential_is_outside_a_secret() -> None:
    for provider in PROVIDERS:
        found = blueprint(provider)
        for obj in objects(found):
            if obj["kind"] == "Secret":
                continue
            text = repr(obj)
            assert not any(secret in text for secret in found.credentials.values() if len(secret) > 6), obj["kind"]
