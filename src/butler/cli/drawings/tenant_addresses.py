"""The addresses of one cluster on one screen: ranges, and who has what of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.cli.toolkit.screen import listed, section, sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butler.api.tenantcluster import LoadBalancerUse
    from butler.reports.tenant.addresses import AddressSpan, TenantAddressReport


def screen(found: TenantAddressReport, known: LoadBalancerUse | None) -> str:
    """The whole, as text; `known` is what the cluster's own status says of its load balancers."""
    parts = [
        section("Nodes", _table(found.nodes, "Node") or "no address is known"),
        section("Load balancers", _table(found.load_balancers, "Service") or _from_status(known)),
        section("Waiting Services", "\n".join(found.waiting)) if found.waiting else "",
        section("MetalLB", sentence(_metallb(found))),
    ]
    return "\n\n".join(part for part in parts if part)


def _table(spans: Sequence[AddressSpan], user: str) -> str:
    rows = [(span.text, span.range.size, span.state, span.pool, _who(span)) for span in spans]
    return listed(("Addresses", "Count", "State", "Pool", user), rows) if rows else ""


def _who(span: AddressSpan) -> str:
    return ", ".join(span.users) + (" (platform)" if span.platform else "")


def _from_status(known: LoadBalancerUse | None) -> str:
    if known is None:
        return "no address is known"
    return sentence(f"{known.held} held, {known.in_use} in use, {known.waiting_services} Services wait (by its status)")


def _metallb(found: TenantAddressReport) -> str:
    words = {True: "in step: ", False: "out of step: ", None: ""}[found.metallb.in_step]
    return f"{words}{found.metallb.says}"
