"""Services on a cluster with both IP families: which they get, keep, and may change to."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

import pytest

from conformance.kinds import service

if TYPE_CHECKING:
    from conformance.wire import Api, Causes, Object

V4, V6 = "IPv4", "IPv6"
SINGLE, PREFER, REQUIRE = "SingleStack", "PreferDualStack", "RequireDualStack"
SELECTOR = {"app": "web"}


@pytest.fixture
def services(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/services"


def families(spec: Object) -> list[str]:
    """The families of the addresses that a Service was given."""
    assert spec["clusterIP"] == spec["clusterIPs"][0]
    return [item if item == "None" else f"IPv{ipaddress.ip_address(item).version}" for item in spec["clusterIPs"]]


def refused(path: str, shown: str, why: str) -> Causes:
    return [("FieldValueInvalid", path, f"Invalid value: {shown}: {why}")]


@pytest.mark.parametrize(
    ("asked", "policy", "given"),
    [
        ({}, SINGLE, [V4]),
        ({"ipFamilies": [V6]}, SINGLE, [V6]),
        ({"ipFamilies": [V4]}, SINGLE, [V4]),
        ({"ipFamilyPolicy": SINGLE}, SINGLE, [V4]),
        ({"ipFamilyPolicy": SINGLE, "ipFamilies": [V6]}, SINGLE, [V6]),
        ({"ipFamilyPolicy": PREFER}, PREFER, [V4, V6]),
        ({"ipFamilyPolicy": PREFER, "ipFamilies": [V6]}, PREFER, [V6, V4]),
        ({"ipFamilyPolicy": REQUIRE}, REQUIRE, [V4, V6]),
        ({"ipFamilyPolicy": REQUIRE, "ipFamilies": [V6]}, REQUIRE, [V6, V4]),
        ({"ipFamilyPolicy": REQUIRE, "ipFamilies": [V6, V4]}, REQUIRE, [V6, V4]),
        ({"ipFamilyPolicy": PREFER, "type": "LoadBalancer"}, PREFER, [V4, V6]),
        ({"ipFamilies": [V6], "type": "NodePort"}, SINGLE, [V6]),
    ],
)
async def test_a_service_gets_the_families_it_asks_for(
    api: Api, services: str, asked: Object, policy: str, given: list[str]
) -> None:
    spec = (await api.post(services, service("web", selector=SELECTOR, **asked))).made["spec"]
    assert (spec["ipFamilyPolicy"], spec["ipFamilies"], families(spec)) == (policy, given, given)


@pytest.mark.parametrize(
    ("asked", "policy", "given"),
    [
        ({"selector": SELECTOR}, SINGLE, [V4]),
        ({"selector": SELECTOR, "ipFamilies": [V6]}, SINGLE, [V6]),
        ({"selector": SELECTOR, "ipFamilyPolicy": PREFER, "ipFamilies": [V6]}, PREFER, [V6, V4]),
        ({}, REQUIRE, [V4, V6]),
        ({"ipFamilies": [V6]}, REQUIRE, [V6, V4]),
        ({"ipFamilyPolicy": SINGLE, "ipFamilies": [V6]}, SINGLE, [V6]),
    ],
)
async def test_a_headless_service_has_families_and_no_address(
    api: Api, services: str, asked: Object, policy: str, given: list[str]
) -> None:
    spec = (await api.post(services, service("web", clusterIP="None", **asked))).made["spec"]
    assert (spec["ipFamilyPolicy"], spec["ipFamilies"], spec["clusterIPs"]) == (policy, given, ["None"])


async def test_addresses_say_which_families_are_meant(api: Api, services: str, unique: str) -> None:
    address = f"fd00:10:96::{unique[:4]}"
    asked = {"clusterIP": address, "ipFamilyPolicy": PREFER}
    spec = (await api.post(services, service("web", **asked))).made["spec"]
    assert (spec["ipFamilies"], families(spec)) == ([V6, V4], [V6, V4])
    assert ipaddress.ip_address(spec["clusterIP"]) == ipaddress.ip_address(address)
    answer = await api.post(services, service("other", clusterIP=address))
    assert answer.causes == refused(
        "spec.clusterIPs", f'["{address}"]', f"failed to allocate IP {address}: provided IP is already allocated"
    )


async def test_an_ipv6_address_is_one_however_it_is_written(api: Api, services: str, unique: str) -> None:
    long = f"fd00:0010:0096:0000:0000:0000:0000:{unique[4:]}"
    short = str(ipaddress.ip_address(long))
    assert (await api.post(services, service("web", clusterIP=short))).status == 201
    answer = await api.post(services, service("other", clusterIP=long))
    assert answer.status == 422
    assert "provided IP is already allocated" in answer.body["message"]


@pytest.mark.parametrize(
    ("asked", "causes"),
    [
        (
            {"ipFamilyPolicy": SINGLE, "ipFamilies": [V4, V6]},
            refused(
                "spec.ipFamilyPolicy",
                f'"{SINGLE}"',
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified",
            ),
        ),
        (
            {"ipFamilies": [V4, V6]},
            refused(
                "spec.ipFamilyPolicy",
                f'"{SINGLE}"',
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified",
            ),
        ),
        (
            {"clusterIP": "10.96.200.1", "clusterIPs": ["10.96.200.1", "fd00:10:96::c801"]},
            refused(
                "spec.ipFamilyPolicy",
                f'"{SINGLE}"',
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified",
            ),
        ),
        ({"ipFamilies": [V6, V6]}, [("FieldValueDuplicate", "spec.ipFamilies[1]", f'Duplicate value: "{V6}"')]),
        (
            {"clusterIP": "2001:db8::1"},
            refused(
                "spec.clusterIPs",
                '["2001:db8::1"]',
                "failed to allocate IP 2001:db8::1: the provided network does not match the current range",
            ),
        ),
        (
            {"clusterIP": "fd00:10:96::c802", "ipFamilies": [V4]},
            refused(
                "spec.clusterIPs[0]", '"fd00:10:96::c802"', "expected an IPv4 value as indicated by `ipFamilies[0]`"
            ),
        ),
        (
            {"clusterIP": "10.96.200.2", "clusterIPs": ["10.96.200.2", "10.96.200.3"], "ipFamilyPolicy": REQUIRE},
            refused(
                "spec.clusterIPs",
                '["10.96.200.2","10.96.200.3"]',
                "may specify no more than one IP for each IP family",
            ),
        ),
    ],
)
async def test_families_and_addresses_must_fit(api: Api, services: str, asked: Object, causes: Causes) -> None:
    answer = await api.post(services, service("web", **asked))
    assert (answer.status, answer.causes) == (422, causes)


async def test_an_external_name_has_no_families(api: Api, services: str) -> None:
    answer = await api.post(
        services, service("web", type="ExternalName", externalName="a.example.com", ipFamilies=[V6])
    )
    why = "Forbidden: may not be set for ExternalName services"
    assert answer.causes == [("FieldValueForbidden", "spec.ipFamilies", why)]


async def changed(api: Api, path: str, **spec: Any) -> Any:
    return await api.merge(path, {"spec": spec})


async def test_a_service_gains_and_loses_its_second_family(api: Api, services: str) -> None:
    first = (await api.post(services, service("web", selector=SELECTOR))).made["spec"]
    path = f"{services}/web"
    two = (await changed(api, path, ipFamilyPolicy=PREFER)).made["spec"]
    assert (two["ipFamilies"], families(two)) == ([V4, V6], [V4, V6])
    assert two["clusterIPs"][0] == first["clusterIP"]
    one = (await changed(api, path, ipFamilyPolicy=SINGLE)).made["spec"]
    assert (one["ipFamilies"], one["clusterIPs"]) == ([V4], [first["clusterIP"]])
    again = (await changed(api, path, ipFamilyPolicy=REQUIRE, ipFamilies=[V4, V6])).made["spec"]
    assert families(again) == [V4, V6]
    # The second address is free again and may be asked for.
    other = service("other", clusterIPs=[two["clusterIPs"][1]], clusterIP=two["clusterIPs"][1])
    assert two["clusterIPs"][1] != again["clusterIPs"][1]
    assert (await api.post(services, other)).status == 201


async def test_a_service_that_prefers_both_keeps_them_through_other_changes(api: Api, services: str) -> None:
    made = (await api.post(services, service("web", selector=SELECTOR, ipFamilyPolicy=PREFER))).made["spec"]
    after = (await changed(api, f"{services}/web", ports=[{"port": 81}])).made["spec"]
    assert (after["clusterIPs"], after["ipFamilies"]) == (made["clusterIPs"], made["ipFamilies"])


@pytest.mark.parametrize(
    ("change", "path", "why"),
    [
        (
            {"ipFamilies": [V4]},
            "spec.ipFamilyPolicy",
            "must be 'SingleStack' to release the secondary IP family",
        ),
        (
            {"ipFamilies": [V6, V4]},
            "spec.clusterIPs[0]",
            "expected an IPv6 value as indicated by `ipFamilies[0]`",
        ),
    ],
)
async def test_the_second_family_is_released_by_policy_alone(
    api: Api, services: str, change: Object, path: str, why: str
) -> None:
    assert (await api.post(services, service("web", selector=SELECTOR, ipFamilyPolicy=REQUIRE))).status == 201
    answer = await changed(api, f"{services}/web", **change)
    assert answer.status == 422
    field, message = answer.causes[0][1:]
    assert (field, message.partition(": ")[2].partition(": ")[2]) == (path, why)


async def test_the_first_address_and_family_stay(api: Api, services: str) -> None:
    made = (await api.post(services, service("web", selector=SELECTOR, ipFamilyPolicy=REQUIRE))).made["spec"]
    other = ["10.96.201.7", made["clusterIPs"][1]]
    answer = await changed(api, f"{services}/web", clusterIP=other[0], clusterIPs=other)
    shown = f'["{other[0]}","{other[1]}"]'
    assert answer.causes == refused("spec.clusterIPs[0]", shown, "may not change once set")


async def test_a_headless_service_may_change_its_families(api: Api, services: str) -> None:
    assert (await api.post(services, service("web", clusterIP="None", selector=SELECTOR))).status == 201
    after = (await changed(api, f"{services}/web", ipFamilies=[V6])).made["spec"]
    assert (after["ipFamilies"], after["clusterIPs"]) == ([V6], ["None"])


async def test_a_service_that_becomes_an_external_name_gives_its_addresses_back(api: Api, services: str) -> None:
    made = (await api.post(services, service("web", ipFamilyPolicy=REQUIRE))).made["spec"]
    after = await changed(api, f"{services}/web", type="ExternalName", externalName="a.example.com")
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & set(after.made["spec"])
    for index, address in enumerate(made["clusterIPs"]):
        taken = service(f"other-{index}", clusterIP=address)
        assert (await api.post(services, taken)).status == 201
