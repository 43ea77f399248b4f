"""The demo's story, played on a paper estate: what happens, in which order, and what never does."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest

from butler.local.demo import imported, objects
from butler.local.demo.cast import EIGHT, GUESTS, SERVICES
from butler.local.demo.scene import DemoPool, DemoService, DemoTenant, Scene
from butler.local.demo.story import (
    ACTS,
    PEAKS,
    Come,
    Cursor,
    Grow,
    Leave,
    Publish,
    Step,
    StoryWait,
    TakeBack,
    Withdraw,
    turn,
)

GRACE = 45.0


@dataclass
class Paper:
    """An estate in which everything is done by the next beat, and growth goes back after the grace time."""

    seed: int = 1
    cursor: Cursor = field(default_factory=Cursor)
    grown: bool = False
    clock: float = 0.0
    tenants: dict[tuple[str, str], DemoTenant] = field(default_factory=dict)
    idle_since: dict[tuple[str, str], float] = field(default_factory=dict)
    taken: frozenset[tuple[str, str]] = frozenset()
    others: int = 0
    """Addresses that are allocated to others."""
    history: list[tuple[Step, Scene]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return 48 if self.grown else 32

    @property
    def allocated(self) -> int:
        return self.others + sum(tenant.held for tenant in self.tenants.values())

    def scene(self) -> Scene:
        pool = DemoPool(self.total, self.allocated, "grown" if self.grown else "small")
        return Scene(pool, tuple(self.tenants.values()), self.taken)

    def beat(self) -> Step:
        scene = self.scene()
        now = turn(scene, self.cursor, self.seed)
        self.history.append((now.step, scene))
        self.cursor = now.cursor
        self.apply(now.step)
        self.clock += now.pause
        self.settle()
        return now.step

    def apply(self, step: Step) -> None:
        match step:
            case Come(namespace, name):
                assert (namespace, name) not in self.tenants
                assert (namespace, name) not in self.taken
                self.tenants[namespace, name] = DemoTenant(namespace, name, uid=f"{self.clock}", waiting=True)
            case Leave(tenant):
                assert not tenant.lived_in
                del self.tenants[tenant.key]
            case Publish(tenant, service):
                now = self.tenants[tenant.key]
                assert now.services is not None
                assert service not in {item.name for item in now.services}
                self.tenants[tenant.key] = replace(now, services=(*now.services, DemoService(service, f"{self.clock}")))
            case Withdraw(tenant, service):
                now = self.tenants[tenant.key]
                assert now.services is not None
                self.tenants[tenant.key] = replace(now, services=tuple(s for s in now.services if s != service))
            case Grow():
                assert not self.grown
                self.grown = True
            case TakeBack():
                if self.allocated <= 32:
                    self.grown = False

    def settle(self) -> None:
        for key, tenant in list(self.tenants.items()):
            if tenant.waiting and self.total - self.allocated >= 2:
                self.tenants[key] = replace(tenant, waiting=False, ready=True, held=2, services=())
        for key, tenant in list(self.tenants.items()):
            wanted = 1 + len(tenant.services or ())
            if tenant.ready and wanted > tenant.held and self.allocated < self.total:
                self.tenants[key] = replace(tenant, held=tenant.held + 1)
            elif tenant.held > max(2, wanted):
                since = self.idle_since.setdefault(key, self.clock)
                if self.clock - since >= GRACE:
                    self.tenants[key] = replace(tenant, held=tenant.held - 1)
            else:
                self.idle_since.pop(key, None)

    def play_wave(self) -> list[tuple[Step, Scene]]:
        wave, began = self.cursor.wave, len(self.history)
        while self.cursor.wave == wave:
            self.beat()
            assert len(self.history) - began < sum(act.beats for act in ACTS) + len(ACTS)
        return self.history[began:]


def steps(history: list[tuple[Step, Scene]], kind: type[Step]) -> list[Step]:
    return [step for step, _ in history if isinstance(step, kind)]


def test_the_first_wave_is_the_worked_example() -> None:
    paper = Paper()
    history = paper.play_wave()
    seen = [(len(scene.here), scene.pool.allocated, scene.pool.total, scene.pool.tier) for _, scene in history]
    assert (8, 16, 32, 0) in seen, "eight with two each: 50 %, and no condition"
    assert (8, 17, 32, 0) in seen, "a third Service: from 16 to 17"
    assert (12, 24, 32, 1) in seen, "75 %: CapacityWarning"
    assert (14, 28, 32, 2) in seen, "87 %: CapacityCritical too"
    assert (16, 32, 32, 3) in seen, "all three"
    assert any(any(tenant.waiting for tenant in scene.here) for _, scene in history), "the seventeenth waits"
    assert len(steps(history, Grow)) == 1
    assert len(steps(history, Leave)) == 9
    assert steps(history, TakeBack)
    assert paper.total == 32, "as small as before, for the next wave"
    assert {tenant.key for tenant in paper.tenants.values()} >= set(EIGHT)
    assert 180 < paper.clock < 600, f"a wave that people watch to its end ({paper.clock:.0f} s)"
    order = [type(step) for step, _ in history if not isinstance(step, StoryWait)]
    assert order[:8] == [Come] * 8
    assert order.index(Grow) < order.index(Leave) < order.index(TakeBack)


@pytest.mark.parametrize("seed", range(10))
def test_it_never_ends_and_never_grows_beyond_its_peaks(seed: int) -> None:
    paper = Paper(seed)
    for wave in range(12):
        history = paper.play_wave()
        assert max(len(scene.here) for _, scene in history) <= max(PEAKS)
        assert max(len(scene.here) for _, scene in history) >= PEAKS[wave % len(PEAKS)]
        assert paper.total == 32
        assert all(len(tenant.services or ()) <= len(SERVICES) for tenant in paper.tenants.values())
        assert steps(history, Publish)
        assert steps(history, Withdraw)


def test_a_seed_tells_the_same_story_again() -> None:
    def told(seed: int) -> list[str]:
        paper = Paper(seed)
        paper.play_wave()
        return [str(step) for step, _ in paper.history]

    assert told(3) == told(3)
    assert told(3) != told(4)


@pytest.mark.parametrize("seed", range(10))
def test_whatever_a_user_deletes_the_story_goes_on(seed: int) -> None:
    paper, chance = Paper(seed), random.Random(seed)
    for _ in range(600):
        paper.beat()
        if paper.tenants and chance.random() < 0.1:
            del paper.tenants[chance.choice(list(paper.tenants))]
        if chance.random() < 0.02:
            paper.cursor = Cursor()  # the ConfigMap, too
    assert len(paper.tenants) <= max(PEAKS)


def test_where_a_user_fills_the_pool_it_waits_in_place_of_crowding() -> None:
    paper = Paper(others=32)
    for _ in range(4):
        paper.play_wave()
    assert len(paper.tenants) <= len(EIGHT) + 1 + 2 * len(PEAKS)
    assert len(steps(paper.history, Come)) < 60


def test_a_name_that_is_taken_is_left_and_a_cluster_that_is_lived_in_stays() -> None:
    paper = Paper(taken=frozenset({EIGHT[0], GUESTS[0]}))
    while not (guests := [key for key in paper.tenants if key not in EIGHT]):
        paper.beat()
    (guest,) = guests
    paper.tenants[guest] = replace(paper.tenants[guest], lived_in=True)
    for _ in range(3):
        paper.play_wave()
    assert guest in paper.tenants
    assert not paper.taken & set(paper.tenants)


def test_a_pool_that_a_user_has_changed_is_neither_grown_nor_taken_back() -> None:
    scene = Scene(DemoPool(32, 32, "other"), (DemoTenant("team-shop", "web", ready=False, waiting=True),))
    for act in range(len(ACTS)):
        assert not isinstance(turn(scene, Cursor(0, act), 1).step, Grow | TakeBack)


def test_a_cursor_from_elsewhere_does_no_harm() -> None:
    scene = Scene(DemoPool(32, 0, "small"))
    for cursor in (Cursor(5, 99, 3), Cursor(0, -4, 0), Cursor(0, 2, 10**9)):
        assert turn(scene, cursor, 1).step == Come(*EIGHT[0])


def test_the_imported_estate_lies_in_its_pool_and_overlaps_nothing() -> None:
    found = imported.allocations("butler-system", 1)
    assert len(found) == imported.RANGES
    assert len({obj["metadata"]["name"] for obj in found}) == len(found)
    assert all(obj["metadata"]["labels"].items() >= {objects.LABEL} for obj in found)
    assert found == imported.allocations("butler-system", 1)
