"""Which ProviderConfig a TenantCluster is on, and which it may be on. Pure, and the only place that knows: who builds a
cluster, who deletes a ProviderConfig and who admits either must agree about it.

A cluster may be on a ProviderConfig of the home namespace or of its own, and only where the scope admits the team of
its namespace. Whatever else it names gets one and the same sentence, whether it exists or not and whatever state it is
in: a condition of a cluster is read by people who may not read other teams' objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.api.labels import Label
from butler.api.objects import Key
from butler.api.providerconfig import ScopeType

if TYPE_CHECKING:
    from collections.abc import Collection

    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantcluster import TenantCluster

DEFAULT: Final = "default"
"""The ProviderConfig of clusters that name none."""


def named_provider(cluster: TenantCluster, home: str) -> Key | None:
    """The ProviderConfig that a cluster names; None when it names none."""
    reference = cluster.spec.provider_config_ref
    return Key(reference.namespace or home, reference.name) if reference else None


def placement(cluster: TenantCluster, providers: Collection[Key], home: str) -> Key | None:
    """The ProviderConfig of a cluster, given those there are: the one it names, whether it exists or not, else the
    one called `default`, else the only one there is; None where that leaves a choice, or nothing to choose from."""
    named = named_provider(cluster, home)
    if named is not None:
        return named
    if Key(home, DEFAULT) in providers:
        return Key(home, DEFAULT)
    at_home = [key for key in providers if key.namespace == home]
    return at_home[0] if len(at_home) == 1 else None


def may_be_named(provider: Key, namespace: str, home: str) -> bool:
    """Whether clusters of a namespace may name a ProviderConfig at all, by where it lies."""
    return provider.namespace in (home, namespace)


def admits(provider: ProviderConfig, team: str) -> bool:
    """Whether the scope of a ProviderConfig lets clusters of a team in; an empty team is none."""
    scope = provider.spec.scope
    if scope.type is not ScopeType.TEAM:
        return True
    return scope.team_ref is not None and bool(team) and scope.team_ref.name == team


def not_usable(provider: Key, namespace: str, team: str, home: str) -> str:
    """The one sentence about every ProviderConfig that a cluster cannot be put on."""
    whose = (
        f"of team {team}"
        if team
        else f"which belongs to no team until a platform administrator labels it with {Label.TEAM}"
    )
    return (
        f"ProviderConfig {provider} is not found or not usable from namespace {namespace}, {whose}: name one of"
        f" namespace {home} that is for all teams or for the team of the namespace, or one of namespace {namespace}"
    )


def wrong_team(cluster: TenantCluster, namespace: str, team: str) -> str:
    """What is wrong with the team that a cluster names; empty when nothing is."""
    named = cluster.spec.team_ref
    if named is None or not team or named.name == team:
        return ""
    return f"namespace {namespace} belongs to team {team}, and so does every cluster in it: leave spec.teamRef out"
