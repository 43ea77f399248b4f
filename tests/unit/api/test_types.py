"""The typed resources: what is decoded, what is written back, and what is stepped over."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml

from butler.api import API_VERSION, GROUP, VERSION, codec
from butler.api.ipallocation import IPAllocation, IPAllocationPhase, IPAllocationStatus, IPAllocationType
from butler.api.kinds import KINDS
from butler.api.labels import Finalizer, Label
from butler.api.meta import ListMeta, NamespacedObjectReference, ObjectMeta
from butler.api.networkpool import (
    CapacityNotice,
    CapacityTier,
    Intent,
    NetworkPool,
    NetworkPoolSpec,
    NetworkPoolStatus,
)
from butler.api.providerconfig import AllocationMode, LoadBalancerAllocation, NetworkMode, ProviderConfig
from butler.api.schema import wire_name
from butler.api.tenantcluster import TenantCluster, TenantClusterPhase

if TYPE_CHECKING:
    from butler.api.resource import CustomResource

BY_NAME = {kind.__name__: kind for kind in KINDS}
EXAMPLES: list[dict[str, Any]] = [
    *yaml.safe_load_all((Path(__file__).parent / "published_examples.yaml").read_text()),
    *(yaml.safe_load(kind.definition.example) for kind in KINDS),
]

ALLOCATION = {
    "apiVersion": API_VERSION,
    "kind": "IPAllocation",
    "metadata": {"name": "a", "namespace": "butler-system"},
    "spec": {
        "poolRef": {"name": "p"},
        "tenantClusterRef": {"name": "c", "namespace": "t"},
        "type": "loadbalancer",
    },
}


def allocation(**changes: Any) -> IPAllocation:
    return codec.decode(IPAllocation, json.dumps({**ALLOCATION, **changes}))


def holds_all_of(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            key in found and holds_all_of(value, found[key]) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return len(wanted) == len(found) and all(map(holds_all_of, wanted, found))
    return bool(wanted == found)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["metadata"]["name"])
def test_an_example_survives_decoding_and_encoding(example: dict[str, Any]) -> None:
    kind = BY_NAME[example["kind"]]
    decoded = codec.decode(kind, json.dumps(example))
    again = codec.decode(kind, codec.encode(decoded))

    assert again == decoded
    # Values that equal a default may be left out: the API server fills them in. Nothing else may be.
    with_defaults = msgspec.json.decode(json.dumps(_without_omission(decoded)))
    assert holds_all_of(example, with_defaults)


def _without_omission(part: Any) -> Any:
    """The object with its defaults spelled out."""
    if isinstance(part, msgspec.Struct):
        names = zip(part.__struct_fields__, part.__struct_encode_fields__, strict=True)
        return {wire: _without_omission(getattr(part, name)) for name, wire in names}
    if isinstance(part, tuple | list):
        return [_without_omission(item) for item in part]
    return msgspec.to_builtins(part)


def test_an_encoded_resource_says_what_it_is() -> None:
    for kind in KINDS:
        example = codec.from_json(kind, yaml.safe_load(kind.definition.example))
        assert list(codec.to_json(example))[:3] == ["apiVersion", "kind", "metadata"]
        assert codec.to_json(example)["apiVersion"] == f"{GROUP}/{VERSION}" == API_VERSION
        assert codec.to_json(example)["kind"] == kind.__name__


def test_unknown_fields_are_stepped_over_at_every_depth() -> None:
    decoded = allocation(
        metadata={
            "name": "a",
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:type": {}}}}],
            "selfLink": "/x",
        },
        spec={**ALLOCATION["spec"], "fromTheFuture": {"a": [1]}},  # type: ignore[dict-item]
        status={"phase": "Allocated", "quality": 1},
        other=None,
    )
    assert decoded.spec.type is IPAllocationType.LOAD_BALANCER
    assert decoded.status.phase is IPAllocationPhase.ALLOCATED
    assert b"managedFields" not in codec.encode(decoded)


def test_another_kind_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"NetworkPool.*\$\.kind"):
        allocation(kind="NetworkPool")


def test_a_wrong_type_is_refused_with_its_path() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.spec\.poolRef\.name"):
        allocation(spec={**ALLOCATION["spec"], "poolRef": {"name": 7}})  # type: ignore[dict-item]


def test_an_object_that_breaks_todays_limits_is_still_seen() -> None:
    """An allocation that the allocator cannot see is an address that it could grant twice."""
    decoded = allocation(
        spec={**ALLOCATION["spec"], "count": 0, "pinnedRange": {"startAddress": "x", "endAddress": ""}}  # type: ignore[dict-item]
    )
    assert decoded.spec.count == 0
    assert decoded.spec.pinned_range is not None


def test_a_new_allocation_is_pending_without_a_write() -> None:
    assert allocation().status == IPAllocationStatus()
    assert allocation().status.phase is IPAllocationPhase.PENDING
    assert codec.to_json(IPAllocationStatus()) == {}


def test_a_zero_in_a_status_is_written() -> None:
    status = NetworkPoolStatus(total_ips=0, allocated_ips=0, available_ips=0)
    assert codec.to_json(status) == {"totalIPs": 0, "allocatedIPs": 0, "availableIPs": 0}


def test_resources_cannot_be_changed_in_place() -> None:
    pool = NetworkPool(metadata=ObjectMeta(name="p"), spec=NetworkPoolSpec(cidr="10.0.0.0/24"))
    with pytest.raises(AttributeError):
        pool.spec.cidr = "10.0.1.0/24"  # type: ignore[misc]


def test_parts_take_keywords_only() -> None:
    with pytest.raises(TypeError):
        NamespacedObjectReference("name", "namespace")  # type: ignore[call-arg]


def test_parts_are_out_of_the_garbage_collectors_sight() -> None:
    assert not gc.is_tracked(allocation())
    assert not gc.is_tracked(allocation().spec)


def test_a_page_of_a_list_is_decoded() -> None:
    page = codec.decode_list(
        IPAllocation,
        json.dumps(
            {
                "apiVersion": API_VERSION,
                "kind": "IPAllocationList",
                "metadata": {"resourceVersion": "12", "continue": "abc", "remainingItemCount": 3},
                "items": [ALLOCATION, ALLOCATION],
            }
        ),
    )
    assert page.metadata == ListMeta(resource_version="12", continue_="abc", remaining_item_count=3)
    assert page.items == [allocation(), allocation()]


def test_the_defaults_of_a_provider_are_those_of_its_schema() -> None:
    minimal = codec.from_json(
        ProviderConfig,
        {
            "apiVersion": API_VERSION,
            "kind": "ProviderConfig",
            "metadata": {"name": "p"},
            "spec": {"provider": "local"},
        },
    )
    assert minimal.spec.network.mode is NetworkMode.CLOUD
    assert minimal.spec.scope.type == "platform"
    assert LoadBalancerAllocation() == LoadBalancerAllocation(
        allocation_mode=AllocationMode.STATIC, default_pool_size=8, initial_pool_size=2, growth_increment=2
    )


def test_the_defaults_of_a_cluster_are_all_there() -> None:
    minimal = codec.from_json(
        TenantCluster,
        {
            "apiVersion": API_VERSION,
            "kind": "TenantCluster",
            "metadata": {"name": "c"},
            "spec": {"kubernetesVersion": "v1.33.2", "workers": {"replicas": 3}},
        },
    )
    assert minimal.status.phase is TenantClusterPhase.PENDING
    assert minimal.spec.networking.pod_cidr == "10.244.0.0/16"
    assert minimal.spec.addons.ingress.enabled
    assert minimal.spec.workers.machine_template.memory == "16Gi"


def test_intents_and_notices_survive_a_restart() -> None:
    """What the allocator needs after a crash comes back from the status as it was written."""
    status = NetworkPoolStatus(
        intents=(Intent(uid="u", name="a", start_address="10.0.0.1", end_address="10.0.0.2"),),
        allocations_seen="4711",
        capacity_notices=(
            CapacityNotice(tier=CapacityTier.CRITICAL, above=False, time="2026-01-01T00:00:00Z"),  # type: ignore[arg-type]
        ),
    )
    written = codec.decode(NetworkPoolStatus, codec.encode(status))
    assert written.intents == status.intents
    assert written.allocations_seen == "4711"
    assert codec.encode(written) == codec.encode(status)


@pytest.mark.parametrize(
    ("field", "spelled"),
    [
        ("cidr", "cidr"),
        ("pod_cidr", "podCIDR"),
        ("total_ips", "totalIPs"),
        ("ip_allocation_ref", "ipAllocationRef"),
        ("security_group_ids", "securityGroupIDs"),
        ("storage_container_uuid", "storageContainerUUID"),
        ("cert_sans", "certSANs"),
        ("image_urn", "imageURN"),
        ("vmid_range", "vmidRange"),
        ("max_cpu", "maxCPU"),
        ("lb_pool_per_tenant", "lbPoolPerTenant"),
    ],
)
def test_a_field_is_spelled_as_published(field: str, spelled: str) -> None:
    assert wire_name(field) == spelled


def test_names_written_into_objects_carry_our_group() -> None:
    for name in (*Label, *Finalizer):
        assert name.startswith(f"{GROUP}/")


def test_a_kind_is_named_once() -> None:
    def names(kind: type[CustomResource]) -> tuple[str, str, str]:
        return (kind.definition.plural, kind.definition.singular, kind.definition.short_name)

    assert len({name for kind in KINDS for name in names(kind)}) == 3 * len(KINDS)
    assert [kind.definition.short_name for kind in KINDS] == ["np", "ipa", "pc", "tc", "ta"]
