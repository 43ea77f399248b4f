"""Where a cluster goes, whether it may, and whether there is room within the limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from butler.api.conditions import with_condition
from butler.api.labels import ConditionType
from butler.api.objects import key_of
from butler.api.tenantaddons import ObservedWorkers
from butler.api.tenantcluster import ObservedState, TenantClusterStatus
from butler.rules.blocked import Blocked
from butler.rules.tenant.provider import access, name_clash, quota, resolve
from unit.controllers.tenantcluster.values import HOME, NOW, cluster, provider, started, with_status

if TYPE_CHECKING:
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantcluster import TenantCluster


def resolved(subject: TenantCluster, *providers: ProviderConfig, team: str = "") -> ProviderConfig | Blocked:
    return resolve(subject, {key_of(item): item for item in providers}, HOME, team)


# Where it goes.


def test_the_named_provider_is_taken_though_there_is_a_default() -> None:
    named = provider("lab")
    assert resolved(cluster(on="lab"), named, provider("default")) is named


def test_a_named_provider_that_does_not_exist_is_not_replaced_by_another() -> None:
    found = resolved(cluster(on="lab"), provider("default"))
    assert isinstance(found, Blocked)
    assert found.reason == "ProviderAccessDenied"
    assert "butler-system/lab is not found or not usable" in found.message


def test_a_cluster_that_names_none_gets_the_default() -> None:
    default = provider("default")
    assert resolved(cluster(on=None), provider("lab"), default) is default


def test_a_cluster_that_names_none_gets_the_only_one() -> None:
    only = provider("lab")
    assert resolved(cluster(on=None), only) is only


def test_where_there_is_a_choice_it_is_the_users_and_the_message_lists_it() -> None:
    found = resolved(cluster(on=None), provider("lab"), provider("edge"))
    assert isinstance(found, Blocked)
    assert "spec.providerConfigRef (one of edge, lab)" in found.message


def test_where_there_is_no_provider_the_message_says_where_to_create_one() -> None:
    found = resolved(cluster(on=None))
    assert isinstance(found, Blocked)
    assert "create one in namespace butler-system" in found.message


# Whether it may.

FOR_TEAM_A: dict[str, Any] = {"scope": {"type": "team", "teamRef": {"name": "a"}}}


def denied(found: ProviderConfig | Blocked) -> Blocked:
    assert isinstance(found, Blocked)
    return found


def elsewhere(name: str, namespace: str, **spec: Any) -> ProviderConfig:
    found = provider(name, **spec)
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, namespace=namespace))


def on(name: str, where: str, **more: Any) -> TenantCluster:
    return cluster(on=None, providerConfigRef={"name": name, "namespace": where}, **more)


def test_the_team_is_that_of_the_namespace_and_never_what_the_cluster_says() -> None:
    for_a = provider(**FOR_TEAM_A)
    assert resolved(cluster(), for_a, team="a") is for_a
    assert resolved(cluster(team="b"), for_a, team="a") is for_a, "said elsewhere that its team is wrong"
    for liar, team in ((cluster(team="a"), "b"), (cluster(team="a"), ""), (cluster(), "b"), (cluster(), "")):
        assert denied(resolved(liar, for_a, team=team)).reason == "ProviderAccessDenied"


def test_a_scope_without_a_team_admits_no_cluster() -> None:
    broken = provider(scope={"type": "team"})
    assert isinstance(resolved(cluster(), broken, team=""), Blocked)
    assert isinstance(resolved(cluster(), broken, team="a"), Blocked)


def test_what_cannot_be_used_gets_one_and_the_same_sentence() -> None:
    secret = "Secret team-hidden/acme-merger-credentials does not exist"
    found = [
        denied(resolved(cluster(), team="b")),
        denied(resolved(cluster(), provider(**FOR_TEAM_A), team="b")),
        denied(resolved(cluster(), provider(ready=False, why=secret, **FOR_TEAM_A), team="b")),
        denied(resolved(cluster(), provider(deleting=True, **FOR_TEAM_A), team="b")),
    ]
    assert len(set(found)) == 1
    abroad = [
        denied(resolved(on("lab", "team-hidden"), team="b")),
        denied(resolved(on("lab", "team-hidden"), elsewhere("lab", "team-hidden"), team="b")),
        denied(resolved(on("lab", "team-hidden"), elsewhere("lab", "team-hidden", ready=False, why=secret), team="b")),
    ]
    assert len(set(abroad)) == 1
    assert abroad[0].message == found[0].message.replace("butler-system/lab", "team-hidden/lab")
    assert "acme" not in "".join(blocked.message for blocked in (*found, *abroad))


def test_a_provider_of_the_clusters_own_namespace_can_be_used() -> None:
    own = elsewhere("lab", "team-a")
    assert resolved(on("lab", "team-a"), own) is own
    assert isinstance(resolved(on("lab", "team-a", namespace="team-b"), own), Blocked)


def test_a_namespace_without_a_team_is_told_who_can_give_it_one() -> None:
    said = denied(resolved(cluster(team="a"), provider(**FOR_TEAM_A))).message
    assert "until a platform administrator labels it with butler.butlerlabs.dev/team" in said


def test_a_default_of_another_team_is_no_default_and_is_not_named() -> None:
    for_a, other = provider("default", **FOR_TEAM_A), provider("lab")
    assert resolved(cluster(on=None), for_a, other, team="b") is other
    assert resolved(cluster(on=None), for_a, other, team="a") is for_a
    alone = denied(resolved(cluster(on=None), provider("acme-merger", **FOR_TEAM_A), team="b"))
    assert alone == denied(resolved(cluster(on=None), team="b"))
    choice = denied(
        resolved(cluster(on=None), provider("x"), provider("y"), provider("acme-merger", **FOR_TEAM_A), team="b")
    )
    assert "(one of x, y)" in choice.message


@pytest.mark.parametrize(
    ("where", "reason", "words"),
    [
        (provider(), None, ""),
        (provider(kind="local"), "ProviderUnsupported", "provider local"),
        (provider(deleting=True), "ProviderNotReady", "is being deleted"),
        (provider(ready=None), "ProviderNotReady", "is being checked"),
        (provider(ready=False), "ProviderNotReady", "butler-system/lab is not ready"),
        (provider(ready=False, why="no Secret x"), "ProviderNotReady", "is not ready: its own conditions say why"),
    ],
)
def test_what_keeps_a_provider_from_being_used(where: ProviderConfig, reason: str | None, words: str) -> None:
    found = access(cluster(), where, "", started=False)
    assert (found and found.reason) == reason
    assert words in (found.message if found else "")
    assert "no Secret x" not in (found.message if found else ""), "a condition of another object is not repeated"


def test_a_team_that_is_not_the_namespaces_is_told_before_the_cluster_is_built() -> None:
    wrong = access(cluster(team="b"), provider(), "a", started=False)
    assert wrong is not None
    assert (wrong.reason, wrong.message) == (
        "ProviderAccessDenied",
        "namespace team-a belongs to team a, and so does every cluster in it: leave spec.teamRef out",
    )
    assert access(cluster(team="b"), provider(), "a", started=True) is None, "it cannot be changed any more"
    assert access(cluster(team="b"), provider(), "", started=False) is None, "it grants nothing, and charges no team"


def test_a_provider_that_was_not_checked_yet_is_waited_for_and_no_failure() -> None:
    found = access(cluster(), provider(ready=None), "", started=False)
    assert found is not None
    assert found.waits


@pytest.mark.parametrize("where", [provider(ready=False), provider(ready=None), provider(deleting=True)])
def test_a_started_cluster_is_not_stopped_by_what_becomes_of_its_provider(where: ProviderConfig) -> None:
    assert access(cluster(), where, "", started=True) is None


def test_the_team_is_checked_for_started_clusters_too() -> None:
    """A cluster that named no provider may name one later: that must be no way around the check."""
    assert isinstance(resolved(started(cluster(team="a")), provider(**FOR_TEAM_A), team="b"), Blocked)


def test_a_cloud_takes_one_cluster_of_a_name_the_older() -> None:
    cloud = provider(kind="aws", mode="cloud")
    old, young = cluster(namespace="b", uid="u2", age=10), cluster()
    found = name_clash(young, cloud, [old])
    assert found is not None
    assert "another TenantCluster of this platform has the same name" in found.message
    assert "b/web" not in found.message, "where it is concerns no other team"
    assert name_clash(old, cloud, [young]) is None
    assert name_clash(young, provider(), [old]) is None, "on premises names carry the namespace's part of the UID"


# Limits.


def limited(**limits: int) -> ProviderConfig:
    return provider(limits=limits)


def refused_growth(of: TenantCluster, has: int) -> TenantCluster:
    """A cluster that wants more workers than it has, and may not have them."""
    conditions = with_condition(
        (), type=ConditionType.QUOTA_SATISFIED, status=False, reason="QuotaExceeded", message="", now=NOW
    )
    seen = ObservedState(workers=ObservedWorkers(desired=has, ready=has))
    return with_status(of, TenantClusterStatus(tenant_namespace="x", conditions=conditions, observed_state=seen))


def test_without_limits_there_is_none() -> None:
    assert quota(cluster(replicas=5000), provider(), [cluster(uid=str(i)) for i in range(50)], 0, "") is None


def test_too_many_clusters_of_a_team_are_refused_with_the_figures() -> None:
    found = quota(cluster(), limited(maxClustersPerTeam=1), [cluster(uid="u2", age=9)], 0, "a")
    assert found is not None
    assert found.condition == ConditionType.QUOTA_SATISFIED
    assert not found.waits
    assert found.message == (
        "team a has 1 clusters on ProviderConfig butler-system/lab, and may have 1 (limits.maxClustersPerTeam)"
    )


def test_too_many_workers_of_a_namespace_are_refused_with_the_figures() -> None:
    found = quota(cluster(replicas=4), limited(maxNodesPerTeam=10), [cluster(uid="u2", replicas=7, age=9)], 0, "")
    assert found is not None
    assert found.message == (
        "namespace team-a has 7 other workers on ProviderConfig butler-system/lab; 4 more would exceed 10"
        " (limits.maxNodesPerTeam)"
    )


def test_the_older_of_two_goes_first_and_equal_ages_are_told_apart() -> None:
    limits = limited(maxClustersPerTeam=1)
    old, young = cluster(uid="b", age=10), cluster(uid="a")
    assert quota(old, limits, [young], 0, "") is None
    assert quota(young, limits, [old], 0, "") is not None
    one, other = cluster(uid="a"), cluster(uid="b")
    assert [quota(one, limits, [other], 0, ""), quota(other, limits, [one], 0, "")].count(None) == 1


def test_a_younger_cluster_that_was_started_keeps_its_place() -> None:
    assert quota(cluster(age=10), limited(maxClustersPerTeam=1), [started(cluster(uid="u2"))], 0, "") is not None


def test_a_lowered_limit_leaves_running_clusters_alone() -> None:
    others = [started(cluster(uid=f"u{i}", replicas=50)) for i in range(5)]
    assert quota(started(cluster(replicas=3)), limited(maxClustersPerTeam=1, maxNodesPerTeam=1), others, 3, "") is None


def test_a_running_cluster_may_always_shrink_and_not_grow_beyond_the_limit() -> None:
    limits, others = limited(maxNodesPerTeam=10), [started(cluster(uid="u2", replicas=8))]
    assert quota(started(cluster(replicas=2)), limits, others, 5, "") is None
    assert quota(started(cluster(replicas=6)), limits, others, 5, "") is not None


def test_a_started_cluster_whose_machines_cannot_be_seen_is_not_taken_for_a_new_one() -> None:
    assert quota(started(cluster()), limited(maxClustersPerTeam=1), [started(cluster(uid="u2"))], 0, "") is None


def test_a_wish_that_can_never_be_met_does_not_hold_up_the_younger() -> None:
    greedy = cluster(uid="u2", replicas=50, age=9)
    limits: Any = limited(maxNodesPerTeam=10, maxClustersPerTeam=1)
    assert quota(cluster(replicas=3), limits, [greedy], 0, "") is None
    assert quota(greedy, limits, [cluster(replicas=3)], 0, "") is not None


def test_refused_growth_of_a_running_cluster_takes_no_room() -> None:
    other = refused_growth(cluster(uid="u2", replicas=50), has=3)
    assert quota(cluster(replicas=7), limited(maxNodesPerTeam=10), [other], 0, "") is None
    found = quota(cluster(replicas=8), limited(maxNodesPerTeam=10), [other], 0, "")
    assert found is not None
    assert "has 3 other workers" in found.message


def test_older_clusters_that_fit_are_counted_before_they_are_started() -> None:
    waiting = [cluster(uid=f"u{i}", replicas=4, age=10 + i) for i in range(2)]
    assert quota(cluster(replicas=3), limited(maxNodesPerTeam=10), waiting, 0, "") is not None
    assert quota(cluster(replicas=2), limited(maxNodesPerTeam=10), waiting, 0, "") is None


def test_an_older_cluster_that_just_fits_is_counted() -> None:
    older = cluster(uid="u2", replicas=10, age=9)
    assert quota(cluster(replicas=1), limited(maxNodesPerTeam=10), [older], 0, "") is not None


def test_the_order_in_which_others_are_given_does_not_matter() -> None:
    others = [cluster(uid=f"u{i}", replicas=i + 1, age=10 + i) for i in range(6)]
    verdicts = {
        quota(cluster(replicas=2), limited(maxNodesPerTeam=16), order, 0, "") is None
        for order in (others, others[::-1])
    }
    assert len(verdicts) == 1
