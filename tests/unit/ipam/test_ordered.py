"""The ordered set of integers, against a plain set."""

from __future__ import annotations

import random

import pytest

from butler.ipam.ordered import Ordered


@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 5000])
def test_the_next_member_is_the_smallest_that_is_not_below(count: int) -> None:
    chance = random.Random(count)
    members = set(chance.sample(range(100_000), count))
    ordered = Ordered(members)
    for _ in range(4000):
        value = chance.randrange(100_000)
        if value in members:
            ordered.remove(value)
            members.remove(value)
        else:
            ordered.add(value)
            members.add(value)
        if chance.random() < 0.05:
            asked = chance.randrange(-5, 100_010)
            assert ordered.at_or_after(asked) == min((m for m in members if m >= asked), default=None)
    for member in sorted(members, key=lambda _: chance.random()):
        assert ordered.at_or_after(member) == member
        ordered.remove(member)
    assert ordered.at_or_after(0) is None


def test_members_beyond_64_bits_are_members_like_others() -> None:
    ordered = Ordered([2**127])
    ordered.add(2**127 + 5)
    assert ordered.at_or_after(2**127 + 1) == 2**127 + 5


def test_no_list_grows_without_limit() -> None:
    ordered = Ordered(())
    for member in range(20_000):
        ordered.add(member)
    assert max(len(members) for members in ordered._lists) <= 512
