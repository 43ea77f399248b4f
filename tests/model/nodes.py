"""The model of node ranges that a person deletes: two controllers, a cluster, Cluster API, and people.

An allocation that is deleted stays, held by its finalizer, until no machine can have an address of it. What Butler
wants is asked of its own code (`nodes_product`); the order of requests, and what each write is valid for, is the
model's:

    allocations   of a cluster that is not built: name the block on the cluster, valid for the cluster that was seen,
                  and release it; of one that lives: leave it to the next; of one that is gone: release it
    clusters      mark the allocation, for good; write the objects without it, having read all node allocations afresh,
                  or see that no machines are asked for; list machines; release it if none can have an address of it
    teardown      delete the objects, wait for the machines, delete the namespace, release everything

A sees everything at once. B sees allocations, or all else, as they were at some moment, and moves on when it likes.
Both may stop between two requests, and die there. Cluster API makes machines with any free address that its objects
name, and a machine tells its address later. People delete allocations, machines and the cluster, and scale it.

What must never be: a machine with an address of a block that was released, unless a person insisted (S4). And from
every state a way leads, without help from outside, to where each block that was deleted is released, or a machine has
its address, or too few addresses would be left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from model import nodes_product as product
from model.nodes_state import (
    APPLY,
    CONTROLLERS,
    LATE,
    LIST,
    PROMPT,
    READ,
    RELEASE,
    Block,
    Cluster,
    Facts,
    Job,
    Machine,
    Objects,
    Rules,
    State,
    World,
    bits,
    told,
)
from model.search import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")


@dataclass(frozen=True)
class NodesModel:
    rules: Rules = field(default_factory=Rules)
    world: World = field(default_factory=World)

    def initial(self) -> State:
        world = self.world
        blocks = (Block(),) * world.blocks
        facts = Facts(blocks, Cluster(world.wanted, started=False, namespace=False), None)
        if world.built:
            objects = Objects((1 << world.blocks) - 1, world.wanted)
            machines = tuple(Machine(slot, shows=True) for slot in range(world.wanted))
            facts = Facts(blocks, Cluster(world.wanted), objects, machines)
        return State(facts, facts, (None,) * len(CONTROLLERS), world.budget)

    # What must never be.

    def broken(self, state: State) -> str:
        for machine in state.now.machines:
            block = state.now.blocks[machine.block]
            if not block.held and not block.insisted:
                return f"S4: a machine has an address of n{machine.block + 1}, which was released"
        return ""

    def unfinished(self, state: State) -> str:
        now = state.now
        for slot, block in enumerate(now.blocks):
            if not (block.held and block.deleting):
                continue
            rest = sum(other.held and not other.deleting for other in now.blocks)
            used = any(machine.block == slot for machine in now.machines)
            lives = now.cluster.started and not now.cluster.deleting
            if not (lives and (used or (now.cluster.wanted and rest < now.cluster.wanted))):
                return f"rest: n{slot + 1} was deleted, nothing uses it, and it stays"
        return "rest: the cluster was deleted, and stays" if now.cluster.deleting and not now.cluster.gone else ""

    def is_well(self, state: State) -> bool:
        return not self.unfinished(state)

    def canonical(self, state: State) -> State:
        return state

    # What may happen.

    def steps(self, state: State) -> Iterator[Step[State]]:
        for who in (PROMPT, LATE) if self.world.late else (PROMPT,):
            job = state.jobs[who]
            if job is None:
                view = state.late if who == LATE else state.now
                yield from self._allocations(state, who, view)
                yield from self._cluster(state, who, view)
                continue
            yield self._goes_on(state, who, job)
            if state.budget.crashes:
                left = state.budget._replace(crashes=state.budget.crashes - 1)
                words = f"{CONTROLLERS[who]} dies, and another process begins"
                yield Step(words, _busy(state._replace(budget=left), who, None), outside=True)
        yield from self._cluster_api(state)
        yield from self._people(state)
        if self.world.late:
            told_blocks, told_rest = state.late._replace(blocks=state.now.blocks), state.now
            told_rest = told_rest._replace(blocks=state.late.blocks)
            if told_blocks != state.late:
                yield Step("B hears of all allocations", state._replace(late=told_blocks))
            if told_rest != state.late:
                yield Step("B hears of all but allocations", state._replace(late=told_rest))

    def _cluster_api(self, state: State) -> Iterator[Step[State]]:
        now = state.now
        objects, machines = now.objects, now.machines
        for machine in machines:
            if not machine.shows:
                shown = _machines(machines, without=machine, also=machine._replace(shows=True))
                yield Step(
                    f"a machine says that it is in n{machine.block + 1}", _now(state, now._replace(machines=shown))
                )
            if objects is None or len(machines) > objects.replicas:
                left = now._replace(machines=_machines(machines, without=machine))
                yield Step(f"the machine in n{machine.block + 1} goes", _now(state, left))
        taken = {machine.block for machine in machines}
        for slot in bits(objects.named) if objects is not None and len(machines) < objects.replicas else ():
            if slot not in taken:
                more = now._replace(machines=_machines(machines, also=Machine(slot)))
                yield Step(f"a machine comes with the address of n{slot + 1}", _now(state, more))

    def _people(self, state: State) -> Iterator[Step[State]]:
        now, budget = state.now, state.budget
        for slot, block in enumerate(now.blocks):
            if budget.deletions and block.held and not block.deleting:
                deleted = block._replace(deleting=True, held=self.rules.deletion_is_a_wish)
                after = state._replace(budget=budget._replace(deletions=budget.deletions - 1))
                yield Step(f"a person deletes n{slot + 1}", _with_block(after, slot, deleted), outside=True)
            if budget.insists and block.held and block.deleting and not block.insisted:
                after = state._replace(budget=budget._replace(insists=budget.insists - 1))
                insisted = _with_block(after, slot, block._replace(insisted=True))
                yield Step(f"a person insists on the deletion of n{slot + 1}", insisted, outside=True)
        cluster = now.cluster
        for wanted in self.world.scaled_to if budget.scalings and not cluster.deleting else ():
            if wanted != cluster.wanted:
                after = state._replace(budget=budget._replace(scalings=budget.scalings - 1))
                scaled = _with_cluster(after, cluster._replace(wanted=wanted))
                yield Step(f"a person wants {wanted} machines", scaled, outside=True)
        if budget.cluster_deletions and not cluster.deleting:
            after = state._replace(budget=budget._replace(cluster_deletions=0))
            deleted_cluster = _with_cluster(after, cluster._replace(deleting=True))
            yield Step("a person deletes the cluster", deleted_cluster, outside=True)
        for machine in now.machines if budget.machine_deletions else ():
            after = state._replace(budget=budget._replace(machine_deletions=budget.machine_deletions - 1))
            left = now._replace(machines=_machines(now.machines, without=machine))
            yield Step(f"a person deletes the machine in n{machine.block + 1}", _now(after, left), outside=True)

    # Allocations.

    def _allocations(self, state: State, who: int, view: Facts) -> Iterator[Step[State]]:
        now, name = state.now, CONTROLLERS[who]
        for slot, block in enumerate(view.blocks):
            if not (block.held and block.deleting):
                continue
            # Who is known to live is not asked for.
            cluster = now.cluster if view.cluster.gone else view.cluster
            begun = now.objects is not None
            if not cluster.gone and not cluster.started and not begun and not block.insisted and cluster.mark != slot:
                yield from self._marks_the_cluster(state, who, cluster, slot)
                continue
            machines = now.machines if now.cluster.namespace and (cluster.started or begun) else None
            if product.releases(block, slot, cluster, machines):
                job = Job(RELEASE, view.blocks, going=1 << slot)
                yield Step(f"{name} finds nothing that can use n{slot + 1}", _busy(state, who, job))

    def _marks_the_cluster(self, state: State, who: int, seen: Cluster, slot: int) -> Iterator[Step[State]]:
        now = state.now
        if self.rules.begin_for_the_version_seen and seen != now.cluster:
            return
        if now.cluster.mark >= 0 and now.blocks[now.cluster.mark].held:
            return
        words = f"{CONTROLLERS[who]} names n{slot + 1} on the cluster, to be given back"
        yield Step(words, _with_cluster(state, now.cluster._replace(mark=slot)))

    # Clusters.

    def _cluster(self, state: State, who: int, view: Facts) -> Iterator[Step[State]]:
        if view.cluster.gone:
            return
        if view.cluster.deleting:
            yield from self._takes_down(state, who, view)
            return
        given_up = product.given_up(view)
        going = given_up.at_once | given_up.once_withdrawn
        if going and self.rules.deleted_ones_are_taken_back:
            unmarked = [slot for slot in bits(going) if not view.blocks[slot].marked]
            if unmarked and self.rules.mark_before_taking_back:
                yield from self._marks(state, who, view, unmarked[0])
                return
            if given_up.at_once:
                if self.rules.no_machines_are_asked_for and state.now.objects and state.now.objects.replicas:
                    return
                job = Job(LIST, view.blocks, going=given_up.at_once)
                yield Step(f"{CONTROLLERS[who]} gives up {told(given_up.at_once)}", _busy(state, who, job))
                return
        yield from self._builds(state, who, view, given_up.at_once, given_up.once_withdrawn)

    def _marks(self, state: State, who: int, view: Facts, slot: int) -> Iterator[Step[State]]:
        if view.blocks[slot] == state.now.blocks[slot]:
            after = _with_block(state, slot, view.blocks[slot]._replace(marked=True))
            yield Step(f"{CONTROLLERS[who]} marks n{slot + 1}", after)

    def _builds(self, state: State, who: int, view: Facts, gone: int, withdrawn: int) -> Iterator[Step[State]]:
        usable = sum(1 << slot for slot, block in enumerate(view.blocks) if block.held) & ~gone & ~withdrawn
        if not usable:
            return
        replicas = min(view.cluster.wanted, usable.bit_count())
        if self.rules.what_goes_gets_no_more_machines and any(view.blocks[slot].marked for slot in bits(usable)):
            replicas = min(replicas, view.objects.replicas if view.objects is not None else 0)
        objects = Objects(usable, replicas)
        going = withdrawn if self.rules.deleted_ones_are_taken_back else 0
        job = Job(READ, view.blocks, objects, view.objects, going)
        if not view.cluster.started:
            yield from self._begins(state, who, view.cluster, job)
        elif objects != view.objects:
            words = f"{CONTROLLERS[who]} is about to write that machines are in {told(usable)}"
            yield Step(words, _busy(state, who, job))
        elif job.going:
            words = f"{CONTROLLERS[who]} has written all, and takes {told(withdrawn)} back"
            yield Step(words, _busy(state, who, job._replace(stage=LIST)))

    def _begins(self, state: State, who: int, seen: Cluster, job: Job) -> Iterator[Step[State]]:
        assert job.objects is not None
        if seen.mark >= 0 and (job.objects.named >> seen.mark & 1 or not self._all_held(state, job.objects.named)):
            return
        found = state.now.cluster
        if seen != found and (self.rules.begin_for_the_version_seen or found.deleting or found.gone):
            return
        begun = _with_cluster(state, found._replace(started=True, namespace=True))
        words = f"{CONTROLLERS[who]} writes that the cluster is built"
        yield Step(words, _busy(begun, who, job))

    def _all_held(self, state: State, mask: int) -> bool:
        return all(state.now.blocks[slot].held for slot in bits(mask))

    def _takes_down(self, state: State, who: int, view: Facts) -> Iterator[Step[State]]:
        now, name = state.now, CONTROLLERS[who]
        if now.objects is not None:
            yield Step(f"{name} deletes the objects of the cluster", _now(state, now._replace(objects=None)))
        elif now.machines:
            return
        elif now.cluster.namespace and self.rules.namespace_goes_before_addresses:
            yield Step(f"{name} sees the namespace go", _with_cluster(state, now.cluster._replace(namespace=False)))
        elif any(block.held for block in view.blocks):
            held = sum(1 << slot for slot, block in enumerate(view.blocks) if block.held)
            words = f"{name} finds nothing left of the cluster"
            yield Step(words, _busy(state, who, Job(RELEASE, view.blocks, going=held)))
        elif not now.cluster.gone:
            gone = now.cluster._replace(gone=True, namespace=False)
            yield Step(f"{name} lets the cluster go", _with_cluster(state, gone))

    # Between two requests.

    def _goes_on(self, state: State, who: int, job: Job) -> Step[State]:
        match job.stage:
            case "read":
                return self._reads(state, who, job)
            case "apply":
                return self._applies(state, who, job)
            case "list":
                return self._lists(state, who, job)
        return self._releases(state, who, job)

    def _reads(self, state: State, who: int, job: Job) -> Step[State]:
        assert job.objects is not None
        words = f"{CONTROLLERS[who]} reads {told(job.objects.named)} afresh"
        changed = [slot for slot in bits(job.objects.named) if state.now.blocks[slot] != job.blocks[slot]]
        if changed and self.rules.read_before_writing:
            return Step(f"{words}: n{changed[0] + 1} is another by now", _busy(state, who, None))
        if self.world.sleeps_before_writing:
            return Step(words, _busy(state, who, job._replace(stage=APPLY)))
        written = self._applies(state, who, job)
        return Step(f"{words}, and {written.words.partition(' ')[2]}", written.after)

    def _applies(self, state: State, who: int, job: Job) -> Step[State]:
        assert job.objects is not None
        if not state.now.cluster.namespace:
            return Step(f"{CONTROLLERS[who]} finds no namespace to write to", _busy(state, who, None))
        written = _merged(job.objects, job.seen, state.now.objects)
        after = _now(state, state.now._replace(objects=written))
        words = f"{CONTROLLERS[who]} writes that {written.replicas} machines are in {told(written.named)}"
        listing = job._replace(stage=LIST, objects=None, seen=None)
        return Step(words, _busy(after, who, listing if job.going else None))

    def _lists(self, state: State, who: int, job: Job) -> Step[State]:
        """Of the blocks that go, those that no machine can have an address of are released."""
        name, machines = CONTROLLERS[who], state.now.machines
        unused = sum(1 << slot for slot in bits(job.going) if not product.are_used(job.blocks, slot, machines))
        if not self.rules.list_machines_before_releasing:
            unused = job.going
        if not unused:
            return Step(f"{name} lists machines: one may be in {told(job.going)}", _busy(state, who, None))
        after = _busy(state, who, job._replace(stage=RELEASE, going=unused))
        return Step(f"{name} lists machines: none is in {told(unused)}", after)

    def _releases(self, state: State, who: int, job: Job) -> Step[State]:
        slot, rest = bits(job.going)[0], job.going & (job.going - 1)
        found = state.now.blocks[slot]
        after = _busy(state, who, job._replace(going=rest) if rest else None)
        fits = found == job.blocks[slot] or not self.rules.release_for_the_version_seen
        if not fits or not found.held:
            return Step(f"{CONTROLLERS[who]} finds n{slot + 1} changed", after)
        return Step(f"{CONTROLLERS[who]} releases n{slot + 1}", _with_block(after, slot, found._replace(held=False)))


def _now(state: State, facts: Facts) -> State:
    return state._replace(now=facts)


def _with_block(state: State, slot: int, block: Block) -> State:
    return _now(state, state.now._replace(blocks=_put(state.now.blocks, slot, block)))


def _with_cluster(state: State, cluster: Cluster) -> State:
    return _now(state, state.now._replace(cluster=cluster))


def _busy(state: State, who: int, job: Job | None) -> State:
    return state._replace(jobs=_put(state.jobs, who, job))


def _machines(
    machines: tuple[Machine, ...], *, without: Machine | None = None, also: Machine | None = None
) -> tuple[Machine, ...]:
    left = [machine for machine in machines if machine != without]
    return tuple(sorted([*left, *([also] if also is not None else [])]))


def _merged(wanted: Objects, seen: Objects | None, found: Objects | None) -> Objects:
    """Which addresses there are and how many machines are two objects: each is written if it was seen to differ."""
    if seen is None or found is None:
        return wanted
    return Objects(
        found.named if seen.named == wanted.named else wanted.named,
        found.replicas if seen.replicas == wanted.replicas else wanted.replicas,
    )


def _put(values: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    return (*values[:index], value, *values[index + 1 :])
