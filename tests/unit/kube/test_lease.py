"""Leader leases in virtual time, on a lease store that can be down, slow or lose answers."""

import asyncio
import contextlib
import copy
import itertools
import random
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from butler.kube.errors import ApiError, OutcomeUnknown, Status, Unreachable, error_from_status
from butler.kube.lease import LeaderLease, LeadershipLost, LeaseTerms
from unit.kube.virtual_time import now, run

if TYPE_CHECKING:
    from butler.kube.client import Client

Json = dict[str, Any]
TERMS = LeaseTerms(duration=15, deadline=10, retry=2)


def refused(code: int, reason: str) -> ApiError:
    return error_from_status(Status(reason=reason, code=code))


class Leases:
    """The four calls that a lease makes of a client. Each candidate has its own line to the server."""

    def __init__(self) -> None:
        self.lease: Json | None = None
        self.version = 0

    def line(self) -> "Line":
        return Line(self)


class Line:
    def __init__(self, server: Leases) -> None:
        self.server = server
        self.down = False
        self.hanging = False
        self.losing_answers = False

    async def _reach(self, timeout: float | None) -> None:
        if self.hanging:
            await asyncio.sleep(timeout or 45)
            raise OutcomeUnknown("no answer")
        if self.down:
            raise Unreachable("down")
        await asyncio.sleep(0.01)

    async def _answer(self, lease: Json) -> Json:
        self.server.version += 1
        lease["metadata"]["resourceVersion"] = str(self.server.version)
        self.server.lease = copy.deepcopy(lease)
        if self.losing_answers:
            raise OutcomeUnknown("answer lost")
        return copy.deepcopy(lease)

    async def get(self, _resource: Any, _name: str, _namespace: str, *, timeout: float | None = None) -> Json:
        await self._reach(timeout)
        if self.server.lease is None:
            raise refused(404, "NotFound")
        return copy.deepcopy(self.server.lease)

    async def create(self, _resource: Any, lease: Json, *, timeout: float | None = None) -> Json:
        await self._reach(timeout)
        if self.server.lease is not None:
            raise refused(409, "AlreadyExists")
        return await self._answer(copy.deepcopy(lease))

    async def replace(self, _resource: Any, lease: Json, *, timeout: float | None = None) -> Json:
        await self._reach(timeout)
        assert self.server.lease is not None
        if lease["metadata"]["resourceVersion"] != self.server.lease["metadata"]["resourceVersion"]:
            raise refused(409, "Conflict")
        return await self._answer(copy.deepcopy(lease))

    async def patch(
        self, _resource: Any, _name: str, patch: Json, _namespace: str, *, timeout: float | None = None
    ) -> Json:
        await self._reach(timeout)
        assert self.server.lease is not None
        if patch["metadata"]["resourceVersion"] != self.server.lease["metadata"]["resourceVersion"]:
            raise refused(409, "Conflict")
        merged = copy.deepcopy(self.server.lease)
        merged["spec"] |= patch["spec"]
        return await self._answer(merged)


class Candidate:
    """A process that wants to lead, and a record of when it led."""

    def __init__(self, server: Leases, name: str, seed: int = 0) -> None:
        self.line = server.line()
        client = cast("Client", self.line)
        self.lease = LeaderLease(
            client, "butler", "default", name, terms=TERMS, clock=now, rng=random.Random(f"{name}{seed}")
        )
        self.spans: list[list[float]] = []

    async def work(self) -> None:
        self.spans.append([now(), float("inf")])
        try:
            await asyncio.sleep(1e9)
        finally:
            self.spans[-1][1] = now()

    async def stand(self) -> None:
        while True:
            with contextlib.suppress(LeadershipLost):
                await self.lease.lead(self.work)

    @property
    def at_work(self) -> bool:
        return bool(self.spans) and self.spans[-1][1] == float("inf")


async def end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_one_of_two_leads_and_a_clean_end_hands_over_within_a_retry() -> None:
    async def main() -> None:
        server = Leases()
        one, two = Candidate(server, "one"), Candidate(server, "two")
        first = asyncio.create_task(one.stand())
        await asyncio.sleep(1)
        second = asyncio.create_task(two.stand())
        await asyncio.sleep(60)
        assert one.at_work
        assert not two.spans
        await end(first)
        assert not one.lease.is_leader
        await asyncio.sleep(3)
        assert two.at_work
        assert server.lease is not None
        assert server.lease["spec"]["leaseTransitions"] == 1
        await end(second)

    run(main())


@pytest.mark.parametrize("fault", ["down", "hanging"])
def test_a_leader_cut_off_stops_before_another_starts(fault: str) -> None:
    async def main() -> None:
        server = Leases()
        one, two = Candidate(server, "one"), Candidate(server, "two")
        tasks = [asyncio.create_task(one.stand())]
        await asyncio.sleep(5)
        tasks.append(asyncio.create_task(two.stand()))
        await asyncio.sleep(5)
        cut = now()
        setattr(one.line, fault, True)
        await asyncio.sleep(60)
        assert one.spans[0][1] - cut <= TERMS.deadline, "stops within the renew deadline"
        assert two.spans[0][0] >= one.spans[0][1] + 2, "and well before the other starts"
        assert two.spans[0][0] - cut <= TERMS.duration + 2 * TERMS.retry + 1, "which happens soon after"
        setattr(one.line, fault, False)
        await asyncio.sleep(30)
        assert two.at_work
        assert not one.at_work
        await end(*tasks)

    run(main())


def test_a_leader_whose_answers_are_lost_does_not_count_what_it_was_not_told() -> None:
    async def main() -> None:
        server = Leases()
        one = Candidate(server, "one")
        task = asyncio.create_task(one.stand())
        await asyncio.sleep(5)
        one.line.losing_answers = True
        await asyncio.sleep(TERMS.deadline + 1)
        assert one.spans[0][1] < float("inf"), "an unanswered renewal is no renewal"
        one.line.losing_answers = False
        await asyncio.sleep(10)
        assert one.at_work, "the lease still names it, so it leads again"
        await end(task)

    run(main())


def test_a_lease_taken_by_another_process_ends_the_work() -> None:
    async def main() -> None:
        server = Leases()
        one = Candidate(server, "one")
        task = asyncio.create_task(one.lease.lead(one.work))
        await asyncio.sleep(5)
        assert server.lease is not None
        server.version += 1
        server.lease["metadata"]["resourceVersion"] = str(server.version)
        server.lease["spec"]["holderIdentity"] = "intruder"
        with pytest.raises(LeadershipLost, match="intruder"):
            await task
        assert not one.at_work
        assert server.lease["spec"]["holderIdentity"] == "intruder", "what is not ours is not given up"

    run(main())


def test_work_that_fails_gives_the_lease_up() -> None:
    async def main() -> None:
        server = Leases()
        one = Candidate(server, "one")

        async def broken() -> None:
            raise KeyError("a bug")

        with pytest.raises(KeyError):
            await one.lease.lead(broken)
        assert server.lease is not None
        assert server.lease["spec"]["holderIdentity"] == ""

    run(main())


def test_terms_that_could_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="retry < deadline < duration"):
        LeaseTerms(duration=10, deadline=10, retry=2)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.lists(
        st.tuples(
            st.sampled_from(["one", "two", "three"]),
            st.sampled_from(["down", "hanging", "losing_answers"]),
            st.booleans(),
            st.floats(0, 20),
        ),
        max_size=15,
    ),
)
def test_no_two_work_at_once_whatever_the_network_does(seed: int, faults: list[tuple[str, str, bool, float]]) -> None:
    async def main() -> None:
        server = Leases()
        candidates = {name: Candidate(server, name, seed) for name in ("one", "two", "three")}
        tasks = [asyncio.create_task(candidate.stand()) for candidate in candidates.values()]
        for name, fault, on, pause in faults:
            setattr(candidates[name].line, fault, on)
            await asyncio.sleep(pause)
        for candidate in candidates.values():
            candidate.line.down = candidate.line.hanging = candidate.line.losing_answers = False
        await asyncio.sleep(2 * TERMS.duration + 60)
        assert sum(candidate.at_work for candidate in candidates.values()) == 1, "one leads in the end"
        spans = sorted(span for candidate in candidates.values() for span in candidate.spans)
        for earlier, later in itertools.pairwise(spans):
            assert earlier[1] <= later[0], f"two at work at once: {spans}"
        await end(*tasks)

    run(main())
