"""What all public clouds share: the choice of an instance type, and settings that none of them can obey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from butler.capi import aws, azure, gcp
from butler.rules.tenant.blueprint import NodeNetwork, Unbuildable
from unit.capi.clouds import BUILDERS, CREDENTIALS, blueprint, build, machine

if TYPE_CHECKING:
    from butler.capi.cloud import InstanceType

SHAPE = "spec.workers.machineTemplate"
CLOUDS = tuple(BUILDERS)
TABLES = {"aws": aws.INSTANCE_TYPES, "gcp": gcp.INSTANCE_TYPES, "azure": azure.INSTANCE_TYPES}
TYPE_FIELD = {"aws": "instanceType", "gcp": "instanceType", "azure": "vmSize"}


def refusal(provider: str, changes: dict[str, Any], **more: Any) -> str:
    with pytest.raises(Unbuildable) as caught:
        build(provider, changes, **more)
    assert caught.value.problem
    return caught.value.field


@pytest.mark.parametrize(
    ("provider", "cpu", "memory", "chosen"),
    [
        ("aws", 4, "16Gi", "m6i.xlarge"),
        ("aws", 1, "1Gi", "c6i.large"),
        ("aws", 2, "16Gi", "r6i.large"),
        ("aws", 3, "8Gi", "c6i.xlarge"),
        ("aws", 4, "16.1Gi", "r6i.xlarge"),
        ("aws", 128, "1Ti", "r6i.32xlarge"),
        ("gcp", 4, "16Gi", "n2-standard-4"),
        ("gcp", 8, "8Gi", "n2-highcpu-8"),
        ("gcp", 2, "17Gi", "n2-highmem-4"),
        ("azure", 4, "16Gi", "Standard_D4s_v5"),
        ("azure", 4, "8G", "Standard_F4s_v2"),
        ("azure", 72, "100Gi", "Standard_F72s_v2"),
        ("azure", 96, "600Gi", "Standard_E96s_v5"),
    ],
)
def test_the_smallest_type_that_holds_the_request_is_chosen(provider: str, cpu: int, memory: str, chosen: str) -> None:
    made = build(provider, {f"{SHAPE}.cpu": cpu, f"{SHAPE}.memory": memory})
    assert machine(made)[TYPE_FIELD[provider]] == chosen


@pytest.mark.parametrize("provider", CLOUDS)
def test_every_type_of_a_table_is_chosen_for_its_own_size(provider: str) -> None:
    def holds(each: InstanceType) -> str:
        found: str = machine(build(provider, {f"{SHAPE}.cpu": each.cpus, f"{SHAPE}.memory": f"{each.memory_gib}Gi"}))[
            TYPE_FIELD[provider]
        ]
        return found

    assert [holds(table) for table in TABLES[provider]] == [instance_type.name for instance_type in TABLES[provider]]
    assert list(TABLES[provider]) == sorted(TABLES[provider])


@pytest.mark.parametrize("provider", CLOUDS)
@pytest.mark.parametrize(("field", "amount"), [("cpu", 1000), ("memory", "100Ti")])
def test_a_request_that_no_type_holds_is_refused(provider: str, field: str, amount: int | str) -> None:
    assert refusal(provider, {f"{SHAPE}.{field}": amount}) == f"{SHAPE}.{field}"


@pytest.mark.parametrize("provider", CLOUDS)
def test_a_disk_is_rounded_up_to_whole_gib(provider: str) -> None:
    spec = machine(build(provider, {f"{SHAPE}.diskSize": "50.5Gi"}))
    sizes = (
        spec.get("rootVolume", {}).get("size"),
        spec.get("rootDeviceSize"),
        spec.get("osDisk", {}).get("diskSizeGB"),
    )
    assert 51 in sizes


@pytest.mark.parametrize("provider", CLOUDS)
@pytest.mark.parametrize("size", ["0", "1Pi"])
def test_a_disk_that_no_cloud_has_is_refused(provider: str, size: str) -> None:
    assert refusal(provider, {f"{SHAPE}.diskSize": size}) == f"{SHAPE}.diskSize"


@pytest.mark.parametrize("provider", CLOUDS)
@pytest.mark.parametrize(("field", "value"), [("gateway", "10.0.0.1"), ("subnet", "workers")])
def test_networking_that_the_cloud_decides_is_refused(provider: str, field: str, value: str) -> None:
    assert refusal(provider, {f"spec.network.{field}": value}) == f"spec.network.{field}"


@pytest.mark.parametrize("provider", ["aws", "gcp"])
def test_dns_servers_are_refused_where_machines_cannot_take_them(provider: str) -> None:
    assert refusal(provider, {"spec.network.dnsServers": ["10.0.0.2"]}) == "spec.network.dnsServers"


@pytest.mark.parametrize("provider", CLOUDS)
def test_node_addresses_are_refused(provider: str) -> None:
    plan = blueprint(provider)
    addresses = NodeNetwork((), 24, "10.0.0.1", ())
    with pytest.raises(Unbuildable) as caught:
        BUILDERS[provider](type(plan)(**{**_fields(plan), "nodes": addresses}))
    assert caught.value.field == "spec.network.mode"


@pytest.mark.parametrize(("provider", "key"), [(cloud, key) for cloud, keys in CREDENTIALS.items() for key in keys])
@pytest.mark.parametrize("value", [None, "", "\n"])
def test_a_missing_credential_names_the_secret_and_the_key(provider: str, key: str, value: str | None) -> None:
    rest = {name: text for name, text in CREDENTIALS[provider].items() if name != key}
    with pytest.raises(Unbuildable) as caught:
        build(provider, credentials=rest if value is None else rest | {key: value})
    assert caught.value.field == "spec.credentialsRef"
    assert "butler-system/login" in caught.value.problem
    assert key in caught.value.problem


@pytest.mark.parametrize("provider", ["aws", "azure"])
def test_another_key_is_refused_for_credentials_of_several_parts(provider: str) -> None:
    assert refusal(provider, {"spec.credentialsRef.key": "login"}) == "spec.credentialsRef.key"


@pytest.mark.parametrize("provider", CLOUDS)
def test_no_credential_leaves_its_secret(provider: str) -> None:
    made = build(provider)
    for obj in (made.cluster, made.machine_template, *(other for other in made.others if other["kind"] != "Secret")):
        for key in ("secretAccessKey", "clientSecret", "serviceAccountKey"):
            assert CREDENTIALS[provider].get(key, "no such text") not in str(obj)


@pytest.mark.parametrize("provider", CLOUDS)
def test_the_same_blueprint_makes_the_same_objects(provider: str) -> None:
    assert build(provider) == build(provider)


@pytest.mark.parametrize("provider", CLOUDS)
def test_a_provider_without_its_block_is_refused(provider: str) -> None:
    assert refusal(provider, {f"spec.{provider}": None}) == f"spec.{provider}"


def _fields(plan: Any) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in type(plan).__dataclass_fields__}
