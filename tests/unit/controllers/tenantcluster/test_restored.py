"""Which clusters lack the note that they were built in another life."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from butler.api.conditions import with_condition
from butler.api.labels import Annotation, ConditionType, Label, TenantClusterReason
from butler.controllers.tenantcluster.restored import built_as, came_back, missing_note
from unit.controllers.tenantcluster.values import NOW, UID, allocation, cluster, started, with_status

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.api.tenantcluster import TenantCluster

OLD = "0a1b2c3d-of-that-life"
MINE = allocation("web-nodes", "nodes", start="10.40.0.10")


def restored(owner: str = OLD) -> IPAllocation:
    labels = {Label.TENANT_UID.value: owner}
    annotations = {Annotation.GRANTED.value: "10.40.0.10-10.40.0.14 another"}
    return msgspec.structs.replace(
        MINE, metadata=msgspec.structs.replace(MINE.metadata, labels=labels, annotations=annotations)
    )


def built_in(home: str) -> TenantCluster:
    bare = cluster()
    return with_status(bare, msgspec.structs.replace(bare.status, tenant_namespace=home))


def told(of: TenantCluster) -> TenantCluster:
    conditions = with_condition(
        of.status.conditions,
        type=ConditionType.INFRASTRUCTURE_READY,
        status=False,
        reason=TenantClusterReason.RESTORED,
        message="it comes from a backup",
        now=NOW,
    )
    return with_status(of, msgspec.structs.replace(of.status, conditions=conditions))


def test_its_allocations_tell_where_it_was_built_and_so_does_a_status_that_came_along() -> None:
    assert missing_note(cluster(), [restored()]) == f"web-0a1b2c3d {OLD}"
    assert missing_note(built_in("web-before"), [restored()]) == f"web-before {OLD}"
    note = missing_note(built_in("web-before"), [])
    assert note == "web-before unknown"
    blocked = came_back(cluster(annotations={Annotation.BUILT_AS.value: note}))
    assert blocked is not None
    assert "web-before" in blocked.message


def test_nothing_is_missing_where_all_is_of_this_life_or_the_note_was_there() -> None:
    assert missing_note(cluster(), [MINE]) is None
    assert missing_note(cluster(), [restored(UID)]) is None
    assert missing_note(started(cluster()), [restored()]) is None
    assert missing_note(cluster(annotations={Annotation.BUILT_AS.value: built_as(cluster())}), [restored()]) is None
    assert missing_note(told(cluster()), [restored()]) is None, "a person took it away"
    assert missing_note(told(built_in("web-before")), [restored()]) is None, "a person took it away"
