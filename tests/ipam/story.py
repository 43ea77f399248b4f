"""How a violation is told: the few revisions that make it one, in order, with times and writers.

A dump of objects would hide the fault; a line per revision says what changed there and who changed it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipam.history import ALLOCATION, CLAIMS, POOL
from ipam.oracle import number, text

if TYPE_CHECKING:
    from ipam.history import Json, Revision

MOST_LINES = 10
COUNTERS = ("totalIPs", "allocatedIPs", "availableIPs", "allocationCount", "largestFreeBlock", "fragmentationPercent")


@dataclass(frozen=True)
class Violation:
    """One broken rule and the revisions that show it."""

    rule: str
    what: str
    revisions: tuple[Revision, ...] = ()

    def told(self, began: float = 0.0) -> str:
        ordered = sorted(self.revisions, key=lambda revision: revision.version)
        left_out = [f"  ... {len(ordered) - MOST_LINES} more before"] if len(ordered) > MOST_LINES else []
        lines = left_out + [line(revision, began) for revision in ordered[-MOST_LINES:]]
        return "\n".join([f"{self.rule}: {self.what}", *lines])


def line(revision: Revision, began: float = 0.0) -> str:
    """One revision in one line."""
    when = f"+{revision.seconds - began:.3f} s" if revision.seconds else ""
    name = f"{revision.kind} {revision.namespace}/{revision.name}"
    by = "" if revision.after is None else f"  by {revision.writer}"
    return f"  rv {revision.version} {when}  {name}: {what_changed(revision)}{by}"


def what_changed(revision: Revision) -> str:
    if revision.after is None:
        return "gone"
    new = "" if revision.before is not None else f"new ({revision.uid}) "
    before = revision.before or {}
    if revision.kind == ALLOCATION:
        return new + _allocation(before, revision.after)
    if revision.kind == POOL:
        return new + _pool(before, revision.after)
    if revision.kind == CLAIMS:
        return f"{new}{before.get('data') or {}} -> {revision.after.get('data') or {}}"
    return new


def _allocation(before: Json, after: Json) -> str:
    said = []
    old, now = before.get("status") or {}, after.get("status") or {}
    span = f" {now['startAddress']}-{now.get('endAddress')}" if now.get("startAddress") else ""
    if old.get("phase") != now.get("phase"):
        said.append(f"{old.get('phase')} -> {now.get('phase')}{span}")
    else:
        said.append(f"{now.get('phase')}{span}")
    for name, what in (("deletionTimestamp", "being deleted"), ("finalizers", "finalizers")):
        one, two = (obj.get("metadata", {}).get(name) for obj in (before, after))
        if one != two:
            said.append(what if name == "deletionTimestamp" else f"{what} {one} -> {two}")
    reasons = [f"{c['type']}={c['status']}/{c['reason']}" for c in now.get("conditions") or ()]
    return ", ".join(said) + (f" [{' '.join(reasons)}]" if reasons else "")


def _pool(before: Json, after: Json) -> str:
    said = []
    if before and before.get("spec") != after.get("spec"):
        said.append(f"spec {before.get('spec')} -> {after.get('spec')}")
    old, now = before.get("status") or {}, after.get("status") or {}
    one, two = ({i["uid"]: i for i in status.get("intents") or ()} for status in (old, now))
    gone = [f"-{one[uid]['name']}" for uid in one if uid not in two]
    come = [
        f"+{i['name']}({uid[:8]})={text((number(i['startAddress']), number(i['endAddress'])))}"
        for uid, i in two.items()
        if one.get(uid) != i
    ]
    if gone or come:
        said.append(f"intents {' '.join(gone + come)}")
    watched = ("allocationsSeen", "claimedCIDR", *COUNTERS)
    said += [f"{name} {old.get(name)} -> {now.get(name)}" for name in watched if old.get(name) != now.get(name)]
    if before.get("metadata", {}).get("deletionTimestamp") != after["metadata"].get("deletionTimestamp"):
        said.append("being deleted")
    return ", ".join(said) or "nothing that matters here"
