"""Which Services count as demand, and which addresses are spoken for."""

from __future__ import annotations

from typing import Any

import pytest

from butler.ipam.addresses import parse_address
from butler.rules.loadbalancer.demand import demand, spoken_for, waits
from unit.rules.loadbalancer.balancers import service

A = "10.40.0.20"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "nothing speaks against it"),
        ({"class_name": ""}, "an empty class is none"),
        ({"asks_pool": "default-pool"}, "it asks for our pool"),
        ({"families": (), "family_policy": None}, "an old API server says nothing of families"),
        ({"families": ("IPv4", "IPv6"), "family_policy": "PreferDualStack"}, "IPv4 alone will do"),
        ({"families": ("IPv6", "IPv4"), "family_policy": "PreferDualStack"}, "IPv4 alone will do"),
        ({"families": ("IPv4",), "family_policy": "RequireDualStack"}, "one family is all that it has"),
        ({"sharing_key": "mail"}, "sharing begins with one address"),
        ({"platform": True}, "the platform's Services need addresses too"),
    ],
)
def test_a_service_that_metallb_would_serve_waits(fields: dict[str, Any], why: str) -> None:
    assert waits(service(**fields)), why


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"addresses": (A,)}, "it has an address"),
        ({"addresses": ("192.0.2.1",)}, "it has one, if from elsewhere"),
        ({"addresses": ("2001:db8::1",)}, "it has one, if of the other family"),
        ({"has_hostname": True}, "a cloud gave it a host name"),
        ({"deleting": True}, "it is on its way out"),
        ({"class_name": "example.com/other"}, "another load balancer serves it"),
        ({"asks": (A,)}, "it wants one address and no other"),
        ({"asks": ("192.0.2.1",)}, "no growth will bring the one it wants"),
        ({"asks": ("nonsense",)}, "MetalLB refuses it"),
        ({"asks_pool": "other-pool"}, "it wants none of ours"),
        ({"families": ("IPv6",)}, "our addresses are IPv4"),
        ({"families": ("IPv4", "IPv6"), "family_policy": "RequireDualStack"}, "it wants one of both or none"),
    ],
)
def test_a_service_that_no_growth_would_help_does_not_wait(fields: dict[str, Any], why: str) -> None:
    addresses = fields.pop("addresses", ())
    assert not waits(service("shop", *addresses, **fields)), why


def test_where_metallb_serves_a_class_only_services_of_that_class_wait() -> None:
    assert waits(service(class_name="metallb"), "metallb")
    assert not waits(service(), "metallb")
    assert not waits(service(class_name="other"), "metallb")


def test_every_service_needs_an_address() -> None:
    assert demand([service("a"), service("b")]) == 2
    assert demand([]) == 0


def test_services_that_share_an_address_need_one_together() -> None:
    assert demand([service("dns", sharing_key="x"), service("dns-tcp", sharing_key="x")]) == 1
    assert demand([service("a", sharing_key="x"), service("b", sharing_key="y"), service("c")]) == 3


def values(*texts: str) -> list[int]:
    return [parse_address(text)[1] for text in texts]


def test_an_address_that_a_service_has_is_spoken_for() -> None:
    assert spoken_for([service("a", "10.40.0.21"), service("b", A)]) == values(A, "10.40.0.21")


def test_an_address_is_spoken_for_once_however_many_share_it() -> None:
    assert spoken_for([service("a", A, sharing_key="x"), service("b", A, sharing_key="x")]) == values(A)


def test_an_address_that_a_service_asks_for_is_spoken_for_before_it_has_it() -> None:
    assert spoken_for([service(asks=(A,))]) == values(A)


def test_a_service_that_is_being_deleted_has_its_address_still_and_asks_for_none() -> None:
    assert spoken_for([service("a", A, deleting=True)]) == values(A)
    assert spoken_for([service(asks=(A,), deleting=True)]) == []


@pytest.mark.parametrize("fields", [{"class_name": "other"}, {"asks_pool": "other"}, {"has_hostname": True}])
def test_an_address_in_use_is_spoken_for_whichever_program_gave_it(fields: dict[str, Any]) -> None:
    assert spoken_for([service("a", A, **fields)]) == values(A)


def test_what_is_no_ipv4_address_is_left_alone() -> None:
    assert spoken_for([service("a", "2001:db8::1", asks=("nonsense", "2001:db8::2", ""))]) == []
