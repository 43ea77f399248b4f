"""How well ranges are packed: 1,000,000 requests and releases replayed on best fit, first fit, next fit and buddy.

    python bench/bench_ipam_packing.py [--events 1000000]        (or: make bench-ipam PART=packing)

The figures do not depend on the machine: the trace is seeded, and every policy meets the same one (ipam/traces.py).
A map of the pool, one byte an address, checks every grant. Demand rises and falls in tides; each tide gives one first
failure, and fragmentation is looked at in each when demand stands at 90 %.

- occupancy at first failure: addresses asked for and granted, of all, when a request is first refused in a tide
- fragmentation: 100 - largest hole / free addresses, as the pool's status shows it
- waste: addresses taken beyond what was asked for
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path[:0] = [
    str(Path(__file__).parent),
    str(Path(__file__).parents[1] / "tests"),
    str(Path(__file__).parents[1] / "tests/support"),
    str(Path(__file__).parents[1] / "tools"),
    str(Path(__file__).parents[1] / "kubeserver/tests/support"),
]

from ipam.policies import POLICIES, BestFit, Policy  # noqa: E402 - after the path is set
from ipam.report import Goal, heading, note, summary, table  # noqa: E402
from ipam.traces import HIGH, LOW, TRACES  # noqa: E402

POOL = 1 << 14
TIDES = 10
LOOK_AT = 0.90
SEED = 20_260_217


@dataclass
class Outcome:
    """What one policy made of one trace."""

    policy: str
    requests: int = 0
    refused: int = 0
    refused_though_free: int = 0
    first_failures: list[float] = field(default_factory=list)
    fragmentation: list[float] = field(default_factory=list)
    holes: list[int] = field(default_factory=list)
    occupancy_after_failure: list[float] = field(default_factory=list)
    waste: list[float] = field(default_factory=list)
    seconds: float = 0.0


class Pool:
    """A policy at work, with a map that knows every address."""

    def __init__(self, policy: type[Policy]) -> None:
        self.policy = policy(POOL)
        self.granted: dict[int, tuple[int, int]] = {}
        self.asked = 0  # addresses asked for and held
        self.taken = 0  # the same with what rounding adds
        self.cells = bytearray(POOL)

    def request(self, number: int, length: int) -> bool:
        first = self.policy.place(length)
        if first is None:
            return False
        if first < 0 or first + length > POOL or any(self.cells[first : first + length]):
            raise AssertionError(f"{self.policy.name} placed {length} at {first}, which is not free")
        self.cells[first : first + length] = b"\1" * length
        self.granted[number] = (first, length)
        self.asked += length
        self.taken += self.policy.footprint(length)
        return True

    def release(self, number: int) -> None:
        found = self.granted.pop(number, None)
        if found is None:
            return  # it was refused
        first, length = found
        self.policy.free(first, length)
        self.cells[first : first + length] = bytes(length)
        self.asked -= length
        self.taken -= self.policy.footprint(length)

    def holes(self) -> list[int]:
        """Lengths of what is free, from the map and from nothing the policy says; what rounding adds is not free."""
        cells = bytearray(self.cells)
        for first, length in self.granted.values():
            size = self.policy.footprint(length)
            cells[first : first + size] = b"\1" * size
        return [len(run) for run in bytes(cells).split(b"\1") if run]


def replay(policy: type[Policy], trace: str, events: int) -> Outcome:
    outcome = Outcome(policy.name)
    pool = Pool(policy)
    began = time.perf_counter()
    look = (LOOK_AT - LOW) / (HIGH - LOW)
    for tide in TRACES[trace](POOL, events, TIDES, SEED):
        failed_at: int | None = None
        after: list[float] = []
        for step, (number, length) in enumerate(tide):
            if not length:
                pool.release(number)
            else:
                outcome.requests += 1
                if not pool.request(number, length):
                    outcome.refused += 1
                    outcome.refused_though_free += POOL - pool.taken >= pool.policy.footprint(length)
                    if failed_at is None:
                        failed_at = step
                        outcome.first_failures.append(pool.asked / POOL)
            if failed_at is not None and step % 100 == 0:
                after.append(pool.asked / POOL)
            if step == int(len(tide) * look):
                holes = pool.holes()
                outcome.fragmentation.append(100 - max(holes, default=0) * 100 / max(sum(holes), 1) if holes else 0.0)
                outcome.holes.append(len(holes))
                outcome.waste.append(100 * (pool.taken - pool.asked) / pool.taken)
        if after:
            outcome.occupancy_after_failure.append(statistics.mean(after))
    outcome.seconds = time.perf_counter() - began
    return outcome


def show(trace: str, outcomes: list[Outcome]) -> None:
    heading(f"Packing, {trace}: {outcomes[0].requests:,} requests in {TIDES} tides, {POOL:,} addresses")
    rows = []
    for outcome in outcomes:
        failures = [100 * share for share in outcome.first_failures]
        rows.append(
            [
                outcome.policy,
                f"{statistics.mean(failures):.1f} %" if failures else "never",
                f"{min(failures):.1f}..{max(failures):.1f}" if failures else "",
                f"{100 * statistics.mean(outcome.occupancy_after_failure):.1f} %" if failures else "",
                f"{outcome.refused:,} ({100 * outcome.refused / outcome.requests:.2f} %)",
                f"{outcome.refused_though_free:,}",
                f"{statistics.mean(outcome.waste):.1f} %",
            ]
        )
    table(
        ["policy", "at first failure", "least..most", "from then on", "refused", "with enough free", "waste"],
        rows,
    )
    print()
    table(
        [f"fragmentation at {LOOK_AT:.0%} demand, by tide", *(str(tide + 1) for tide in range(TIDES)), "holes"],
        [
            [
                outcome.policy,
                *(f"{value:.0f}" for value in outcome.fragmentation),
                f"{statistics.mean(outcome.holes):.0f}",
            ]
            for outcome in outcomes
        ],
    )


def run(events: int = 1_000_000) -> list[Goal]:
    goals = []
    with ProcessPoolExecutor() as processes:
        work = {trace: [processes.submit(replay, policy, trace, events) for policy in POLICIES] for trace in TRACES}
        for trace, futures in work.items():
            outcomes = [future.result() for future in futures]
            show(trace, outcomes)
            ours, others = outcomes[0], outcomes[1:]
            assert ours.policy == BestFit.name
            mean = statistics.mean(ours.first_failures)
            best = max(others, key=lambda other: statistics.mean(other.first_failures))
            goals.append(
                Goal(
                    f"packing, {trace.split(':')[0]}: first failure no earlier than any other's",
                    f"{mean:.1%} full; {best.policy} {statistics.mean(best.first_failures):.1%}",
                    mean >= statistics.mean(best.first_failures),
                )
            )
    note("'with enough free': refused although as many addresses were free, in holes that were too short.")
    return goals


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    summary(run(parser.parse_args().events))
