"""Pools, made, changed and deleted through the API."""

from __future__ import annotations

import asyncio
import io
import random
from typing import TYPE_CHECKING, Any

import pytest

from server.conftest import CSRF
from server.eventually import eventually
from server.objects import allocation, create, pool
from server.rights import grant, reader

if TYPE_CHECKING:
    from control_planes import ControlPlane
    from server.conftest import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")
POOLS = "/apis/butler.butlerlabs.dev/v1alpha1/namespaces/butler-system/networkpools"


def stored(plane: ControlPlane, name: str) -> Any:
    status, found = plane.request("GET", f"{POOLS}/{name}")
    assert status == 200, found
    return found


async def version(api: Api, name: str) -> dict[str, str]:
    """The If-Match of a pool as it is shown."""
    shown = await api.get(f"/pools/butler-system/{name}")
    return {"If-Match": f'"{shown["pool"]["resourceVersion"]}"'}


async def held(api: Api, name: str, count: int) -> None:
    async def check() -> None:
        assert (await api.get(f"/pools/butler-system/{name}"))["pool"]["allocated"] == count

    await eventually(check)


async def test_a_pool_that_was_made_is_there_for_the_next_request(api: Api, plane: ControlPlane, network: str) -> None:
    body = {
        "name": "made",
        "cidr": f"{network}.0.0/24",
        "reserved": [{"cidr": f"{network}.0.0/28", "description": "switches"}],
        "windows": [{"start": f"{network}.0.32", "end": f"{network}.0.95"}],
        "defaults": {"nodesPerTenant": 7},
    }
    status, made, _ = await api.call("POST", "/pools", body)
    assert (status, made["name"]) == (201, "made"), made
    shown = await api.get("/pools/butler-system/made")
    assert shown["pool"]["total"] == 64
    spec = stored(plane, "made")["spec"]
    assert spec["tenantAllocation"]["start"] == f"{network}.0.32"
    assert spec["tenantAllocation"]["defaults"] == {"nodesPerTenant": 7, "lbPoolPerTenant": 8}
    again, problem, _ = await api.call("POST", "/pools", body)
    assert again == 409
    assert "already exists" in problem["detail"]


async def test_what_an_edit_does_not_mention_stays(api: Api, plane: ControlPlane, network: str) -> None:
    spec = {
        "reserved": [{"cidr": f"{network}.0.0/28", "description": "switches"}],
        "tenantAllocation": {
            "ranges": [
                {"start": f"{network}.0.16", "end": f"{network}.0.63"},
                {"start": f"{network}.0.128", "end": f"{network}.0.191"},
            ],
            "defaults": {"nodesPerTenant": 9, "lbPoolPerTenant": 3},
        },
    }
    before = create(plane, pool("kept", f"{network}.0.0/24", **spec))["spec"]
    await eventually(lambda: _there(api, "kept"))
    edits: list[tuple[Any, Any]] = [
        ({"cidr": f"{network}.0.0/23"}, lambda spec: spec | {"cidr": f"{network}.0.0/23"}),
        (
            {"defaults": {"lbPoolPerTenant": 4}},
            lambda spec: (
                spec
                | {
                    "tenantAllocation": spec["tenantAllocation"]
                    | {"defaults": {"nodesPerTenant": 9, "lbPoolPerTenant": 4}}
                }
            ),
        ),
        (
            {"reserved": [{"cidr": f"{network}.0.0/28"}, {"cidr": f"{network}.1.0/28", "description": "probes"}]},
            lambda spec: (
                spec
                | {
                    "reserved": [
                        {"cidr": f"{network}.0.0/28", "description": "switches"},
                        {"cidr": f"{network}.1.0/28", "description": "probes"},
                    ]
                }
            ),
        ),
        (
            {"windows": [{"start": f"{network}.0.16", "end": f"{network}.0.200"}]},
            lambda spec: (
                spec
                | {
                    "tenantAllocation": {
                        "start": f"{network}.0.16",
                        "end": f"{network}.0.200",
                        "defaults": spec["tenantAllocation"]["defaults"],
                    }
                }
            ),
        ),
        (
            {"windows": []},
            lambda spec: spec | {"tenantAllocation": {"defaults": spec["tenantAllocation"]["defaults"]}},
        ),
    ]
    for edit, becomes in edits:
        status, made, _ = await api.call("PATCH", "/pools/butler-system/kept", edit, headers=await version(api, "kept"))
        assert status == 200, made
        after = stored(plane, "kept")["spec"]
        assert after == becomes(before), edit
        before = after


async def _there(api: Api, name: str) -> None:
    status, _, _ = await api.call("GET", f"/pools/butler-system/{name}")
    assert status == 200


async def test_growing_adds_at_least_so_many(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("grown", f"{network}.0.0/26"))
    await eventually(lambda: _there(api, "grown"))
    _, foretold, _ = await api.call("POST", "/pools/butler-system/grown/preview", {"growBy": 40})
    assert foretold["allowed"], foretold
    assert (foretold["before"]["total"], foretold["after"]["total"]) == (62, 126)
    status, made, _ = await api.call(
        "PATCH", "/pools/butler-system/grown", {"growBy": 40}, headers=await version(api, "grown")
    )
    assert status == 200, made
    assert (await api.get("/pools/butler-system/grown"))["pool"]["total"] == 126
    status, problem, _ = await api.call(
        "PATCH", "/pools/butler-system/grown", {"growBy": 4, "cidr": "10.0.0.0/8"}, headers=await version(api, "grown")
    )
    assert (status, problem["errors"][0]["field"]) == (422, "growBy")


async def test_only_what_was_seen_is_changed(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("seen", f"{network}.0.0/24"))
    await eventually(lambda: _there(api, "seen"))
    status, problem, _ = await api.call("PATCH", "/pools/butler-system/seen", {"cidr": f"{network}.0.0/23"})
    assert (status, problem["type"]) == (428, "urn:butler:problem:version-needed")
    looked = await version(api, "seen")
    alice = {"reserved": [{"cidr": f"{network}.0.0/28", "description": "alice"}]}
    bob = {"reserved": [{"cidr": f"{network}.0.16/28", "description": "bob"}]}
    outcomes = await asyncio.gather(
        *(api.call("PATCH", "/pools/butler-system/seen", edit, headers=looked) for edit in (alice, bob))
    )
    assert sorted(status for status, _, _ in outcomes) == [200, 412], outcomes
    won = alice if outcomes[0][0] == 200 else bob
    assert stored(plane, "seen")["spec"]["reserved"] == won["reserved"]
    for method in ("PATCH", "DELETE"):
        status, problem, _ = await api.call(method, "/pools/butler-system/seen", alice, headers=looked)
        assert (status, problem["type"]) == (412, "urn:butler:problem:changed")
        assert "look at it again" in problem["detail"]


async def test_grants_are_not_in_the_way_of_an_edit(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("busy", f"{network}.0.0/24"))
    await eventually(lambda: _there(api, "busy"))
    looked = await version(api, "busy")
    for number in range(5):
        create(plane, allocation(f"busy-{number}", "busy", 2))
    await held(api, "busy", 10)
    assert await version(api, "busy") != looked
    status, made, _ = await api.call(
        "PATCH", "/pools/butler-system/busy", {"cidr": f"{network}.0.0/23"}, headers=looked
    )
    assert status == 200, made


async def test_edits_get_through_while_addresses_are_being_granted(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("rush", f"{network}.0.0/22"))
    await eventually(lambda: _there(api, "rush"))
    looked = await version(api, "rush")

    async def ask() -> None:
        for number in range(40):
            await asyncio.to_thread(create, plane, allocation(f"rush-{number}", "rush", 2))

    asking = asyncio.ensure_future(ask())
    outcomes = []
    for number in range(6):
        edit = {"defaults": {"nodesPerTenant": 10 + number}}
        status, made, _ = await api.call("PATCH", "/pools/butler-system/rush", edit, headers=looked)
        outcomes.append(status)
        looked = {"If-Match": f'"{made["resourceVersion"]}"'} if status == 200 else await version(api, "rush")
        await asyncio.sleep(0.1)
    await asking
    assert outcomes == [200] * 6
    assert stored(plane, "rush")["spec"]["tenantAllocation"]["defaults"]["nodesPerTenant"] == 15
    await held(api, "rush", 80)


async def test_a_refusal_names_the_field_of_the_form(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("first", f"{network}.0.0/24"))
    create(plane, allocation("first-nodes", "first", 5))
    await held(api, "first", 5)
    cases: list[tuple[Any, str, str]] = [
        ({"name": "other", "cidr": f"{network}.0.128/25"}, "cidr", "overlaps"),
        ({"name": "other", "cidr": "10.0.0.1/8"}, "cidr", "10.0.0.1/8"),
        ({"name": "Other!", "cidr": f"{network}.1.0/24"}, "name", "a-z"),
        ({"name": "", "cidr": f"{network}.1.0/24"}, "name", "give it a name"),
        (
            {"name": "other", "cidr": f"{network}.1.0/24", "reserved": [{"cidr": f"{network}.2.0/28"}]},
            "reserved",
            "outside",
        ),
        (
            {"name": "other", "cidr": f"{network}.1.0/24", "windows": [{"start": "nonsense", "end": f"{network}.1.9"}]},
            "windows[0].start",
            "",
        ),
        (
            {
                "name": "other",
                "cidr": f"{network}.1.0/24",
                "windows": [{"start": f"{network}.1.8", "end": f"{network}.1.4"}],
            },
            "windows[0].end",
            "before",
        ),
        ({"name": "other", "cidr": f"{network}.1.0/24", "defaults": {"nodesPerTenant": 0}}, "defaults", ""),
    ]
    for body, field, words in cases:
        status, problem, _ = await api.call("POST", "/pools", body)
        assert status == 422, (body, problem)
        assert any(error["field"].startswith(field) for error in problem["errors"]), (body, problem)
        assert words in problem["detail"], problem
    shrink = {"windows": [{"start": f"{network}.0.100", "end": f"{network}.0.200"}]}
    status, problem, _ = await api.call(
        "PATCH", "/pools/butler-system/first", shrink, headers=await version(api, "first")
    )
    assert (status, problem["errors"][0]["field"]) == (422, "windows")
    assert "first-nodes" in problem["detail"]


async def test_a_preview_says_what_then_happens(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("foreseen", f"{network}.0.0/25"))
    for number in range(4):
        create(plane, allocation(f"foreseen-{number}", "foreseen", 6))
    await held(api, "foreseen", 24)
    chance = random.Random(7)
    refused = 0
    for _ in range(14):
        first, last = chance.choice((1, 1, 1, 2, 9)), chance.randrange(20, 127)
        edit: dict[str, Any] = {"windows": [{"start": f"{network}.0.{first}", "end": f"{network}.0.{last}"}]}
        if chance.random() < 0.5:
            edit["reserved"] = [{"cidr": f"{network}.0.{chance.randrange(2, 16) * 8}/29", "description": "chance"}]
        status, foretold, _ = await api.call("POST", "/pools/butler-system/foreseen/preview", edit)
        assert status == 200, foretold
        before = stored(plane, "foreseen")["spec"]
        status, made, _ = await api.call(
            "PATCH", "/pools/butler-system/foreseen", edit, headers=await version(api, "foreseen")
        )
        assert (status == 200) == foretold["allowed"], (edit, foretold, made)
        if status == 200:
            now = (await api.get("/pools/butler-system/foreseen"))["pool"]
            after = foretold["after"]
            assert (now["total"], now["allocated"], now["largestFreeBlock"]) == (
                after["total"],
                after["allocated"],
                after["largestFreeBlock"],
            )
            assert foretold["stranded"] == []
        else:
            refused += 1
            assert stored(plane, "foreseen")["spec"] == before
            assert {error["field"] for error in foretold["errors"]} == {item["field"] for item in made["errors"]}
    assert 0 < refused < 14


async def test_a_preview_names_who_would_be_stranded_and_writes_nothing(
    api: Api, plane: ControlPlane, network: str
) -> None:
    create(plane, pool("tight", f"{network}.0.0/26"))
    create(plane, allocation("tight-nodes", "tight", 4, tenant="shop"))
    await held(api, "tight", 4)
    before = stored(plane, "tight")
    edit = {"reserved": [{"cidr": f"{network}.0.0/28", "description": "late"}]}
    status, shown, _ = await api.call("POST", "/pools/butler-system/tight/preview", edit)
    assert (status, shown["allowed"]) == (200, False)
    assert shown["errors"][0]["field"] == "reserved[0].cidr"
    assert [(item["name"], item["tenant"]) for item in shown["stranded"]] == [("tight-nodes", "team-web/shop")]
    assert "late" in shown["yaml"]
    assert stored(plane, "tight") == before
    body = {"name": "tight-2", "cidr": f"{network}.1.0/24"}
    status, shown, _ = await api.call("POST", "/pools/preview", body)
    assert (status, shown["allowed"], shown["before"], shown["after"]["total"]) == (200, True, None, 254)
    status, _, _ = await api.call("GET", "/pools/butler-system/tight-2")
    assert status == 404


async def test_a_pool_in_use_is_not_deleted_and_an_empty_one_is_gone_at_once(
    api: Api, plane: ControlPlane, network: str
) -> None:
    create(plane, pool("used", f"{network}.0.0/26"))
    create(plane, allocation("used-nodes", "used", 4))
    await held(api, "used", 4)
    status, problem, _ = await api.call("DELETE", "/pools/butler-system/used", headers=await version(api, "used"))
    assert status == 409
    assert "used-nodes" in problem["detail"]
    assert "permission" not in problem["detail"]
    create(plane, pool("unused", f"{network}.1.0/26"))
    await eventually(lambda: _there(api, "unused"))
    status, _, _ = await api.call("DELETE", "/pools/butler-system/unused")
    assert status == 428
    status, made, _ = await api.call("DELETE", "/pools/butler-system/unused", headers=await version(api, "unused"))
    assert status == 200, made

    async def gone() -> None:
        status, _, _ = await api.call("GET", "/pools/butler-system/unused")
        assert status == 404

    await eventually(gone)


async def test_kubernetes_decides_who_may_do_what(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("guarded", f"{network}.0.0/24"))
    await eventually(lambda: _there(api, "guarded"))
    rita = reader(plane, "rita")
    looked = await version(api, "guarded")
    edit = {"cidr": f"{network}.0.0/23"}
    body = {"name": "hers", "cidr": f"{network}.4.0/24"}
    for method, path, sent in (
        ("PATCH", "/pools/butler-system/guarded", edit),
        ("DELETE", "/pools/butler-system/guarded", None),
        ("POST", "/pools", body),
    ):
        status, problem, _ = await api.call(method, path, sent, user=rita, headers=looked)
        assert (status, problem["type"]) == (403, "urn:butler:problem:forbidden"), problem
        assert '"rita"' in problem["detail"]
        assert "networkpools" in problem["detail"]
    status, shown, _ = await api.call("POST", "/pools/butler-system/guarded/preview", edit, user=rita)
    assert (status, shown["allowed"], shown["after"]["total"]) == (200, False, 510)
    assert "rita" in shown["errors"][0]["message"]
    grant(plane, "rita", ["patch"], ["networkpools"])
    status, made, _ = await api.call("PATCH", "/pools/butler-system/guarded", edit, user=rita, headers=looked)
    assert status == 200, made
    for method, path, sent in (
        ("PATCH", "/pools/butler-system/guarded", edit),
        ("POST", "/pools/butler-system/guarded/preview", edit),
        ("POST", "/pools/preview", body),
        ("PATCH", "/pools/butler-system/nowhere", edit),
    ):
        status, _, _ = await api.call(method, path, sent, user="mallory", headers=looked)
        assert status == 403, "who may not see pools learns nothing of them"


async def raw(api: Api, body: bytes) -> tuple[int, str]:
    """The status, and what kind of problem it is."""
    headers = {"X-Test-Role": "admin", "X-CSRF-Token": CSRF, "Content-Type": "application/json"}
    async with api.session.post(f"{api.url}/api/v1/pools", data=io.BytesIO(body), headers=headers) as answer:
        assert answer.content_type == "application/problem+json"
        return answer.status, (await answer.json(content_type=None))["type"].removeprefix("urn:butler:problem:")


async def test_bodies_that_make_no_sense_are_refused_by_name(api: Api, network: str) -> None:
    status, problem, _ = await api.call("POST", "/pools", {"name": "odd", "cidr": f"{network}.0.0/24", "colour": "red"})
    assert status == 422
    assert "colour" in problem["detail"]
    status, problem, _ = await api.call("POST", "/pools", {"name": "odd"})
    assert status == 422
    assert "cidr" in problem["detail"]
    status, problem, _ = await api.call("POST", "/pools", {"name": "odd", "cidr": 7})
    assert (status, problem["type"]) == (422, "urn:butler:problem:invalid")
    assert await raw(api, b'{"name": "odd", "cidr": "' + b"x" * 1_100_000 + b'"}') == (413, "too-large")
    assert await raw(api, b'{"name": ') == (400, "bad-request")
    assert await raw(api, b"[" * 100_000) == (400, "bad-request")
    assert await raw(api, b"\xff\xfe") == (400, "bad-request")
    status, problem, _ = await api.call("PATCH", "/pools/butler-system/odd", {}, headers={"If-Match": '"1"'})
    assert status == 404
    many = [{"cidr": f"{network}.{number}.0/28"} for number in range(256)] * 2
    status, problem, _ = await api.call(
        "POST", "/pools", {"name": "odd", "cidr": f"{network}.0.0/16", "reserved": many}
    )
    assert (status, problem["errors"][0]["field"]) == (422, "reserved")
