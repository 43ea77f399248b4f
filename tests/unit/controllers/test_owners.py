"""Whose an allocation is, and whether its deletion has to wait."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from butler.rules.allocation.owner import deletion_waits, owner_lives
from unit.controllers.tenantcluster.values import UID, allocation, cluster

OTHER = "11111111-2222-3333-4444-555555555555"


def unlabelled(uid: str | None = None) -> Any:
    """As a person writes it: without labels; `uid` is the owner that Butler recorded."""
    made = allocation("by-hand", "loadbalancer", 2, start="10.40.0.20")
    status = msgspec.structs.replace(made.status, tenant_cluster_uid=uid)
    meta = msgspec.structs.replace(made.metadata, labels={})
    return msgspec.structs.replace(made, metadata=meta, status=status)


@pytest.mark.parametrize(
    ("made", "tenant", "lives"),
    [
        (allocation("web-lb", "loadbalancer", 2, start="10.40.0.20"), cluster(), True),
        (allocation("web-lb", "loadbalancer", 2, start="10.40.0.20"), None, False),
        (allocation("web-lb", "loadbalancer", 2, start="10.40.0.20"), cluster(uid=OTHER), False),
        (unlabelled(), cluster(), True),
        (unlabelled(UID), cluster(), True),
        (unlabelled(OTHER), cluster(), False),
    ],
    ids=["its own", "none", "a namesake", "not recorded yet", "recorded", "recorded, and a namesake"],
)
def test_the_owner_is_known_by_its_uid(made: Any, tenant: Any, lives: bool) -> None:
    assert owner_lives(made, tenant) is lives
    assert deletion_waits(made, tenant) is lives


@pytest.mark.parametrize("phase", ["Pending", "Failed", "Released"])
def test_what_holds_no_addresses_never_waits(phase: str) -> None:
    made = allocation("web-lb", "loadbalancer", 2, phase=phase)
    assert owner_lives(made, cluster())
    assert not deletion_waits(made, cluster())
