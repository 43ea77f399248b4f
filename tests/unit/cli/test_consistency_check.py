"""In which order a check reads an estate."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from butler.cli.estate.consistency_check import read_tolerantly
from butler.cli.toolkit.session import ClusterAccess, CommandSession
from butler.kube.client import Listed


class Witness:
    """Is a client: writes down when each list begins and ends."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def list(self, resource: Any, namespace: str = "") -> Listed[Any]:
        self.seen.append(f"{resource.kind} begins")
        await asyncio.sleep(0)
        self.seen.append(f"{resource.kind} ends")
        return Listed([], "1")


async def test_allocations_are_listed_after_the_pools_that_speak_of_them() -> None:
    witness = Witness()
    estate, strange = await read_tolerantly(CommandSession(cast("Any", witness), ClusterAccess()))
    assert (estate.pools, estate.allocations, strange) == ((), (), [])
    assert witness.seen.index("NetworkPool ends") < witness.seen.index("IPAllocation begins")
    assert {text.split()[0] for text in witness.seen} == {
        "NetworkPool", "IPAllocation", "ProviderConfig", "TenantCluster",
    }  # fmt: skip
