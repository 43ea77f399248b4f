"""Grants wait until the tenants' Services were looked at, after a start and after versions went back."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import msgspec

from butler.api.conditions import with_condition
from butler.api.labels import ConditionType, LoadBalancerReason
from butler.api.meta import LocalObjectReference
from butler.api.objects import Key, key_of
from butler.controllers.service_looks import LONGEST, ServiceLooks
from butler.kube.timeline import Timeline
from unit.controllers.tenantcluster.values import NOW, cluster

if TYPE_CHECKING:
    from datetime import datetime

    from butler.api.tenantcluster import TenantCluster


class Room:
    """Tenants, and what waits for a look at them."""

    def __init__(self, *tenants: TenantCluster) -> None:
        self.seconds, self.timeline, self.woken = 0.0, Timeline(), list[Key]()
        self.tenants = {key_of(tenant): tenant for tenant in tenants}
        self.looks = ServiceLooks(cast("Any", self.tenants), self.timeline, self._clock, lambda: self.seconds)
        self.looks.wakes(self.woken.append)

    def _clock(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)

    def look(self, uid: str) -> None:
        self.looks.looked(uid, self.looks.turn)

    @property
    def may_grant(self) -> bool:
        return not self.looks.seconds_left()


def tenant(name: str, *, built: bool = True, unreachable_since: datetime | None = None) -> TenantCluster:
    found = cluster(name, uid=f"uid-{name}")
    status = found.status
    if built:
        status = msgspec.structs.replace(status, kubeconfig_secret_ref=LocalObjectReference(name="admin"))
    if unreachable_since is not None:
        conditions = with_condition(
            status.conditions,
            type=ConditionType.LOAD_BALANCERS_READY,
            status=False,
            reason=LoadBalancerReason.TENANT_UNREACHABLE,
            message="no route",
            now=unreachable_since,
        )
        status = msgspec.structs.replace(status, conditions=conditions)
    return msgspec.structs.replace(found, status=status)


def test_grants_wait_until_each_tenant_that_runs_was_looked_at_and_never_again() -> None:
    room = Room(tenant("web"), tenant("shop"), tenant("new", built=False))
    assert not room.may_grant
    room.look("uid-web")
    assert not room.may_grant
    room.look("uid-shop")
    assert room.may_grant
    room.tenants[Key("team-a", "later")] = tenant("later")
    assert room.may_grant, "a later one keeps none waiting"
    assert not room.looks.is_due("uid-later")


def test_without_tenants_nothing_waits() -> None:
    assert Room().may_grant
    assert Room(tenant("new", built=False)).may_grant


def test_a_tenant_that_does_not_answer_is_waited_for_so_long_and_one_that_did_not_before_not_at_all() -> None:
    room = Room(tenant("web"))
    assert not room.may_grant
    room.seconds = LONGEST
    assert room.may_grant
    assert Room(tenant("web", unreachable_since=NOW - timedelta(minutes=1))).may_grant
    fresh = Room(tenant("web"))
    fresh.looks.begin()
    fresh.seconds = 3.0
    fresh.tenants[Key("team-a", "web")] = tenant("web", unreachable_since=NOW + timedelta(seconds=3))
    assert not fresh.may_grant, "it may have been cut off by the same restore"


def test_versions_that_went_back_make_everything_wait_again_and_old_looks_do_not_count() -> None:
    room = Room(tenant("web"))
    room.look("uid-web")
    assert room.may_grant
    begun = room.looks.turn
    room.timeline.went_back("a test")
    assert not room.may_grant
    assert room.woken == [Key("team-a", "web")]
    room.looks.looked("uid-web", begun)
    assert not room.may_grant
    room.look("uid-web")
    assert room.may_grant


def test_a_process_that_leads_again_looks_again() -> None:
    room = Room(tenant("web"))
    room.look("uid-web")
    assert room.may_grant
    room.looks.anew()
    assert not room.may_grant


def test_what_a_late_reconcile_asks_after_the_lead_is_lost_does_not_shorten_the_next_wait() -> None:
    room = Room(tenant("web"))
    room.looks.leads()
    room.look("uid-web")
    assert room.may_grant
    room.looks.anew()
    assert not room.may_grant, "asked by a reconcile that was not cancelled yet"
    room.seconds = 10 * LONGEST
    room.looks.leads()
    assert not room.may_grant
    room.look("uid-web")
    assert room.may_grant
