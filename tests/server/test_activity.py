"""What happened, as the API tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from server.contract import read, refused
from server.eventually import eventually
from server.objects import HOME, allocation, create, pool
from server.rights import grant, namespace

if TYPE_CHECKING:
    from control_planes import ControlPlane
    from server.conftest import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_what_controllers_did_is_told_newest_first(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("events", f"{network}.0.0/28"))
    create(plane, allocation("events-most", "events", 14))

    async def told() -> None:
        found = await read(api, "/activity?kind=pool&name=events")
        assert found["total"] > 0
        assert {item["about"]["name"] for item in found["items"]} == {"events"}
        assert any(item["severity"] == "Warning" for item in found["items"])
        assert {item["source"] for item in found["items"]} == {"butler-controller"}
        times = [item["at"] for item in found["items"]]
        assert times == sorted(times, reverse=True)

    await eventually(told)
    warnings = await read(api, "/activity?severity=Warning&limit=1")
    assert warnings["items"][0]["severity"] == "Warning"
    reason = warnings["items"][0]["reason"]
    assert {item["reason"] for item in (await read(api, f"/activity?reason={reason}"))["items"]} == {reason}
    assert (await read(api, "/activity?q=no-such-thing-ever"))["total"] == 0


async def test_what_a_person_did_has_their_name(api: Api, plane: ControlPlane, network: str) -> None:
    body = {"name": "by-hand", "cidr": f"{network}.0.0/24"}
    status, made, _ = await api.call("POST", "/pools", body)
    assert status == 201, made

    async def told() -> None:
        found = await read(api, "/activity?kind=pool&name=by-hand")
        deeds = [item for item in found["items"] if item["source"] == "console"]
        assert [deed["actor"] for deed in deeds] == ["admin"]

    await eventually(told)


async def test_events_of_others_are_not_butlers(api: Api, plane: ControlPlane) -> None:
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": HOME, "name": "stranger"}
    event = {"metadata": {"name": "stranger.1"}, "involvedObject": about, "reason": "Pulled", "message": "an image"}
    status, made = plane.request("POST", f"/api/v1/namespaces/{HOME}/events", event)
    assert status == 201, made
    assert (await read(api, "/activity?q=stranger"))["total"] == 0


async def test_events_are_shown_by_namespace(api: Api, plane: ControlPlane) -> None:
    own = namespace(plane, "team-quiet")
    grant(plane, "enno", ["get", "list"], ["events"], namespace=own, group="")
    about = {"apiVersion": "butler.butlerlabs.dev/v1alpha1", "kind": "TenantCluster", "namespace": own, "name": "q"}
    event = {"metadata": {"name": "q.1"}, "involvedObject": about, "reason": "Slept", "type": "Normal"}
    status, made = plane.request("POST", f"/api/v1/namespaces/{own}/events", event)
    assert status == 201, made

    async def told() -> None:
        found = await read(api, f"/activity?namespace={own}", user="enno")
        assert [item["reason"] for item in found["items"]] == ["Slept"]

    await eventually(told)
    everywhere = await read(api, "/activity", user="enno")
    assert {item["about"]["namespace"] for item in everywhere["items"]} == {own}
    status, problem = await refused(api, f"/activity?namespace={HOME}", user="enno")
    assert status == 403
    assert f"you may not read Events in namespace {HOME}" in problem["detail"]
    status, _ = await refused(api, "/activity", user="mallory")
    assert status == 403


async def test_parameters_that_mean_nothing_are_refused(api: Api) -> None:
    for wrong in ("severity=Bad", "kind=Pod", "limit=0", "cursor=x"):
        status, problem = await refused(api, f"/activity?{wrong}")
        assert (wrong, status) == (wrong, 422)
        assert problem["detail"].startswith(wrong.partition("=")[0])
