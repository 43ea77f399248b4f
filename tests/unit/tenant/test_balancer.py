"""What is kept of a Service, field by field, and that nothing in it can blow that up."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from butler.rules.loadbalancer.service import Balancer
from butler.tenant.services import Service, address_in, read_balancer

Json = dict[str, Any]


def read(
    *, meta: Json | None = None, spec: Json | None = None, ingress: Any = None, notes: Any = None, labels: Any = None
) -> Balancer:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "shop", "namespace": "web", "uid": "u1", "annotations": notes, "labels": labels}
        | (meta or {}),
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]} | (spec or {}),
        "status": {"loadBalancer": {"ingress": ingress}},
    }
    return read_balancer(msgspec.json.decode(msgspec.json.encode(service), type=Service))


def test_a_plain_service_is_who_it_is_and_nothing_else() -> None:
    found = read()
    assert found == Balancer("web", "shop", "u1")
    assert str(found) == "web/shop"


def test_the_smallest_service_can_be_read() -> None:
    bare = msgspec.json.decode(b'{"metadata":{"name":"a","namespace":"b"}}', type=Service)
    assert read_balancer(bare) == Balancer("b", "a", "")


def test_addresses_and_host_names_are_told_apart() -> None:
    found = read(ingress=[{"ip": "10.40.1.8"}, {"hostname": "lb.example"}, {"ip": "fd00:0::1", "ipMode": "VIP"}, {}])
    assert found.addresses == ("10.40.1.8", "fd00::1")
    assert found.has_hostname
    assert not read(ingress=[{"ip": "10.40.1.8", "hostname": ""}]).has_hostname


def test_what_is_no_address_is_not_among_the_addresses() -> None:
    found = read(ingress=[{"ip": "none"}, {"ip": ""}, {"ip": "10.0.0.256"}, {"ip": "x" * 100_000}, {"ip": "10.1.1.1"}])
    assert found.addresses == ("10.1.1.1",)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.40.1.8", "10.40.1.8"),
        ("::ffff:10.40.1.8", "10.40.1.8"),
        ("FD00:0:0::1", "fd00::1"),
        ("010.40.1.8", None),
        ("fe80::1%eth0", None),
        ("10.40.1.8/32", None),
        (" 10.40.1.8", None),
        ("168296712", None),
    ],
)
def test_an_address_is_what_metallb_takes_for_one(text: str, address: str | None) -> None:
    assert address_in(text) == address


def test_a_service_that_goes_is_told_from_one_that_stays() -> None:
    assert read(meta={"deletionTimestamp": "2026-01-01T00:00:00Z"}).deleting
    assert not read(meta={"deletionTimestamp": None}).deleting


def test_class_families_and_policy_come_from_the_spec() -> None:
    spec = {"loadBalancerClass": "a.example/b", "ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack"}
    found = read(spec=spec)
    assert (found.class_name, found.families, found.family_policy) == (
        "a.example/b",
        ("IPv4", "IPv6"),
        "RequireDualStack",
    )
    assert read(spec={"loadBalancerClass": None, "ipFamilies": None}).class_name is None


@pytest.mark.parametrize("prefix", ["metallb.io", "metallb.universe.tf"])
def test_annotations_are_read_under_todays_name_and_the_old_one(prefix: str) -> None:
    found = read(
        notes={
            f"{prefix}/loadBalancerIPs": "10.40.1.8, fd00:0::8",
            f"{prefix}/address-pool": "special",
            f"{prefix}/allow-shared-ip": "dns",
        }
    )
    assert (found.asks, found.asks_pool, found.sharing_key) == (("10.40.1.8", "fd00::8"), "special", "dns")


def test_todays_name_wins_over_the_old_one_and_an_annotation_over_the_spec() -> None:
    new, old = {"metallb.io/loadBalancerIPs": "10.0.0.1"}, {"metallb.universe.tf/loadBalancerIPs": "10.0.0.2"}
    spec = {"loadBalancerIP": "10.0.0.3"}
    assert read(notes=new | old, spec=spec).asks == ("10.0.0.1",)
    assert read(notes=old, spec=spec).asks == ("10.0.0.2",)
    assert read(spec=spec).asks == ("10.0.0.3",)
    assert read(notes={"metallb.io/loadBalancerIPs": ""}, spec={"loadBalancerIP": ""}).asks == ()


def test_a_service_that_asks_for_nonsense_asks_all_the_same() -> None:
    """It is refused by MetalLB and gets no other address, so it must not look as if any would do."""
    assert read(notes={"metallb.io/loadBalancerIPs": "any"}).asks == ("any",)
    assert read(notes={"metallb.io/loadBalancerIPs": ","}).asks == (",",)
    assert read(spec={"loadBalancerIP": "10.0.0.999"}).asks == ("10.0.0.999",)


@pytest.mark.parametrize("value", [7, None, True, [], ["10.0.0.1"], {"a": [1, {"b": None}]}])
def test_annotations_and_labels_that_are_no_text_are_ignored(value: Any) -> None:
    notes = {
        "metallb.io/loadBalancerIPs": value,
        "metallb.universe.tf/address-pool": value,
        "metallb.io/allow-shared-ip": value,
    }
    assert read(notes=notes, labels={"butler.butlerlabs.dev/platform-lb": value}) == read()


def test_huge_values_are_cut() -> None:
    huge = "9" * 300_000
    found = read(
        notes={
            "metallb.io/loadBalancerIPs": ",".join([huge[:1000]] * 100),
            "metallb.io/address-pool": huge,
            "metallb.io/allow-shared-ip": huge,
        },
    )
    assert len(found.asks) == 8
    assert max(len(ask) for ask in found.asks) == 64
    assert len(found.asks_pool or "") == 253
    assert len(found.sharing_key or "") < 200
    assert len(read(spec={"loadBalancerIP": huge}).asks[0]) == 64


def test_long_sharing_keys_are_equal_only_when_all_of_them_is() -> None:
    def key(text: str) -> str | None:
        return read(notes={"metallb.io/allow-shared-ip": text}).sharing_key

    assert key("a" * 1000) == key("a" * 1000) != key("a" * 999 + "b")


def test_the_platforms_label_counts_only_when_true() -> None:
    label = "butler.butlerlabs.dev/platform-lb"
    assert read(labels={label: "true", "app": "x"}).platform
    assert not read(labels={label: "yes"}).platform
    assert not read(labels={}).platform


def test_the_time_of_creation_is_a_moment_or_unknown() -> None:
    assert read(meta={"creationTimestamp": "2026-01-02T03:04:05Z"}).created == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    for garbage in (None, "", "yesterday", 7, [], "2026-01-02T03:04:05"):
        assert read(meta={"creationTimestamp": garbage}).created is None, garbage


@pytest.mark.parametrize(
    "service",
    [
        {"metadata": {"name": "a", "namespace": "b"}, "status": {"loadBalancer": {"ingress": 7}}},
        {"metadata": {"name": "a", "namespace": "b"}, "status": {"loadBalancer": {"ingress": [{"ip": 7}]}}},
        {"metadata": {"name": "a", "namespace": "b"}, "status": {"loadBalancer": {"ingress": [{}] * 65}}},
        {"metadata": {"name": "a" * 254, "namespace": "b"}},
        {"metadata": {"name": "a"}},
        {"metadata": 7},
    ],
)
def test_what_only_servers_write_has_to_have_its_shape(service: Json) -> None:
    """Passed over, its addresses would look free; taken in, it would have no bound."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(service), type=Service)
