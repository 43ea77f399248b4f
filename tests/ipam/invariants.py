"""The rules of the house, checked from outside over every revision that was ever committed.

The checker replays a recorded history (`history.py`) in the order of its versions and holds each revision against
the contract: S1 (no address is held twice), S2 (only addresses that the pool may hand out, only after a reserve),
S3 (what was granted stays as granted), S6 (counters equal a recount), and the bookkeeping that those rest on:
intents, claims and finalizers. It shares no code with the engine; what a number should be comes from `oracle.py`.

A revision is judged by what the server had committed before it, never by what the engine may have known: an engine
that was right by luck passes, one that was wrong by staleness does not. The liveness rules (L1, L2, and the exact
form of S6) only make sense at rest and are asked separately, with `at_rest`.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ipam import oracle
from ipam.history import ALLOCATION, CLAIMS, POOL, History, Json, Revision
from ipam.oracle import Span, inside, meet, number, text
from ipam.story import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ALLOCATION_FINALIZER = "butler.butlerlabs.dev/ipallocation"
MOST_INTENTS = 512
Key = tuple[str, str]


def check(history: History, *, views_in_order: bool = True) -> list[Violation]:
    """Every broken rule, in the order in which they were broken.

    Where a test lets watches change the order of their lines, a view may be a state that never was, and so may the
    counters of the moment; then only what they are at rest is asked for.
    """
    replay = Replay(history.began)
    found = [violation for revision in history.in_order() for violation in replay.step(revision)]
    return [violation for violation in found if views_in_order or violation.rule != "S6"]


def at_rest(history: History, orphans: Iterable[str] = ()) -> list[Violation]:
    """What must hold when nothing moves any more. `orphans` are UIDs of allocations that had to be reclaimed."""
    replay = Replay(history.began)
    for revision in history.in_order():
        for _ in replay.step(revision):
            pass  # `check` tells of these
    return [*replay.unmet_requests(), *replay.wrong_counters(), *replay.unreclaimed(orphans)]


def insist(violations: list[Violation], history: History, context: str = "") -> None:
    """Fail with the stories of the first few violations."""
    if violations:
        began = min(revision.seconds for revision in history.revisions)
        stories = "\n\n".join(violation.told(began) for violation in violations[:5])
        raise AssertionError(f"{context}{len(violations)} broken rules; the first:\n\n{stories}")


class Turn(NamedTuple):
    """An allocation begins to hold a range, or holds it no longer."""

    version: int
    uid: str
    pool: Key
    span: Span | None


class Replay:
    """The state after some revisions, and what the next one may do to it."""

    def __init__(self, began: int = 0) -> None:
        self._began = began
        self.pools: dict[Key, Json] = {}
        self.allocations: dict[str, Json] = {}  # by UID
        self.claims: dict[str, Span] = {}
        self.live: dict[str, Span] = {}  # by UID: what is Allocated now
        self._past: dict[str, list[Revision]] = defaultdict(list)  # by UID: the revisions so far
        self._turns: list[Turn] = []
        self._pool_since: dict[Key, int] = {}  # when the pool of that name was made
        self._released: dict[str, int] = {}  # by UID: when it was Released

    def step(self, revision: Revision) -> Iterator[Violation]:
        self._past[revision.uid].append(revision)
        # What stood when the record began is given: only from there on must each step be a right one.
        given = revision.before is None and revision.version <= self._began
        if revision.kind == POOL:
            yield from self._pool(revision, given)
        elif revision.kind == ALLOCATION:
            yield from self._allocation(revision, given)
        elif revision.kind == CLAIMS:
            yield from self._claims(revision)

    # IPAllocations.

    def _allocation(self, revision: Revision, given: bool) -> Iterator[Violation]:
        before, after, uid = revision.before, revision.after, revision.uid
        was, now = _phase(before), _phase(after)
        if after is None:
            yield from self._gone(revision, was)
            return
        self.allocations[uid] = after
        pool = _pool_of(after)
        if now == "Released" and was != "Released":
            self._released[uid] = revision.version
        if now == "Allocated" and was != "Allocated":
            span = _span(after["status"])
            if span is None:
                yield Violation("S3", f"{revision.name} is Allocated without a range", (revision,))
                return
            yield from self._turned_allocated(revision, span, given)
            self.live[uid] = span
            self._turns.append(Turn(revision.version, uid, pool, span))
        elif was == "Allocated" and now != "Allocated":
            del self.live[uid]
            self._turns.append(Turn(revision.version, uid, pool, None))
        yield from self._lawful_step(revision, was, now)
        if now == "Allocated" and ALLOCATION_FINALIZER not in (after["metadata"].get("finalizers") or ()):
            yield Violation("finalizer", f"{revision.name} is Allocated without the finalizer", self._story(uid))
        if now == "Allocated":
            yield from self._told_as_granted(revision)

    def _turned_allocated(self, revision: Revision, span: Span, given: bool) -> Iterator[Violation]:
        for other, taken in self.live.items():
            if other != revision.uid and meet(span, taken):
                holder = self.allocations[other]["metadata"]["name"]
                yield Violation(
                    "S1",
                    f"{revision.name} got {text(span)} while {holder} holds {text(taken)}",
                    (*self._story(revision.uid), *self._story(other), *self._reserves(revision.uid, other)),
                )
        if given:
            return
        pool = self.pools.get(_pool_of(revision.obj))
        intent = _intents(pool).get(revision.uid)
        if intent is None or _span(intent) != span:
            stood = "no intent" if intent is None else f"the intent {text(_span(intent) or (0, 0))}"
            yield Violation(
                "S2",
                f"{revision.name} got {text(span)} but in its pool stood {stood}",
                (*self._story(revision.uid), *self._reserves(revision.uid)),
            )

    def _lawful_step(self, revision: Revision, was: str, now: str) -> Iterator[Violation]:
        if was in ("Allocated", "Released") and now not in (was, "Released"):
            yield Violation("S3", f"{revision.name} went from {was} to {now}", self._story(revision.uid))
        if was in ("Allocated", "Released") and revision.before is not None and revision.after is not None:
            fields = ("startAddress", "endAddress", "addresses", "cidr", "allocatedCount")
            old, new = revision.before["status"], revision.after["status"]
            moved = [name for name in fields if old.get(name) != new.get(name)]
            if moved:
                yield Violation("S3", f"{revision.name}, once {was}, changed {moved}", self._story(revision.uid))

    def _told_as_granted(self, revision: Revision) -> Iterator[Violation]:
        status = revision.obj["status"]
        span = _span(status)
        if span is None:
            return
        wrong = []
        addresses = status.get("addresses") or []
        if [number(address) for address in addresses] != list(range(span[0], span[1] + 1)):
            wrong.append(f"addresses {addresses[:3]}... for the range {text(span)}")
        if status.get("allocatedCount") != span[1] - span[0] + 1:
            wrong.append(f"allocatedCount {status.get('allocatedCount')} for {text(span)}")
        if status.get("cidr") != oracle.cidr_of(span):
            wrong.append(f"cidr {status.get('cidr')}, but the range is {oracle.cidr_of(span)}")
        if wrong:
            yield Violation("S3", f"{revision.name} says {'; '.join(wrong)}", (revision,))

    def _gone(self, revision: Revision, was: str) -> Iterator[Violation]:
        uid = revision.uid
        del self.allocations[uid]
        pool = _pool_of(revision.obj)
        if uid in self.live:
            yield Violation("release", f"{revision.name} went while it was {was}", self._story(uid))
            del self.live[uid]
            self._turns.append(Turn(revision.version, uid, pool, None))
        released, there = self._released.get(uid), self.pools.get(pool)
        if released is None or there is None or self._pool_since[pool] > released:
            return  # without a pool nothing records it, also when one was created since
        if _seen(there) < released:
            yield Violation(
                "release",
                f"{revision.name} went before its pool took note: Released at {released}, seen {_seen(there)}",
                (*self._story(uid), *self._story(there["metadata"]["uid"])[-2:]),
            )

    # NetworkPools.

    def _pool(self, revision: Revision, given: bool) -> Iterator[Violation]:
        before, after = revision.before, revision.after
        if after is None:
            self.pools.pop(revision.key, None)
            holders = [uid for uid in self.live if _pool_of(self.allocations[uid]) == revision.key]
            promised = [u for u in _intents(before) if _phase(self.allocations.get(u)) in ("", "Pending", "Failed")]
            holders += [uid for uid in promised if uid in self.allocations]
            if holders:
                held = [self.allocations[uid]["metadata"]["name"] for uid in holders]
                what = f"{revision.name} went while {held} hold or were promised addresses"
                yield Violation("pool deletion", what, self._story(revision.uid))
            return
        self.pools[revision.key] = after
        if before is None:
            self._pool_since[revision.key] = 0 if given else revision.version
        if given:
            return
        old, new = _intents(before), _intents(after)
        for uid in new:
            if uid in old and _span(old[uid]) != _span(new[uid]):
                yield Violation(
                    "intents", f"the intent of {new[uid]['name']} moved", (*self._story(revision.uid)[-2:],)
                )
        for uid in [uid for uid in old if uid not in new]:
            yield from self._dropped(revision, uid, old[uid])
        for uid in [uid for uid in new if uid not in old]:
            yield from self._reserved(revision, uid, new[uid], new)
        if len(new) > MOST_INTENTS:
            yield Violation("intents", f"{len(new)} intents in {revision.name}", (revision,))
        if before is not None and _seen(after) < _seen(before):
            what = f"allocationsSeen of {revision.name} went back"
            yield Violation("allocationsSeen", what, self._story(revision.uid)[-2:])
        yield from self._claim_stands(revision.key)
        yield from self._lived_in(revision)
        if before is not None and before.get("status") != after.get("status"):
            yield from self._counted(revision)

    def _lived_in(self, revision: Revision) -> Iterator[Violation]:
        """A pool gives up no network in which its allocations live."""
        old, new = (((obj or {}).get("status") or {}).get("claimedCIDR") for obj in (revision.before, revision.after))
        if not old or old == new:
            return
        for uid, span in self.live.items():
            if _pool_of(self.allocations[uid]) != revision.key or not inside(span, oracle.network(old)):
                continue
            if not new or not inside(span, oracle.network(new)):
                what = f"{revision.name} went from {old} to {new}, but {text(span)} is held"
                yield Violation("claims", what, (*self._story(uid)[-2:], revision))

    def _dropped(self, revision: Revision, uid: str, intent: Json) -> Iterator[Violation]:
        allocation = self.allocations.get(uid)
        if allocation is None:
            return
        story = (*self._story(uid), *self._reserves(uid), revision)
        if _phase(allocation) not in ("Allocated", "Released"):
            what = f"the intent of {intent['name']} was dropped while it was {_phase(allocation)}"
            yield Violation("intents", what, story)
            return
        turned = next(r.version for r in self._past[uid] if _phase(r.after) in ("Allocated", "Released"))
        if _seen(revision.obj) < turned:
            # A controller that reads this pool with an older view would take the range for free.
            what = f"the intent of {intent['name']} was dropped, but allocationsSeen {_seen(revision.obj)} is older"
            yield Violation("allocationsSeen", f"{what} than its grant at {turned}", story)

    def _reserved(self, revision: Revision, uid: str, intent: Json, all_new: dict[str, Json]) -> Iterator[Violation]:
        span = _span(intent)
        assert span is not None
        name, spec = intent["name"], revision.obj["spec"]
        rules = oracle.rules_of_pool(revision.obj)
        why_not = "the pool is invalid" if rules is None else rules.why_not(span)
        if why_not:
            yield Violation("S2", f"{name} was promised {text(span)}: {why_not}", (revision,))
        if revision.obj["metadata"].get("deletionTimestamp"):
            yield Violation("pool deletion", f"{name} was promised {text(span)} by a pool that goes", (revision,))
        yield from self._room_was_free(revision, uid, name, span, all_new)
        claimed = revision.obj["status"].get("claimedCIDR")
        if not claimed or not inside(oracle.network(spec["cidr"]), oracle.network(claimed)):
            what = f"{name} was promised {text(span)} though the pool claims {claimed}"
            yield Violation("claims", what, self._story(revision.uid)[-2:])
        allocation = self.allocations.get(uid)
        if allocation is None:
            return  # promised to an allocation that is gone by now: wasteful, not wrong
        if ALLOCATION_FINALIZER not in (allocation["metadata"].get("finalizers") or ()):
            yield Violation("finalizer", f"{name} was promised {text(span)} without finalizer", self._story(uid))
        for shown, tenant in _foreign(revision.obj).items():
            if inside(shown, span):
                what = f"{name} was promised {text(span)}, and a Service of {tenant['name']} shows {text(shown)}"
                yield Violation("foreign", what, (*self._story(uid), revision))
        wanted = oracle.pinned(allocation)
        if wanted not in (None, span):
            yield Violation("S2", f"{name} asked for {text(wanted)} and was promised {text(span)}", (revision,))
        if rules is not None and rules.size_of(allocation) != span[1] - span[0] + 1:
            what = f"{name} asked for {rules.size_of(allocation)} addresses and was promised {text(span)}"
            yield Violation("S2", what, (revision,))

    def _room_was_free(
        self, revision: Revision, uid: str, name: str, span: Span, all_new: dict[str, Json]
    ) -> Iterator[Violation]:
        for other, taken in self.live.items():
            if other != uid and meet(span, taken):
                holder = self.allocations[other]["metadata"]["name"]
                what = f"{name} was promised {text(span)} while {holder} holds {text(taken)}"
                yield Violation("S1", what, (*self._story(other), *self._reserves(other), revision))
        for key, pool in self.pools.items():
            intents = all_new if key == revision.key else _intents(pool)
            for other, intent in intents.items():
                taken = _span(intent) or (0, 0)
                if (other != uid or key != revision.key) and meet(span, taken):
                    what = f"{name} was promised {text(span)} while {key[1]} promises {text(taken)} to {intent['name']}"
                    yield Violation("S1", what, (*self._reserves(other), revision))

    def _counted(self, revision: Revision) -> Iterator[Violation]:
        """The counters fit some state of the allocations between what the status says it saw and now."""
        status, rules = revision.obj["status"], oracle.rules_of_pool(revision.obj)
        if rules is None or status.get("totalIPs") is None:
            return
        earliest = _seen(revision.obj)
        held: dict[str, Turn] = {}
        tried: dict[str, int] = {}
        later: list[Turn] = []
        for turn in self._turns:
            if turn.version <= earliest:
                _apply(held, turn)
            else:
                later.append(turn)
        for after in (None, *later):
            if after is not None:
                _apply(held, after)
            tried = self._differing(revision.obj, rules, held.values())
            if not tried:
                return
        wrong = {name: f"{status.get(name)} (recount: {value})" for name, value in tried.items()}
        what = f"counters of {revision.name} fit no state of the allocations since {earliest}: {wrong}"
        uids = dict.fromkeys(turn.uid for turn in self._turns[-6:])
        turning = [r for uid in uids for r in self._past[uid] if _phase(r.after) != _phase(r.before)]
        yield Violation("S6", what, (*turning[-8:], revision))

    def _differing(self, pool: Json, rules: oracle.Rules, held: Iterable[Turn]) -> dict[str, int]:
        """The counters that a recount finds different.

        An address that any allocation holds is not free, whatever pool it came from; only the pool's own are counted as
        its allocations. One that an edit left outside the windows may count or not: the contract is silent.
        """
        key = (pool["metadata"].get("namespace", ""), pool["metadata"]["name"])
        spans = {turn.uid: turn.span for turn in held if turn.span is not None}
        own = {turn.uid for turn in held if turn.pool == key} | _intents(pool).keys()
        spans |= {uid: _span(intent) or (0, 0) for uid, intent in _intents(pool).items()}
        spans |= {f"shown {span[0]}": span for span in _foreign(pool)}
        right = oracle.recount(rules, spans.values())
        status = pool["status"]
        wrong = {name: value for name, value in right.items() if status.get(name) != value}
        inside_count = sum(any(meet(spans[uid], window) for window in rules.windows) for uid in own)
        if status.get("allocationCount") not in (len(own), inside_count):
            wrong["allocationCount"] = len(own)
        return wrong

    # Claims.

    def _claims(self, revision: Revision) -> Iterator[Violation]:
        data = (revision.after or {}).get("data") or {}
        # Beside the network an entry says for which state of its pool it was made, which does not matter here.
        old, self.claims = self.claims, {key: oracle.network(entry.split()[0]) for key, entry in data.items()}
        entries = sorted((span, key) for key, span in self.claims.items())
        for (one, key), (two, other) in pairwise(entries):
            if meet(one, two):
                yield Violation("claims", f"{key} claims {text(one)} and {other} claims {text(two)}", (revision,))
        for key in [key for key in old if old[key] != self.claims.get(key)]:
            namespace, _, name = key.partition(".")
            yield from self._claim_stands((namespace, name))
            for uid, span in self.live.items():
                kept = self.claims.get(key)
                if _pool_of(self.allocations[uid]) == (namespace, name) and (kept is None or not inside(span, kept)):
                    holder = self.allocations[uid]["metadata"]["name"]
                    what = f"{key} gave up {text(span)}, which {holder} holds"
                    yield Violation("claims", what, (*self._story(uid)[-2:], revision))

    def _claim_stands(self, key: Key) -> Iterator[Violation]:
        pool = self.pools.get(key)
        claimed = ((pool or {}).get("status") or {}).get("claimedCIDR")
        if pool is None or not claimed:
            return
        entry = self.claims.get(".".join(key))
        if entry is None or not inside(oracle.network(claimed), entry):
            recorded = "nothing" if entry is None else text(entry)
            what = f"pool {key[1]} says that it claimed {claimed}, but on record is {recorded}"
            yield Violation("claims", what, self._story(pool["metadata"]["uid"])[-3:])

    # At rest.

    def unmet_requests(self) -> Iterator[Violation]:
        """L1: no allocation waits for addresses that are available."""
        for uid, allocation in self.allocations.items():
            pool = self.pools.get(_pool_of(allocation))
            if _phase(allocation) not in ("", "Pending", "Failed") or allocation["metadata"].get("deletionTimestamp"):
                continue
            if pool is None or pool["metadata"].get("deletionTimestamp") or not claims_its_network(pool):
                continue
            rules = oracle.rules_of_pool(pool)
            held = [*self.live.values(), *(span for i in _intents(pool).values() if (span := _span(i)))]
            held += _foreign(pool)
            if rules is not None and oracle.would_fit(rules, held, allocation):
                name, free = allocation["metadata"]["name"], [text(run) for run in oracle.runs(rules, held)]
                what = f"{name} waits for {rules.size_of(allocation)} addresses, and free are {free[:8]}"
                yield Violation("L1", what, (*self._story(uid), *self._story(pool["metadata"]["uid"])[-3:]))

    def wrong_counters(self) -> Iterator[Violation]:
        """S6, exactly: at rest a pool's counters are those of its allocations as they are now."""
        for key, pool in self.pools.items():
            rules = oracle.rules_of_pool(pool)
            if rules is None or not claims_its_network(pool):
                continue
            live = [Turn(0, uid, _pool_of(self.allocations[uid]), span) for uid, span in self.live.items()]
            wrong = self._differing(pool, rules, live)
            if wrong:
                said = {name: pool["status"].get(name) for name in wrong}
                what = f"at rest pool {key[1]} says {said}, a recount {wrong}"
                yield Violation("S6", what, self._story(pool["metadata"]["uid"])[-4:])

    def unreclaimed(self, orphans: Iterable[str]) -> Iterator[Violation]:
        """L2: what belonged to a tenant that is gone has been given back."""
        for uid in orphans:
            allocation = self.allocations.get(uid)
            if allocation is not None and _phase(allocation) != "Released":
                yield Violation("L2", f"orphan {allocation['metadata']['name']} was not reclaimed", self._story(uid))

    # Stories.

    def _story(self, uid: str) -> tuple[Revision, ...]:
        return tuple(self._past[uid][-6:])

    def _reserves(self, *uids: str) -> tuple[Revision, ...]:
        """The pools' revisions in which the intents of these allocations came or went."""
        pools = [r for past in self._past.values() for r in past if r.kind == POOL]
        return tuple(r for r in pools if any(_intents(r.before).get(u) != _intents(r.after).get(u) for u in uids))


def _apply(held: dict[str, Turn], turn: Turn) -> None:
    if turn.span is None:
        held.pop(turn.uid, None)
    else:
        held[turn.uid] = turn


def _phase(allocation: Json | None) -> str:
    return str(((allocation or {}).get("status") or {}).get("phase") or "")


def _span(part: Json) -> Span | None:
    if not part.get("startAddress") or not part.get("endAddress"):
        return None
    return number(part["startAddress"]), number(part["endAddress"])


def _pool_of(allocation: Json) -> Key:
    return allocation["metadata"].get("namespace", ""), allocation["spec"]["poolRef"]["name"]


def _intents(pool: Json | None) -> dict[str, Json]:
    return {intent["uid"]: intent for intent in ((pool or {}).get("status") or {}).get("intents") or ()}


def _foreign(pool: Json | None) -> dict[Span, Json]:
    """Addresses that a Service shows although Butler did not grant them, and its cluster."""
    shown = ((pool or {}).get("status") or {}).get("foreignAddresses") or ()
    return {(number(item["address"]), number(item["address"])): item["tenantClusterRef"] for item in shown}


def _seen(pool: Json) -> int:
    return int((pool.get("status") or {}).get("allocationsSeen") or 0)


def claims_its_network(pool: Json) -> bool:
    """Whether a pool may hand out: its network, as it is now, is its own."""
    claimed = (pool.get("status") or {}).get("claimedCIDR")
    if not claimed:
        return False
    return inside(oracle.network(pool["spec"]["cidr"]), oracle.network(claimed))
