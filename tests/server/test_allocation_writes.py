"""Addresses, asked for and given back through the API."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from server.eventually import eventually
from server.objects import create, pool
from server.rights import grant, reader

if TYPE_CHECKING:
    from control_planes import ControlPlane
    from server.conftest import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")
ALLOCATIONS = "/apis/butler.butlerlabs.dev/v1alpha1/namespaces/butler-system/ipallocations"


def asked(name: str, pool: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "pool": pool, "tenantNamespace": "team-web", "tenant": "shop", "type": "nodes", **more}


async def known(api: Api, name: str) -> None:
    """Wait until a pool can be asked."""

    async def check() -> None:
        status, shown, _ = await api.call("GET", f"/pools/butler-system/{name}")
        assert status == 200
        assert shown["pool"]["ready"]

    await eventually(check)


async def settled(plane: ControlPlane, name: str) -> Any:
    """The status of an allocation that its pool has answered."""
    found: Any = None

    async def check() -> None:
        nonlocal found
        status, raw = plane.request("GET", f"{ALLOCATIONS}/{name}")
        assert status == 200
        found = raw["status"]
        assert found["phase"] in ("Allocated", "Failed")

    await eventually(check)
    return found


async def version(api: Api, name: str) -> dict[str, str]:
    shown = await api.get(f"/allocations/butler-system/{name}")
    return {"If-Match": f'"{shown["resourceVersion"]}"'}


async def test_what_is_foretold_is_granted(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("lots", f"{network}.0.0/26", reserved=[{"cidr": f"{network}.0.16/29"}]))
    await known(api, "lots")
    chance = random.Random(11)
    outcomes = []
    for number in range(16):
        body = asked(f"lot-{number}", "lots", type=chance.choice(["nodes", "loadbalancer"]))
        if chance.random() < 0.3:
            first = chance.randrange(1, 60)
            last = first + chance.randrange(0, 3)
            body |= {"start": f"{network}.0.{first}", "end": f"{network}.0.{last}"}
        elif chance.random() < 0.8:
            body |= {"count": chance.randrange(1, 12)}
        status, foretold, _ = await api.call("POST", "/allocations/preview", body)
        assert status == 200, foretold
        status, made, _ = await api.call("POST", "/allocations", body)
        assert status == 201, made
        got = await settled(plane, f"lot-{number}")
        outcomes.append(foretold["granted"])
        if foretold["granted"]:
            assert got["phase"] == "Allocated", (body, foretold, got)
            assert foretold["range"] == {
                "start": got["startAddress"],
                "end": got["endAddress"],
                "count": got["allocatedCount"],
            }
        else:
            ready = next(condition for condition in got["conditions"] if condition["type"] == "Ready")
            assert (got["phase"], foretold["reason"]) == ("Failed", ready["reason"])
            assert foretold["message"] == ready["message"]

        async def seen(name: str = f"lot-{number}", phase: str = got["phase"]) -> None:
            # The next look ahead is made of what is known here.
            assert (await api.get(f"/allocations/butler-system/{name}"))["phase"] == phase

        await eventually(seen)
        if not foretold["granted"]:
            status, made, _ = await api.call(
                "DELETE", f"/allocations/butler-system/lot-{number}", headers=await version(api, f"lot-{number}")
            )
            assert status in (200, 412), made
    assert True in outcomes
    assert False in outcomes


async def test_a_request_is_there_for_the_next_one_and_release_takes_only_what_was_shown(
    api: Api, plane: ControlPlane, network: str
) -> None:
    create(plane, pool("shown", f"{network}.0.0/26"))
    await known(api, "shown")
    status, made, _ = await api.call("POST", "/allocations", asked("shown-nodes", "shown", count=4))
    assert status == 201, made
    first = {"If-Match": f'"{made["resourceVersion"]}"'}
    assert (await api.get("/allocations/butler-system/shown-nodes"))["pool"] == "shown"
    await settled(plane, "shown-nodes")
    status, problem, _ = await api.call("DELETE", "/allocations/butler-system/shown-nodes")
    assert (status, problem["type"]) == (428, "urn:butler:problem:version-needed")
    status, problem, _ = await api.call("DELETE", "/allocations/butler-system/shown-nodes", headers=first)
    assert (status, problem["type"]) == (412, "urn:butler:problem:changed"), "it held nothing when it was shown"

    async def released() -> None:
        headers = await version(api, "shown-nodes")
        status, made, _ = await api.call("DELETE", "/allocations/butler-system/shown-nodes", headers=headers)
        assert status == 200, made

    await eventually(released)

    async def free() -> None:
        assert (await api.get("/pools/butler-system/shown"))["pool"]["allocated"] == 0

    await eventually(free)


async def test_the_record_of_a_grant_is_no_change_to_look_at_again(api: Api, plane: ControlPlane, network: str) -> None:
    """Butler writes it a moment after the grant, so that it comes between the look and the release."""
    create(plane, pool("recorded", f"{network}.0.0/26"))
    await known(api, "recorded")
    one = "/allocations/butler-system/recorded-nodes"
    status, made, _ = await api.call("POST", "/allocations", asked("recorded-nodes", "recorded", count=4))
    assert status == 201, made
    uid = ""

    async def recorded() -> None:
        nonlocal uid
        meta = plane.request("GET", f"{ALLOCATIONS}/recorded-nodes")[1]["metadata"]
        assert "butler.butlerlabs.dev/granted" in meta["annotations"]
        shown = await api.get(one)
        assert shown["resourceVersion"] == meta["resourceVersion"]
        uid = meta["uid"]

    await eventually(recorded)

    def changes(**meta: Any) -> None:
        status, said = plane.request(
            "PATCH",
            f"{ALLOCATIONS}/recorded-nodes",
            {"metadata": meta},
            content_type="application/merge-patch+json",
        )
        assert status == 200, said

    headers = await version(api, "recorded-nodes")
    changes(labels={"colour": "red"})
    status, problem, _ = await api.call("DELETE", one, headers=headers)
    assert (status, problem["type"]) == (412, "urn:butler:problem:changed"), problem
    headers = await version(api, "recorded-nodes")
    changes(annotations={"butler.butlerlabs.dev/granted": f"{network}.0.60-{network}.0.63 {uid}"})
    status, said, _ = await api.call("DELETE", one, headers=headers)
    assert status == 200, said


async def test_a_request_that_makes_no_sense_is_refused_beside_its_field(
    api: Api, plane: ControlPlane, network: str
) -> None:
    create(plane, pool("sense", f"{network}.0.0/26"))
    await known(api, "sense")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"count": 0}, "count"),
        ({"count": 70_000}, "count"),
        ({"start": f"{network}.0.9"}, "end"),
        ({"start": f"{network}.0.9", "end": f"{network}.0.4"}, "end"),
        ({"start": "fd00::1", "end": "fd00::2"}, "start"),
        ({"start": "10.0.0.256", "end": "10.0.1.1"}, "start"),
        ({"start": f"{network}.0.9", "end": f"{network}.0.9", "count": 1}, "count"),
        ({"name": "No Name"}, "name"),
        ({"pool": ""}, "pool"),
        ({"tenant": "a/b"}, "tenant"),
        ({"tenantNamespace": ""}, "tenantNamespace"),
    ]
    for more, field in cases:
        for path in ("/allocations", "/allocations/preview"):
            status, problem, _ = await api.call("POST", path, asked("sense-nodes", "sense") | more)
            assert status == 422, (more, problem)
            assert problem["errors"][0]["field"] == field, (more, problem)
    status, problem, _ = await api.call("POST", "/allocations", asked("sense-nodes", "sense", type="pods"))
    assert (status, "type" in problem["detail"]) == (422, True), problem
    status, problem, _ = await api.call("POST", "/allocations", asked("sense-nodes", "sense", colour="red"))
    assert (status, "colour" in problem["detail"]) == (422, True), problem
    status, shown, _ = await api.call("POST", "/allocations/preview", asked("sense-nodes", "sense", count=63))
    assert (status, shown["granted"]) == (200, False), "what does not fit now is a legal request"
    status, made, _ = await api.call("POST", "/allocations", asked("sense-large", "sense", count=63))
    assert (status, "will be Failed for now" in made["warnings"][0]) == (201, True), made
    status, shown, _ = await api.call("POST", "/allocations/preview", asked("sense-nodes", "no-such-pool", count=1))
    assert (status, shown["granted"], "no-such-pool" in shown["message"]) == (200, False, True)


async def test_kubernetes_decides_who_may_ask_and_release(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("rights", f"{network}.0.0/26"))
    await known(api, "rights")
    robert = reader(plane, "robert")
    body = asked("rights-nodes", "rights", count=2)
    for path in ("/allocations", "/allocations/preview"):
        status, problem, _ = await api.call("POST", path, body, user=robert)
        assert status == 403
        assert '"robert"' in problem["detail"]
        assert "ipallocations" in problem["detail"]
    grant(plane, "robert", ["create"], ["ipallocations"])
    status, made, _ = await api.call("POST", "/allocations", body, user=robert)
    assert status == 201, made
    await settled(plane, "rights-nodes")

    async def refused() -> None:
        headers = await version(api, "rights-nodes")
        status, problem, _ = await api.call(
            "DELETE", "/allocations/butler-system/rights-nodes", user=robert, headers=headers
        )
        assert (status, '"robert"' in problem["detail"]) == (403, True), problem

    await eventually(refused)
    status, problem, _ = await api.call(
        "DELETE", "/allocations/butler-system/rights-nodes", user="mallory", headers={"If-Match": '"1"'}
    )
    assert status == 403
    status, problem, _ = await api.call("DELETE", "/allocations/butler-system/nowhere", headers={"If-Match": '"1"'})
    assert status == 404
