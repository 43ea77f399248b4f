"""What a controller does for a tenant's load-balancer addresses, one request at a time.

This is `butler.controllers.loadbalancers` (controller, publisher, draining) and `butler.tenant.metallb` in small:

    publish     look at the cache and read the pool, read afresh what would be added, write the pool, read it back
    drain       mark; read the pool, hold it back (autoAssign off, one's name on it), read it back; wait; read the
                pool, list Services, write the pool without the block, read it back; wait; read the pool, list
                Services, release
    break off   unmark; publishing then puts everything right

Being paused is being late. A crash is a mind that begins anew, which may happen at any time. What a controller knows
of Services through its watch may be of any age, so it may begin a drain, or break one off for it, whenever it likes.
Views of allocations are as old as they like too: a controller hears of all changes at once, at any time or never, and
of its own writes when they are answered. Looking at the cache and reading the pool are one step, since a pause between
the two is the same as hearing late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from model.elastic_state import (
    AT_REST,
    CONFIRM,
    CONTROLLERS,
    FRESH,
    HOLD,
    IDLE,
    LATELY,
    LIST_INSIDE,
    LIST_OUTSIDE,
    MUTE,
    NO_NAME,
    NOT,
    PROMPT,
    PUBLISH,
    PURPOSES,
    RELEASE,
    SETTLED,
    SIGN,
    SIGNS,
    STAMP,
    UNMARK,
    WITHDRAW,
    WRITE,
    Allocation,
    Cached,
    Job,
    Late,
    Mind,
    Pool,
    Rules,
    Tenant,
    World,
    bits,
    blocks_in,
    claims,
    draining_in,
    pool_told,
    told,
    waits,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")
Happening = tuple[str, Tenant]


def began(tenant: Tenant) -> Mind:
    """A process that has just listed everything."""
    return Mind(tuple(Cached(*allocation) for allocation in tenant.allocations), out=(NOT,) * len(tenant.allocations))


class ControllerSteps:
    """The steps of controller `who` in a tenant. `may_begin`: whether something may be due to be taken back."""

    def __init__(self, rules: Rules, world: World, tenant: Tenant, who: int) -> None:
        self.rules, self.world, self.tenant, self.who = rules, world, tenant, who
        self.mind = tenant.minds[who]
        self.name = CONTROLLERS[who]

    def steps(self) -> Iterator[Happening]:
        """What it may do next; all that a drain that begins costs is told apart (`begins`)."""
        job = self.mind.job
        if job.stage == IDLE:
            yield from self._at_rest()
        elif job.stage == SIGN:
            yield self._now(self._put(self.mind._replace(signed=False), job), "reads when MetalLB last read its pools")
        elif job.stage == FRESH:
            yield self._reads_afresh()
        elif job.stage == WRITE:
            yield self._writes_the_pool()
        elif job.stage == CONFIRM:
            same = self.tenant.pool == job.pool
            yield self._now(self._concluded(self.mind, is_current=same), f"reads {'it' if same else 'else'} back")
        elif job.stage in (LIST_INSIDE, LIST_OUTSIDE):
            yield self._lists()
        elif job.stage == UNMARK:
            yield self._next_allocation("unmarks")
        else:
            yield self._next_allocation("releases")

    # At rest: it looks.

    def _at_rest(self) -> Iterator[Happening]:
        mind, tenant = self.mind, self.tenant
        if any(not cached.newest for cached in mind.cache):
            yield self._now(self._heard(), "hears of all allocations")
        draining, blocks = draining_in(mind), blocks_in(mind)
        if not draining:
            for mask in self._to_publish(blocks):
                job = Job(FRESH, PUBLISH, tenant.pool, blocks=mask)
                if tenant.pool != self._wanted(mask, auto=self._hands_out(mask)) or not mind.well:
                    yield self._now(self._put(mind, job), f"reads the pool, to publish {told(mask)}")
            yield from self._deleted_ones_go()
            return
        for slot in bits(draining):
            if self._may_write(slot):
                after = self._allocated(slot, marked=False)
                words = f"breaks the drain off, as its watch shows a Service: unmarks g{slot + 1}"
                yield self._now(after.minds[self.who]._replace(held=NOT), words, after)
        inside = draining & tenant.pool.mask
        if inside:
            yield from self._goes_on_inside(blocks & ~draining, inside)
        else:
            yield from self._goes_on_outside(blocks & ~draining, draining)

    def begins(self) -> Iterator[Happening]:
        """Something has been idle for long enough, by its watch, and all is well, as far as it knows."""
        mind = self.mind
        blocks = blocks_in(mind)
        if mind.job.stage != IDLE or draining_in(mind) or not mind.well:
            return
        for slot in bits(blocks):
            if self.rules.last_block_stays and not self.world.initial and blocks == 1 << slot:
                continue
            if not self.rules.mark_before_withdrawing:
                yield self._begins_unmarked(slot)
            elif self._may_write(slot):
                after = self._allocated(slot, marked=True)
                yield self._now(after.minds[self.who], f"marks g{slot + 1}", after)

    def _begins_unmarked(self, slot: int) -> Happening:
        cache = _put(self.mind.cache, slot, self.mind.cache[slot]._replace(marked=True))
        return self._now(self.mind._replace(cache=cache), f"begins to drain g{slot + 1}, and marks nothing")

    def _goes_on_inside(self, staying: int, inside: int) -> Iterator[Happening]:
        mind, pool, rules = self.mind, self.tenant.pool, self.rules
        if rules.last_block_stays and not staying and not self.world.initial:
            yield self._now(mind._replace(job=Job(UNMARK, slots=inside)), "would leave nothing, and breaks off")
            return
        held = Pool(exists=True, mask=staying | inside, auto=False, by=self._me())
        job = Job(FRESH, HOLD, pool, blocks=staying | inside, slots=inside)
        if rules.nothing_is_handed_out_meanwhile and (mind.held == NOT or pool != held):
            ready = mind._replace(held=NOT) if rules.held_only_when_answered else mind
            words = f"reads the pool, to hold it back for {told(inside)}"
            if self.world.metallb == SIGNS:
                yield self._now(ready._replace(job=job._replace(stage=SIGN)), words)
            else:
                yield self._now(self._put(ready, job), words)
            return
        if self.world.metallb == SIGNS and mind.held and not mind.signed:
            yield self._now(mind._replace(job=Job(UNMARK, slots=inside)), "waits in vain for a sign, and breaks off")
        waited = self._has_settled(mind.held, signed=mind.signed) or not rules.wait_before_the_list
        if rules.count_is_right_before_withdrawing and self.tenant.shown not in (-1, pool.mask.bit_count()):
            waited = False
        if waited or not rules.nothing_is_handed_out_meanwhile:
            listing = job._replace(stage=LIST_INSIDE, purpose=WITHDRAW, blocks=staying)
            yield self._now(mind._replace(job=listing), "has waited, and reads the pool")

    def _goes_on_outside(self, staying: int, outside: int) -> Iterator[Happening]:
        mind, pool = self.mind, self.tenant.pool
        unseen = [slot for slot in bits(outside) if mind.out[slot] == NOT]
        if self.rules.last_block_stays and not staying and not self.world.initial:
            yield self._now(mind._replace(job=Job(UNMARK, slots=outside)), "would leave nothing, and breaks off")
            return
        if unseen and self.rules.stamp_what_is_out_already:
            job = Job(FRESH, STAMP, pool, blocks=staying, slots=outside)
            yield self._now(self._put(mind, job), f"reads the pool, finds {told(outside)} outside, and will say so")
            return
        if unseen:
            mind = self._out_since_now(mind, sum(1 << slot for slot in unseen))
        settled = all(self._has_settled(mind.out[slot], signed=True) for slot in bits(outside))
        if self.world.metallb == SIGNS and pool.exists and self.tenant.shown not in (-1, staying.bit_count()):
            yield self._now(mind._replace(job=Job(UNMARK, slots=outside)), "waits in vain for a sign, and breaks off")
            settled = False
        if settled or not self.rules.wait_before_the_release:
            job = Job(LIST_OUTSIDE, slots=outside)
            yield self._now(mind._replace(job=job), f"reads the pool: {told(outside)} is out of it, and it has waited")
        elif unseen:
            yield self._now(mind, f"reads the pool: {told(outside)} is out of it, and it begins to wait")

    def _has_settled(self, since: int, *, signed: bool) -> bool:
        if self.world.metallb == PROMPT:
            return since == SETTLED
        return since != NOT and (signed or self.world.metallb == MUTE)

    # What allocations that a person deleted make different (`elastic_deletion`).

    def _to_publish(self, blocks: int) -> Iterable[int]:
        return (blocks,)

    def _hands_out(self, mask: int) -> bool:
        return True

    def _deleted_ones_go(self) -> Iterable[Happening]:
        return ()

    def _is_needed(self, slots: int, staying: int) -> bool:
        """Whether a Service, asked afresh, has one of these, asks for one, or waits for any."""
        return any(waits(service) or claims(service, slots) for service in self.tenant.services)

    # Writing the pool.

    def _wanted(self, mask: int, *, auto: bool = True, by: int = NO_NAME) -> Pool:
        exists = bool(mask) or self.world.initial
        return Pool(exists, mask, auto, by) if exists else Pool(exists=False, mask=0, auto=True)

    def _me(self) -> int:
        return self.who + 1 if self.rules.name_on_the_pool else NO_NAME

    def _put(self, mind: Mind, job: Job) -> Mind:
        """Publishing.put: what is to be read afresh, if anything."""
        there = job.pool.mask
        unread = job.blocks & ~there
        if self.rules.drops_only_what_is_gone:
            going = job.slots if job.purpose == WITHDRAW else 0
            unread |= there & ~job.blocks & ~going
        return self._read(mind, job._replace(stage=FRESH, unread=unread, passed=0))

    def _reads_afresh(self) -> Happening:
        job = self.mind.job
        slot = bits(job.unread)[0]
        now, known, bit = self.tenant.allocations[slot], self.mind.cache[slot], 1 << slot
        if job.pool.mask & bit:  # there, but unknown to us: it stays if it is the tenant's
            passes = now.live
        elif self.rules.fresh_read_before_adding:
            unmarked = not now.marked or not self.rules.marked_is_never_added
            passes = now.live and now.uid == known.uid and unmarked
        else:
            passes = True
        read = job._replace(unread=job.unread & ~bit, passed=job.passed | bit if passes else job.passed)
        words = f"reads g{slot + 1} afresh: {'the tenant has it' if passes else 'it is not to be published'}"
        return self._now(self._read(self.mind, read), words)

    def _read(self, mind: Mind, job: Job) -> Mind:
        if job.unread:
            return mind._replace(job=job)
        there, new = job.pool.mask, job.blocks & ~job.pool.mask
        mask = (job.blocks & there) | job.passed
        complete = not new & ~job.passed and not job.passed & ~job.blocks
        held = job.purpose == HOLD
        by = self._me() if job.purpose in (HOLD, STAMP) else NO_NAME
        wanted = self._wanted(mask, auto=not held and self._hands_out(mask), by=by)
        stamps = job.purpose == STAMP or (held and mind.held == NOT and self.rules.every_hold_is_written)
        told_already = wanted == job.pool and not stamps
        writing = job._replace(
            stage=WRITE,
            pool=wanted,
            creates=wanted.exists and not job.pool.exists,
            complete=complete,
            blocks=0,
            passed=0,
        )
        if told_already:
            return self._concluded(mind._replace(job=writing), is_current=True)
        if not job.newest and not writing.creates and self.rules.pool_for_the_version_read:
            return self._concluded(mind._replace(job=writing), is_current=False)
        return mind._replace(job=writing)

    def _writes_the_pool(self) -> Happening:
        job, tenant = self.mind.job, self.tenant
        words = f"writes the pool, to {PURPOSES[job.purpose]}: {pool_told(job.pool)}"
        if job.creates and tenant.pool.exists and self.rules.create_when_absent:
            return self._now(self._concluded(self.mind, is_current=False), "finds that the pool was created")
        after = pool_written(self.rules, tenant, job.pool)
        mind = after.minds[self.who]._replace(job=job._replace(stage=CONFIRM))
        if not self.rules.read_back:
            mind = self._concluded(mind, is_current=True, tenant=after)
        return self._now(mind, words, after)

    def _concluded(self, mind: Mind, *, is_current: bool, tenant: Tenant | None = None) -> Mind:
        job = mind.job
        mind = mind._replace(well=is_current and job.complete, job=AT_REST)
        since = self._since_now(tenant)
        if job.purpose == HOLD:
            signed = mind.signed and not self.rules.sign_is_read_after_the_hold
            return mind._replace(held=since if is_current else NOT, signed=signed)
        if job.purpose == WITHDRAW and is_current:
            return self._out_since_now(mind._replace(held=NOT), job.slots, tenant)
        if job.purpose == STAMP and self.rules.stamps_hold_nothing:
            mind = mind._replace(held=NOT)
        if job.purpose == STAMP and is_current:
            return self._out_since_now(mind, job.slots, tenant)
        return mind

    def _since_now(self, tenant: Tenant | None = None) -> int:
        if self.world.metallb != PROMPT:
            return LATELY
        return SETTLED if (tenant or self.tenant).taken_in else LATELY

    def _out_since_now(self, mind: Mind, slots: int, tenant: Tenant | None = None) -> Mind:
        since = self._since_now(tenant)
        return mind._replace(out=tuple(since if slots >> slot & 1 else each for slot, each in enumerate(mind.out)))

    # Services, and what follows.

    def _lists(self) -> Happening:
        job, services = self.mind.job, self.tenant.services
        inside = job.stage == LIST_INSIDE
        looks = self.rules.list_before_withdrawing if inside else self.rules.list_before_the_release
        if looks and self._is_needed(job.slots, job.blocks if inside else 0):
            after = self.tenant
            if inside and job.newest:
                spared = (
                    service._replace(spared=True) if claims(service, job.slots) else service for service in services
                )
                after = after._replace(services=tuple(spared))
            mind = self._settled_versions(self.mind, Job(UNMARK, slots=job.slots))
            return self._now(mind, "lists Services: one has it, asks for it or waits", after)
        words = "lists Services: none has it, asks for it or waits"
        if inside:
            if not self.rules.pool_is_read_before_the_list:
                job = job._replace(pool=self.tenant.pool, newest=True)
            return self._now(self._put(self.mind, job), words)
        return self._now(self._settled_versions(self.mind, Job(RELEASE, slots=job.slots)), words)

    def _settled_versions(self, mind: Mind, job: Job) -> Mind:
        """Go on to write allocations, unless the first of those writes is bound to be refused."""
        slot = bits(job.slots)[0]
        return mind._replace(job=job if self._may_write(slot, releases=job.stage == RELEASE) else AT_REST)

    def _next_allocation(self, verb: str) -> Happening:
        job = self.mind.job
        slot = bits(job.slots)[0]
        releases = job.stage == RELEASE
        if not self._may_write(slot, releases=releases):
            return self._now(self.mind._replace(job=AT_REST), f"finds g{slot + 1} changed")
        after = self._allocated(slot, live=False) if releases else self._allocated(slot, marked=False)
        left = job.slots & ~(1 << slot)
        mind = after.minds[self.who]._replace(job=job._replace(slots=left) if left else AT_REST)
        if not releases:
            mind = mind._replace(held=NOT)
        return self._now(mind, f"{verb} g{slot + 1}", after)

    # Allocations.

    def _may_write(self, slot: int, *, releases: bool = False) -> bool:
        known, now = self.mind.cache[slot], self.tenant.allocations[slot]
        guarded = self.rules.release_for_the_version_marked if releases else self.rules.marks_for_the_version_seen
        return known.newest if guarded else now.live and now.uid == known.uid

    def _allocated(self, slot: int, *, live: bool = True, marked: bool | None = None) -> Tenant:
        now = self.tenant.allocations[slot]
        changed = now._replace(live=live, marked=now.marked if marked is None else marked)
        after = allocation_written(self.rules, self.tenant, slot, changed)
        mind = after.minds[self.who]
        mind = mind._replace(cache=_put(mind.cache, slot, Cached(*changed)))
        if not (changed.live and changed.marked):
            mind = mind._replace(out=_put(mind.out, slot, NOT))
        return after._replace(minds=_put(after.minds, self.who, mind))

    def _heard(self) -> Mind:
        mind, tenant = self.mind, self.tenant
        cache = tuple(Cached(*allocation) for allocation in tenant.allocations)
        out = tuple(
            NOT
            if not (now.live and now.marked)
            or before.uid != now.uid
            or (self.rules.waits_belong_to_one_mark and not before.newest)
            else since
            for since, before, now in zip(mind.out, mind.cache, cache, strict=True)
        )
        held = mind.held if any(cached.live and cached.marked for cached in cache) else NOT
        return mind._replace(cache=cache, out=out, held=held)

    def _now(self, mind: Mind, words: str, after: Tenant | None = None) -> Happening:
        tenant = after or self.tenant
        return f"{self.name} {words}", tenant._replace(minds=_put(tenant.minds, self.who, _tidy(mind)))

    # Writes that are still on their way when their process has given them up.

    def given_up(self) -> Iterator[tuple[str, Tenant]]:
        job, mind = self.mind.job, self.mind
        if job.stage == WRITE:
            late = Late(job.purpose, job.pool, job.creates)
            after = mind._replace(job=AT_REST, well=False)
            if self.rules.held_only_when_answered:
                after = after._replace(held=NOT)
            words = f"gives up before this has arrived: the pool becomes {pool_told(job.pool)}"
        elif job.stage in (UNMARK, RELEASE):
            late = Late(job.stage, AT_REST.pool, slot=bits(job.slots)[0])
            after = mind._replace(job=AT_REST)
            verb = "unmarking" if job.stage == UNMARK else "releasing"
            words = f"gives up before this has arrived: {verb} g{late.slot + 1}"
        else:
            return
        words, tenant = self._now(after, words)
        yield words, tenant._replace(late=tuple(sorted({*tenant.late, late})))


def arrives(rules: Rules, tenant: Tenant, late: Late) -> Happening:
    """A late write is taken, or refused."""
    rest = tenant._replace(late=tuple(item for item in tenant.late if item != late))
    if late.purpose in (UNMARK, RELEASE):
        now = tenant.allocations[late.slot]
        changed = now._replace(marked=False) if late.purpose == UNMARK else now._replace(live=False)
        return f"late: g{late.slot + 1} is written", allocation_written(rules, rest, late.slot, changed)
    if late.creates and tenant.pool.exists and rules.create_when_absent:
        return "late: another process has created the pool", rest
    return f"late: the pool becomes {pool_told(late.pool)}", pool_written(rules, rest, late.pool)


def pool_written(rules: Rules, tenant: Tenant, pool: Pool) -> Tenant:
    """A client writes the pool: readers before it have an old version, and a controller about to write is refused."""
    minds = tuple(_outdated(rules, mind) for mind in tenant.minds)
    late = tenant.late
    if rules.pool_for_the_version_read:
        late = tuple(item for item in late if item.purpose in (UNMARK, RELEASE) or item.creates)
    shown = tenant.shown if pool.exists else -1
    taken_in = tenant.taken_in and (tenant.known, tenant.known_auto) == (pool.mask, pool.auto)
    return tenant._replace(pool=pool, minds=minds, late=late, shown=shown, taken_in=taken_in)


def allocation_written(rules: Rules, tenant: Tenant, slot: int, now: Allocation) -> Tenant:
    """An allocation has a new version: all views of it are old."""
    minds = tuple(_outdated_view(rules, mind, slot) for mind in tenant.minds)
    late = tuple(item for item in tenant.late if item.purpose not in (UNMARK, RELEASE) or item.slot != slot)
    allocations = _put(tenant.allocations, slot, now)
    return tenant._replace(allocations=allocations, minds=minds, late=late)


def _outdated(rules: Rules, mind: Mind) -> Mind:
    """A client wrote the pool. A controller about to write it is refused, and what follows is the same now as later."""
    job = mind.job
    if job.stage == WRITE and not job.creates and rules.pool_for_the_version_read:
        return mind._replace(well=False, held=NOT if job.purpose == HOLD else mind.held, job=AT_REST)
    if job.stage in (SIGN, FRESH, LIST_INSIDE):
        return mind._replace(job=job._replace(newest=False))
    return mind


def _outdated_view(rules: Rules, mind: Mind, slot: int) -> Mind:
    """A client wrote an allocation; likewise."""
    job = mind.job
    guarded = {UNMARK: rules.marks_for_the_version_seen, RELEASE: rules.release_for_the_version_marked}
    refused = guarded.get(job.stage, False) and bits(job.slots)[0] == slot
    cache = _put(mind.cache, slot, mind.cache[slot]._replace(newest=False))
    return mind._replace(cache=cache, job=AT_REST if refused else job)


def _tidy(mind: Mind) -> Mind:
    """Forget what no longer makes a difference."""
    if mind.job.stage != IDLE:
        return mind
    return mind if mind.held or not mind.signed else mind._replace(signed=False)


def _put(values: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    return (*values[:index], value, *values[index + 1 :])
