"""A plan as text: who gets what, how full the pools are before and after, and what it comes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.ipallocation import IPAllocationType
from butler.cli.toolkit.output import table
from butler.cli.toolkit.screen import fits
from butler.cli.toolkit.terminal import has_unicode, wrapped
from butler.ipam.addresses import range_text
from butler.ipam.capacity import THRESHOLDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from butler.api.networkpool import NetworkPoolSpec
    from butler.reports.plan.plan import Block, EditOutcome, FillEstimate, PlanOutcome, PoolOutcome, TenantOutcome

UNFOLDED = 8
"""Up to so many tenants are all shown."""


def plan_text(outcome: PlanOutcome) -> str:
    """The whole answer."""
    parts = [
        _edit(outcome.edit) if outcome.edit is not None else "",
        _blocks("Waits now", outcome.waiting),
        _tenants(outcome.tenants),
        _blocks("Request", outcome.requests),
        _pools(outcome.pools),
        "\n".join(wrapped(text, "  ") for text in _verdict(outcome)),
    ]
    return "\n\n".join(part for part in parts if part)


# An edit.


def _edit(edit: EditOutcome) -> str:
    lines = [wrapped(f"Pool {edit.pool} with {_changes(edit)}:", "  ")]
    lines += [wrapped(f"  would be refused: {problem.field}: {problem.message}", "    ") for problem in edit.problems]
    lines += [wrapped(f"  warning: {warning}", "    ") for warning in edit.warnings]
    if not edit.problems:
        lines.append("  would be accepted; no address in use is left out.")
        if (
            edit.after.cidr != edit.before.cidr
            and _windows(edit.after)
            and _windows(edit.after) == _windows(edit.before)
        ):
            lines.append(wrapped("  The window stays as it is, so no more is handed out than now: add --window.", "  "))
    if edit.stranded:
        rows = [
            [stranded.name, stranded.tenant, range_text(stranded.range, stranded.family)] for stranded in edit.stranded
        ]
        lines += ["", table(["Stranded", "Tenant", "Addresses"], rows)]
    return "\n".join(lines)


def _changes(edit: EditOutcome) -> str:
    before, after, said = edit.before, edit.after, []
    if after.cidr != before.cidr:
        said.append(f"cidr {after.cidr} (now {before.cidr})")
    if _windows(after) != _windows(before):
        said.append(f"window {_listed(_windows(after))} (now {_listed(_windows(before))})")
    more = [reserved_block.cidr for reserved_block in after.reserved[len(before.reserved) :]]
    if more:
        said.append(f"{', '.join(more)} reserved")
    return ", ".join(said) or "nothing changed"


def _windows(spec: NetworkPoolSpec) -> list[str]:
    wanted = spec.tenant_allocation
    if wanted is None:
        return []
    one = [f"{wanted.start}-{wanted.end}"] if wanted.start is not None else []
    return [*one, *(f"{span.start}-{span.end}" for span in wanted.ranges)]


def _listed(windows: Sequence[str]) -> str:
    return ", ".join(windows) or "the whole network"


# Who gets what.


def _blocks(title: str, blocks: Sequence[Block]) -> str:
    if not blocks:
        return ""
    rows = [[block.name, block.pool, str(block.type), str(block.count or "-"), _gets(block)] for block in blocks]
    made = table([title, "Pool", "Type", "Count", "Gets"], rows, right=[False, False, False, True, False])
    reasons = [
        wrapped(f"{block.name}: {block.message}", "  ") for block in blocks if block.range is None and block.message
    ]
    return "\n".join([made, *([""] if reasons else []), *reasons])


def _gets(block: Block) -> str:
    return range_text(block.range, block.family) if block.range is not None else block.reason or "waits"


def _tenants(tenants: Sequence[TenantOutcome]) -> str:
    """A line for each tenant; where that is too wide for the terminal, one for each of its blocks."""
    if not tenants:
        return ""
    shown = _folded(tenants)
    titles = ["Tenant", "Nodes", "From", "Load balancers", "From"]
    rows = [[outcome, "", "", "", ""] if isinstance(outcome, str) else _row(outcome) for outcome in shown]
    if fits([titles, *rows]):
        return table(titles, rows)
    tall = [
        line for outcome in shown for line in ([[outcome, "", ""]] if isinstance(outcome, str) else _lines(outcome))
    ]
    return table(["Tenant", "Pool", "Gets"], tall)


def _row(tenant: TenantOutcome) -> list[str]:
    cells = [tenant.name]
    for type_ in (IPAllocationType.NODES, IPAllocationType.LOAD_BALANCER):
        block = next((block for block in tenant.blocks if block.type is type_), None)
        cells += [_gets(block), block.pool] if block is not None else ["-", "-"]
    return cells


def _lines(tenant: TenantOutcome) -> list[list[str]]:
    return [[block.name, block.pool, _gets(block)] for block in tenant.blocks] or [[tenant.name, "-", "-"]]


def _folded(tenants: Sequence[TenantOutcome]) -> list[TenantOutcome | str]:
    """All of a few; of many the first, the last, and both sides of where it ends, with counts for what is left out."""
    if len(tenants) <= UNFOLDED:
        return list(tenants)
    failed = next((place for place, tenant in enumerate(tenants) if not tenant.fits), None)
    kept = {0, 1, len(tenants) - 1}
    if failed is not None:
        kept |= {max(0, failed - 1), failed}
    shown: list[TenantOutcome | str] = []
    last = -1
    for place in sorted(kept):
        if left_out := place - last - 1:
            shown.append(f"{'…' if has_unicode() else '...'} {left_out} more")
        shown.append(tenants[place])
        last = place
    return shown


# Pools.


def _pools(pools: Sequence[PoolOutcome]) -> str:
    """As much of it as a terminal has room for."""
    columns: dict[str, Callable[[FillEstimate], object]] = {
        "Total": lambda fill: fill.capacity.total,
        "Allocated": lambda fill: fill.capacity.allocated,
        "Use": lambda fill: f"{fill.capacity.percent}%",
        "Largest": lambda fill: fill.capacity.largest_free_block,
        "Tier": _tier,
    }
    known = [pool for pool in pools if pool.after is not None]
    for spare in ("", "Total", "Largest"):
        columns.pop(spare, None)
        rows = [[pool_outcome.name, *(_moves(pool_outcome, of) for of in columns.values())] for pool_outcome in known]
        if fits([["Pool", *columns], *rows]):
            break
    return table(["Pool", *columns], rows) if rows else ""


def _moves(pool: PoolOutcome, of: Callable[[FillEstimate], object]) -> str:
    """What it is now, and what it would be where that differs."""
    now, then = (str(of(fill)) if fill is not None else "invalid" for fill in (pool.before, pool.after))
    return now if now == then else f"{now} -> {then}"


def _tier(fill: FillEstimate) -> str:
    if not fill.tiers:
        return "-"
    highest = fill.tiers[-1]
    return f"{highest.removeprefix('Capacity')} ({THRESHOLDS[highest]}%)"


# What it comes to.


def _verdict(outcome: PlanOutcome) -> list[str]:
    lines: list[str] = []
    if outcome.edit_is_refused:
        lines.append("The pool stays as it is, and nothing else was tried.")
    if outcome.tenants:
        lines += _about_tenants(outcome)
    if outcome.requests:
        refused = sum(request.range is None for request in outcome.requests)
        all_ = len(outcome.requests)
        fit = "The request fits." if all_ == 1 else "Both requests fit." if all_ == 2 else f"All {all_} requests fit."
        lines.append(f"{refused} of {all_} {_plural('request', all_)} would fail." if refused else fit)
    return lines


def _about_tenants(outcome: PlanOutcome) -> list[str]:
    every, failed = len(outcome.tenants), outcome.first_failure
    where = f"on provider {outcome.provider}" if outcome.provider else "in these pools, by no provider's rules"
    if failed is None:
        who = "The tenant fits" if every == 1 else "Both tenants fit" if every == 2 else f"All {every} tenants fit"
        said = [f"{who} {where}."]
    else:
        fitting = sum(tenant.fits for tenant in outcome.tenants)
        said = [
            f"{fitting} of {every} {_plural('tenant', every)} {'fits' if fitting == 1 else 'fit'} {where}.",
            f"{failed.name} is the first that does not: {failed.why}",
        ]
    if outcome.shared:
        note = "Where both blocks of a tenant come from one pool, either may lie first; shown is nodes first."
        said.append(note)
    return said


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
