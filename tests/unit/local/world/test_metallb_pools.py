"""IPAddressPools as MetalLB reads them: all of them together, or none."""

from __future__ import annotations

import pytest

from butler.ipam.addresses import Family
from butler.local.world.metallb_pools import UnusablePools, configuration, parse_block, uses_namespace_labels
from unit.local.world.given import ip, pool, pools


@pytest.mark.parametrize(
    ("line", "first", "last"),
    [
        ("10.0.0.0/30", "10.0.0.0", "10.0.0.3"),
        ("10.0.0.7/30", "10.0.0.4", "10.0.0.7"),
        ("10.0.0.5-10.0.0.5", "10.0.0.5", "10.0.0.5"),
        (" 10.0.0.5 - 10.0.0.9 ", "10.0.0.5", "10.0.0.9"),
        ("fc00::/126", "fc00::", "fc00::3"),
        ("::ffff:10.0.0.1-10.0.0.2", "10.0.0.1", "10.0.0.2"),
    ],
)
def test_a_line_is_a_network_or_a_range(line: str, first: str, last: str) -> None:
    block = parse_block(line)
    assert block is not None
    assert (block.family, block.range.first, block.range.last) == (*ip(first), ip(last).value)


def test_a_range_between_two_families_holds_nothing() -> None:
    assert parse_block("10.0.0.1-fc00::1") is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("10.0.0.x/32", 'invalid CIDR "10.0.0.x/32"'),
        ("10.0.0.9", 'invalid CIDR "10.0.0.9"'),
        ("10.0.0.9 - x", 'invalid IP range "10.0.0.9 - x": invalid end IP " x"'),
        ("-10.0.0.9", 'invalid IP range "-10.0.0.9": invalid start IP ""'),
        (
            "10.0.0.9-10.0.0.4",
            'invalid IP range "10.0.0.9-10.0.0.4": start IP "10.0.0.9" is after the end IP "10.0.0.4"',
        ),
        (
            "fd00::1-10.0.0.10",
            'invalid IP range "fd00::1-10.0.0.10": start IP "fd00::1" is after the end IP "10.0.0.10"',
        ),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_metallb(line: str, why: str) -> None:
    with pytest.raises(UnusablePools) as refused:
        configuration([pool("good", "10.0.0.0/24"), pool("bad", line)])
    assert str(refused.value) == f'parsing address pool bad: invalid CIDR "{line}" in pool "bad": {why}'


def test_of_pools_that_overlap_the_first_networks_that_do_are_named() -> None:
    with pytest.raises(UnusablePools) as refused:
        configuration([pool("a", "10.0.0.10-10.0.0.19"), pool("b", "10.0.0.13-10.0.0.14")])
    assert str(refused.value) == ('CIDR "10.0.0.13/32" in pool "b" overlaps with already defined CIDR "10.0.0.12/30"')


@pytest.mark.parametrize(
    ("lines", "careful", "v4", "v6"),
    [
        ("10.0.0.1-10.0.0.10 10.0.1.0/24", False, 266, 0),
        ("10.0.1.0/24 10.0.2.0/23 10.0.4.254-10.0.5.1", True, 254 + 508 + 2, 0),
        ("10.0.0.0/32", True, -1, 0),  # so it is counted by MetalLB
        ("fd00::/120 10.0.0.0-10.0.0.4", True, 4, 256),
        ("fd00::/64 fd01::/64", False, 0, 2**63 - 1),
        ("::1-10.0.0.1", False, 0, 0),
    ],
)
def test_addresses_are_counted_as_metallb_counts_them(lines: str, careful: bool, v4: int, v6: int) -> None:
    found = configuration([pool("a", *lines.split(), avoidBuggyIPs=careful)])["a"]
    assert (found.size(Family.V4), found.size(Family.V6)) == (v4, v6)


@pytest.mark.parametrize(
    "line", ["", "10.0.0.1", "10.0.0.9-10.0.0.1", "10.0.0.1-", "ten-eleven", "10.0.0.0/33", "10.0.0.0/255.255.255.0"]
)
def test_a_line_that_makes_no_sense_makes_all_pools_unusable(line: str) -> None:
    with pytest.raises(UnusablePools):
        configuration([pool("good", "10.0.0.0/24"), pool("bad", line)])


def test_a_pool_without_addresses_makes_all_pools_unusable() -> None:
    with pytest.raises(UnusablePools, match="parsing address pool empty: pool has no prefixes defined"):
        configuration([pool("good", "10.0.0.0/24"), pool("empty")])


@pytest.mark.parametrize("other", ["10.0.0.255-10.0.1.0", "10.0.0.0/8", "10.0.0.7-10.0.0.7"])
def test_no_address_may_stand_in_two_places(other: str) -> None:
    with pytest.raises(UnusablePools, match="overlap"):
        configuration([pool("a", "10.0.0.0/24"), pool("b", other)])
    with pytest.raises(UnusablePools, match="overlap"):
        configuration([pool("a", "10.0.0.0/24", other)])


def test_pools_are_for_everyone_unless_they_say_for_whom() -> None:
    gold = {"metadata": {"name": "shop", "labels": {"tier": "gold"}}}
    found = configuration(
        [
            pool("all", "10.0.0.0/24"),
            pool("named", "10.1.0.0/24", serviceAllocation={"namespaces": ["team"]}),
            pool(
                "labelled", "10.2.0.0/24", serviceAllocation={"namespaceSelectors": [{"matchLabels": {"tier": "gold"}}]}
            ),
            pool("chosen", "10.3.0.0/24", serviceAllocation={"serviceSelectors": [{"matchLabels": {"app": "web"}}]}),
        ],
        [gold],
    )
    served = {
        place: [name for name, pool in found.items() if pool.serves(place, {"app": app})]
        for place, app in (("team", "db"), ("shop", "web"), ("else", "db"))
    }
    assert served == {"team": ["all", "named"], "shop": ["all", "chosen", "labelled"], "else": ["all"]}


def test_a_namespace_named_twice_and_a_wrong_selector_are_unusable() -> None:
    with pytest.raises(UnusablePools):
        configuration([pool("a", "10.0.0.0/24", serviceAllocation={"namespaces": ["x", "x"]})])
    with pytest.raises(UnusablePools):
        configuration([pool("a", "10.0.0.0/24", serviceAllocation={"serviceSelectors": [{}, {}]})])
    twice = {"serviceSelectors": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "b"]}]}]}
    with pytest.raises(UnusablePools, match="match expression value"):
        configuration([pool("a", "10.0.0.0/24", serviceAllocation=twice)])
    bad = {"serviceSelectors": [{"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}]}
    with pytest.raises(UnusablePools):
        configuration([pool("a", "10.0.0.0/24", serviceAllocation=bad)])


def test_namespaces_matter_only_where_a_pool_asks_for_their_labels() -> None:
    assert not uses_namespace_labels([pool("a", "10.0.0.0/24", serviceAllocation={"namespaces": ["x"]})])
    assert uses_namespace_labels([pool("a", "10.0.0.0/24", serviceAllocation={"namespaceSelectors": [{}]})])


def test_addresses_that_confuse_old_equipment_are_passed_over_where_asked() -> None:
    careful = configuration([pool("a", "10.0.0.0/23", avoidBuggyIPs=True)])["a"]
    assert [careful.offers(ip(text)) for text in ("10.0.0.0", "10.0.0.255", "10.0.1.0", "10.0.1.1")] == [
        False,
        False,
        False,
        True,
    ]
    assert pools(a="10.0.0.0/23")["a"].offers(ip("10.0.0.255"))
