"""Who is about to hand addresses out learns by one request how their allocation is now, and has the grant on record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from butler.api.labels import Annotation
from butler.api.objects import Key
from butler.controllers.ipallocation.record import read_and_record
from butler.kube.errors import KubeError
from butler.kube.kinds import ALLOCATIONS
from unit.controllers.tenantcluster.management import Management, View, refusal
from unit.controllers.tenantcluster.values import HOME, NOW, allocation

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation

KEY = Key(HOME, "web-nodes")


class Handing:
    """A granted allocation, and a view of it that stands still."""

    def __init__(self) -> None:
        self.management = Management()
        self.put()
        self.see()

    def put(self, **meta: Any) -> None:
        """Write it, with more in its metadata."""
        made = self.management.put("ipallocations", allocation("web-nodes", "nodes", start="10.40.0.10"))
        self.management.put("ipallocations", {**made, "metadata": {**made["metadata"], **meta}})

    def see(self) -> None:
        """Let the view show what there is now, and stand still."""
        self.view = View(self.management, ALLOCATIONS)
        self.view.freeze()

    async def ask(self) -> IPAllocation | None:
        return await read_and_record(
            cast("Any", self.management), cast("Any", self.view), cast("IPAllocation", self.view.get(KEY))
        )

    @property
    def asked(self) -> dict[str, int]:
        return dict(self.management.counts)

    @property
    def record(self) -> str | None:
        found = self.management.objects["ipallocations"][KEY]
        return cast("str | None", found["metadata"].get("annotations", {}).get(Annotation.GRANTED.value))


@pytest.fixture
def handing() -> Handing:
    return Handing()


async def test_recording_the_grant_is_the_only_request(handing: Handing) -> None:
    seen = cast("IPAllocation", handing.view.get(KEY))
    found = await handing.ask()
    assert found is not None
    assert handing.asked == {"patch ipallocations": 1}
    assert handing.record == f"{seen.status.start_address}-{seen.status.end_address} {seen.metadata.uid}"
    assert found.status == seen.status
    assert found.metadata.annotations[Annotation.GRANTED] == handing.record


async def test_what_changed_since_it_was_seen_is_read(handing: Handing) -> None:
    handing.put(deletionTimestamp=NOW.isoformat(), finalizers=["test"])
    found = await handing.ask()
    assert found is not None
    assert found.metadata.deletion_timestamp == NOW, "as it is, not as it was seen"
    assert handing.asked == {"patch ipallocations": 1, "get ipallocations": 1}
    assert handing.record is None


async def test_one_that_is_gone_is_gone(handing: Handing) -> None:
    handing.management.drop("ipallocations", *KEY)
    assert await handing.ask() is None


async def test_one_that_was_made_again_is_told_from_the_one_that_was_seen(handing: Handing) -> None:
    handing.management.drop("ipallocations", *KEY)
    handing.put(uid="another")
    found = await handing.ask()
    assert found is not None
    assert found.metadata.uid == "another"
    assert handing.record is None


async def test_a_policy_that_refuses_the_record_does_not_stop_the_cluster(handing: Handing) -> None:
    handing.management.refuses["patch", "ipallocations"] = refusal(403, "Forbidden", "annotations are ours")
    assert await handing.ask() is not None
    assert handing.asked["get ipallocations"] == 1


async def test_a_server_that_is_away_is_an_error_and_no_answer(handing: Handing) -> None:
    handing.management.refuses["patch", "ipallocations"] = refusal(500, "InternalError", "etcd is away")
    with pytest.raises(KubeError):
        await handing.ask()


@pytest.mark.parametrize(
    "meta",
    [
        {"annotations": {Annotation.GRANTED.value: "10.40.0.10-10.40.0.12 another-life"}},
        {"deletionTimestamp": NOW.isoformat(), "finalizers": ["test"]},
    ],
    ids=["from another life", "being deleted"],
)
async def test_what_is_not_the_users_to_record_is_read(meta: dict[str, Any]) -> None:
    handing = Handing()
    handing.put(**meta)
    handing.see()
    assert await handing.ask() is not None
    assert handing.asked == {"get ipallocations": 1}


async def test_what_is_on_record_is_read(handing: Handing) -> None:
    await handing.ask()
    handing.see()
    handing.management.counts.clear()
    assert await handing.ask() is not None
    assert handing.asked == {"get ipallocations": 1}
