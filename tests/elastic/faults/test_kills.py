"""kill -9 at every write of growing and shrinking: before a server hears of it, and after it answered.

The play is a cycle: a Service that is one too many comes and is served, goes, and its address goes back. Two ways:

  short lives   the controller is killed after each few writes that it makes, on either side, until the play is over.
                (After each single one it would never get anywhere: the process that takes over a shrink signs it
                first.)
  one crash     an undisturbed cycle counts the writes; then one cycle for each write and each side of it, with one
                crash there, and with a Service that comes while no controller runs.

Writes of events, leases and of the clusters' status do not count: nothing depends on them.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from elastic.faults.drill import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from elastic.estate import ElasticTenant
    from elastic.faults.drill import Drill, Replica
    from fault_proxy import Asked, Moment

COUNTED = ("ipallocations", "networkpools", "ipaddresspools", "l2advertisements")


class Killer:
    """Kills a process at its n-th write, before or after it, and starts it again."""

    def __init__(
        self, butler: Replica, at: int, side: Moment, *, again: bool, meanwhile: Callable[[], None] | None = None
    ) -> None:
        self._butler = butler
        self._at = at
        self._side = side
        self._again = again
        self._meanwhile = meanwhile
        self._seen = 0
        self._turn = threading.Lock()
        self.struck: list[str] = []
        self.writes: list[str] = []
        self.back = threading.Event()
        for line in (butler.lines.management, *butler.lines.tenants.values()):
            line.on_write = self

    async def __call__(self, asked: Asked, moment: Moment) -> None:
        if asked.plural not in COUNTED:
            return
        if not self._butler.pid:
            raise ConnectionResetError  # a parallel write of the dead
        if moment == "before":
            self.writes.append(str(asked))
        if moment != self._side or (self.struck and not self._again):
            return
        self._seen += 1
        if self._seen != self._at:
            return
        self._seen = 0
        self.struck.append(f"{self._side} {asked}")
        self._butler.kill()
        threading.Thread(target=self._revive, daemon=True).start()
        raise ConnectionResetError

    def _revive(self) -> None:
        if self._meanwhile is not None:
            self._meanwhile()
        with self._turn:
            if not self._butler.pid:
                self._butler.start()
        self.back.set()

    def stop(self) -> None:
        """Let it live; it runs when this returns."""
        for line in (self._butler.lines.management, *self._butler.lines.tenants.values()):
            line.on_write = None
        with self._turn:
            if not self._butler.pid:
                self._butler.start()


def cycle(drill: Drill, web: ElasticTenant, name: str) -> None:
    drill.grow(web, name)
    web.remove(name)
    web.shrinks_to(1)


@pytest.mark.parametrize("writes", [2, *(pytest.param(number, marks=pytest.mark.slow) for number in (3, 4))])
def test_lives_of_a_few_writes_grow_and_shrink_all_the_same(drill: Drill, writes: int) -> None:
    web = drill.tenant()
    with drill.replica() as butler:
        killer = Killer(butler, writes, "after", again=True)
        cycle(drill, web, "a")
        killer.stop()
        print(f"{len(killer.struck)} kills: {killer.struck}")
        assert len(killer.struck) >= 2, killer.writes
        drill.verdict(web)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("comes", ["nothing", "a Service", "a Service by name"])
def test_one_crash_at_every_write(drill: Drill, side: Moment, comes: str) -> None:
    web = drill.tenant()
    with drill.replica() as butler:
        counting = Killer(butler, 1_000_000, "after", again=False)
        cycle(drill, web, "undisturbed")
        total = len(counting.writes)
        assert total >= 6, counting.writes
        struck = [_one_crash(drill, web, butler, number, side, comes) for number in range(1, total + 1)]
        print("\n".join(f"{number}. {where or 'never came to this'}" for number, where in enumerate(struck, 1)))
        assert len([where for where in struck if where]) >= total - 2, struck
        drill.verdict(web)


def _one_crash(drill: Drill, web: ElasticTenant, butler: Replica, number: int, side: Moment, comes: str) -> str:
    """Where it was killed; nowhere if a cycle has fewer writes this time."""
    late = f"late-{number}"

    def come() -> None:
        named = {"a Service by name": f"{web.place.network}.{_second(web)}"}.get(comes)
        if comes != "nothing":
            web.add(late, loadBalancerIP=named)

    killer = Killer(butler, number, side, again=False, meanwhile=come)
    cycle_name = f"c{number}"
    drill.grow(web, cycle_name)
    web.remove(cycle_name)
    if killer.struck or killer.back.wait(3):
        assert killer.back.wait(PATIENCE)
        if comes == "a Service" or (comes != "nothing" and web.address(late)):
            web.gets(late)
    killer.stop()
    if web.service(late) or (comes != "nothing" and killer.struck):
        web.sees(lambda: web.service(late), "it came")
        web.remove(late)
    web.shrinks_to(1)
    return "".join(killer.struck)


def _second(web: ElasticTenant) -> int:
    """The last number of the address that the tenant grew by, or of one that it may grow by."""
    growths = [growth for growth in web.growths() if growth["status"].get("startAddress")]
    return int(growths[0]["status"]["startAddress"].rsplit(".", 1)[1]) if growths else 99
