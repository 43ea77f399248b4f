"""What is published to a tenant's MetalLB, when it is written, and what counts as another client's change."""

from typing import Any

import pytest

from butler.ipam.addresses import BadAddress, Family, Range
from butler.tenant.metallb import (
    LONGEST_MESSAGE,
    MetalLBStanding,
    address_pool,
    addresses,
    advertisement,
    differs,
    drift_of,
    entry_range,
    ipv4_range,
)
from unit.tenant.pools import DRAINED_BY, IPAM, A, B, Json, live, ranges, spec_of


def test_the_pool_is_as_the_contract_says() -> None:
    assert address_pool(ranges("10.40.1.8-10.40.1.15")) == {
        "apiVersion": "metallb.io/v1beta1",
        "kind": "IPAddressPool",
        "metadata": {
            "name": "default-pool",
            "namespace": "metallb-system",
            "labels": {"app.kubernetes.io/managed-by": "butler"},
        },
        "spec": {"addresses": ["10.40.1.8-10.40.1.15"], "autoAssign": True, "avoidBuggyIPs": False},
    }


def test_a_drain_says_who_drains_and_hands_nothing_out() -> None:
    made = address_pool(ranges(A), auto_assign=False, drained_by="controller-7")
    assert made["metadata"]["annotations"] == {DRAINED_BY: "controller-7"}
    assert made["spec"] == spec_of(A, autoAssign=False)


def test_the_advertisement_names_the_pool_and_no_other() -> None:
    made = advertisement()
    assert (made["kind"], made["metadata"]["name"]) == ("L2Advertisement", "default")
    assert made["spec"] == {"ipAddressPools": ["default-pool"]}


def test_adjacent_ranges_stay_apart_one_address_is_a_range_and_order_is_of_no_matter() -> None:
    given = ranges("10.40.1.16-10.40.1.16", "10.40.1.8-10.40.1.15", "10.40.1.0-10.40.1.7")
    wanted = ["10.40.1.0-10.40.1.7", "10.40.1.8-10.40.1.15", "10.40.1.16-10.40.1.16"]
    assert addresses(given) == addresses(given[::-1]) == wanted


def test_the_other_family_is_written_too() -> None:
    assert addresses([Range(0xFD00 << 112, (0xFD00 << 112) + 7)], family=Family.V6) == ["fd00::-fd00::7"]


@pytest.mark.parametrize(
    ("spec", "owned", "auto_assign", "changes"),
    [
        (spec_of(A), {}, True, False),
        (spec_of(A), {"addresses": IPAM}, True, False),
        (spec_of(A) | {"serviceAllocation": {}}, {"serviceAllocation": "kubectl-edit"}, True, False),
        (spec_of(A) | {"serviceAllocation": {}}, {"serviceAllocation": IPAM}, True, True),
        (spec_of(A, autoAssign=False), {"autoAssign": "kubectl-edit"}, True, True),
        (spec_of(A, autoAssign=False), {"autoAssign": IPAM}, True, True),
        (spec_of(A, autoAssign=False), {}, False, False),
        (spec_of(A), {}, False, True),
        (spec_of(A, avoidBuggyIPs=True), {}, True, True),
        ({"addresses": [A]}, {}, True, True),
        (spec_of(A, B), {}, True, True),
        (spec_of(), {}, True, True),
        ({}, {}, True, True),
        (spec_of() | {"addresses": A}, {}, True, True),
        ("garbage", {}, True, True),
    ],
)
def test_only_a_difference_is_written(spec: Json, owned: dict[str, str], auto_assign: bool, changes: bool) -> None:
    assert differs(address_pool(ranges(A), auto_assign=auto_assign), live(spec, **owned)) is changes


def test_another_drain_is_a_difference_even_where_nothing_else_is() -> None:
    drained = live(spec_of(A, autoAssign=False))
    drained["metadata"]["annotations"] = {DRAINED_BY: "one", "their/own": "note"}
    assert not differs(address_pool(ranges(A), auto_assign=False, drained_by="one"), drained)
    assert differs(address_pool(ranges(A), auto_assign=False, drained_by="two"), drained)


@pytest.mark.parametrize(("manager", "operation", "changes"), [
    (IPAM, "Apply", True), (IPAM, "Update", False), ("kubectl-edit", "Update", False),
])  # fmt: skip
def test_a_mark_of_a_drain_is_taken_off_where_an_apply_can_do_so(manager: str, operation: str, changes: bool) -> None:
    """Else it would be tried for ever."""
    marked = live(spec_of(A))
    marked["metadata"]["annotations"] = {DRAINED_BY: "one"}
    fields: Json = {"f:metadata": {"f:annotations": {".": {}, f"f:{DRAINED_BY}": {}}}}
    marked["metadata"]["managedFields"] = [{"manager": manager, "operation": operation, "fieldsV1": fields}]
    assert differs(address_pool(ranges(A)), marked) is changes
    assert not differs(address_pool(ranges(A), drained_by="one"), marked)


def test_what_was_created_and_not_applied_is_ours_but_nothing_that_an_apply_gives_up() -> None:
    created = live(spec_of(B) | {"old": 1})
    created["metadata"]["managedFields"] = [
        {"manager": IPAM, "operation": "Update", "fieldsV1": {"f:spec": {"f:addresses": {}, "f:old": {}}}}
    ]
    assert not differs(address_pool(ranges(B)), created)
    assert drift_of(address_pool(ranges(A)), created) == ()


def test_a_missing_object_and_a_missing_label_are_differences() -> None:
    wanted = address_pool(ranges(A))
    assert differs(wanted, None)
    unlabelled = live(spec_of(A))
    unlabelled["metadata"] = {**unlabelled["metadata"], "labels": None}
    assert differs(wanted, unlabelled)


@pytest.mark.parametrize(
    "managed", [None, 7, [7], [{"manager": IPAM}], [{"fieldsV1": {"f:spec": []}}], [{"fieldsV1": 7}]]
)
def test_managed_fields_of_any_shape_are_survived(managed: Any) -> None:
    odd = live(spec_of(A))
    odd["metadata"]["managedFields"] = managed
    assert not differs(address_pool(ranges(A)), odd)
    assert drift_of(address_pool(ranges(B)), odd)


def test_what_another_program_wrote_is_drift_and_what_we_wrote_is_not() -> None:
    wanted = address_pool(ranges(A))
    theirs = live(spec_of("10.0.0.0/8"), addresses="kubectl-edit", autoAssign=IPAM)
    assert drift_of(wanted, theirs) == ("IPAddressPool default-pool: addresses was 10.0.0.0/8 (set by kubectl-edit)",)
    assert drift_of(wanted, live(spec_of(B, autoAssign=False), addresses=IPAM, autoAssign=IPAM)) == ()
    assert drift_of(wanted, live(spec_of(A), addresses="kubectl-edit")) == ()
    assert drift_of(wanted, None) == ()


def test_a_field_that_was_never_set_is_no_drift() -> None:
    """Pools of earlier versions of Butler say nothing but addresses."""
    assert drift_of(address_pool(ranges(A)), live({"addresses": [A]}, addresses=IPAM)) == ()
    assert drift_of(address_pool(ranges(A)), live({})) == ()


@pytest.mark.parametrize("spec", [None, 7, [], "garbage"])
def test_a_spec_of_any_shape_is_survived(spec: Any) -> None:
    assert drift_of(address_pool(ranges(A)), live(spec)) == ()
    assert MetalLBStanding(live(spec), None).addresses == ()
    assert differs(address_pool(ranges(A)), live(spec))


def test_a_story_of_drift_stays_short() -> None:
    (told,) = drift_of(address_pool(ranges(A)), live({"addresses": ["10.0.0.0/8"] * 10000}))
    assert len(told) == LONGEST_MESSAGE


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("10.40.0.1-10.40.0.4", "10.40.0.1-10.40.0.4"), (" 10.40.0.1 - 10.40.0.1 ", "10.40.0.1-10.40.0.1"),
        ("10.40.0.7/30", "10.40.0.4-10.40.0.7"), ("10.40.0.5/32", "10.40.0.5-10.40.0.5"), ("fd00::5/127", None),
    ],
)  # fmt: skip
def test_entries_are_read_as_metallb_reads_them(text: str, read: str | None) -> None:
    family, found = entry_range(text)
    assert family is (Family.V4 if read else Family.V6)
    assert ipv4_range(text) == (found if read else None)
    assert addresses([found], family=family) == [read or "fd00::4-fd00::5"]


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "10.40.0.1", "10.40.0.0/33", "10.40.0.0/x", "10.40.0.0/" + "9" * 5000, "10.40.0.4-10.40.0.1",
     "10.40.0.1-fd00::1", "a-b-c"],
)  # fmt: skip
def test_an_entry_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(BadAddress):
        entry_range(text)
    assert ipv4_range(text) is None
