"""What the author of a TenantCluster is told: whose it is, what it may use, and what they must be allowed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from butler.api.labels import Annotation
from butler.rules.tenant.admission import judge, rights
from unit.controllers.tenantcluster.values import HOME, cluster, provider

FORCE = Annotation.FORCE_DELETE.value
FOR_A: dict[str, Any] = {"scope": {"type": "team", "teamRef": {"name": "a"}}}


def on(name: str, where: str, **more: Any) -> Any:
    return cluster(on=None, providerConfigRef={"name": name, "namespace": where}, **more)


def test_a_sound_cluster_passes_without_a_word() -> None:
    assert judge(None, cluster(), "team-a", "a", HOME, provider()) == ((), ())
    assert judge(None, cluster(team="a"), "team-a", "a", HOME, provider(**FOR_A)) == ((), ())


def test_another_team_than_the_namespaces_is_refused() -> None:
    (problem,) = judge(None, cluster(team="b"), "team-a", "a", HOME, provider()).problems
    assert problem.field == "spec.teamRef.name"
    assert "belongs to team a" in problem.message
    (later,) = judge(cluster(), cluster(team="b"), "team-a", "a", HOME, None).problems
    assert later == problem
    assert judge(cluster(team="b"), cluster(team="b", replicas=9), "team-a", "a", HOME, None) == ((), ())


def test_in_a_namespace_without_a_team_its_author_is_warned() -> None:
    verdict = judge(None, cluster(team="b"), "team-a", "", HOME, provider())
    assert verdict.problems == ()
    assert verdict.warnings[0].startswith("spec.teamRef has no effect: namespace team-a belongs to no team")


def test_a_provider_of_another_namespace_is_refused() -> None:
    (problem,) = judge(None, on("lab", "team-b"), "team-a", "a", HOME, None).problems
    assert problem.field == "spec.providerConfigRef"
    (same,) = judge(None, on("lab", "team-b"), "team-a", "a", HOME, provider()).problems
    assert same == problem


def test_what_is_missing_and_what_is_not_for_this_team_get_the_same_warning() -> None:
    found = [
        judge(None, cluster(), "team-a", "b", HOME, config)
        for config in (None, provider(**FOR_A), provider(ready=False, why="no Secret x", **FOR_A))
    ]
    assert found[0].problems == ()
    assert found[0].warnings[0].startswith("spec.providerConfigRef: ProviderConfig butler-system/lab is not found or")
    assert len(set(found)) == 1


def test_who_names_a_provider_of_the_namespace_must_be_allowed_to_read_it() -> None:
    (right,) = rights(None, on("lab", "team-a"), "team-a", HOME)
    assert (right.verb, right.resource.plural, right.namespace, right.name) == (
        "get",
        "providerconfigs",
        "team-a",
        "lab",
    )
    assert list(rights(None, cluster(), "team-a", HOME)) == []
    assert list(rights(on("lab", "team-a"), on("lab", "team-a", replicas=9), "team-a", HOME)) == []


def forced(value: str | None) -> Any:
    return cluster(annotations={FORCE: value} if value is not None else {})


@pytest.mark.parametrize(
    ("old", "new", "needed"),
    [
        (None, forced("web"), True),
        (forced(None), forced("web"), True),
        (forced("true"), forced("web"), True),
        (forced(None), forced(""), True),
        (forced("web"), forced("web"), False),
        (forced("web"), forced(None), False),
        (None, forced(None), False),
    ],
)
def test_force_needs_a_right_of_its_own_whenever_it_is_set(old: Any, new: Any, needed: bool) -> None:
    found = list(rights(old, new, "team-a", HOME))
    assert [(right.verb, right.resource.plural, right.namespace, right.name) for right in found] == [
        ("forcedelete", "tenantclusters", "team-a", "web")
    ] * needed


def test_force_is_asked_about_on_a_cluster_that_goes() -> None:
    going = forced("web")
    meta = msgspec.structs.replace(going.metadata, deletion_timestamp=going.metadata.creation_timestamp)
    assert len(list(rights(forced(None), msgspec.structs.replace(going, metadata=meta), "team-a", HOME))) == 1
