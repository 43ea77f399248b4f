"""A plan as JSON: stable keys, addresses as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from butler.ipam.addresses import Family, Range, address_text

if TYPE_CHECKING:
    from butler.api.networkpool import NetworkPoolSpec
    from butler.reports.plan.plan import Block, EditOutcome, FillEstimate, PlanOutcome

Json = dict[str, Any]


def range_json(addresses: Range | None, family: Family) -> Json | None:
    """`{"start", "end", "count"}`, both ends included."""
    if addresses is None:
        return None
    first, last = (address_text(value, family) for value in addresses)
    return {"start": first, "end": last, "count": addresses.size}


def plan_json(outcome: PlanOutcome) -> Json:
    """The whole answer."""
    failed = outcome.first_failure
    return {
        "fits": outcome.fits,
        "provider": outcome.provider,
        "edit": _edit(outcome.edit) if outcome.edit is not None else None,
        "waiting": [_block(item) for item in outcome.waiting],
        "tenants": [
            {
                "name": tenant.name,
                "fits": tenant.fits,
                "blocks": [_block(block) for block in tenant.blocks],
                "message": tenant.why,
            }
            for tenant in outcome.tenants
        ],
        "tenantsThatFit": sum(tenant.fits for tenant in outcome.tenants),
        "firstFailure": {"tenant": failed.number, "message": failed.why} if failed is not None else None,
        "requests": [_block(request) for request in outcome.requests],
        "orderByChance": outcome.shared,
        "pools": [
            {"name": pool.name, "cidr": pool.cidr, "before": _fill(pool.before), "after": _fill(pool.after)}
            for pool in outcome.pools
        ],
    }


def _block(block: Block) -> Json:
    return {
        "name": block.name,
        "tenant": block.tenant,
        "type": str(block.type),
        "pool": block.pool,
        "count": block.count,
        "range": range_json(block.range, block.family),
        "reason": block.reason,
        "message": block.message,
    }


def _fill(fill: FillEstimate | None) -> Json | None:
    if fill is None:
        return None
    return {
        "total": fill.capacity.total,
        "allocated": fill.capacity.allocated,
        "available": fill.capacity.available,
        "largestFreeBlock": fill.capacity.largest_free_block,
        "percent": fill.capacity.percent,
        "tiers": [str(tier) for tier in fill.tiers],
    }


def _edit(edit: EditOutcome) -> Json:
    return {
        "pool": edit.pool,
        "before": _spec(edit.before),
        "after": _spec(edit.after),
        "refused": [{"field": problem.field, "message": problem.message} for problem in edit.problems],
        "warnings": list(edit.warnings),
        "stranded": [
            {"name": stranded.name, "tenant": stranded.tenant, "range": range_json(stranded.range, stranded.family)}
            for stranded in edit.stranded
        ],
    }


def _spec(spec: NetworkPoolSpec) -> Json:
    wanted = spec.tenant_allocation
    windows = [(span.start, span.end) for span in wanted.ranges] if wanted is not None else []
    if wanted is not None and wanted.start is not None and wanted.end is not None:
        windows.append((wanted.start, wanted.end))
    return {
        "cidr": spec.cidr,
        "windows": [{"start": start, "end": end} for start, end in windows],
        "reserved": [reserved_block.cidr for reserved_block in spec.reserved],
    }
