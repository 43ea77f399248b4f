"""A status of an IPAllocation that makes no sense: written before the rules of the definition, or with an older one.

It may stand for any address of its pool, so the pool hands out nothing until it is put right, and a restart of the
controllers changes nothing about that. Other pools go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ipam_operator import ALLOCATIONS, POOLS, Desk, RunningOperator, fresh_desk
from local.older_definition import older_definition, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane


@pytest.fixture
def desk(control_plane: ControlPlane, definitions: None) -> Iterator[Desk]:
    with fresh_desk(control_plane) as desk:
        yield desk


ODD = {
    "a letter": {"startAddress": "10.1.0.1O"},
    "no end": {"endAddress": None},
    "no range": {"startAddress": None, "endAddress": None},
    "a time that is none": {"allocatedAt": "2026-02-15T10:00:30+24:00"},
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_status_that_makes_no_sense_stops_its_pool_also_after_a_restart(
    control_plane: ControlPlane, desk: Desk, odd: dict[str, Any]
) -> None:
    desk.pool("pool", "10.1.0.0/24", "10.1.0.10-10.1.0.17")
    desk.pool("beside", "10.2.0.0/24")
    with RunningOperator(control_plane, desk.namespace):
        desk.ask("first", 4)
        assert desk.granted("first") == "10.1.0.10-10.1.0.13"
        before = desk.status(ALLOCATIONS, "first")
        with older_definition(desk):
            write(desk, "first", odd)
            assert "IPAllocation first cannot be read" in desk.ready("pool", "AllocationUnreadable")
    with RunningOperator(control_plane, desk.namespace):
        desk.ask("second", pinned="10.1.0.10-10.1.0.11")
        assert "hands out nothing" in desk.failed("second", "PoolNotReady")
        desk.ask("third", 2, of="beside")
        desk.granted("third")
        assert "IPAllocation first cannot be read" in desk.ready("pool", "AllocationUnreadable")
        # Put right by hand, which no rule forbids for a range that cannot be read.
        write(desk, "first", {name: before[name] for name in odd})
        desk.ready("pool")
        assert "first" in desk.failed("second", "PinnedRangeConflict")
        assert desk.status(POOLS, "pool")["allocatedIPs"] == 4
