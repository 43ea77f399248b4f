"""One provider on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType
from butler.api.meta import ConditionStatus
from butler.api.providerconfig import AllocationMode, NetworkMode
from butler.cli.tables.pools import pool_state
from butler.cli.tables.providers import ready_cell, scope_cell
from butler.cli.tables.table import percent
from butler.cli.toolkit.output import age
from butler.cli.toolkit.screen import facts, listed, section, sentence

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from butler.api.meta import Condition
    from butler.api.providerconfig import ProviderConfig
    from butler.reports.provider.findings import ProviderIssue
    from butler.reports.provider.summary import PoolUse, ProviderView

MOST_CLUSTERS = 12
HOLDS = {ConditionStatus.TRUE: "yes", ConditionStatus.FALSE: "no", ConditionStatus.UNKNOWN: "unknown"}


def screen(config: ProviderConfig, view: ProviderView, now: datetime) -> str:
    """The whole, as text."""
    network = config.spec.network
    parts = [
        facts(_head(config, view, now)),
        section("Pools, in the order they are tried", _pools(view.pools)) if view.pools else "",
        section("Load balancers and limits", facts(rules)) if (rules := _rules(config)) else "",
        section("Clusters", sentence(_clusters(view.clusters))) if view.clusters is not None else "",
    ]
    if network.mode is NetworkMode.CLOUD:
        parts.insert(1, "Addresses are the provider's own business: mode cloud takes none from pools.")
    return "\n\n".join(part for part in parts if part)


def _head(config: ProviderConfig, view: ProviderView, now: datetime) -> list[tuple[str, object]]:
    meta, spec, status = config.metadata, config.spec, config.status
    credentials = find_condition(status.conditions, ConditionType.CREDENTIALS_VALID)
    reachable = find_condition(status.conditions, ConditionType.REACHABLE)
    room = None if view.room is None else f"for about {view.room} more tenants"
    return [
        ("Provider", f"{meta.namespace}/{meta.name}"),
        ("Kind", f"{spec.provider.value}, mode {spec.network.mode.value}"),
        ("Ready", f"{ready_cell(config)}: {view.why}" if view.why else ready_cell(config)),
        ("Room", room),
        ("Credentials", _told(credentials)),
        ("Reachable", _told(reachable)),
        ("Version", status.provider_version),
        ("Scope", scope_cell(config)),
        ("Network", spec.network.subnet),
        ("DNS servers", ", ".join(spec.network.dns_servers)),
        ("Age", age(meta.creation_timestamp, now)),
    ]


def _told(condition: Condition | None) -> str:
    return f"{HOLDS[condition.status]}: {condition.message}" if condition else ""


def _pools(pools: Sequence[PoolUse]) -> str:
    rows = [_pool(pool) for pool in pools]
    return listed(("Pool", "For", "CIDR", "Use", "Free", "Largest", "Gateway", "State"), rows)


def _pool(use: PoolUse) -> tuple[object, ...]:
    if use.pool is None:
        return (use.name, use.purpose, "", "", "", "", use.gateway, "does not exist")
    status = use.pool.status
    return (
        use.name,
        use.purpose,
        use.pool.spec.cidr,
        percent(status.allocated_ips, status.total_ips),
        status.available_ips,
        status.largest_free_block,
        use.gateway,
        pool_state(use.pool),
    )


def _rules(config: ProviderConfig) -> list[tuple[str, object]]:
    network, limits = config.spec.network, config.spec.limits
    sizes, quota = network.load_balancer, network.quota_per_tenant
    rules: list[tuple[str, object]] = []
    if sizes is not None and sizes.allocation_mode is AllocationMode.ELASTIC:
        words = f"follow the Services: {sizes.initial_pool_size} at first, then at least {sizes.growth_increment} more"
        rules.append(("Load balancers", words))
    elif sizes is not None:
        rules.append(("Load balancers", f"fixed: {sizes.default_pool_size} for each tenant"))
    if quota is not None:
        rules.append(("Node IPs per tenant", _at_most(quota.max_node_ips)))
        rules.append(("LB IPs per tenant", _at_most(quota.max_load_balancer_ips)))
    if limits is not None:
        rules.append(("Clusters per team", _at_most(limits.max_clusters_per_team)))
        rules.append(("Workers per team", _at_most(limits.max_nodes_per_team)))
    return [rule for rule in rules if rule[1]]


def _at_most(number: int | None) -> str:
    return "" if number is None else f"at most {number}"


def _clusters(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_CLUSTERS} more" if len(names) > MOST_CLUSTERS else ""
    return f"{len(names)}: {', '.join(names[:MOST_CLUSTERS])}{more}" if names else "none"


def findings_screen(found: Sequence[ProviderIssue]) -> str:
    """What validation found, as a list."""
    return listed(
        ("Severity", "About", "Says"), [(finding.severity.value, finding.about, finding.message) for finding in found]
    )
