"""Providers as the API shows them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from server.contract import read, refused
from server.eight import EXAMPLES
from server.eventually import eventually
from server.follower import tenant
from server.objects import HOME, create
from server.rights import grant, namespace, reader

if TYPE_CHECKING:
    from control_planes import ControlPlane
    from server.conftest import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_provider_is_told_with_its_pools_in_order(api: Api, plane: ControlPlane) -> None:
    plane.kubectl("apply", "-f", str(EXAMPLES / "pools.yaml"), "-f", str(EXAMPLES / "provider.yaml"))

    async def ready() -> None:
        found = await read(api, "/providers")
        assert [(item["name"], item["ready"]) for item in found["items"]] == [("harvester-production", True)]

    await eventually(ready)
    found = await read(api, f"/providers/{HOME}/harvester-production")
    assert found["provider"]["mode"] == "ipam"
    assert [(pool["name"], pool["exists"]) for pool in found["pools"]] == [
        ("production-pool", True),
        ("production-nodes", True),
    ]
    assert found["tenants"] == []
    assert "credentialsRef" in yaml.safe_load(found["yaml"])["spec"]
    pools = await read(api, "/pools?q=production-pool")
    assert pools["items"][0]["providers"] == [f"{HOME}/harvester-production"]


async def test_who_may_not_read_providers_is_not_told_of_them(api: Api, plane: ControlPlane) -> None:
    for path in ("/providers", f"/providers/{HOME}/harvester-production", f"/providers/{HOME}/unknown"):
        status, problem = await refused(api, path, user="mallory")
        assert status == 403
        assert "you may not read ProviderConfigs" in problem["detail"]
    grant(plane, "paula", ["get", "list"], ["networkpools", "ipallocations"])
    pools = await read(api, "/pools?q=production-pool", user="paula")
    assert pools["items"][0]["providers"] == []


async def test_a_provider_in_a_namespace_of_others_is_told_of_nowhere(api: Api, plane: ControlPlane) -> None:
    theirs = f"{namespace(plane, 'team-secret')}/harvester-secret"
    [config] = [
        item
        for item in yaml.safe_load_all((EXAMPLES / "provider.yaml").read_text())
        if item["kind"] == "ProviderConfig"
    ]
    create(plane, config | {"metadata": {"name": "harvester-secret", "namespace": "team-secret"}})
    cluster = tenant("on-secret", "team-secret")
    cluster["spec"]["providerConfigRef"] = {"name": "harvester-secret", "namespace": "team-secret"}
    create(plane, cluster)
    rita = reader(plane, "rita")
    grant(plane, rita, ["get", "list"], ["tenantclusters"], namespace="team-secret")

    async def known() -> None:
        pools = await read(api, "/pools?q=production-pool")
        assert theirs in pools["items"][0]["providers"]
        assert (await read(api, "/tenants/team-secret/on-secret"))["tenant"]["elastic"]

    await eventually(known)
    for path in ("/pools?q=production-pool", f"/pools/{HOME}/production-pool", "/providers", "/search?q=harvester"):
        shown = json.dumps(await read(api, path, user=rita))
        assert "harvester-production" in shown
        assert "harvester-secret" not in shown, path
    assert not (await read(api, "/tenants/team-secret/on-secret", user=rita))["tenant"]["elastic"], (
        "its terms are hidden"
    )
    asked = {"tenants": {"count": 1, "provider": "unknown"}}
    status, problem, _ = await api.call("POST", "/plan", asked, user=rita)
    assert status == 422
    assert "harvester-secret" not in problem["detail"]


async def test_a_provider_that_is_not_there(api: Api) -> None:
    status, _ = await refused(api, f"/providers/{HOME}/unknown")
    assert status == 404
    status, problem = await refused(api, "/providers?sort=colour")
    assert status == 422
    assert problem["detail"].startswith("sort")
