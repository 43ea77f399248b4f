"""What a new allocation is told: seldom no, often what it is going to wait for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from butler.ipam.layout import FieldProblem
from butler.rules.admission_verdict import AdmissionVerdict
from butler.rules.allocation.admission import judge
from unit.webhooks.given import allocation, granted, intents, pool, reserved, window

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool


def pinned(start: str, end: str) -> dict[str, Any]:
    return {"pinnedRange": {"startAddress": start, "endAddress": end}}


class Told(NamedTuple):
    new: IPAllocation
    pool: NetworkPool | None
    warnings: list[str]
    elsewhere: tuple[str, ...] = ()
    allocations: tuple[IPAllocation, ...] = ()


NOW = datetime(2026, 1, 1, tzinfo=UTC)
FAILED = "the request will be Failed for now: "
RACK = pool(**window("10.40.0.10", "10.40.0.99"))
TOLD: dict[str, Told] = {
    "nothing": Told(allocation(count=5), RACK, []),
    "no such pool": Told(
        allocation(),
        None,
        ["there is no NetworkPool rack in namespace home: the request waits until it is created"],
    ),
    "the pool is elsewhere": Told(
        allocation(),
        None,
        ["there is no NetworkPool rack in namespace home; there is one in lab: the request waits until it is created"],
        elsewhere=("lab",),
    ),
    "the pool is invalid": Told(
        allocation(),
        pool(cidr="10.40.0.1/24"),
        [
            (
                "NetworkPool rack hands out nothing: spec.cidr: 10.40.0.1/24 has bits set after its prefix:"
                " the network is 10.40.0.0/24"
            )
        ],
    ),
    "pinned outside": Told(
        allocation(**pinned("10.40.0.95", "10.40.0.104")),
        RACK,
        [
            (
                f"{FAILED}10.40.0.95-10.40.0.104 is pinned, but 10.40.0.100 is outside what rack hands out"
                " (10.40.0.10-10.40.0.99): pin a range inside, or widen spec.tenantAllocation of the pool"
            )
        ],
    ),
    "pinned reserved": Told(
        allocation(**pinned("10.40.0.20", "10.40.0.24")),
        pool(**reserved("10.40.0.16/28")),
        [
            (
                f"{FAILED}10.40.0.20-10.40.0.24 is pinned, but 10.40.0.20 is reserved by 10.40.0.16/28: pin a range"
                " outside that block, or take the block out of spec.reserved of the pool"
            )
        ],
    ),
    "pinned and taken": Told(
        allocation(**pinned("10.40.0.20", "10.40.0.24")),
        RACK,
        [
            (
                f"{FAILED}10.40.0.20-10.40.0.24 is pinned, but 10.40.0.22 is held by db: pin a free range or"
                " release that allocation"
            )
        ],
        allocations=(granted("db", "10.40.0.22", "10.40.0.30"),),
    ),
    "pinned and being granted to another": Told(
        allocation(**pinned("10.40.0.20", "10.40.0.24")),
        pool(status=intents(("db", "10.40.0.1", "10.40.0.20"), ("lb", "10.40.0.24", "10.40.0.25"))),
        [
            (
                f"{FAILED}10.40.0.20-10.40.0.24 is pinned, but 10.40.0.20 is held by db and more of it by lb:"
                " pin a free range or release them"
            )
        ],
    ),
    "pinned beside a neighbour": Told(
        allocation(**pinned("10.40.0.20", "10.40.0.24")),
        RACK,
        [],
        allocations=(granted("db", "10.40.0.25", "10.40.0.30"),),
    ),
    "pinned with a count": Told(
        allocation(count=3, **pinned("10.40.0.20", "10.40.0.24")),
        RACK,
        ["spec.count: 3 is not looked at, because spec.pinnedRange says which addresses are wanted"],
    ),
    "more than the pool has": Told(
        allocation(count=91),
        RACK,
        [f"{FAILED}needs 91 contiguous addresses; rack hands out 90 in all: ask for 90 or fewer, or add a window"],
    ),
}


@pytest.mark.parametrize("case", TOLD)
def test_a_new_allocation_is_told_what_it_will_wait_for(case: str) -> None:
    told = TOLD[case]
    assert judge(told.new, told.pool, told.elsewhere, told.allocations) == AdmissionVerdict((), tuple(told.warnings))


def test_the_author_of_a_request_to_a_pool_on_its_way_out_is_warned() -> None:
    leaving = pool()
    leaving = type(leaving)(
        metadata=type(leaving.metadata)(name="rack", namespace="home", deletion_timestamp=NOW), spec=leaving.spec
    )
    assert judge(allocation(), leaving, (), ()).warnings == (
        "NetworkPool rack is being deleted and hands out nothing: use another pool",
    )


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            pinned("10.40.0.24", "10.40.0.20"),
            (
                "spec.pinnedRange",
                (
                    "10.40.0.24-10.40.0.20 is pinned, but 10.40.0.20 comes before 10.40.0.24: swap startAddress and"
                    " endAddress"
                ),
            ),
        ),
        (
            pinned("999.999.999.999", "10.40.0.20"),
            (
                "spec.pinnedRange",
                (
                    "the pinned range cannot be read: '999.999.999.999' is not an IP address: write it as in 10.40.1.0,"
                    " with no leading zeros"
                ),
            ),
        ),
        (
            {"count": 65537},
            (
                "spec.count",
                (
                    "asks for 65537 addresses, but one allocation may hold at most 65536: split it into several"
                    " allocations"
                ),
            ),
        ),
    ],
)
def test_what_makes_no_sense_is_refused_where_an_older_schema_let_it_pass(
    spec: dict[str, Any], problem: tuple[str, str]
) -> None:
    assert judge(allocation(**spec), RACK, (), ()) == AdmissionVerdict((FieldProblem(*problem),))
