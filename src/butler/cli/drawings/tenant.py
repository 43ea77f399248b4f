"""One tenant cluster on one screen, as its team and as an operator see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.ipallocation import IPAllocationType
from butler.api.meta import ConditionStatus
from butler.cli.toolkit.output import age
from butler.cli.toolkit.screen import facts, listed, section, sentence

if TYPE_CHECKING:
    from datetime import datetime

    from butler.api.tenantcluster import LoadBalancerUse, PoolChange, TenantCluster
    from butler.cli.estate.events import Event
    from butler.reports.tenant.summary import Tenant, TenantBlock

RECENT = 8
"""How many events the screen shows."""
HOLDS = {ConditionStatus.TRUE: "yes", ConditionStatus.FALSE: "no", ConditionStatus.UNKNOWN: "unknown"}
PURPOSES = {IPAllocationType.NODES: "nodes", IPAllocationType.LOAD_BALANCER: "load balancers"}


def screen(cluster: TenantCluster, view: Tenant, events: list[Event], now: datetime) -> str:
    """The whole, as text."""
    parts = [
        facts(_head(cluster, view, now)),
        section("Conditions", _conditions(view, now)) if view.steps else "",
        section("Addresses", _addresses(cluster, view)),
        section("Load balancers", facts(_balancers(view.load_balancers, view, now))) if view.load_balancers else "",
        section("Addons", _addons(cluster)) if _addons(cluster) else "",
        section("Recent events", _events(events, now)) if events else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _head(cluster: TenantCluster, view: Tenant, now: datetime) -> list[tuple[str, object]]:
    machine = cluster.spec.workers.machine_template
    shape = f"{machine.cpu} CPU, {machine.memory} memory, {machine.disk_size} disk, {machine.os.type.value}"
    since = f", since {age(view.since, now)}" if view.since else ""
    return [
        ("Cluster", f"{view.namespace}/{view.name}"),
        ("Phase", f"{view.phase.value}{since}"),
        ("Because", view.waits_for),
        *(("Trouble", text) for text in view.trouble if text != view.waits_for),
        ("Kubernetes", f"{view.version}, going to {view.goes_to}" if view.goes_to else view.version),
        ("Workers", f"{view.workers_ready} of {view.workers_wanted} ready; {shape}"),
        ("Provider", view.provider or "not known"),
        ("Team", view.team),
        ("Endpoint", view.endpoint),
        ("Age", age(cluster.metadata.creation_timestamp, now)),
    ]


def _conditions(view: Tenant, now: datetime) -> str:
    rows = [
        (step.type, HOLDS[step.status], age(step.last_transition_time, now), step.message or step.reason)
        for step in view.steps
    ]
    return listed(("Condition", "Holds", "Since", "Says"), rows)


def _addresses(cluster: TenantCluster, view: Tenant) -> str:
    if view.blocks is None:
        return sentence(_from_status(cluster))
    if not view.blocks:
        return "none: neither held nor asked for"
    rows = [
        (PURPOSES[block.purpose], block.text or f"{block.asked} wanted", block.size, block.pool, _told(block))
        for block in view.blocks
    ]
    return listed(("For", "Range", "Count", "Pool", "State"), rows)


def _told(block: TenantBlock) -> str:
    words = [block.state]
    if block.growth:
        words.append("added later" if block.range else "for growth")
    if block.pinned:
        words.append("picked by hand")
    told = f"{', '.join(words)} ({block.allocation})"
    return f"{told}: {block.why}" if block.why else told


def _from_status(cluster: TenantCluster) -> str:
    """What the cluster itself knows, for those who may not read allocations."""
    status, known = cluster.status, []
    if status.ip_allocation_ref is not None:
        known.append(f"nodes have those of IPAllocation {status.ip_allocation_ref.name}")
    if status.lb_allocation_ref is not None:
        held = f" ({status.load_balancers.held} addresses)" if status.load_balancers else ""
        known.append(f"load balancers began with those of {status.lb_allocation_ref.name}{held}")
    return "; ".join(known) or "the cluster knows of none"


def _balancers(found: LoadBalancerUse | None, view: Tenant, now: datetime) -> list[tuple[str, object]]:
    if found is None:
        return []
    platform = f" ({found.platform_services} of the platform)" if found.platform_services else ""
    return [
        ("Held", f"{found.held}{_terms(view)}"),
        ("In use", f"{found.in_use}, by {_services(found.services)}{platform}"),
        ("Idle", found.idle),
        ("Waiting", _services(found.waiting_services)),
        ("Last growth", _change(found.last_growth, "added", now)),
        ("Last shrink", _change(found.last_shrink, "given back", now)),
    ]


def _services(count: int) -> str:
    return f"{count} Service{'' if count == 1 else 's'}"


def _terms(view: Tenant) -> str:
    if view.terms is None:
        return ""
    most = f", at most {view.terms.most}" if view.terms.most is not None else ""
    return f" ({'follows the Services' if view.terms.elastic else 'fixed'}{most})"


def _change(change: PoolChange | None, verb: str, now: datetime) -> str:
    if change is None:
        return ""
    return f"{change.addresses} {verb} {age(change.time, now)} ago: {change.reason}"


def _addons(cluster: TenantCluster) -> str:
    state = cluster.status.observed_state
    found = state.addons if state else ()
    rows = [
        (observed_addon.name, observed_addon.version, observed_addon.managed_by.value, observed_addon.status.value)
        for observed_addon in found
    ]
    return listed(("Addon", "Version", "Managed by", "State"), rows) if rows else ""


def _events(events: list[Event], now: datetime) -> str:
    rows = [(age(event.last, now), event.type, event.reason, event.message) for event in events[-RECENT:]]
    return listed(("Age", "Type", "Reason", "Message"), rows)
