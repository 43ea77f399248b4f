"""The model of tenants' blocks: tenants that are not built get both of their blocks, or neither.

Two controllers do the same work. A sees everything at once; B sees allocations and pools, or clusters and namespaces,
as they were at some moment, and each of the two moves on whenever it likes: it is the process that was paused and
wakes up. Both may stop between two requests, and die there. What pools and tenants want is asked of Butler's own code
(`blocks_product`); the order of the writes, and what each is valid for, is the model's:

    pools       reserve both blocks in one write, valid for the pool that was seen; carry each out; refuse
    who gives   marks the block on the cluster, which is not built, valid for the cluster that was seen; looks for
    back        machines; releases where there are none, valid for the allocation that was seen
    who builds  makes the namespace; looks for marks; says on the cluster that it is built, valid for the cluster that
                was seen; makes machines

What must never be: an address held twice; a pool that promises one block of a tenant without the other that it is asked
for, too; machines on a block that was released; a namespace taken away that is built in; in a world where tenants have
patience, a block given back while a younger tenant holds what this one needs. And from every state a way leads, without
help from outside, to a rest in which as many tenants are built as fit, and all others hold nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, TypeVar

from model.blocks_numbers import next_uid, renumbered
from model.blocks_product import Product
from model.blocks_state import (
    ALLOCATED,
    APPLY,
    ASK,
    BEGIN,
    CONTROLLERS,
    FAILED,
    KIND_NAMES,
    KINDS,
    LATE,
    NODES,
    PROMPT,
    READ,
    RELEASE,
    Block,
    Facts,
    Job,
    Name,
    Pool,
    Rules,
    State,
    Tenant,
    World,
)
from model.search import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")


@dataclass(frozen=True)
class BlocksModel:
    rules: Rules = field(default_factory=Rules)
    world: World = field(default_factory=World)

    @cached_property
    def product(self) -> Product:
        return Product(self.world, asked_together=self.rules.asked_together)

    def initial(self) -> State:
        count = self.world.tenants
        facts = Facts(
            tenants=(Tenant(),) * count,
            namespaces=(False,) * count,
            blocks=((None,) * len(KINDS),) * count,
            pools=tuple(Pool(size, available=size, largest=size) for size in self.world.pools),
        )
        return State(facts, facts, (None,) * len(CONTROLLERS), ((),) * count, self.world.budget)

    # What must never be.

    def broken(self, state: State) -> str:
        return self._held_twice(state.now) or self._lost_by_machines(state)

    def _held_twice(self, now: Facts) -> str:
        held = [
            (self.world.pool_of(kind), block.first, block.first + self.world.sizes[kind], _called(tenant, kind))
            for tenant, own in enumerate(now.blocks)
            for kind, block in enumerate(own)
            if block is not None and block.phase == ALLOCATED
        ]
        for one, other in combinations(held, 2):
            if one[0] == other[0] and one[1] < other[2] and other[1] < one[2]:
                return f"S1: {one[3]} and {other[3]} hold the same address"
        return ""

    def _promised_by_halves(self, before: Facts, after: Facts) -> str:
        """Whether this write of the one pool promises a tenant one block without the other."""
        for intent in after.pools[0].intents if len(after.pools) == 1 else ():
            if intent in before.pools[0].intents:
                continue
            promised = {other.name.kind for other in after.pools[0].intents if other.tenant == intent.tenant}
            held = {kind for kind in KINDS if _holds(after, intent.tenant, kind)}
            if len(promised | held) < len(KINDS):
                return f"halves: the pool grants tenant {intent.tenant + 1} one block of two"
        return ""

    def _lost_by_machines(self, state: State) -> str:
        for tenant, names in enumerate(state.machines):
            for name in names:
                if not _has(state.now, tenant, name):
                    return f"S4: machines of tenant {tenant + 1} use addresses that were released"
        return ""

    def unfinished(self, state: State) -> str:
        for tenant, own in enumerate(state.now.blocks):
            held = [kind for kind, block in enumerate(own) if block is not None and block.phase == ALLOCATED]
            if held and not state.machines[tenant]:
                return f"rest: tenant {tenant + 1} is not built and keeps {len(held)} of its blocks"
        built = sum(map(bool, state.machines))
        fit = self.fit(state.now)
        return "" if built >= fit else f"rest: {built} tenants are built, and {fit} would fit"

    def fit(self, now: Facts) -> int:
        """How many tenants fit, all being alike."""
        if len(now.pools) == 1:
            return min(self.world.tenants, now.pools[0].size // sum(self.world.sizes))
        room = (pool.size // size for pool, size in zip(now.pools, self.world.sizes, strict=True))
        return min(self.world.tenants, *room)

    def is_well(self, state: State) -> bool:
        """All is as it should be, and stays so: a tenant that asks and gives back in turn is not at rest."""
        return not self.unfinished(state) and all(step.outside for step in self._steps(state))

    # What may happen.

    def steps(self, state: State) -> Iterator[Step[State]]:
        for step in self._steps(state):
            step.after = renumbered(step.after)
            yield step

    def _steps(self, state: State) -> Iterator[Step[State]]:
        for who in (PROMPT, LATE) if self.world.late else (PROMPT,):
            view, job = state.late if who == LATE else state.now, state.jobs[who]
            for pool in range(len(self.world.pools)):
                yield from self._pool(state, who, view, pool)
            if job is None:
                for tenant in range(self.world.tenants):
                    yield from self._tenant(state, who, view, tenant)
                continue
            yield self._goes_on(state, who, job)
            if state.budget.crashes:
                left = state.budget._replace(crashes=state.budget.crashes - 1)
                after = _busy(state, who, None)._replace(budget=left)
                yield Step(f"{CONTROLLERS[who]} dies, and another process begins", after, outside=True)
        if self.world.late:
            yield from self._hears(state)
        yield from self._people(state)

    def _people(self, state: State) -> Iterator[Step[State]]:
        if state.budget.labels:
            left = state.budget._replace(labels=state.budget.labels - 1)
            for index, tenant in enumerate(state.now.tenants):
                labelled = _put(state.now.tenants, index, tenant._replace(labelled=not tenant.labelled))
                after = state._replace(now=state.now._replace(tenants=labelled), budget=left)
                yield Step(f"a person labels tenant {index + 1}, or takes the label off", after, outside=True)
        if state.budget.edits:
            for index, pool in enumerate(state.now.pools):
                left = state.budget._replace(edits=state.budget.edits - 1)
                for size in {self.world.pools[index], self.world.edited[index]} - {pool.size}:
                    after = state._replace(now=_with_pool(state.now, index, pool._replace(size=size)), budget=left)
                    yield Step(f"a person gives pool {index} {size} addresses", after, outside=True)

    def _hears(self, state: State) -> Iterator[Step[State]]:
        now, late = state.now, state.late
        told = late._replace(blocks=now.blocks, pools=now.pools)
        if told != late:
            yield Step("B hears of all allocations and pools", state._replace(late=told))
        told = late._replace(tenants=now.tenants, namespaces=now.namespaces)
        if told != late:
            yield Step("B hears of all clusters and namespaces", state._replace(late=told))

    # Pools.

    def _pool(self, state: State, who: int, view: Facts, index: int) -> Iterator[Step[State]]:
        answer, now, name = self.product.pool(view, index), state.now, CONTROLLERS[who]
        same = now.pools[index] == view.pools[index] or not self.rules.reserve_for_the_version_decided_on
        written = answer.pool._replace(size=now.pools[index].size)
        if same and answer.pool != view.pools[index] and written != now.pools[index]:
            words = f"{name} writes pool {index}: {_promises(answer.pool)}, {answer.pool.available} free"
            after = _with_pool(now, index, written)
            yield Step(words, state._replace(now=after), self._promised_by_halves(now, after))
        for intent in answer.commits:
            block = _find(now, intent.tenant, intent.name)
            if block is not None and block == _find(view, intent.tenant, intent.name):
                granted = block._replace(phase=ALLOCATED, reason="", first=intent.first)
                yield self._written(state, intent.tenant, intent.name.kind, granted, f"{name} grants")
        for tenant, refused, reason in answer.refusals:
            block = _find(now, tenant, refused)
            if (
                block is None
                or block != _find(view, tenant, refused)
                or (block.phase, block.reason) == (FAILED, reason)
            ):
                continue
            failed = block._replace(phase=FAILED, reason=reason)
            yield self._written(state, tenant, refused.kind, failed, f"{name} refuses ({reason})")

    def _written(self, state: State, tenant: int, kind: int, block: Block | None, verb: str) -> Step[State]:
        return Step(f"{verb} {_called(tenant, kind)}", state._replace(now=_with_block(state.now, tenant, kind, block)))

    # Tenants.

    def _tenant(self, state: State, who: int, view: Facts, tenant: int) -> Iterator[Step[State]]:
        answer, now, name = self.product.tenant(view, tenant), state.now, CONTROLLERS[who]
        seen = view.tenants[tenant]
        if answer.creates:
            for kind in answer.creates:
                if now.blocks[tenant][kind] is None:
                    block = Block(next_uid(state, tenant, kind))
                    yield self._written(state, tenant, kind, block, f"{name} asks for")
            return
        if answer.gives_back is not None and not seen.started and self.rules.halves_are_given_back:
            yield from self._gives_back(state, who, tenant, seen, answer.gives_back)
            return
        if answer.builds_with and not (state.machines[tenant] and now.tenants[tenant].started):
            yield from self._builds(state, who, tenant, seen, view.namespaces[tenant], answer.builds_with)

    def _gives_back(self, state: State, who: int, tenant: int, seen: Tenant, block: Name) -> Iterator[Step[State]]:
        view, now, name = state.late if who == LATE else state.now, state.now, CONTROLLERS[who]
        answer, called = self.product.tenant(view, tenant), _called(tenant, block.kind)
        if not answer.is_marked and self.rules.younger_ones_first and not self.product.is_time(view, tenant, answer):
            return
        if answer.is_marked or not self.rules.mark_before_releasing:
            if not self._is_begun(state, tenant):
                job = Job(RELEASE, tenant, seen, (block,))
                yield Step(f"{name} looks for machines, and will release {called}", _busy(state, who, job))
            return
        if seen != now.tenants[tenant] and self.rules.mark_for_the_version_seen:
            return
        if not self.rules.only_machines_are_in_the_way and now.namespaces[tenant]:
            return
        if self.rules.marks_stay and seen.mark is not None and _has(now, tenant, seen.mark):
            return
        marked = _put(now.tenants, tenant, now.tenants[tenant]._replace(mark=block))
        after = state._replace(now=now._replace(tenants=marked))
        if who == LATE:
            after = after._replace(late=state.late._replace(tenants=_put(state.late.tenants, tenant, marked[tenant])))
        broken = "order: an older tenant gives back first" if self._is_hasty(now, who, tenant, block.kind) else ""
        yield Step(f"{name} marks {called}, to be given back", after, broken)

    def _is_begun(self, state: State, tenant: int) -> bool:
        if self.rules.only_machines_are_in_the_way:
            return bool(state.machines[tenant])
        return state.now.namespaces[tenant]

    def _is_hasty(self, now: Facts, who: int, tenant: int, kind: int) -> bool:
        """Whether a younger tenant, that waits as well, holds what this one needs; B may not know of it."""
        if who == LATE or not self.world.patient:
            return False
        missing = next(other for other in KINDS if other != kind)
        for younger in now.blocks[tenant + 1 :]:
            held, waits = younger[missing], younger[kind]
            if held is not None and held.phase == ALLOCATED and waits is not None and waits.phase == FAILED:
                return True
        return False

    def _builds(
        self, state: State, who: int, tenant: int, seen: Tenant, has_namespace: bool, blocks: tuple[Name, ...]
    ) -> Iterator[Step[State]]:
        now, name, called = state.now, CONTROLLERS[who], f"tenant {tenant + 1}"
        begins = not seen.started and (self.rules.all_that_is_not_built_begins or not has_namespace)
        job = Job(ASK if begins else self._before_machines, tenant, seen, blocks)
        if has_namespace:
            yield Step(f"{name} sees the namespace of {called}", _busy(state, who, job))
            return
        after = state._replace(now=now._replace(namespaces=_put(now.namespaces, tenant, True)))
        yield Step(f"{name} makes the namespace of {called}", _busy(after, who, job))

    @property
    def _before_machines(self) -> str:
        return READ if self.rules.read_before_making_machines else APPLY

    def _goes_on(self, state: State, who: int, job: Job) -> Step[State]:
        match job.stage:
            case "ask":
                return self._looks_for_marks(state, who, job)
            case "begin":
                return self._begins(state, who, job)
            case "read":
                return self._reads(state, who, job)
            case "release":
                return self._releases(state, who, job)
        return self._makes_machines(state, who, job)

    def _looks_for_marks(self, state: State, who: int, job: Job) -> Step[State]:
        words = f"{CONTROLLERS[who]} looks for a mark on tenant {job.tenant + 1}"
        mark = job.seen.mark
        lost = [block for block in job.blocks if block == mark or not _has(state.now, job.tenant, block)]
        if mark is None or not lost or not self.rules.look_for_marks:
            return Step(f"{words}: it can be built", _busy(state, who, job._replace(stage=BEGIN)))
        after = _busy(state, who, None)
        if self.rules.namespaces_are_left_alone:
            return Step(f"{words}: a block is given back", after)
        gone = state.now._replace(namespaces=_put(state.now.namespaces, job.tenant, False))
        broken = "torn: the namespace of a tenant that runs is taken away" if state.machines[job.tenant] else ""
        return Step(f"{words}: a block is given back, so the namespace goes", after._replace(now=gone), broken)

    def _begins(self, state: State, who: int, job: Job) -> Step[State]:
        """Say on the cluster that it is built; where it is another by now, look again."""
        found, words = state.now.tenants[job.tenant], f"{CONTROLLERS[who]} writes that tenant {job.tenant + 1} is built"
        if found == job.seen:
            after = state._replace(now=_started(state.now, job.tenant))
            return Step(words, _busy(after, who, job._replace(stage=APPLY)))
        if self.rules.begin_for_the_version_seen:
            stage = self._before_machines if found.started else ASK
            return Step(f"{words}, in vain", _busy(state, who, job._replace(stage=stage, seen=found)))
        given_back = self.rules.look_for_marks and found.mark in job.blocks
        goes_on = None if given_back else job._replace(stage=APPLY)
        return Step(f"{words}, in vain, and reads it", _busy(state, who, goes_on))

    def _reads(self, state: State, who: int, job: Job) -> Step[State]:
        words = f"{CONTROLLERS[who]} reads the nodes of tenant {job.tenant + 1} afresh"
        if not all(_has(state.now, job.tenant, name) for name in job.blocks if name.kind == NODES):
            return Step(f"{words}: they were released", _busy(state, who, None))
        return Step(f"{words}: the tenant has them", _busy(state, who, job._replace(stage=APPLY)))

    def _releases(self, state: State, who: int, job: Job) -> Step[State]:
        idle, name, (block,) = _busy(state, who, None), CONTROLLERS[who], job.blocks
        if not _has(state.now, job.tenant, block):
            return Step(f"{name} finds the block of tenant {job.tenant + 1} changed", idle)
        return self._written(idle, job.tenant, block.kind, None, f"{name} releases")

    def _makes_machines(self, state: State, who: int, job: Job) -> Step[State]:
        idle, name, called = _busy(state, who, None), CONTROLLERS[who], f"tenant {job.tenant + 1}"
        if not state.now.namespaces[job.tenant]:
            return Step(f"{name} finds no namespace to make machines of {called} in", idle)
        nodes = tuple(block for block in job.blocks if block.kind == NODES)
        return Step(
            f"{name} makes machines of {called}", idle._replace(machines=_put(state.machines, job.tenant, nodes))
        )

    def canonical(self, state: State) -> State:
        return state


def _called(tenant: int, kind: int) -> str:
    return f"the {KIND_NAMES[kind]} of tenant {tenant + 1}"


def _promises(pool: Pool) -> str:
    return (
        ", ".join(f"{_called(intent.tenant, intent.name.kind)} -> .{intent.first}" for intent in pool.intents)
        or "no intents"
    )


def _find(facts: Facts, tenant: int, name: Name) -> Block | None:
    block = facts.blocks[tenant][name.kind]
    return block if block is not None and block.uid == name.uid else None


def _has(facts: Facts, tenant: int, name: Name) -> bool:
    block = _find(facts, tenant, name)
    return block is not None and block.phase == ALLOCATED


def _holds(facts: Facts, tenant: int, kind: int) -> bool:
    block = facts.blocks[tenant][kind]
    return block is not None and block.phase == ALLOCATED


def _with_block(facts: Facts, tenant: int, kind: int, block: Block | None) -> Facts:
    return facts._replace(blocks=_put(facts.blocks, tenant, _put(facts.blocks[tenant], kind, block)))


def _with_pool(facts: Facts, index: int, pool: Pool) -> Facts:
    return facts._replace(pools=_put(facts.pools, index, pool))


def _started(facts: Facts, tenant: int) -> Facts:
    return facts._replace(tenants=_put(facts.tenants, tenant, facts.tenants[tenant]._replace(started=True)))


def _busy(state: State, who: int, job: Job | None) -> State:
    return state._replace(jobs=_put(state.jobs, who, job))


def _put(values: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    return (*values[:index], value, *values[index + 1 :])
