"""Services come and go on several tenants at once, while the controller is killed and tenants cannot be reached.

Every wait has the same generous limit, so a Service that is forgotten until a far-off timer fails here, not only one
that is served wrongly. The seed decides who does what; when things happen is left to the machine.
"""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from elastic.stories import MOST
from ipam.estate import Scale, scales

if TYPE_CHECKING:
    from elastic.estate import ElasticTenant
    from elastic.faults.drill import Drill, Replica

FORGOTTEN = 60.0
"""Seconds: a Service waits that long only if it is forgotten until the next full pass, which comes after 120."""
CROWD = 6


class Crowd:
    """The users of one tenant, in a thread of their own."""

    def __init__(self, drill: Drill, tenant: ElasticTenant, rng: random.Random, turns: int) -> None:
        self.tenant = tenant
        self.waits: list[tuple[float, str]] = []
        self._drill = drill
        self._rng = rng
        self._turns = turns
        self._made = 0

    def live(self) -> None:
        try:
            self._live()
        except Exception as error:
            error.add_note("\n".join(["What happened:", *self._drill.estate.timeline(self.tenant)[-MOST:]]))
            raise

    def _live(self) -> None:
        self._drill.grow(self.tenant)
        present: list[str] = []
        for _ in range(self._turns):
            turn = self._rng.random()
            if turn < 0.55 or not present:
                present += self._come(self._rng.randint(1, 3))
            elif turn < 0.85:
                gone = self._rng.sample(present, self._rng.randint(1, len(present)))
                self.tenant.remove(*gone)
                present = [name for name in present if name not in gone]
            else:
                time.sleep(self._rng.uniform(0.2, 1.5))
        self.tenant.remove(*present)
        self._timed("shrunk", lambda: self.tenant.shrinks_to(1))

    def _come(self, count: int) -> list[str]:
        names = [f"s{self._made + number}" for number in range(count)]
        self._made += count
        self.tenant.add(*names)
        self._timed(f"served {names}", lambda: self.tenant.gets(*names))
        return names

    def _timed(self, what: str, wait: object) -> None:
        began = time.monotonic()
        assert callable(wait)
        wait()
        self.waits.append((time.monotonic() - began, f"{self.tenant.name} {what}"))


def _trouble(drill: Drill, butler: Replica, crowd: list[Crowd], rng: random.Random, over: threading.Event) -> None:
    while not over.wait(rng.uniform(1.0, 3.0)):
        if rng.random() < 0.5:
            butler.kill()
            butler.start()
        else:
            name = rng.choice(crowd).tenant.name
            butler.lines.go_dark(name)
            over.wait(rng.uniform(0.2, 2.0))
            butler.lines.go_dark(name, False)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("troubled", [False, True], ids=["calm", "troubled"])
@scales(long=2)
def test_a_crowd_of_services_is_served_and_none_is_moved(drill: Drill, scale: Scale, troubled: bool) -> None:
    rng = random.Random(scale.seed)
    tenants = [drill.tenant() for _ in range(CROWD)]
    crowd = [Crowd(drill, tenant, random.Random(rng.random()), scale.of(8, 60)) for tenant in tenants]
    over = threading.Event()
    with drill.replica() as butler, ThreadPoolExecutor(CROWD + 1) as threads:
        trouble = threads.submit(_trouble, drill, butler, crowd, rng, over) if troubled else None
        lives = [threads.submit(item.live) for item in crowd]
        try:
            for life in lives:
                life.result()
        finally:
            over.set()
        if trouble is not None:
            trouble.result()
        waits = sorted(wait for item in crowd for wait in item.waits)
        middle = waits[len(waits) // 2][0]
        print(f"{len(waits)} waits: half within {middle:.2f} s, longest {waits[-1]}")
        assert waits[-1][0] < FORGOTTEN, waits[-5:]
        drill.verdict(*tenants)
