"""Two candidates, two lines to one server, and what happens when a line breaks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from butler.kube.lease import LeaderLease, LeadershipLost, LeaseTerms
from butler.kube.resource import LEASES
from fault_proxy import FAITHFUL, Always, Fault, FaultProxy
from local.runtime.conftest import shaken_client
from local.runtime.witness import following, until

if TYPE_CHECKING:
    from butler.kube.client import Client
    from control_planes import ControlPlane

TERMS = LeaseTerms(duration=4, deadline=2.5, retry=0.4)


class Candidate:
    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self.lease = LeaderLease(client, "leader", namespace, name, terms=TERMS)
        self.spans: list[list[float]] = []

    async def work(self) -> None:
        loop = asyncio.get_running_loop()
        self.spans.append([loop.time(), float("inf")])
        try:
            await asyncio.Event().wait()
        finally:
            self.spans[-1][1] = loop.time()

    async def stand(self) -> None:
        while True:
            try:
                await self.lease.lead(self.work)
            except LeadershipLost:
                continue

    @property
    def at_work(self) -> bool:
        return bool(self.spans) and self.spans[-1][1] == float("inf")


@pytest.mark.parametrize("loss", ["dark", "stalled"])
async def test_a_leader_that_loses_the_server_stops_before_its_successor_starts(
    control_plane: ControlPlane, client: Client, namespace: str, loss: str
) -> None:
    async with (
        FaultProxy(control_plane.url, control_plane.tls, control_plane.headers) as line,
        shaken_client(line) as shaken,
    ):
        one, two = Candidate(shaken, namespace, "one"), Candidate(client, namespace, "two")
        async with following(one.stand()):
            await until(lambda: one.at_work, "the first leads")
            async with following(two.stand()):
                await asyncio.sleep(TERMS.retry * 3)
                assert not two.spans
                if loss == "dark":
                    line.go_dark()
                else:
                    line.plan = Always(Fault("stall"))
                cut = asyncio.get_running_loop().time()
                await until(lambda: two.at_work, "the second leads")
                assert one.spans[0][1] - cut <= TERMS.deadline + 0.3, "stopped by its own clock"
                assert two.spans[0][0] > one.spans[0][1], "one after the other"
                line.go_dark(False)
                line.plan = FAITHFUL
                await asyncio.sleep(TERMS.retry * 3)
                assert not one.at_work, "the old leader waits its turn"
            lease = await client.get(LEASES, "leader", namespace)
            assert lease["spec"]["holderIdentity"] in ("", "one"), "given up on the way out"
            await until(lambda: one.at_work, "and the first takes over without waiting for it to run out", timeout=3)
            lease = await client.get(LEASES, "leader", namespace)
            assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("one", 2)
