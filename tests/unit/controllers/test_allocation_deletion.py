"""What the deletion of an allocation waits for: plain values in, a reason or none out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from butler.api.labels import Annotation, DeletionReason
from butler.rules.allocation.deletion import Home, Observed, grounds, judge
from butler.rules.machines import MachineAddresses, read_machine
from butler.rules.tenant.node_addresses import Fleet, give_up
from unit.controllers.tenantcluster.values import NOW, UID, allocation, cluster

HOME = "web-01234567"


def deleted(name: str = "web-nodes", kind: str = "nodes", *, insists: str | None = None, **values: Any) -> Any:
    """An allocation with two addresses from .20 on that is being deleted."""
    values.setdefault("start", "10.40.0.20")
    made = allocation(name, kind, values.pop("count", 2), **values)
    annotations = {Annotation.FORCE_DELETE.value: insists} if insists else {}
    meta = msgspec.structs.replace(made.metadata, deletion_timestamp=NOW, annotations=annotations)
    return msgspec.structs.replace(made, metadata=meta)


def marked(name: str) -> Any:
    """One that a controller has begun to take back."""
    made = deleted(name)
    return msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, draining_since=NOW))


def damaged() -> Any:
    """One whose status does not say what it holds: every address may be meant."""
    made = deleted()
    return msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, start_address="10.40.0.2O"))


def owner(*, built: bool = True, going: bool = False) -> Any:
    made = cluster()
    status = msgspec.structs.replace(made.status, tenant_namespace=HOME if built else None)
    meta = msgspec.structs.replace(made.metadata, deletion_timestamp=NOW if going else None)
    return msgspec.structs.replace(made, metadata=meta, status=status)


INSIDE, OUTSIDE = MachineAddresses("m-1", ("10.40.0.21",)), MachineAddresses("m-2", ("10.40.0.30",))
BOOTING, ONLY_V6 = MachineAddresses("m-3", ()), MachineAddresses("m-4", ("fd00::1",))


@pytest.mark.parametrize(
    ("subject", "seen", "reason", "names"),
    [
        (deleted(), Observed(None), None, ""),
        (deleted(), Observed(owner(built=False)), None, ""),
        (deleted(kind="loadbalancer"), Observed(owner(built=False)), None, ""),
        (deleted(), Observed(owner(built=False), another_first=True), DeletionReason.DRAINING, "another block"),
        (deleted(), Observed(owner(), HOME, (INSIDE,)), DeletionReason.IN_USE, "m-1 (10.40.0.21)"),
        (deleted(), Observed(owner(), HOME, (BOOTING,)), DeletionReason.IN_USE, "m-3"),
        (deleted(), Observed(owner(), HOME, (ONLY_V6,)), DeletionReason.IN_USE, "m-4"),
        (deleted(), Observed(owner(), HOME, (OUTSIDE,)), DeletionReason.DRAINING, "no machine"),
        (deleted(), Observed(owner(), HOME, None), DeletionReason.UNKNOWN, "cannot be listed"),
        (deleted(), Observed(owner(), None), DeletionReason.DRAINING, "no machine"),
        (deleted(), Observed(owner(going=True), HOME, (INSIDE,)), DeletionReason.IN_USE, "is being deleted"),
        (deleted(kind="loadbalancer"), Observed(owner(), HOME, ()), DeletionReason.UNKNOWN, "drained"),
        (deleted(insists="web-nodes"), Observed(owner(), HOME, (INSIDE,)), None, ""),
        (deleted(insists="yes"), Observed(owner(), HOME, (INSIDE,)), DeletionReason.IN_USE, "m-1"),
        (deleted(), Observed(None, left_behind=(Home(HOME, ()),)), None, ""),
        (deleted(), Observed(None, left_behind=(Home(HOME, (OUTSIDE,)),)), None, ""),
        (deleted(), Observed(None, left_behind=(Home(HOME, (INSIDE,)),)), DeletionReason.IN_USE, "m-1"),
        (
            deleted(kind="loadbalancer"),
            Observed(None, left_behind=(Home(HOME, (OUTSIDE,)),)),
            DeletionReason.IN_USE,
            "m-2",
        ),
        (deleted(), Observed(None, left_behind=(Home(HOME, None),)), DeletionReason.UNKNOWN, "cannot be listed"),
        (deleted(), Observed(owner(built=False), left_behind=(Home(HOME, (INSIDE,)),)), DeletionReason.IN_USE, "m-1"),
        (deleted(), Observed(owner(), HOME, (OUTSIDE,), (Home("web-0", (INSIDE,)),)), DeletionReason.IN_USE, "web-0"),
        (deleted(phase="Failed", start=None), Observed(owner(), HOME, (INSIDE,)), None, ""),
        (damaged(), Observed(owner(), HOME, (OUTSIDE,)), DeletionReason.IN_USE, "m-2"),
    ],
)
def test_what_may_use_the_addresses_keeps_them(
    subject: Any, seen: Observed, reason: DeletionReason | None, names: str
) -> None:
    found = judge(subject, seen)
    assert (found.reason if found else None) == reason
    assert names in (found.message if found else "")


def test_who_insists_is_on_record() -> None:
    assert "insisted on" in grounds(deleted(insists="web-nodes")).because
    assert grounds(deleted()).because == "deleted by request"


# What a cluster can do without.


def stays(name: str = "web-nodes", start: str = "10.40.0.10", count: int = 5) -> Any:
    return allocation(name, "nodes", count, start=start)


@pytest.mark.parametrize(
    ("held", "fleet", "wanted", "at_once", "later"),
    [
        ([stays()], Fleet((), built=True), 1, [], []),
        ([stays(), deleted("more")], Fleet((INSIDE,), built=True), 1, [], []),
        ([stays(), deleted("more")], Fleet((OUTSIDE,), built=True), 1, [], ["more"]),
        ([stays(), deleted("more")], Fleet((OUTSIDE, BOOTING), built=True), 1, [], []),
        ([stays(), deleted("more")], Fleet((OUTSIDE,), built=True), 6, [], []),
        ([deleted("only")], Fleet((OUTSIDE,), built=True), 1, [], []),
        ([deleted("only")], Fleet((), built=True), 1, [], []),
        ([deleted("only")], Fleet((), built=True), 0, ["only"], []),
        ([deleted("only")], Fleet((), built=False), 1, [], []),
        ([stays(), deleted("more")], Fleet((), built=True), 0, [], ["more"]),
        ([deleted("only")], Fleet((), built=True, desired=1), 0, [], []),
        ([deleted("only")], Fleet((), built=False), 0, [], []),
        ([marked("only")], Fleet((), built=True), 1, ["only"], []),
        ([marked("only")], Fleet((), built=True, desired=1), 1, [], []),
        ([marked("only")], Fleet((INSIDE,), built=True), 1, [], []),
        ([stays(), marked("more")], Fleet((INSIDE,), built=True), 6, [], ["more"]),
        ([stays(count=1), deleted("b"), deleted("c", start="10.40.0.40")], Fleet((OUTSIDE,), True), 3, [], ["b"]),
        ([deleted("lb", "loadbalancer")], Fleet((), built=False), 1, [], []),
    ],
)
def test_a_node_range_is_given_up_if_no_machine_can_need_it(
    held: list[Any], fleet: Fleet, wanted: int, at_once: list[str], later: list[str]
) -> None:
    found = give_up(held, fleet, wanted)
    assert [item.metadata.name for item in found.at_once] == at_once
    assert [item.metadata.name for item in found.once_withdrawn] == later


@pytest.mark.parametrize(
    "machine",
    [{}, {"metadata": None, "status": 3}, {"metadata": {"name": "m"}, "status": {"addresses": [3, {"type": "x"}]}}],
)
def test_a_machine_of_any_shape_is_read(machine: dict[str, Any]) -> None:
    assert read_machine(machine).addresses == ()


def test_the_uid_of_the_owner_is_that_of_the_values() -> None:
    assert owner().metadata.uid == UID
