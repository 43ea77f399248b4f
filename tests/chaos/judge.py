"""What must be true in the middle of a storm and after it, seen from outside; shares no code with Butler.

`Sampler` looks at the tenants while everything moves: between two consistent lists of the allocations it reads what
each tenant's Services show and what MetalLB may announce there. Only what no order of events can excuse is held
against Butler: an address that another tenant held before and after the look (S4), a published address that its tenant
held neither before nor after (S5). `Patience` measures L1 under faults: how long a request waited although its pool
had room, less the time in which no controller could work. `rest` asks what must hold when nothing moves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from chaos.eras import Held, overlapping
from elastic.rest import waits
from ipam import oracle
from ipam.history import ALLOCATION, POOL
from ipam.invariants import Replay, claims_its_network
from ipam.oracle import Span, inside, meet, text
from ipam.story import Violation
from tenants.rules import MACHINE, TENANT, Tenant, home_of, internal_addresses

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from ipam.history import History, Json

WORST_WAIT = 20.0
"""Seconds that a request may wait for room that is there, on a machine that is busy with many other things. The rule
says one second; the figures are printed, this is where waiting becomes a fault."""


class Look(NamedTuple):
    """One tenant between two lists of the allocations."""

    uid: str
    name: str
    shown: dict[str, list[int]]
    """Addresses by Service."""
    announced: list[Span]


def sampled(
    looks: Iterable[Look],
    before: Mapping[str, Held],
    after: Mapping[str, Held],
    lost: Collection[tuple[str, int]],
    in_sight: Collection[str] = (),
) -> Iterator[Violation]:
    """S4 and S5 of a moment.

    `lost`: what a restore took from a tenant, by tenant and address. That its Services show it still is no fault, and
    nor is another holder whose record came with the snapshot. But who gets it later must not: `in_sight` are the
    allocations (UIDs) that were granted when the Services could have been seen.
    """
    throughout = {uid: held for uid, held in before.items() if after.get(uid) == held}
    for look in looks:
        mine = [held.span for held in (*before.values(), *after.values()) if held.owner == look.uid]
        for service, addresses in look.shown.items():
            for address in addresses:
                others = [
                    held
                    for uid, held in throughout.items()
                    if held.owner != look.uid
                    and _has(held.span, address)
                    and ((look.uid, address) not in lost or uid in in_sight)
                ]
                if others:
                    shown = f"Service {service} of {look.name} shows {text((address, address))}"
                    yield Violation("S4", f"{shown}, which {others[0].name} holds")
        for span in look.announced:
            wrong = [address for address in range(span[0], span[1] + 1) if not any(_has(own, address) for own in mine)]
            if any((look.uid, address) not in lost for address in wrong):
                holds = ", ".join(map(text, mine)) or "nothing"
                yield Violation("S5", f"{look.name} may announce {text(span)} and holds {holds}")


def _has(span: Span, address: int) -> bool:
    return span[0] <= address <= span[1]


def granted_in_sight(history: History, outages: Iterable[tuple[float, float]]) -> set[str]:
    """The allocations (UIDs) that an era shows to be granted while controllers worked and tenants answered."""
    blind = list(outages)
    return {
        revision.uid
        for revision in history.revisions
        if revision.kind == ALLOCATION
        and revision.before is not None  # otherwise it was listed when the era began
        and _is_live(revision.after)
        and not _is_live(revision.before)
        and not any(since <= revision.seconds <= until for since, until in blind)
    }


def _is_live(allocation: Json | None) -> bool:
    return ((allocation or {}).get("status") or {}).get("phase") == "Allocated"


def still_lost(lost: Iterable[tuple[str, int]], looked_after: Collection[str]) -> set[tuple[str, int]]:
    """What restores took from tenants (UIDs) that Butler does not know at present.

    A tenant that a restore took away as a whole runs on, with what its Services show. Only when another restore brings
    it back can Butler know of it, and by then the snapshot may say that another tenant holds it.
    """
    return {(tenant, address) for tenant, address in lost if tenant not in looked_after}


@dataclass
class Patience:
    """L1: seconds that requests waited for room that was there."""

    waited: list[float] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)

    def read(self, history: History, pool: str, outages: list[tuple[float, float]]) -> None:
        """Take in one era, for the plain requests of one pool."""
        replay, fits_since = Replay(history.began), dict[str, float]()
        for revision in history.in_order():
            for _ in replay.step(revision):
                pass
            if revision.kind not in (ALLOCATION, POOL):
                continue
            now = revision.seconds
            waiting = _fitting(replay, pool)
            granted = replay.live.keys() & fits_since.keys()
            for uid in granted:
                wait = _less(fits_since[uid], now, outages)
                self.waited.append(wait)
                if wait > WORST_WAIT:
                    name = replay.allocations[uid]["metadata"]["name"]
                    self.violations.append(Violation("L1", f"{name} waited {wait:.1f} s for room that was there"))
            fits_since = {uid: fits_since.get(uid, now) for uid in waiting}

    def told(self) -> str:
        if not self.waited:
            return "no request waited"
        ordered = sorted(self.waited)
        p99 = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
        return (
            f"{len(ordered)} grants, p50 {ordered[len(ordered) // 2]:.2f} s, p99 {p99:.2f} s, most {ordered[-1]:.2f} s"
        )


def _fitting(replay: Replay, pool: str) -> set[str]:
    """The requests that wait though there is room. The oracle asks for each alone, so the first in line is enough."""
    found = next((obj for (_, name), obj in replay.pools.items() if name == pool), None)
    if found is None or not claims_its_network(found) or found["metadata"].get("deletionTimestamp"):
        return set()
    rules = oracle.rules_of_pool(found)
    promised = ((found.get("status") or {}).get("intents")) or ()
    held = [
        *replay.live.values(),
        *((oracle.number(i["startAddress"]), oracle.number(i["endAddress"])) for i in promised),
    ]
    if rules is None:
        return set()
    return {
        uid
        for uid, allocation in replay.allocations.items()
        if _is_open(allocation)
        and allocation["spec"]["poolRef"]["name"] == pool
        and oracle.would_fit(rules, held, allocation)
    }


def _is_open(allocation: Json) -> bool:
    phase = (allocation.get("status") or {}).get("phase") or "Pending"
    return phase in ("Pending", "Failed") and not allocation["metadata"].get("deletionTimestamp")


def _less(start: float, end: float, outages: list[tuple[float, float]]) -> float:
    """Seconds between two times, without those in which no controller could work."""
    down = sum(max(0.0, min(end, until) - max(start, since)) for since, until in outages)
    return max(0.0, end - start - down)


# At rest.


def rest(
    history: History,
    tenants: Iterable[Tenant],
    services: Mapping[str, list[Json]],
    shown: Collection[tuple[str, int]] = (),
) -> Iterator[Violation]:
    """Everything that must hold when nothing moves.

    `services` are those of each tenant, by its namespace; `shown` is every address that a Service was ever seen to
    show, by tenant: what a pool reports as foreign is withheld for a minute longer, and counts only if it was shown.
    """
    replay = Replay(history.began)
    for revision in history.in_order():
        for _ in replay.step(revision):
            pass
    machines = _latest(history, MACHINE)
    clusters = {obj["metadata"]["uid"]: obj for obj in _latest(history, TENANT)}
    yield from replay.wrong_counters()
    yield from overlapping(
        {uid: Held(replay.allocations[uid]["metadata"]["name"], "", span) for uid, span in replay.live.items()}
    )
    yield from _orphans(replay, clusters)
    for uid, cluster in clusters.items():
        name, status = cluster["metadata"]["name"], cluster.get("status") or {}
        own = {
            kind: [replay.live[held] for held in replay.live if _belongs(replay.allocations[held], uid, kind)]
            for kind in ("nodes", "loadbalancer")
        }
        home = home_of(name, uid)
        running = [obj for obj in machines if obj["metadata"]["namespace"] == home]
        outside = [
            obj["metadata"]["name"]
            for obj in running
            for address in internal_addresses(obj)
            if not any(_has(span, address) for span in own["nodes"])
        ]
        conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
        if outside and conditions.get("NetworkReady", {}).get("status") == "True":
            yield Violation("conditions", f"{name} is NetworkReady, and {outside} run outside its allocation")
        waiting = [service["metadata"]["name"] for service in services.get(home, ()) if waits(service)]
        if waiting and conditions.get("LoadBalancersReady", {}).get("status") == "True":
            yield Violation("conditions", f"{name} is LoadBalancersReady, and {waiting} wait")
        if not running and status.get("phase") != "Ready" and bool(own["nodes"]) != bool(own["loadbalancer"]):
            held = {kind: [text(span) for span in spans] for kind, spans in own.items()}
            yield Violation("all or nothing", f"{name} ({status.get('phase')}) has no machine and holds {held}")
        if not running and status.get("phase") != "Ready" and not any(own.values()):
            yield from _could_have_both(replay, uid, name, shown)
    yield from _tenants_at_rest(tenants, replay)


def _latest(history: History, kind: str) -> list[Json]:
    found: dict[str, Json | None] = {
        revision.uid: revision.after for revision in history.in_order() if revision.kind == kind
    }
    return [obj for obj in found.values() if obj is not None]


def _owner(allocation: Json) -> str:
    label = (allocation["metadata"].get("labels") or {}).get("butler.butlerlabs.dev/tenant-uid")
    return str(label or (allocation.get("status") or {}).get("tenantClusterUID") or "")


def _belongs(allocation: Json, uid: str, kind: str) -> bool:
    return _owner(allocation) == uid and allocation["spec"]["type"] == kind


def _orphans(replay: Replay, clusters: Mapping[str, Json]) -> Iterator[Violation]:
    for uid in replay.live:
        allocation = replay.allocations[uid]
        owner = _owner(allocation)
        if owner and owner not in clusters:
            yield Violation("L2", f"{allocation['metadata']['name']} belongs to {owner}, which is gone")


def _could_have_both(replay: Replay, uid: str, name: str, shown: Collection[tuple[str, int]]) -> Iterator[Violation]:
    """L1 of a tenant: it waits only while one of its two blocks does not fit."""
    asked = [
        allocation for allocation in replay.allocations.values() if _owner(allocation) == uid and _is_open(allocation)
    ]
    fit = []
    for allocation in asked:
        key = (allocation["metadata"]["namespace"], allocation["spec"]["poolRef"]["name"])
        pool = replay.pools.get(key)
        rules = oracle.rules_of_pool(pool) if pool is not None else None
        taken = [*replay.live.values(), *_withheld(pool or {}, shown)]
        fit.append(rules is not None and oracle.would_fit(rules, taken, allocation))
    if asked and all(fit) and {allocation["spec"]["type"] for allocation in asked} == {"nodes", "loadbalancer"}:
        yield Violation("L1", f"{name} waits for both blocks, and each would fit")


def _withheld(pool: Json, shown: Collection[tuple[str, int]]) -> list[Span]:
    """The addresses that a pool does not hand out because a tenant's Services show them without holding them."""
    reported = (pool.get("status") or {}).get("foreignAddresses") or ()
    found = [(report["tenantClusterRef"]["name"], oracle.number(report["address"])) for report in reported]
    return [(address, address) for tenant, address in found if (tenant, address) in shown]


def _tenants_at_rest(tenants: Iterable[Tenant], replay: Replay) -> Iterator[Violation]:
    held = [(home_of(obj["spec"]["tenantClusterRef"]["name"], _owner(obj)), obj["spec"]["type"], replay.live[uid])
            for uid in replay.live if _owner(obj := replay.allocations[uid])]  # fmt: skip
    for tenant in tenants:
        mine = [span for home, kind, span in held if home == tenant.home and kind == "loadbalancer"]
        for span in tenant.announced:
            if not any(inside(span, own) for own in mine):
                yield Violation("S5", f"{tenant.home} may announce {text(span)}, and holds {list(map(text, mine))}")
        for address in tenant.balancers:
            others = [home for home, _, span in held if home != tenant.home and meet((address, address), span)]
            if others:
                yield Violation("S4", f"a Service of {tenant.home} shows {text((address, address))} of {others}")
