"""What is wrong with a provider: its settings, its pools, its credentials, and what Butler found when it asked. Pure.

Judged by what judges in production: admission's rules, the controller's look at the pools, the shapes of credentials,
and, when all of that is well, the builder of clusters, on a small one. What the user may not read is a note, and no
finding. Nothing of a Secret's contents is ever repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocationType
from butler.api.labels import ConditionType, ProviderReason
from butler.api.meta import ConditionStatus, ObjectMeta
from butler.api.providerconfig import NetworkMode
from butler.api.tenantcluster import TenantCluster, TenantClusterSpec, Workers
from butler.capi.objects import objects
from butler.ipam.addresses import Range
from butler.ipam.layout import pool_layout
from butler.providers import credentials
from butler.reports.provider.summary import WORDS, supply
from butler.rules.provider.admission import Surroundings, judge
from butler.rules.provider.settings import gateway_of, pools_for
from butler.rules.tenant.blueprint import Blueprint, Endpoint, NodeNetwork, Unbuildable, Versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.api.objects import Key
    from butler.api.providerconfig import ProviderConfig


class IssueSeverity(StrEnum):
    """How bad it is."""

    PROBLEM = "problem"
    """No cluster could be put there, or not as it is meant."""
    WARNING = "warning"
    """It works, or will, and an administrator should check it."""
    NOTE = "note"
    """Something that could not be looked at."""


@dataclass(frozen=True, slots=True)
class ProviderIssue:
    """One thing that was found."""

    severity: IssueSeverity
    about: str
    message: str


@dataclass(frozen=True, slots=True)
class SecretSeen:
    """The Secret with the credentials, as far as it could be read."""

    key: Key | None
    """None: the provider needs none."""
    data: Mapping[str, bytes] | None = None
    """None: it does not exist, or may not be read."""
    hidden: bool = False


def findings(
    config: ProviderConfig,
    pools: Mapping[str, NetworkPool] | None,
    allocations: Sequence[IPAllocation] | None,
    secret: SecretSeen,
    home: str,
    *,
    stored: bool,
) -> list[ProviderIssue]:
    """Everything that is wrong, the worst first. `stored`: it is on the server, and its conditions mean something."""
    found = [
        *_settings(config, pools, home),
        *_pools(config, pools, allocations),
        *_credentials(config, secret),
        *(_conditions(config) if stored else ()),
    ]
    if pools is not None and not any(item.severity is IssueSeverity.PROBLEM for item in found):
        found += _trial(config, pools, secret)
    order = list(IssueSeverity)
    return sorted(dict.fromkeys(found), key=lambda fromkey: order.index(fromkey.severity))


def is_bad(found: Sequence[ProviderIssue]) -> bool:
    """Whether there is anything beyond notes."""
    return any(finding.severity is not IssueSeverity.NOTE for finding in found)


def _settings(config: ProviderConfig, pools: Mapping[str, NetworkPool] | None, home: str) -> Iterator[ProviderIssue]:
    if pools is None:
        yield ProviderIssue(
            IssueSeverity.NOTE, "spec.network", f"you may not read NetworkPools in {home}, so none was looked at"
        )
    verdict = judge(None, config, Surroundings(home, pools or {}))
    for field, message in verdict.problems:
        yield ProviderIssue(IssueSeverity.PROBLEM, field, message)
    for warning in verdict.warnings:
        if pools is not None or "there is no NetworkPool" not in warning:
            field, _, message = warning.partition(": ")
            named = field.startswith("spec.") and " " not in field
            yield ProviderIssue(
                IssueSeverity.WARNING, field if named else "spec.network", message if named else warning
            )


def _pools(
    config: ProviderConfig, pools: Mapping[str, NetworkPool] | None, allocations: Sequence[IPAllocation] | None
) -> Iterator[ProviderIssue]:
    network = config.spec.network
    if network.mode is not NetworkMode.IPAM or pools is None:
        return
    offer = supply(network, pools, allocations or ())
    for purpose in offer.unserved:
        yield ProviderIssue(IssueSeverity.PROBLEM, "spec.network.poolRefs", f"no pool for {WORDS[purpose]} exists")
    for idle in offer.idle:
        yield ProviderIssue(IssueSeverity.PROBLEM, "spec.network.poolRefs", f"NetworkPool {idle} hands out nothing")
    if allocations is not None and not offer.tenants and not offer.unserved:
        yield ProviderIssue(IssueSeverity.WARNING, "spec.network.poolRefs", "the pools have no room for another tenant")


def _credentials(config: ProviderConfig, secret: SecretSeen) -> Iterator[ProviderIssue]:
    if secret.key is None:
        return
    about = f"Secret {secret.key}"
    if secret.hidden:
        yield ProviderIssue(IssueSeverity.NOTE, about, "you may not read it, so the credentials were not looked at")
    elif secret.data is None:
        keys = " and ".join(credentials.needed_keys(config))
        yield ProviderIssue(IssueSeverity.PROBLEM, about, f"does not exist: create it with {keys}")
    else:
        for problem in credentials.check(config, secret.data):
            yield ProviderIssue(IssueSeverity.PROBLEM, about, problem)


def _trial(config: ProviderConfig, pools: Mapping[str, NetworkPool], secret: SecretSeen) -> Iterator[ProviderIssue]:
    """What the builder of a small cluster would complain of: it reads settings that no earlier check reads."""
    if secret.key is None or secret.data is None:
        return
    cluster = TenantCluster(
        metadata=ObjectMeta(name="trial", namespace="trial", uid="00000000-0000-0000-0000-000000000000"),
        spec=TenantClusterSpec(kubernetes_version="v1.33.2", workers=Workers(replicas=1)),
    )
    try:
        objects(
            Blueprint(
                cluster=cluster,
                provider=config,
                namespace="trial",
                versions=Versions("v1.33.2", "v1.33.2"),
                credentials=credentials.read(config, secret.data),
                credentials_secret=(secret.key.namespace, secret.key.name),
                nodes=_node_network(config, pools),
                endpoint=Endpoint("192.0.2.1", 6443),
            )
        )
    except Unbuildable as error:
        if error.field.startswith(("spec.workers", "spec.infrastructureOverride", "metadata")):
            yield ProviderIssue(IssueSeverity.WARNING, "clusters", f"one of the usual shape would fail: {error}")
        else:
            yield ProviderIssue(IssueSeverity.PROBLEM, error.field, f"no cluster could be built: {error.problem}")


def _node_network(config: ProviderConfig, pools: Mapping[str, NetworkPool]) -> NodeNetwork | None:
    """One address for the machine of the trial, from the first pool that has any."""
    network = config.spec.network
    for name in pools_for(IPAllocationType.NODES, network):
        gateway = gateway_of(network, name)
        if name in pools and gateway is not None:
            first = pool_layout(pools[name]).usable[0].first
            prefix = int(pools[name].spec.cidr.partition("/")[2])
            return NodeNetwork((Range(first, first),), prefix, gateway, network.dns_servers)
    return None


def _conditions(config: ProviderConfig) -> Iterator[ProviderIssue]:
    """What Butler itself found when it asked the provider."""
    status = config.status
    if (status.observed_generation or 0) < config.metadata.generation:
        yield ProviderIssue(IssueSeverity.NOTE, "status", "Butler has not looked at it since it was last changed")
        return
    refused = find_condition(status.conditions, ConditionType.CREDENTIALS_VALID)
    if refused is not None and refused.reason == ProviderReason.REFUSED:
        yield ProviderIssue(IssueSeverity.PROBLEM, "credentials", f"the provider refuses them: {refused.message}")
    reachable = find_condition(status.conditions, ConditionType.REACHABLE)
    if (
        reachable is not None
        and reachable.status is ConditionStatus.FALSE
        and reachable.reason != ProviderReason.REFUSED
    ):
        yield ProviderIssue(
            IssueSeverity.WARNING, "reachability", f"Butler cannot reach the provider: {reachable.message}"
        )
    elif reachable is None or reachable.status is ConditionStatus.UNKNOWN:
        why = reachable.message if reachable else "Butler has not asked it"
        yield ProviderIssue(IssueSeverity.NOTE, "reachability", f"not known: {why}")


def findings_json(name: str, found: Sequence[ProviderIssue]) -> dict[str, Any]:
    """Stable, for programs."""
    return {
        "provider": name,
        "valid": not is_bad(found),
        "findings": [
            {"severity": finding.severity.value, "about": finding.about, "message": finding.message}
            for finding in found
        ],
    }
