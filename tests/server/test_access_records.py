"""Records of the console, written by users and not by the console: none of them lets a user in.

The attacker may read and write Secrets where credentials of providers are, or has old copies of real records. Every
attack is tried on both control planes, by the wire alone.
"""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from argon2 import PasswordHasher

from butler.api.crd import custom_resource_definition
from butler.api.kinds import KINDS
from butler.cli.commands.server.link import is_on_this_machine
from butler.kube import config
from butler.server.access.keys import SigningKey, token_id
from butler.server.access.passwords import FREE
from butler.server.process import Running, Settings, running
from server.browser import Browser
from server.eventually import eventually
from server.sealed import content, rewrite
from server.test_access_commands import command

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from control_planes import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="module")
HOME = "butler-system"
RECORDS = "attacked-records"
"""Not where records usually are: accounts that are left here do not disturb other tests on the same server."""
MASTERS = ["system:masters", "system:authenticated"]
LOGIN = "/api/v1/login/password"


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    for kind in KINDS:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert control_plane.request("POST", path, custom_resource_definition(kind))[0] in (201, 409)
    assert control_plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": HOME}})[0] in (201, 409)
    return control_plane


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def up(plane: ControlPlane) -> AsyncIterator[Running]:
    settings = Settings(records=RECORDS, local=True, local_admin=True, tries_per_minute=100_000)
    async with running(config.load(plane.kubeconfig), settings) as served:
        yield served


def secrets_of(plane: ControlPlane, namespace: str) -> list[dict[str, Any]]:
    status, found = plane.request("GET", f"/api/v1/namespaces/{namespace}/secrets")
    assert status in (200, 404), found
    return list(found.get("items", ()))


def plant(plane: ControlPlane, namespace: str, kind: str, name: str, document: object) -> None:
    """Make a Secret as older servers kept their records."""
    secret = {
        "metadata": {"name": name, "labels": {"butler.butlerlabs.dev/console": kind}},
        "type": f"butler.butlerlabs.dev/console-{kind}",
        "data": {"record": base64.b64encode(json.dumps(document).encode()).decode()},
    }
    status, said = plane.request("POST", f"/api/v1/namespaces/{namespace}/secrets", secret)
    assert status == 201, said


def put_back(plane: ControlPlane, secret: dict[str, Any], name: str = "") -> None:
    """Make a Secret again as it was, or a copy of it."""
    kept = {key: secret["metadata"][key] for key in ("name", "labels")} | ({"name": name} if name else {})
    status, said = plane.request(
        "POST",
        f"/api/v1/namespaces/{secret['metadata']['namespace']}/secrets",
        {"metadata": kept, "type": secret["type"], "data": secret["data"]},
    )
    assert status == 201, said


def session_document(user: str, groups: list[str], via: str) -> dict[str, object]:
    now = datetime.now(UTC)
    return {
        "user": user,
        "groups": groups,
        "via": via,
        "created": now.isoformat(),
        "expires": (now + timedelta(hours=1)).isoformat(),
        "seen": now.isoformat(),
        "user_agent": "",
    }


def key_in(plane: ControlPlane, namespace: str) -> SigningKey:
    """The key, if it is there to be read; else one of the attacker's own."""
    found = [obj for obj in secrets_of(plane, namespace) if obj["metadata"]["name"] == "butler-console-key"]
    return SigningKey(base64.b64decode(content(found[0])["key"]) if found else b"k" * 32)


@pytest.mark.parametrize("via", ["link", "oidc", "password"])
async def test_who_reads_and_makes_secrets_at_home_makes_no_session(plane: ControlPlane, up: Running, via: str) -> None:
    key = key_in(plane, HOME)
    token = key.token("session")
    random = key.secret_of("session", token)
    assert random is not None
    name = f"butler-console-session-{token_id(random)}"
    plant(plane, HOME, "session", name, session_document("any-user", MASTERS, via))
    async with Browser(up.url) as thief:
        thief.set_cookie("butler-session", token)
        assert (await thief.get("/api/v1/me")).status == 401


async def test_who_makes_a_secret_before_the_first_password_is_no_administrator(
    plane: ControlPlane, up: Running
) -> None:
    account = {"login": "admin", "user": "me", "groups": ["system:masters"], "hash": PasswordHasher().hash("mine")}
    plant(plane, HOME, "admin", "butler-console-admin", account)
    async with Browser(up.url) as thief:
        came = await thief.call("POST", LOGIN, json={"user": "admin", "password": "mine"})
        assert came.status == 401, came.body
    if plane.request("GET", f"/api/v1/namespaces/{RECORDS}")[0] == 200:
        plant(plane, RECORDS, "admin", "butler-console-admin", account)  # not even there, without the key
        async with Browser(up.url) as thief:
            assert (await thief.call("POST", LOGIN, json={"user": "admin", "password": "mine"})).status == 401


async def new_password(plane: ControlPlane) -> str:
    made = await asyncio.to_thread(command, plane, "password", "-n", RECORDS)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


async def log_in(browser: Browser, password: str) -> int:
    return (await browser.call("POST", LOGIN, json={"user": "admin", "password": password})).status


async def test_a_password_that_was_changed_does_not_come_back_with_its_secret(plane: ControlPlane, up: Running) -> None:
    path = f"/api/v1/namespaces/{RECORDS}/secrets/butler-console-admin"
    old = await new_password(plane)
    status, before = plane.request("GET", path)
    assert status == 200, before
    await new_password(plane)
    assert plane.request("DELETE", path)[0] == 200
    put_back(plane, before)
    async with Browser(up.url) as browser:
        assert await log_in(browser, old) == 401
        assert await log_in(browser, await new_password(plane)) == 200  # what is no record has no effect


async def test_wrong_passwords_are_not_forgotten_with_any_secret(plane: ControlPlane, up: Running) -> None:
    password = await new_password(plane)
    async with Browser(up.url) as browser:
        while await log_in(browser, "wrong") == 401:
            pass
        _, account = plane.request("GET", f"/api/v1/namespaces/{RECORDS}/secrets/butler-console-admin")
        assert content(account)["tries"]["failures"] >= FREE
        # So many that the wait outlasts this test on any machine.
        many = {"failures": FREE + 20, "last": datetime.now(UTC).isoformat()}
        rewrite(plane, "butler-console-admin", records=RECORDS, tries=many)
        for namespace in (HOME, RECORDS):
            for secret in secrets_of(plane, namespace):
                name = secret["metadata"]["name"]
                if name.startswith("butler-console-") and name not in ("butler-console-admin", "butler-console-key"):
                    plane.request("DELETE", f"/api/v1/namespaces/{namespace}/secrets/{name}")
        assert await log_in(browser, password) == 429


async def test_a_session_that_ended_does_not_come_back_with_its_secret(plane: ControlPlane, up: Running) -> None:
    async with Browser(up.url) as browser, Browser(up.url) as thief:
        me = await browser.come_in(await up.one_time_link())
        thief.set_cookie("butler-session", browser.cookies["butler-session"])
        path = f"/api/v1/namespaces/{RECORDS}/secrets/butler-console-session-{me['session']}"
        status, before = plane.request("GET", path)
        assert status == 200, before
        assert (await browser.call("POST", "/api/v1/logout")).status == 204
        put_back(plane, before)
        assert (await thief.get("/api/v1/me")).status == 401


async def test_a_record_is_good_under_its_own_name_and_as_it_was_written(plane: ControlPlane, up: Running) -> None:
    async with Browser(up.url) as rich, Browser(up.url) as poor:
        masters, other = await rich.come_in(await up.one_time_link()), await poor.come_in(await up.one_time_link())
        name = f"butler-console-session-{other['session']}"
        rewrite(plane, name, records=RECORDS, user="poor", groups=["system:authenticated"])
        path = f"/api/v1/namespaces/{RECORDS}/secrets/{name}"

        async def is_poor() -> None:
            assert (await poor.me())["user"] == "poor"

        await eventually(is_poor)
        status, theirs = plane.request(
            "GET", f"/api/v1/namespaces/{RECORDS}/secrets/butler-console-session-{masters['session']}"
        )
        assert status == 200
        for data in (theirs["data"], {"record": theirs["data"]["record"]}):
            _, mine = plane.request("GET", path)
            status, said = plane.request("PUT", path, {**mine, "data": data})
            assert status == 200, said
            await asyncio.sleep(3.5)  # an answer of Kubernetes is good for three seconds
            assert (await poor.get("/api/v1/me")).status == 401


@pytest.mark.parametrize(("user", "groups"), [("ada", MASTERS), ("system:admin", ["x"]), ("ada", ["SYSTEM:nodes"])])
async def test_only_a_link_makes_a_reserved_user(
    plane: ControlPlane, up: Running, user: str, groups: list[str]
) -> None:
    """Even of a record with a good seal."""
    async with Browser(up.url) as browser:
        me = await browser.come_in(await up.one_time_link())
        rewrite(plane, f"butler-console-session-{me['session']}", records=RECORDS, user=user, groups=groups, via="oidc")

        async def out() -> None:
            assert (await browser.get("/api/v1/me")).status == 401

        await eventually(out)
        password = await new_password(plane)
        rewrite(plane, "butler-console-admin", records=RECORDS, user=user, groups=groups)
        assert await log_in(browser, password) == 401


async def test_the_session_of_a_link_is_good_only_where_links_are_taken(plane: ControlPlane, up: Running) -> None:
    async with (
        running(config.load(plane.kubeconfig), Settings(records=RECORDS, local_admin=True)) as public,
        Browser(up.url) as browser,
        Browser(public.url) as other,
    ):
        await browser.come_in(await up.one_time_link())
        other.set_cookie("butler-session", browser.cookies["butler-session"])
        assert (await other.get("/api/v1/me")).status == 401


async def test_what_says_it_is_a_record_and_is_none_is_swept_when_it_is_old(
    plane: ControlPlane, up: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = session_document("any-user", MASTERS, "link")
    plant(plane, RECORDS, "session", f"butler-console-session-{'a' * 40}", document)
    await up.services.logins.sessions.sweep()
    assert "a" * 40 in str(secrets_of(plane, RECORDS))  # it could be a record that is just being made
    monkeypatch.setattr("butler.server.access.records.UNSEALED_FOR", timedelta(seconds=-1))
    await up.services.logins.sessions.sweep()
    assert "a" * 40 not in str(secrets_of(plane, RECORDS))


async def test_a_link_never_points_to_another_machine(plane: ControlPlane, up: Running) -> None:
    evil = {"metadata": {"name": "butler-console-address"}, "data": {"url": "https://evil.example"}}
    at_home = f"/api/v1/namespaces/{HOME}/configmaps"
    plane.request("POST", at_home, evil)
    plane.request("PUT", f"{at_home}/butler-console-address", evil)
    usual = await asyncio.to_thread(command, plane, "link")
    assert "evil.example" not in usual.stdout + usual.stderr  # the command does not read it there
    made = await asyncio.to_thread(command, plane, "link", "-n", RECORDS)
    assert made.stdout.startswith(f"{up.url}/link?token="), made
    there = f"/api/v1/namespaces/{RECORDS}/configmaps/butler-console-address"
    _, before = plane.request("GET", there)
    assert plane.request("PUT", there, {**before, "data": evil["data"]})[0] == 200
    refused = await asyncio.to_thread(command, plane, "link", "-n", RECORDS)
    _, now = plane.request("GET", there)
    plane.request("PUT", there, {**now, "data": before["data"]})
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "not this machine" in refused.stderr


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8090", True),
        ("https://localhost:8090", True),
        ("http://[::1]:1", True),
        ("http://127.0.0.1:80@evil.example", False),
        ("http://127.0.0.1.evil.example", False),
        ("//evil.example", False),
        ("javascript://localhost", False),
        ("http://[", False),
        ("", False),
    ],
)
async def test_which_addresses_are_this_machine(url: str, here: bool) -> None:
    assert is_on_this_machine(url) is here


async def test_records_need_a_namespace_of_their_own(plane: ControlPlane) -> None:
    same = await asyncio.to_thread(command, plane, "run", "--local", "--records-namespace", HOME)
    assert same.returncode == 2
    assert "--records-namespace" in same.stderr
    grants = {"metadata": {"name": "ops"}, "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]}]}
    binding = {
        "metadata": {"name": "ops"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "ops"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ops"}],
    }
    for plural, body in (("clusterroles", grants), ("clusterrolebindings", binding)):
        plane.request("POST", f"/apis/rbac.authorization.k8s.io/v1/{plural}", body)
    refused = await asyncio.to_thread(command, plane, "password", "-n", "not-there", "--as", "ops")
    assert refused.returncode == 1
    assert "namespace not-there" in refused.stderr
    assert "examples/console/access.yaml" in refused.stderr
