"""The witness itself: its record is whole after broken connections, and where it cannot be, it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fault_proxy import Always, Fault, FaultProxy
from ipam.estate import Api, named
from ipam.faults import Confused
from ipam.history import Gap, Witness

if TYPE_CHECKING:
    from control_planes import ControlPlane

CHANGES = 40


async def _change(api: Api) -> None:
    for number in range(CHANGES):
        name = f"pool-{number % 4}"
        spec = {"cidr": f"10.{number}.0.0/24"}
        if await api.get("networkpools", name) is None:
            await api.create("networkpools", named("NetworkPool", {"name": name}, spec))
        elif number % 5 == 4:
            await api.delete("networkpools", name)
        else:
            await api.patch("networkpools", name, {"spec": spec})


async def test_a_witness_whose_connections_break_misses_nothing(ready_plane: ControlPlane) -> None:
    namespace = ready_plane.fresh_namespace("witness")
    async with (
        FaultProxy(ready_plane.url, ready_plane.tls, ready_plane.headers) as line,
        Api(ready_plane, namespace) as api,
    ):
        line.plan = Confused(1, ("close", "cut_within"))
        shaken = Witness(line.url, None, {}, namespace=namespace, home_namespace=namespace)
        calm = Witness(
            ready_plane.url, ready_plane.tls, ready_plane.headers, namespace=namespace, home_namespace=namespace
        )
        async with shaken.watching(), calm.watching():
            await _change(api)
            seen = [
                (revision.version, revision.name, revision.after) for revision in (await shaken.finish()).in_order()
            ]
            assert seen == [
                (revision.version, revision.name, revision.after) for revision in (await calm.finish()).in_order()
            ]
            assert len(seen) > CHANGES * 0.8
        assert line.counts["watch", "cut_within"] + line.counts["watch", "close"] > 3, "too calm to prove anything"


async def test_a_witness_that_is_told_of_a_hole_fails(ready_plane: ControlPlane) -> None:
    namespace = ready_plane.fresh_namespace("witness")
    async with (
        FaultProxy(ready_plane.url, ready_plane.tls, ready_plane.headers) as line,
        Api(ready_plane, namespace) as api,
    ):
        witness = Witness(line.url, None, {}, namespace=namespace, home_namespace=namespace)
        async with witness.watching():
            await api.create("networkpools", named("NetworkPool", {"name": "a"}, {"cidr": "10.0.0.0/24"}))
            assert await witness.until(lambda: len(witness.history.revisions) == 1, 30)
            line.plan = Always(Fault("refuse", 410), ("watch",))
            line.cut_all()
            with pytest.raises(Gap, match="has a hole"):
                await witness.until(lambda: False, 30)
