"""What a ProviderConfig's status says, from plain values: what blocks, what does not, and what is news."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from butler.api.codec import from_json, status_patch, to_json
from butler.api.conditions import find_condition
from butler.api.labels import ProviderReason
from butler.api.objects import Key
from butler.api.providerconfig import ProviderConfig, ProviderConfigStatus, ProviderScope, ScopeType
from butler.rules.provider.probe_outcome import Accepted, Awaited, CredentialsRefused, ProviderUnreachable, Unclear
from butler.rules.provider.room import Supply
from butler.rules.provider.status import ObservedProvider, SecretState, notices, status_of, status_while_leaving
from unit.providers.given import config

NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
COMPLETE = SecretState(ProviderReason.COMPLETE, "Secret a/b holds what it needs")
MISSING = SecretState(ProviderReason.SECRET_NOT_FOUND, "Secret a/b does not exist")
WELL = Accepted("accepted", "pc.2024.3")
ROOM = Supply(available=32, tenants=4, missing=(), idle=(), unserved=())


def seen(
    secret: SecretState = COMPLETE, outcome: Any = WELL, refusal: Any = None, supply: Any = None
) -> ObservedProvider:
    if isinstance(outcome, CredentialsRefused):
        refusal = outcome
    return ObservedProvider(secret, outcome, refusal, supply)


def after(given: ProviderConfig, what: ObservedProvider, now: datetime = NOW) -> ProviderConfig:
    return msgspec.structs.replace(given, status=status_of(given, what, now))


def said(status: ProviderConfigStatus, kind: str) -> tuple[str, str, str] | None:
    found = find_condition(status.conditions, kind)
    return (found.status, found.reason, found.message) if found else None


def test_all_well() -> None:
    status = after(config("nutanix"), seen(supply=ROOM)).status
    assert (status.ready, status.validated, status.provider_version) == (True, True, "pc.2024.3")
    assert status.capacity is not None
    assert (status.capacity.available_ips, status.capacity.estimated_tenants) == (32, 4)
    assert (status.last_probe_time, status.last_validation_time, status.observed_generation) == (NOW, NOW, 1)
    assert [condition.type for condition in status.conditions] == [
        "Ready",
        "CredentialsValid",
        "Reachable",
        "PoolAvailable",
    ]
    assert {condition.status for condition in status.conditions} == {"True"}


def test_looking_again_and_finding_the_same_writes_nothing() -> None:
    for what in (
        seen(supply=ROOM),
        seen(MISSING, None),
        seen(outcome=ProviderUnreachable("no answer")),
        seen(outcome=CredentialsRefused("no")),
        seen(outcome=Unclear("what?")),
    ):
        once = after(config("nutanix"), what)
        twice = after(once, what, LATER)
        assert status_patch(once.metadata, once.status, twice.status) is None


def test_times_tell_of_the_looks_that_found_something_new() -> None:
    first = after(config("nutanix"), seen())
    unreachable = after(first, seen(outcome=ProviderUnreachable("no answer")), LATER)
    assert (unreachable.status.last_probe_time, unreachable.status.last_validation_time) == (LATER, NOW)
    assert unreachable.status.provider_version == "pc.2024.3"
    upgraded = after(first, seen(outcome=Accepted("accepted", "pc.2025.1")), LATER)
    assert (upgraded.status.last_probe_time, upgraded.status.provider_version) == (LATER, "pc.2025.1")
    fuller = after(after(config("nutanix"), seen(supply=ROOM)), seen(supply=replace(ROOM, available=9)), LATER)
    assert (fuller.status.last_probe_time, fuller.status.last_validation_time) == (NOW, NOW)


def test_without_a_secret_no_provider_is_asked() -> None:
    status = after(config("nutanix"), seen(MISSING, None)).status
    assert (status.ready, status.validated, status.last_probe_time, status.last_validation_time) == (
        False,
        False,
        None,
        None,
    )
    assert said(status, "Ready") == ("False", "SecretNotFound", MISSING.message)
    assert said(status, "CredentialsValid") == ("False", "SecretNotFound", MISSING.message)
    assert said(status, "Reachable") == ("Unknown", "NotAsked", "it is not asked without usable credentials")


def test_a_refusal_blocks_and_silence_does_not() -> None:
    refused = after(config("nutanix"), seen(outcome=CredentialsRefused("no"))).status
    assert (refused.ready, refused.validated) == (False, True)
    assert said(refused, "CredentialsValid") == said(refused, "Reachable") == ("False", "Refused", "no")
    for silent, status in ((ProviderUnreachable("x"), "False"), (Unclear("x"), "Unknown")):
        found = after(config("nutanix"), seen(outcome=silent)).status
        assert (found.ready, found.validated) == (True, True)
        reachable = find_condition(found.conditions, "Reachable")
        assert reachable is not None
        assert reachable.status == status


def test_an_answer_that_is_awaited_holds_up_nothing() -> None:
    status = after(config("nutanix"), seen(outcome=Awaited())).status
    assert (status.ready, status.last_probe_time) == (True, None)
    assert said(status, "Reachable") == ("Unknown", "Asking", "it was asked, and has not answered yet")


def test_a_refusal_stands_until_the_next_answer_is_there() -> None:
    refused = after(config("nutanix"), seen(outcome=CredentialsRefused("no")))
    awaited = after(refused, seen(outcome=Awaited()), LATER)
    assert awaited.status.ready is False
    assert said(awaited.status, "CredentialsValid") == ("False", "Refused", "no")
    assert after(awaited, seen(), LATER).status.ready is True


def test_silence_after_a_refusal_is_no_pardon() -> None:
    found = after(
        config("nutanix"), ObservedProvider(COMPLETE, ProviderUnreachable("x"), CredentialsRefused("no"), None)
    ).status
    assert said(found, "CredentialsValid") == ("False", "Refused", "no")
    assert said(found, "Reachable") == ("False", "Unreachable", "x")


@pytest.mark.parametrize(
    ("supply", "ready", "available"),
    [
        (
            Supply(0, 0, ("rack",), (), ("nodes", "loadbalancer")),  # type: ignore[arg-type]
            ("False", "PoolNotFound", "no pool for nodes and load balancers exists: create NetworkPool rack"),
            ("False", "PoolNotFound", "no pool for nodes and load balancers exists: create NetworkPool rack"),
        ),
        (
            Supply(9, 0, ("rack",), (), ("nodes",)),  # type: ignore[arg-type]
            ("False", "PoolNotFound", "no pool for nodes exists: create NetworkPool rack"),
            ("True", "PoolAvailable", "free addresses are there; rack does not exist"),
        ),
        (
            Supply(0, 0, (), (), ()),
            ("True", "Ready", "clusters can be put on this provider"),
            ("False", "PoolExhausted", "no address is free"),
        ),
        (
            Supply(0, 0, (), ("rack (being deleted)",), ()),
            ("True", "Ready", "clusters can be put on this provider"),
            ("False", "PoolExhausted", "no address is free; rack (being deleted) hands out nothing"),
        ),
    ],
)
def test_pools_must_exist_but_may_be_full(supply: Supply, ready: Any, available: Any) -> None:
    status = after(config("nutanix"), seen(supply=supply)).status
    assert said(status, "Ready") == ready
    assert said(status, "PoolAvailable") == available


def test_in_cloud_mode_nothing_is_said_about_pools() -> None:
    before = after(config("nutanix"), seen(supply=ROOM))
    status = after(before, seen()).status
    assert status.capacity is None
    assert said(status, "PoolAvailable") is None


def test_everything_that_blocks_is_named() -> None:
    scope = ProviderScope(type=ScopeType.TEAM)
    odd = config("nutanix", clusterUUID="prod")
    odd = msgspec.structs.replace(odd, spec=msgspec.structs.replace(odd.spec, scope=scope))
    assert said(after(odd, seen(MISSING, None)).status, "Ready") == (
        "False",
        "ValidationFailed",
        (
            "spec.nutanix.clusterUUID: 'prod' is no UUID: Prism shows it next to the name;"
            " spec.scope.teamRef: scope team needs the team that may use this provider; Secret a/b does not exist"
        ),
    )


def test_ipam_mode_without_pools_is_not_ready() -> None:
    made = to_json(config("nutanix"))
    made["spec"]["network"] = {"mode": "ipam"}
    found = said(after(from_json(ProviderConfig, made), seen(supply=Supply(0, 0, (), (), ()))).status, "Ready")
    assert found is not None
    assert "spec.network.poolRefs: ipam mode takes addresses from NetworkPools" in found[2]


def test_a_deletion_that_waits_names_the_clusters() -> None:
    before = after(config("nutanix"), seen())
    users = [Key("team", f"c{number}") for number in range(7)]
    status = status_while_leaving(before, users, LATER)
    assert status.ready is False
    ready = said(status, "Ready")
    assert ready is not None
    assert ready[1:] == (
        "Deleting",
        (
            "it is being deleted, and goes once no cluster uses it: TenantCluster team/c0, TenantCluster team/c1,"
            " TenantCluster team/c2, TenantCluster team/c3, TenantCluster team/c4 and 2 more"
        ),
    )
    assert [(note.reason, note.type) for note in notices(before.status, status)] == [("DeletionBlocked", "Warning")]


def test_events_tell_of_turns_and_not_of_figures() -> None:
    fresh = config("nutanix")
    well = after(fresh, seen(supply=ROOM))
    assert [(note.reason, note.type) for note in notices(fresh.status, well.status)] == [("ProviderReady", "Normal")]
    assert notices(well.status, after(well, seen(supply=replace(ROOM, available=9))).status) == []
    refused = after(well, seen(outcome=CredentialsRefused("no"), supply=ROOM))
    assert [note.reason for note in notices(well.status, refused.status)] == [
        "ProviderNotReady",
        "CredentialsInvalid",
        "ProviderUnreachable",
    ]
    healed = after(refused, seen(supply=ROOM))
    assert [note.reason for note in notices(refused.status, healed.status)] == [
        "ProviderReady",
        "CredentialsValid",
        "ProviderReachable",
    ]
