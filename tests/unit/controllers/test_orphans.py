"""When an allocation is an orphan, and above all when it is not."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from butler.api.ipallocation import IPAllocation, IPAllocationPhase
from butler.api.objects import Key, key_of
from butler.controllers.ipallocation.orphans import OrphanSweep, Sightings, SweepReport, is_gone
from butler.controllers.networkpool.metrics import IpamMetrics
from butler.kube.errors import Conflict, KubeError, OutcomeUnknown, ServerError, Status, Unreachable
from butler.rules.allocation.orphans import OwnerClaim, by_missing_tenant, claim_of
from unit.controllers.fake_server import FakeCache, FakeServer, Notebook, identity, not_found, not_served
from unit.controllers.lives import NOW, allocation, pool
from unit.kube import virtual_time

WEB = Key("team-a", "web")
GAP = 60.0


class Yard:
    """A sweep with a clock that tests turn."""

    def __init__(self, *subjects: IPAllocation) -> None:
        self.server = FakeServer(*subjects)
        self.view = self.server.view()
        self.time = 1000.0
        self.events = Notebook()
        self.registry = CollectorRegistry()
        self.sweep = OrphanSweep(
            cast("Any", self.server),
            cast("Any", self.view),
            cast("Any", FakeCache(pool())),
            cast("Any", self.events),
            every=GAP,
            gap=GAP,
            clock=lambda: self.time,
            now=lambda: NOW,
            metrics=IpamMetrics(self.registry),
        )

    async def look(self, after: float = 0.0) -> SweepReport:
        self.time += after
        report = await self.sweep.sweep_once()
        self.view.objects = dict(self.server.allocations)
        return report

    def released(self) -> list[str]:
        return sorted(
            key.metadata.name
            for key in self.server.allocations.values()
            if key.status.phase is IPAllocationPhase.RELEASED
        )


# Decisions.


@pytest.mark.parametrize(
    ("story", "subject", "owner"),
    [
        ("granted, owner on record", allocation("Allocated", owner="t1"), "t1"),
        ("waiting, owner by label", allocation(labelled="t1"), "t1"),
        ("refused, owner on record", allocation("Failed", owner="t1"), "t1"),
        ("the label wins", allocation("Allocated", owner="t1", labelled="t2"), "t2"),
        ("the owner was never seen", allocation("Allocated"), None),
        ("released already", allocation("Released", owner="t1"), None),
        ("being deleted", allocation("Allocated", owner="t1", deleting=True), None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_whose_owner_is_looked_for(story: str, subject: IPAllocation, owner: str | None) -> None:
    claim = claim_of(subject)
    assert (claim and claim.owner_uid) == owner, story


@pytest.mark.parametrize(
    ("story", "found", "gone"),
    [
        ("there", identity(WEB, "t1"), False),
        ("another one of that name", identity(WEB, "t2"), True),
        ("none", None, True),
        ("an answer without a uid", identity(WEB, ""), None),
        ("an answer about another name", identity(Key("team-a", "api"), "t2"), None),
        ("an answer about another namespace", identity(Key("team-b", "web"), "t2"), None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_an_answer_says_about_the_owner(story: str, found: Any, gone: bool | None) -> None:
    assert is_gone(found, WEB, OwnerClaim("a1", "t1", "t1")) is gone, story


def test_a_label_changed_by_hand_does_not_make_an_orphan_of_what_a_live_tenant_holds() -> None:
    subject = allocation("Allocated", owner="t1", labelled="nonsense")
    assert not by_missing_tenant([subject], {"t1"})
    claim = claim_of(subject)
    assert claim is not None
    assert is_gone(identity(WEB, "t1"), WEB, claim) is False


def test_two_sightings_are_needed_however_short_the_gap() -> None:
    seen = Sightings(gap=0.0)
    claim = OwnerClaim("a1", "t1", "t1")
    assert not seen.void(claim, 10.0)
    assert seen.void(claim, 10.0)


def test_sightings_count_from_the_first_and_end_when_the_owner_is_back() -> None:
    seen, claim = Sightings(gap=60.0), OwnerClaim("a1", "t1", "t1")
    assert [seen.void(claim, at) for at in (0.0, 59.0, 60.0)] == [False, False, True]
    seen.valid(claim)
    assert [seen.void(claim, at) for at in (61.0, 120.0)] == [False, False]
    seen.keep_only(())
    assert len(seen) == 0


# Sweeps.


@pytest.mark.parametrize("phase", ["Pending", "Failed", "Allocated"])
async def test_an_orphan_is_released_after_two_sightings_a_gap_apart(phase: str) -> None:
    yard = Yard(allocation(phase, owner="t1"))
    assert (await yard.look()).suspected == 1
    assert (await yard.look(after=GAP - 1)).released == 0
    assert (await yard.look(after=1)) == SweepReport(owned=1, suspected=1, released=1)
    assert yard.released() == ["web-nodes"]
    assert (await yard.look(after=GAP)) == SweepReport()
    ((subject, reason, message),) = yard.events.notes
    assert (subject, reason) == ("NetworkPool vlan40", "OrphanedAllocationGC")
    assert message.endswith("IPAllocation web-nodes released: TenantCluster team-a/web (uid t1) no longer exists"), (
        message
    )
    assert ("10.40.1.10-10.40.1.11" in message) == (phase == "Allocated")


async def test_a_tenant_made_anew_under_its_name_inherits_nothing() -> None:
    yard = Yard(allocation("Allocated", owner="t1"), allocation("Allocated", owner="t2", name="new", uid="a2"))
    yard.server.tenants[WEB] = "t2"
    await yard.look()
    await yard.look(after=GAP)
    assert yard.released() == ["web-nodes"]


async def test_addresses_are_held_while_the_namespace_of_the_machines_is_there() -> None:
    """A user removed the finalizer of the TenantCluster: it is gone, its machines are not."""
    yard = Yard(allocation("Allocated", owner="0f1e2d3c-4b5a"))
    home = Key("", "web-0f1e2d3c")
    yard.server.answers[home] = {"metadata": {"name": home.name}}
    for _ in range(5):
        await yard.look(after=GAP)
    assert yard.released() == []
    assert {note[:2] for note in yard.events.notes} == {("IPAllocation web-nodes", "OrphanHeld")}
    assert home.name in yard.events.notes[0][2]
    yard.server.answers[home] = not_served()
    await yard.look(after=GAP)
    assert yard.released() == [], "a proxy's 404 says nothing about the namespace"
    del yard.server.answers[home]
    await yard.look(after=GAP)
    assert yard.released() == ["web-nodes"]


async def test_a_label_changed_by_hand_does_not_hide_the_namespace_of_the_machines() -> None:
    yard = Yard(allocation("Allocated", owner="0f1e2d3c-4b5a", labelled="another"))
    yard.server.answers[Key("", "web-0f1e2d3c")] = {"metadata": {"name": "web-0f1e2d3c"}}
    for _ in range(3):
        await yard.look(after=GAP)
    assert yard.released() == []


async def test_a_tenant_on_the_list_is_not_even_asked_for() -> None:
    yard = Yard(allocation("Allocated", owner="t1"))
    yard.server.tenants[WEB] = "t1"
    assert await yard.look() == SweepReport(owned=1)
    assert yard.server.counts == {"list": 1}


async def test_without_owners_no_server_is_asked() -> None:
    yard = Yard(allocation("Allocated"), allocation("Released", owner="t1", name="b", uid="a2", released_at=NOW))
    assert await yard.look() == SweepReport()
    assert not yard.server.counts


@pytest.mark.parametrize("listed", [[], [Key("team-b", "api")]], ids=["empty", "cut short"])
async def test_a_list_that_leaves_out_the_living_costs_them_nothing(listed: list[Key]) -> None:
    yard = Yard(allocation("Allocated", owner="t1"))
    yard.server.tenants |= {WEB: "t1", Key("team-b", "api"): "t9"}
    yard.server.listed = listed
    for _ in range(4):
        assert (await yard.look(after=GAP)).suspected == 0
    assert yard.server.counts["get"] == 4
    assert not yard.released()


async def test_an_empty_list_does_not_protect_an_orphan_that_the_server_itself_denies() -> None:
    yard = Yard(allocation("Allocated", owner="t1"))
    yard.server.listed = []
    await yard.look()
    assert (await yard.look(after=GAP)).released == 1


@pytest.mark.parametrize(
    "error", [Unreachable("down"), OutcomeUnknown("no answer"), ServerError(500, Status()), not_served()]
)
async def test_a_list_that_fails_teaches_nothing(error: KubeError) -> None:
    yard = Yard(allocation("Allocated", owner="t1"))
    await yard.look()
    yard.server.listed = error
    report = await yard.look(after=GAP)
    assert "cannot be listed" in report.skipped
    assert not yard.released()
    assert yard.registry.get_sample_value("butler_ipam_orphan_sweeps_total", {"outcome": "skipped"}) == 1
    yard.server.listed = None
    assert (await yard.look()).released == 1, "what was seen before it still counts"


@pytest.mark.parametrize(
    "answer",
    [
        not_served(),
        not_found("other"),
        not_found("web", plural="clusters"),
        Unreachable("down"),
        OutcomeUnknown("no answer"),
        ServerError(500, Status()),
        identity(WEB, ""),
    ],
    ids=str,
)
async def test_an_answer_that_does_not_deny_the_tenant_teaches_nothing(answer: Any) -> None:
    yard = Yard(allocation("Allocated", owner="t1"))
    await yard.look()
    yard.server.answers[WEB] = answer
    for _ in range(3):
        assert await yard.look(after=GAP) == SweepReport(owned=1, unclear=1)
    assert not yard.released()


async def test_an_owner_that_is_back_resets_what_was_seen() -> None:
    """As when a server that lost sight of its data finds it again."""
    yard = Yard(allocation("Allocated", owner="t1"))
    await yard.look()
    yard.server.tenants[WEB] = "t1"
    await yard.look(after=GAP)
    del yard.server.tenants[WEB]
    assert (await yard.look(after=GAP)).released == 0, "this is a first sighting again"
    assert (await yard.look(after=GAP)).released == 1


async def test_an_owner_that_only_its_own_answer_shows_resets_what_was_seen() -> None:
    yard = Yard(allocation("Allocated", owner="t1"))
    yard.server.listed = []
    await yard.look()
    yard.server.tenants[WEB] = "t1"
    await yard.look(after=GAP)
    del yard.server.tenants[WEB]
    assert (await yard.look(after=GAP)).released == 0


async def test_what_changed_since_it_was_looked_at_is_left_for_the_next_sweep() -> None:
    yard = Yard(allocation("Allocated", owner="t1"))
    await yard.look()
    yard.server.trouble = [Conflict(409, Status(reason="Conflict"))]
    assert await yard.look(after=GAP) == SweepReport(owned=1, suspected=1, failed=1)
    assert (await yard.look()).released == 1


async def test_one_release_that_fails_holds_up_no_other() -> None:
    many = [allocation("Allocated", owner=f"t{n}", tenant=f"web-{n}", name=f"n-{n}", uid=f"a{n}") for n in range(50)]
    yard = Yard(*many)
    await yard.look()
    yard.server.trouble = [ServerError(500, Status()), RuntimeError("unforeseen")]
    report = await yard.look(after=GAP)
    assert (report.released, report.failed) == (48, 2)
    assert (await yard.look()).released == 2
    assert yard.server.most_at_once <= 8, "a sweep leaves the server to others"


async def test_a_tenant_is_asked_for_once_however_many_allocations_name_it() -> None:
    many = [allocation("Allocated", owner="t1", name=f"n-{n}", uid=f"a{n}") for n in range(20)]
    yard = Yard(*many)
    await yard.look()
    assert yard.server.counts["get"] == 1


async def test_allocations_that_are_gone_are_forgotten() -> None:
    yard = Yard(allocation("Allocated", owner="t1"))
    await yard.look()
    assert yard.registry.get_sample_value("butler_ipam_orphans_suspected") == 1
    yard.server.allocations.clear()
    yard.view.objects.clear()
    await yard.look()
    assert yard.registry.get_sample_value("butler_ipam_orphans_suspected") == 0


async def test_an_allocation_of_the_same_name_with_another_uid_starts_from_nothing() -> None:
    yard = Yard(allocation("Allocated", owner="t1", uid="a1"))
    await yard.look()
    key = key_of(allocation())
    yard.server.allocations[key] = yard.view.objects[key] = allocation("Allocated", owner="t1", uid="a2")
    assert (await yard.look(after=GAP)).released == 0


def test_sweeping_goes_on_whatever_happens() -> None:
    async def main() -> None:
        yard = Yard(allocation("Allocated", owner="t1"))
        yard.sweep._clock = asyncio.get_running_loop().time
        yard.server.listed = RuntimeError("unforeseen")
        running = asyncio.create_task(yard.sweep.run())
        await asyncio.sleep(3.5 * GAP)
        assert yard.server.counts["list"] == 4
        yard.server.listed = None
        await asyncio.sleep(2 * GAP)
        assert yard.released() == ["web-nodes"]
        running.cancel()

    virtual_time.run(main())
