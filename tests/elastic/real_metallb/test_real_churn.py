"""Churn on the real MetalLB: Services of all shapes come and go, and not one that stays loses its address.

At every rest, each Service that quota and pools allow is served; in the end, everything is given back but what the
tenant began with. `BUTLER_SEED=7` replays a churn, `BUTLER_CHURN_SECONDS` sets how long it lasts.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from elastic import rules
from elastic.real_metallb.churn import Churn, figures, spread
from elastic.real_metallb.moves import moves
from elastic.real_metallb.plan import Plan
from elastic.real_metallb.taken_in import given_back_unseen
from elastic.telling import insist

if TYPE_CHECKING:
    from collections.abc import Callable

    from elastic.real_metallb.moves import Moves
    from elastic.real_metallb.real_tenant import RealEstate, RealPlace

pytestmark = pytest.mark.real_metallb
GRACE = 2.0
ROUND = 60.0
"""Seconds after which everything comes to rest once."""
SHORT_SEED = 5


def test_some_seconds_of_churn_move_no_service(real: RealEstate) -> None:
    _churn(real, seed=SHORT_SEED, rounds=1, seconds=12.0)


@pytest.mark.slow
def test_minutes_of_churn_move_no_service(real: RealEstate) -> None:
    seed = int(os.environ.get("BUTLER_SEED") or random.randrange(10**6))
    seconds = float(os.environ.get("BUTLER_CHURN_SECONDS") or 360.0)
    print(f"\nBUTLER_SEED={seed}")
    _churn(real, seed=seed, rounds=max(1, round(seconds / ROUND)), seconds=ROUND)


def _churn(real: RealEstate, *, seed: int, rounds: int, seconds: float) -> None:
    place = real.place(size=24, initial=2)
    web = place.begin()
    web.add_ingress()
    first = web.gets("traefik", namespace="traefik")
    plan = Plan(seed, place.addresses(16, 39), GRACE)
    churn, acts = Churn(place, web), plan.acts()
    moved: Moves | None = None
    for number in range(rounds):
        churn.play(acts, seconds, _incidents(real, number, alone=rounds == 1))
        moved = _judged(place, f"seed {seed}, round {number + 1}")
    churn.play(plan.ending(), float("inf"), ())
    web.shrinks_to(2)
    web.publishes(place.range(16, 17))
    moved = _judged(place, f"seed {seed}, at the end")
    assert web.gets("traefik", namespace="traefik") == first
    print(f"seed {seed}: {dict(churn.done)}; {figures(web)}; by MetalLB's own race {len(moved.metallbs)} moved,")
    print(f"  and {len(moved.reached)} had reached into a drain by name")


def _incidents(real: RealEstate, number: int, *, alone: bool) -> list[tuple[float, Callable[[], None]]]:
    """In each round one process is killed or stopped; all of them in one round where there is only one."""
    deaths: list[list[tuple[float, Callable[[], None]]]] = [
        [(0.3, real.butler.kill), (0.36, real.butler.again)],
        [(0.6, real.metallb.kill), (0.66, real.start_metallb)],
        [(0.8, real.stop_butler), (0.84, real.butler.again)],
    ]
    return [pair for death in deaths for pair in death] if alone else deaths[number % len(deaths)]


def _judged(place: RealPlace, when: str) -> Moves:
    chronicle = place.comes_to_rest()
    found = moves(chronicle)
    insist(found.butlers, f"{when}: ")
    insist([violation for violation in rules.check(chronicle) if violation.rule != "moved"], f"{when}: ")
    insist(given_back_unseen(chronicle), f"{when}: ")
    return found


@pytest.mark.slow
def test_how_long_a_service_waits_for_growth_on_the_real_metallb(real: RealEstate) -> None:
    place = real.place(size=60, initial=1)
    web = place.begin()
    web.publishes(place.range(16))
    web.add("s0")
    web.gets("s0")
    for number in range(1, 51):
        web.add(f"s{number}")
        web.gets(f"s{number}")
    place.verdict()
    found = figures(web)
    print(f"\n50 Services, one after the other, each of which needs growth: {spread(found.served[1:])}")
    print(f"  pool write to MetalLB's count: {spread(found.acted)}")
    assert found.growths >= 50
