"""How a broken rule is told: the few revisions of both sides that make it one, in the order in which they were seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elastic.chronicle import ADDRESS_POOL, SERVICE
from ipam import story
from ipam.history import ALLOCATION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ipam.history import Revision
    from ipam.story import Violation

MOST = 5


def insist(violations: Iterable[Violation], context: str = "") -> None:
    """Fail with the stories of the first few violations."""
    found = list(violations)
    if found:
        stories = "\n\n".join(_told(violation) for violation in found[:MOST])
        raise AssertionError(f"{context}{len(found)} broken rules; the first:\n\n{stories}")


def _told(violation: Violation) -> str:
    seen = sorted(violation.revisions, key=lambda revision: revision.seconds)
    began = seen[0].seconds if seen else 0.0
    return "\n".join([f"{violation.rule}: {violation.what}", *(line(item, began) for item in seen)])


def line(revision: Revision, began: float) -> str:
    """One revision in one line."""
    if revision.after is not None and revision.kind == ALLOCATION:
        status = revision.after.get("status") or {}
        marks = [f"{mark} {status[mark]}" for mark in ("idleSince", "drainingSince") if status.get(mark)]
        return ", ".join([story.line(revision, began), *marks])
    if revision.after is None or revision.kind not in (ADDRESS_POOL, SERVICE):
        return story.line(revision, began)
    spec = revision.after["spec"]
    if revision.kind == ADDRESS_POOL:
        said = f"{spec.get('addresses')} autoAssign {spec.get('autoAssign')}"
    else:
        said = f"{spec.get('type')} {(revision.after.get('status') or {}).get('loadBalancer')}"
    name = f"{revision.kind} {revision.namespace}/{revision.name}"
    return f"  rv {revision.version} +{revision.seconds - began:.3f} s  {name}: {said}  by {revision.writer}"
