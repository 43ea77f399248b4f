"""One allocation on one screen, and what hangs on one that is to be released."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.conditions import condition_holds, find_condition
from butler.api.labels import Annotation, ConditionType
from butler.cli.drawings.who import moment
from butler.cli.tables.allocations import granted_text, phase_text
from butler.cli.toolkit.output import age
from butler.cli.toolkit.screen import facts, listed, section, sentence
from butler.ipam.addresses import Family, range_text
from butler.reports.address_lookup import role_of
from butler.reports.estate import tenant_of
from butler.rules.allocation.held import granted_range

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.cli.estate.events import Event
    from butler.reports.release_impact import Impact

MOST_USES = 12


def screen(allocation: IPAllocation, events: Sequence[Event], now: datetime) -> str:
    """All about an allocation."""
    spec, status, granted = allocation.spec, allocation.status, granted_range(allocation)
    found = find_condition(status.conditions, ConditionType.TENANT_FOUND)
    parts = [
        facts(
            [
                ("Name", allocation.metadata.name),
                ("Phase", phase_text(allocation)),
                ("Tenant", tenant_of(allocation)),
                (
                    "Tenant found",
                    f"{'yes' if found.status == 'True' else 'no'}: {found.message}" if found else "not looked for yet",
                ),
                ("Used for", spec.type),
                ("Role", role_of(allocation)),
                ("Pool", spec.pool_ref.name),
                ("Asked for", request_text(allocation)),
                ("Asked because", allocation.metadata.annotations.get(Annotation.REASON)),
                ("Asked at", moment(allocation.metadata.creation_timestamp, now)),
                ("Waits", waiting_text(allocation, now)),
                ("Granted", f"{granted_text(allocation)} ({_many(granted[1].size)})" if granted else "nothing"),
                ("Network", status.cidr),
                ("Granted at", moment(status.allocated_at, now)),
                ("Idle since", moment(status.idle_since, now)),
                ("Taken back since", moment(status.draining_since, now)),
                ("Released at", moment(status.released_at, now)),
                ("Deleted at", moment(allocation.metadata.deletion_timestamp, now)),
            ]
        )
    ]
    if status.conditions:
        rows = [
            [
                condition.type,
                condition.status,
                condition.reason,
                _age(condition.last_transition_time, now),
                condition.message,
            ]
            for condition in status.conditions
        ]
        parts.append(section("Conditions", listed(["Type", "Status", "Reason", "Since", "Message"], rows)))
    if events:
        told = [[_age(event.last, now), event.type, event.reason, f"x{event.times}", event.message] for event in events]
        parts.append(section("Events", listed(["Last seen", "Type", "Reason", "Times", "Message"], told)))
    return "\n\n".join(parts)


def request_text(allocation: IPAllocation) -> str:
    """What was asked for, in words."""
    spec = allocation.spec
    if spec.pinned_range is not None:
        start, end = spec.pinned_range.start_address, spec.pinned_range.end_address
        return f"exactly {start if start == end else f'{start}-{end}'}"
    return _many(spec.count) if spec.count is not None else f"as many as the pool gives by default for {spec.type}"


def waiting_text(allocation: IPAllocation, now: datetime) -> str:
    """For how long a request has waited for room, and how often it was passed; empty for all others."""
    status, asked = allocation.status, allocation.metadata.creation_timestamp
    if asked is None or not condition_holds(status.conditions, ConditionType.WAITING):
        return ""
    return f"for {age(asked, now)}; met before it: {_requests(status.passed_by or 0)}"


def impact_text(impact: Impact) -> str:
    """What a release would do: whose, which addresses, who uses them, what follows."""
    what = (
        f"{range_text(impact.addresses, Family.V4)} ({_many(impact.addresses.size)})" if impact.addresses else "nothing"
    )
    head = f"{impact.name}: {what} for {impact.type} of {impact.tenant} ({impact.tenant_is.words}), pool {impact.pool}"
    lines = [sentence(head)]
    lines += [sentence(f"  in use: {use}") for use in impact.uses[:MOST_USES]]
    if len(impact.uses) > MOST_USES:
        lines.append(f"  in use: and {len(impact.uses) - MOST_USES} more")
    if impact.not_asked:
        lines.append(sentence(f"  the tenant was not asked who uses them: {impact.not_asked}"))
    lines += [sentence(f"  {follow}") for follow in impact.follows]
    return "\n".join(lines)


def _many(count: int) -> str:
    return f"{count} address{'' if count == 1 else 'es'}"


def _requests(count: int) -> str:
    return f"{count or 'no'} younger request{'' if count == 1 else 's'}"


def _age(when: datetime | None, now: datetime) -> str:
    return age(when, now)
