"""The server with an account of its own that may do no more than it needs, on both control planes.

What is in the example is all that an administrator has to grant; people do the rest in their own name.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
import yaml

from butler.api.crd import custom_resource_definition
from butler.api.kinds import KINDS
from butler.kube import config
from butler.kube.client import Client
from butler.server.access.passwords import reset_admin
from butler.server.access.store import open_store
from butler.server.process import Running, Settings, running
from pages import ROOT
from server.browser import Browser
from server.eventually import eventually
from server.sealed import RECORDS, rewrite

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from butler.kube.config import Connection
    from control_planes import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="module")
HOME = "butler-system"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PLURALS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "Role": f"{RBAC}/namespaces/{{namespace}}/roles",
    "RoleBinding": f"{RBAC}/namespaces/{{namespace}}/rolebindings",
}
RIGHTS = ROOT / "examples/console/access.yaml"
"""All that an administrator has to grant, as docs/console.md says."""


def put(plane: ControlPlane, path: str, body: dict[str, Any]) -> Any:
    status, said = plane.request("POST", path, body)
    assert status in (200, 201, 409), said
    return said


@pytest.fixture(scope="module")
def account(control_plane: ControlPlane) -> Connection:
    """A service account that has the rights, and nothing else."""
    plane = control_plane
    for kind in KINDS:
        put(plane, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", custom_resource_definition(kind))
    put(plane, "/api/v1/namespaces", {"metadata": {"name": HOME}})
    for item in yaml.safe_load_all(RIGHTS.read_text()):
        put(plane, PLURALS[item["kind"]].format(namespace=item["metadata"].get("namespace", "")), item)
    asked: dict[str, Any] = {"spec": {}}
    token = put(plane, f"/api/v1/namespaces/{RECORDS}/serviceaccounts/butler-server/token", asked)["status"]["token"]
    return replace(config.load(plane.kubeconfig), client_cert=None, client_key=None, token=token)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def up(account: Connection) -> AsyncIterator[Running]:
    async with running(account, Settings(local_admin=True, tries_per_minute=10_000)) as served:
        yield served


@contextlib.asynccontextmanager
async def came_in(plane: ControlPlane, up: Running) -> AsyncIterator[Browser]:
    async with Client(config.load(plane.kubeconfig)) as client:
        account, password = await reset_admin(await open_store(client, RECORDS))
    async with Browser(up.url) as browser:
        login = {"user": account.login, "password": password}
        came = await browser.call("POST", "/api/v1/login/password", json=login)
        assert came.status == 200, came.body
        await browser.me()
        yield browser


async def test_people_act_in_their_own_name_and_the_server_has_no_right_to(
    control_plane: ControlPlane, account: Connection, up: Running
) -> None:
    async with came_in(control_plane, up) as browser:
        me = await browser.me()
        assert all(me["permissions"].values()), me["permissions"]
        made = await browser.call("POST", "/api/v1/pools", json={"name": "rights", "cidr": "10.240.0.0/24"})
        assert made.status == 201, made.body

        async def shown() -> None:
            assert (await browser.get("/api/v1/pools/butler-system/rights")).status == 200

        await eventually(shown)
        status, found = control_plane.request(
            "GET", f"/apis/butler.butlerlabs.dev/v1alpha1/namespaces/{HOME}/networkpools/rights"
        )
        assert status == 200
        assert [managed_field["manager"] for managed_field in found["metadata"]["managedFields"]] == ["butler-console"]
        assert (await browser.call("POST", "/api/v1/logout")).status == 204
        assert (await browser.get("/api/v1/me")).status == 401
    async with Client(account) as itself:
        for path in (f"/apis/butler.butlerlabs.dev/v1alpha1/namespaces/{HOME}/networkpools", "/api/v1/namespaces"):
            with pytest.raises(Exception, match="403"):
                await itself.raw(path, method="POST", body=b'{"metadata": {"name": "x"}}')


async def test_a_session_is_ended_and_swept_with_these_rights(control_plane: ControlPlane, up: Running) -> None:
    async with came_in(control_plane, up) as browser, Browser(up.url) as copy:
        me = await browser.me()
        copy.set_cookie("butler-session", browser.cookies["butler-session"])
        assert (await copy.me())["session"] == me["session"]
        name = f"butler-console-session-{me['session']}"
        path = f"/api/v1/namespaces/{RECORDS}/secrets/{name}"
        status, secret = control_plane.request("GET", path)
        assert (status, secret["type"]) == (200, "butler.butlerlabs.dev/console-session")
        rewrite(control_plane, name, expires="2001-01-01T00:00:00Z")
        assert await up.services.logins.sessions.sweep() == 1
        assert control_plane.request("GET", path)[0] == 404

        async def out() -> None:
            assert (await browser.get("/api/v1/me")).status == 401
            assert (await copy.get("/api/v1/me")).status == 401

        await eventually(out)


async def test_it_is_ready_and_of_many_wrong_passwords_each_is_counted(
    control_plane: ControlPlane, up: Running
) -> None:
    async with came_in(control_plane, up) as browser:
        assert (await browser.get("/readyz")).status == 200
        wrong = {"user": "admin", "password": "wrong"}
        for _ in range(20):  # each wait is twice as long as the last; on a slow machine the first ones pass unnoticed
            tried = await browser.call("POST", "/api/v1/login/password", json=wrong)
            if tried.status == 429:
                break
            assert tried.status == 401
        else:
            pytest.fail("twenty wrong passwords, and no client has to wait")
