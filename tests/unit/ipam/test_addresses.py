"""Addresses: text at the edges, integers inside."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from butler.ipam.addresses import (
    BadAddress,
    Family,
    Range,
    address_text,
    addresses_of,
    parse_address,
    parse_network,
    parse_range,
    range_cidr,
    range_text,
)
from unit.ipam.pools import span

V4 = st.integers(0, 2**32 - 1)
V6 = st.integers(0, 2**128 - 1)


@given(V4)
def test_an_ipv4_address_has_one_spelling_and_comes_back_from_it(value: int) -> None:
    text = str(ipaddress.IPv4Address(value))
    assert address_text(value, Family.V4) == text
    assert parse_address(text) == (Family.V4, value)


@given(V6)
def test_an_ipv6_address_comes_back_from_its_text(value: int) -> None:
    text = str(ipaddress.IPv6Address(value))
    assert address_text(value, Family.V6) == text
    assert parse_address(text) == (Family.V6, value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10",
        "10.40.0",
        "10.40.0.0.0",
        "10.40.0.",
        "10.40.0.256",
        "999.999.999.999",
        "010.40.0.1",
        "10.40.0.01",
        "10.40.0.-1",
        "10.40.0.+1",
        "10.40.0.1 ",
        "10.40.0.1\n",
        "10.40.0.٣",
        "0x0a.40.0.1",
        "10.40.0.1/32",
        "fe80::1%eth0",
        "1:2:3",
        ":::",
        "host",
    ],
)
def test_text_that_is_no_address_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(BadAddress, match="is not an IP address") as caught:
        parse_address(text)
    assert repr(text) in str(caught.value)


@given(st.text(alphabet="0123456789.:/abcdef %", max_size=20))
def test_what_is_read_is_what_the_standard_library_reads(text: str) -> None:
    try:
        expected: tuple[int, int] | None = (ipaddress.ip_address(text).version, int(ipaddress.ip_address(text)))
    except ValueError:
        expected = None
    try:
        assert parse_address(text) == expected
    except BadAddress:
        assert expected is None or "%" in text or (":" in text and "." in text)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("10.40.0.0/21", "10.40.0.0", "10.40.7.255"),
        ("0.0.0.0/0", "0.0.0.0", "255.255.255.255"),
        ("255.255.255.255/32", "255.255.255.255", "255.255.255.255"),
        ("10.0.0.0/31", "10.0.0.0", "10.0.0.1"),
        ("2001:db8::/64", "2001:db8::", "2001:db8::ffff:ffff:ffff:ffff"),
    ],
)
def test_a_network_is_its_first_and_last_address(text: str, first: str, last: str) -> None:
    family, addresses = parse_network(text)
    assert (address_text(addresses.first, family), address_text(addresses.last, family)) == (first, last)
    assert range_cidr(addresses, family) == text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("10.40.0.0", "add the length of its prefix"),
        ("10.40.0.0/", "its prefix must be a number from 0 to 32"),
        ("10.40.0.0/33", "its prefix must be a number from 0 to 32"),
        ("10.40.0.0/08", "its prefix must be a number from 0 to 32"),
        ("10.40.0.0/255.255.0.0", "its prefix must be a number from 0 to 32"),
        ("10.40.0.0/-1", "its prefix must be a number from 0 to 32"),
        ("2001:db8::/129", "its prefix must be a number from 0 to 128"),
        ("999.999.999.999/99", "write it as in 10.40.0.0/21"),
        ("10.40.0.5/21", "10.40.0.5/21 has bits set after its prefix: the network is 10.40.0.0/21"),
        ("2001:db8::1/64", "the network is 2001:db8::/64"),
    ],
)
def test_a_network_is_read_strictly(text: str, complaint: str) -> None:
    with pytest.raises(BadAddress) as caught:
        parse_network(text)
    assert complaint in str(caught.value)


def test_a_range_is_read_forward_and_in_one_family() -> None:
    assert parse_range("10.40.0.1", "10.40.0.1") == (Family.V4, span("10.40.0.1"))
    with pytest.raises(BadAddress, match=r"10\.40\.0\.1 comes before 10\.40\.0\.2: swap the two"):
        parse_range("10.40.0.2", "10.40.0.1")
    with pytest.raises(BadAddress, match="two families"):
        parse_range("10.40.0.2", "::1")


@pytest.mark.parametrize(
    ("addresses", "cidr"),
    [
        ("10.40.0.64-10.40.0.71", "10.40.0.64/29"),
        ("10.40.0.64-10.40.0.68", None),  # five addresses
        ("10.40.0.68-10.40.0.75", None),  # eight, but not aligned
        ("10.40.0.100", "10.40.0.100/32"),
        ("10.40.0.100-10.40.0.109", None),
        ("0.0.0.0-255.255.255.255", "0.0.0.0/0"),
    ],
)
def test_a_range_is_a_network_only_when_a_power_of_two_long_and_aligned(addresses: str, cidr: str | None) -> None:
    assert range_cidr(span(addresses), Family.V4) == cidr


def test_a_range_reads_as_its_ends_or_as_its_one_address() -> None:
    assert range_text(span("10.40.1.16-10.40.1.19"), Family.V4) == "10.40.1.16-10.40.1.19"
    assert range_text(span("10.40.1.16"), Family.V4) == "10.40.1.16"


@given(V4, st.integers(1, 2000))
def test_every_address_of_a_range_is_listed_in_order(first: int, size: int) -> None:
    last = min(first + size - 1, 2**32 - 1)
    expected = tuple(str(ipaddress.IPv4Address(value)) for value in range(first, last + 1))
    assert addresses_of(Range(first, last), Family.V4) == expected


def test_ipv6_addresses_are_listed_too() -> None:
    _, addresses = parse_range("2001:db8::ff", "2001:db8::101")
    assert addresses_of(addresses, Family.V6) == ("2001:db8::ff", "2001:db8::100", "2001:db8::101")


def test_the_largest_allocation_lists_65536_addresses() -> None:
    texts = addresses_of(span("10.0.0.0/16"), Family.V4)
    assert len(texts) == len(set(texts)) == 65536
    assert (texts[0], texts[-1]) == ("10.0.0.0", "10.0.255.255")
