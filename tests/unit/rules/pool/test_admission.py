"""What may be done to a pool: every refusal, word for word."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from butler.ipam.layout import FieldProblem
from butler.rules.admission_verdict import AdmissionVerdict
from butler.rules.pool.admission import judge, why_not_deleted
from unit.webhooks.given import granted, intents, pool, reserved, window, windows

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool

KEEP = "keep these addresses, or have them released first"
CHOOSE = "choose a network that no other pool uses"


class Edit(NamedTuple):
    old: NetworkPool | None
    new: NetworkPool
    problems: list[tuple[str, str]]
    others: tuple[NetworkPool, ...] = ()
    allocations: tuple[IPAllocation, ...] = ()


REFUSED: dict[str, Edit] = {
    "host bits": Edit(
        None,
        pool(cidr="10.40.0.1/24"),
        [("spec.cidr", "10.40.0.1/24 has bits set after its prefix: the network is 10.40.0.0/24")],
    ),
    "all faults at once": Edit(
        None,
        pool(**reserved("10.40.0.0/28", "10.40.0.8/29", "10.41.0.0/28")),
        [
            ("spec.reserved[2].cidr", "10.41.0.0/28 is outside the pool's network 10.40.0.0/24"),
            (
                "spec.reserved[1].cidr",
                "10.40.0.8/29 overlaps 10.40.0.0/28 of spec.reserved[0].cidr: keep one of the two",
            ),
        ],
    ),
    "a window that is reversed": Edit(
        None,
        pool(**window("10.40.0.9", "10.40.0.1")),
        [("spec.tenantAllocation.end", "end 10.40.0.1 comes before start 10.40.0.9")],
    ),
    "the network of another pool": Edit(
        None,
        pool(cidr="10.40.0.0/16"),
        [("spec.cidr", f"10.40.0.0/16 overlaps 10.40.0.0/24 of NetworkPool home/first: {CHOOSE}")],
        others=(pool("first"), pool("far", "10.41.0.0/24")),
    ),
    "the network of a pool in another namespace": Edit(
        None,
        pool(),
        [("spec.cidr", f"10.40.0.0/24 overlaps 10.40.0.128/25 of NetworkPool lab/rack: {CHOOSE}")],
        others=(pool("lab/rack", "10.40.0.128/25"),),
    ),
    "what another pool still hands out from": Edit(
        None,
        pool(),
        [
            (
                "spec.cidr",
                "10.40.0.0/24 overlaps 10.40.0.0/20, which NetworkPool home/moved still hands out from: " + CHOOSE,
            )
        ],
        others=(pool("moved", "10.50.0.0/20", status={"claimedCIDR": "10.40.0.0/20"}),),
    ),
    "many other pools": Edit(
        None,
        pool(cidr="10.40.0.0/16"),
        [
            (
                "spec.cidr",
                (
                    "10.40.0.0/16 overlaps 10.40.1.0/24 of NetworkPool home/p1; 10.40.2.0/24 of NetworkPool home/p2;"
                    f" 10.40.3.0/24 of NetworkPool home/p3 and 2 more pools: {CHOOSE}"
                ),
            )
        ],
        others=tuple(pool(f"p{i}", f"10.40.{i}.0/24") for i in range(5, 0, -1)),
    ),
    "growing into another pool": Edit(
        pool(cidr="10.40.0.0/24"),
        pool(cidr="10.40.0.0/23"),
        [("spec.cidr", f"10.40.0.0/23 overlaps 10.40.1.0/24 of NetworkPool home/next: {CHOOSE}")],
        others=(pool("next", "10.40.1.0/24"),),
    ),
    "overlapping more than before": Edit(
        pool(cidr="10.40.0.0/24"),
        pool(cidr="10.40.0.0/23"),
        [("spec.cidr", f"10.40.0.0/23 overlaps 10.40.0.0/16 of NetworkPool home/large: {CHOOSE}")],
        others=(pool("large", "10.40.0.0/16"),),
    ),
    "shrinking below what is in use": Edit(
        pool(),
        pool(cidr="10.40.0.0/25"),
        [("spec.cidr", f"10.40.0.0/25 would leave out addresses in use: web (10.40.0.200-10.40.0.204); {KEEP}")],
        allocations=(granted("web", "10.40.0.200", "10.40.0.204"), granted("low", "10.40.0.1", "10.40.0.5")),
    ),
    "shrinking through the middle of a range": Edit(
        pool(),
        pool(cidr="10.40.0.0/25"),
        [("spec.cidr", f"10.40.0.0/25 would leave out addresses in use: web (10.40.0.120-10.40.0.130); {KEEP}")],
        allocations=(granted("web", "10.40.0.120", "10.40.0.130"),),
    ),
    "moving away from what is in use": Edit(
        pool(),
        pool(cidr="10.99.0.0/24"),
        [("spec.cidr", f"10.99.0.0/24 would leave out addresses in use: web (10.40.0.9); {KEEP}")],
        allocations=(granted("web", "10.40.0.9", "10.40.0.9"),),
    ),
    "reserving what is in use": Edit(
        pool(),
        pool(**reserved("10.40.0.64/28", "10.40.0.192/28")),
        [
            (
                "spec.reserved[1].cidr",
                f"10.40.0.192/28 would take addresses in use: web (10.40.0.200-10.40.0.204); {KEEP}",
            )
        ],
        allocations=(granted("web", "10.40.0.200", "10.40.0.204"),),
    ),
    "a window that leaves out what is in use": Edit(
        pool(**window("10.40.0.10", "10.40.0.250")),
        pool(**window("10.40.0.10", "10.40.0.199")),
        [
            (
                "spec.tenantAllocation",
                f"the windows would leave out addresses in use: web (10.40.0.200-10.40.0.204); {KEEP}",
            )
        ],
        allocations=(granted("web", "10.40.0.200", "10.40.0.204"),),
    ),
    "windows that leave out what is in use": Edit(
        pool(),
        pool(**windows(("10.40.0.1", "10.40.0.99"), ("10.40.0.103", "10.40.0.254"))),
        [
            (
                "spec.tenantAllocation.ranges",
                f"the windows would leave out addresses in use: web (10.40.0.98-10.40.0.104); {KEEP}",
            )
        ],
        allocations=(granted("web", "10.40.0.98", "10.40.0.104"),),
    ),
    "dropping the window that reached to the edges": Edit(
        pool(**window("10.40.0.0", "10.40.0.255")),
        pool(),
        [("spec.tenantAllocation", f"the windows would leave out addresses in use: web (10.40.0.0); {KEEP}")],
        allocations=(granted("web", "10.40.0.0", "10.40.0.0"),),
    ),
    "what is just being granted": Edit(
        pool(status=intents(("web", "10.40.0.200", "10.40.0.204"))),
        pool(cidr="10.40.0.0/25"),
        [
            (
                "spec.cidr",
                "10.40.0.0/25 would leave out addresses in use: web (10.40.0.200-10.40.0.204, being granted); " + KEEP,
            )
        ],
    ),
    "what was granted and is still an intent counts once": Edit(
        pool(status=intents(("web", "10.40.0.200", "10.40.0.204"))),
        pool(cidr="10.40.0.0/25"),
        [("spec.cidr", f"10.40.0.0/25 would leave out addresses in use: web (10.40.0.200-10.40.0.204); {KEEP}")],
        allocations=(granted("web", "10.40.0.200", "10.40.0.204"),),
    ),
    "many in use": Edit(
        pool(),
        pool(cidr="10.40.0.0/25"),
        [
            (
                "spec.cidr",
                (
                    "10.40.0.0/25 would leave out addresses in use: a0 (10.40.0.200), a1 (10.40.0.201),"
                    f" a2 (10.40.0.202) and 7 more; {KEEP}"
                ),
            )
        ],
        allocations=tuple(granted(f"a{i}", f"10.40.0.{200 + i}", f"10.40.0.{200 + i}") for i in reversed(range(10))),
    ),
    "several fields at once": Edit(
        pool(),
        pool(cidr="10.40.0.0/25", **reserved("10.40.0.16/28")),
        [
            ("spec.cidr", f"10.40.0.0/25 would leave out addresses in use: high (10.40.0.200); {KEEP}"),
            ("spec.reserved[0].cidr", f"10.40.0.16/28 would take addresses in use: low (10.40.0.20); {KEEP}"),
        ],
        allocations=(granted("low", "10.40.0.20", "10.40.0.20"), granted("high", "10.40.0.200", "10.40.0.200")),
    ),
    "only what is newly stranded": Edit(
        pool(**window("10.40.0.1", "10.40.0.99")),
        pool(**window("10.40.0.1", "10.40.0.49")),
        [("spec.tenantAllocation", f"the windows would leave out addresses in use: web (10.40.0.60); {KEEP}")],
        allocations=(granted("web", "10.40.0.60", "10.40.0.60"), granted("stranded", "10.40.0.200", "10.40.0.200")),
    ),
    "a pool that could not be read, and held its claim": Edit(
        pool(cidr="10.40.0.7/24", status={"claimedCIDR": "10.40.0.0/24"}),
        pool(cidr="10.40.0.0/25"),
        [("spec.cidr", f"10.40.0.0/25 would leave out addresses in use: web (10.40.0.200); {KEEP}")],
        allocations=(granted("web", "10.40.0.200", "10.40.0.200"), granted("far", "10.99.0.1", "10.99.0.1")),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_edit_is_refused_for_what_it_would_break(case: str) -> None:
    edit = REFUSED[case]
    found = judge(edit.old, edit.new, edit.others, edit.allocations)
    assert list(found.problems) == [FieldProblem(*problem) for problem in edit.problems]


ALLOWED: dict[str, Edit] = {
    "a first pool": Edit(None, pool(), []),
    "a neighbour": Edit(None, pool(), [], others=(pool("next", "10.40.1.0/24"),)),
    "itself in the list of pools": Edit(None, pool(), [], others=(pool(),)),
    "beside a pool that cannot be read": Edit(None, pool(), [], others=(pool("bad", "fd00::/64"), pool("odd", "x"))),
    "growing": Edit(pool(), pool(cidr="10.40.0.0/22"), [], allocations=(granted("web", "10.40.0.1", "10.40.0.5"),)),
    "shrinking to what is in use": Edit(
        pool(), pool(cidr="10.40.0.128/25"), [], allocations=(granted("web", "10.40.0.129", "10.40.0.254"),)
    ),
    "moving while nothing is in use": Edit(pool(), pool(cidr="192.168.0.0/16"), []),
    "reserving what is free": Edit(
        pool(), pool(**reserved("10.40.0.16/28")), [], allocations=(granted("web", "10.40.0.32", "10.40.0.40"),)
    ),
    "two windows where one was": Edit(
        pool(**window("10.40.0.10", "10.40.0.20")),
        pool(**windows(("10.40.0.10", "10.40.0.14"), ("10.40.0.15", "10.40.0.20"))),
        [],
        allocations=(granted("web", "10.40.0.12", "10.40.0.17"),),
    ),
    "in use from another pool, namespace or not at all": Edit(
        pool(),
        pool(cidr="10.40.0.0/25"),
        [],
        allocations=(
            granted("other", "10.40.0.200", "10.40.0.200", of="another"),
            granted("far", "10.40.0.201", "10.40.0.201", namespace="lab"),
            granted("done", "10.40.0.202", "10.40.0.202", phase="Released"),
        ),
    ),
    "giving up an overlap that was there": Edit(
        pool(cidr="10.40.0.0/16"), pool(cidr="10.40.0.0/20"), [], others=(pool("first", "10.40.0.0/24"),)
    ),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_an_edit_that_breaks_nothing_is_allowed(case: str) -> None:
    edit = ALLOWED[case]
    assert judge(edit.old, edit.new, edit.others, edit.allocations).problems == ()


def test_a_stranded_pool_can_be_edited_and_its_author_is_warned() -> None:
    old, new = pool(**window("10.40.0.1", "10.40.0.99")), pool(**window("10.40.0.1", "10.40.0.150"))
    found = judge(old, new, (), (granted("web", "10.40.0.200", "10.40.0.204"),))
    assert found == AdmissionVerdict(
        (), ("in use, and outside what this pool hands out: web (10.40.0.200-10.40.0.204)",)
    )


def test_a_pool_that_overlaps_already_can_be_edited_and_its_author_is_warned() -> None:
    found = judge(pool(cidr="10.40.0.0/23"), pool(cidr="10.40.0.0/24"), (pool("first"),), ())
    assert found == AdmissionVerdict(
        (), ("spec.cidr: 10.40.0.0/24 still overlaps 10.40.0.0/24 of NetworkPool home/first",)
    )


def test_a_record_that_cannot_be_read_may_be_any_address_and_keeps_its_pool() -> None:
    broken = granted("web", "10.40.0.9", "10.40.0.1")
    refused = judge(pool(), pool(cidr="10.40.0.0/25"), (), (broken,)).problems
    assert ["web (10.40.0.9-10.40.0.1)" in problem.message for problem in refused] == [True]
    assert judge(pool(), pool(), (), (broken,)).problems == ()
    assert "web (10.40.0.9-10.40.0.1)" in why_not_deleted(pool(), (broken,))


def test_defaults_that_the_pool_can_never_meet_are_warned_of() -> None:
    assert judge(None, pool(cidr="10.40.0.0/29"), (), ()).warnings == (
        (
            "spec.tenantAllocation.defaults.lbPoolPerTenant: requests without a count ask for 8 addresses in a row,"
            " but this pool has at most 6: they will fail"
        ),
    )


def test_a_pool_in_use_is_not_deleted() -> None:
    used = (granted("web", "10.40.0.8", "10.40.0.12"), granted("db", "10.40.0.1", "10.40.0.5"))
    busy = pool(status=intents(("new", "10.40.0.20", "10.40.0.24")))
    assert why_not_deleted(busy, used) == (
        "NetworkPool rack (10.40.0.0/24) has addresses in use: db (10.40.0.1-10.40.0.5), web (10.40.0.8-10.40.0.12),"
        " new (10.40.0.20-10.40.0.24, being granted); have them released first"
        " (kubectl get ipallocations -n home shows whose they are)"
    )


def test_a_pool_with_an_open_intent_alone_is_not_deleted() -> None:
    assert "new (10.40.0.20, being granted)" in why_not_deleted(
        pool(status=intents(("new", "10.40.0.20", "10.40.0.20"))), ()
    )


def test_a_pool_goes_when_nothing_of_it_is_in_use() -> None:
    others = (
        granted("done", "10.40.0.1", "10.40.0.5", phase="Released"),
        granted("asks", "10.40.0.1", "10.40.0.5", phase="Failed"),
        granted("far", "10.40.0.1", "10.40.0.5", namespace="lab"),
        granted("near", "10.40.0.1", "10.40.0.5", of="another"),
    )
    assert why_not_deleted(pool(), others) == ""
