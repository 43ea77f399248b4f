"""The client's verbs against real servers; what servers answer in detail is for the conformance suite."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from butler.api.meta import ObjectMeta
from butler.api.networkpool import NetworkPool, NetworkPoolSpec
from butler.api.objects import (
    Json,
    Key,
    finalizers_patch,
    is_being_deleted,
    key_of,
    uid_of,
    version_of,
    without_finalizer,
)
from butler.kube import config, errors
from butler.kube.cache import Cache
from butler.kube.client import Client
from butler.kube.operator import Operator
from butler.kube.resource import CONFIGMAPS, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, SERVICES, resource_of
from local.runtime.conftest import QUICK
from local.runtime.witness import following, hasty, until

if TYPE_CHECKING:
    from control_planes import ControlPlane


CRDS = Path(__file__).parents[3] / "charts" / "butler" / "crds"


def config_map(name: str, **data: str) -> Json:
    return {"metadata": {"name": name}, "data": data}


async def test_an_object_lives_through_all_verbs(client: Client, namespace: str) -> None:
    made = await client.create(CONFIGMAPS, config_map("a", x="1"), namespace)
    assert (await client.get(CONFIGMAPS, "a", namespace))["data"] == {"x": "1"}
    with pytest.raises(errors.AlreadyExists):
        await client.create(CONFIGMAPS, config_map("a"), namespace)
    replaced = await client.replace(CONFIGMAPS, {**made, "data": {"x": "2"}})
    with pytest.raises(errors.Conflict):
        await client.replace(CONFIGMAPS, made)
    merged = await client.patch(CONFIGMAPS, "a", {"data": {"y": "3"}}, namespace)
    assert merged["data"] == {"x": "2", "y": "3"}
    test_and_set = [
        {"op": "test", "path": "/data/y", "value": "3"},
        {"op": "replace", "path": "/data/y", "value": "4"},
    ]
    patched = await client.patch(CONFIGMAPS, "a", test_and_set, namespace, kind="json")
    assert patched["data"]["y"] == "4"
    with pytest.raises(errors.Conflict):
        await client.delete(CONFIGMAPS, "a", namespace, uid="another-uid")
    with pytest.raises(errors.Conflict):
        await client.delete(CONFIGMAPS, "a", namespace, resource_version=version_of(replaced))
    await client.delete(CONFIGMAPS, "a", namespace, uid=uid_of(made), dry_run=True)
    await client.delete(CONFIGMAPS, "a", namespace, uid=uid_of(made), propagation="Background")
    with pytest.raises(errors.NotFound):
        await client.get(CONFIGMAPS, "a", namespace)


async def test_a_patch_fenced_by_uid_and_version_meets_only_what_it_was_made_for(
    client: Client, namespace: str
) -> None:
    made = await client.create(
        CONFIGMAPS, {"metadata": {"name": "a", "finalizers": ["example.com/hold", "example.com/more"]}}, namespace
    )
    await client.delete(CONFIGMAPS, "a", namespace)
    going = await client.get(CONFIGMAPS, "a", namespace)
    assert is_being_deleted(going)
    left = without_finalizer(made, "example.com/hold")
    assert left == ["example.com/more"]
    with pytest.raises(errors.Conflict):
        await client.patch(CONFIGMAPS, "a", finalizers_patch(made, left), namespace)
    await client.patch(CONFIGMAPS, "a", finalizers_patch(going, []), namespace)
    with pytest.raises(errors.NotFound):
        await client.get(CONFIGMAPS, "a", namespace)


async def test_server_side_apply_owns_its_fields(client: Client, namespace: str) -> None:
    mine = {"metadata": {"name": "a", "namespace": namespace}, "data": {"x": "1"}}
    await client.apply(CONFIGMAPS, mine, field_manager="one")
    theirs = {"metadata": {"name": "a", "namespace": namespace}, "data": {"x": "2"}}
    with pytest.raises(errors.Conflict) as caught:
        await client.apply(CONFIGMAPS, theirs, field_manager="two")
    assert [cause.field for cause in caught.value.causes] == [".data.x"]
    forced = await client.apply(CONFIGMAPS, theirs, field_manager="two", force=True)
    assert forced["data"] == {"x": "2"}


async def test_strategic_patches_status_and_collections(client: Client, namespace: str) -> None:
    service = {"metadata": {"name": "s"}, "spec": {"type": "LoadBalancer", "ports": [{"name": "a", "port": 80}]}}
    await client.create(SERVICES, service, namespace)
    more = {"spec": {"ports": [{"name": "b", "port": 81}]}}
    patched = await client.patch(SERVICES, "s", more, namespace, kind="strategic")
    assert {port["port"] for port in patched["spec"]["ports"]} == {80, 81}
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}
    served = await client.patch(SERVICES, "s", status, namespace, subresource="status")
    assert served["status"]["loadBalancer"]["ingress"][0]["ip"] == "192.0.2.1"
    for number in range(3):
        label = {"labels": {"odd": str(number % 2)}}
        await client.create(CONFIGMAPS, {"metadata": {"name": f"m{number}", **label}}, namespace)
    await client.delete_collection(CONFIGMAPS, namespace, label_selector="odd=0")
    names = [key_of(item).name for item in (await client.list(CONFIGMAPS, namespace)).items]
    assert "m1" in names
    assert not {"m0", "m2"} & set(names)


async def test_refusals_name_fields_and_strict_writes_refuse_unknown_ones(client: Client, namespace: str) -> None:
    with pytest.raises(errors.Invalid) as caught:
        await client.create(SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 70000}]}}, namespace)
    assert "spec.ports[0].port" in {cause.field for cause in caught.value.causes}
    unknown = {**config_map("a"), "dat": {}}
    with pytest.raises(errors.BadRequest, match='unknown field "dat"'):
        await client.create(CONFIGMAPS, unknown, namespace, field_validation="Strict")
    await client.create(CONFIGMAPS, unknown, namespace, field_validation="Ignore", dry_run=True)
    with pytest.raises(errors.NotFound):
        await client.get(CONFIGMAPS, "a", namespace)


async def test_pages_are_one_snapshot(client: Client, namespace: str) -> None:
    await asyncio.gather(*(client.create(CONFIGMAPS, config_map(f"m{n:02}"), namespace) for n in range(25)))
    listed = await client.list(CONFIGMAPS, namespace, limit=4)
    names = [key_of(item).name for item in listed.items if key_of(item).name.startswith("m")]
    assert names == [f"m{n:02}" for n in range(25)]
    assert int(listed.resource_version) >= max(int(version_of(item)) for item in listed.items)


async def test_a_watch_begins_where_the_list_ended(client: Client, namespace: str) -> None:
    listed = await client.list(CONFIGMAPS, namespace)
    await client.create(CONFIGMAPS, config_map("a"), namespace)
    await client.delete(CONFIGMAPS, "a", namespace)
    watch = client.watch(CONFIGMAPS, namespace, resource_version=listed.resource_version, timeout_seconds=2)
    async with aclosing(watch) as events:
        seen = [(key_of(event.object).name, event.type) async for event in events if event.object is not None]
    assert [kind for name, kind in seen if name == "a"] == ["ADDED", "DELETED"], (
        "and it ends by itself when its time is up"
    )


async def test_a_foreign_user_is_refused_by_type(control_plane: ControlPlane, tmp_path: Path, namespace: str) -> None:
    document = yaml.safe_load(control_plane.kubeconfig.read_text())
    document["users"][0]["user"]["as"] = "stranger"
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(document))
    async with Client(config.load(tmp_path / "kubeconfig")) as client:
        with pytest.raises(errors.Forbidden, match="stranger"):
            await client.get(CONFIGMAPS, "a", namespace)
    document["users"][0]["user"] = {"token": "not-a-token"}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(document))
    async with Client(config.load(tmp_path / "kubeconfig")) as client:
        with pytest.raises(errors.Unauthorized):
            await client.get(CONFIGMAPS, "a", namespace)


async def test_an_exec_plugin_lets_us_in(control_plane: ControlPlane, tmp_path: Path, namespace: str) -> None:
    """The administrator's own credentials, handed out by a program."""
    document = yaml.safe_load(control_plane.kubeconfig.read_text())
    user = document["users"][0]["user"]
    program = tmp_path / "login"
    program.write_text(
        f"#!{sys.executable}\nimport base64, json\nuser = {user!r}\n"
        "text = lambda name: base64.b64decode(user[name]).decode() if name in user else ''\n"
        "status = {'token': user.get('token', ''), 'clientCertificateData': text('client-certificate-data'),\n"
        "          'clientKeyData': text('client-key-data')}\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential',\n"
        "                  'status': {name: value for name, value in status.items() if value}}))\n"
    )
    program.chmod(0o700)
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./login", "interactiveMode": "Never"}
    document["users"][0]["user"] = {"exec": plugin}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(document))
    async with Client(config.load(tmp_path / "kubeconfig")) as client:
        found = await client.get(NAMESPACES, namespace)
        assert key_of(found) == Key("", namespace)


async def test_own_writes_are_read_back_at_once_and_the_watch_catches_up(client: Client, namespace: str) -> None:
    cache = hasty(client, namespace, seed=1)
    async with following(cache.run()):
        await until(lambda: cache.has_synced, "first list")
        for number in range(20):
            written = await client.apply(
                CONFIGMAPS,
                {"metadata": {"name": "a", "namespace": namespace}, "data": {"n": str(number)}},
                force=True,
            )
            cache.wrote(written)
            known = cache.get(Key(namespace, "a"))
            assert known is not None
            assert known["data"] == {"n": str(number)}
        assert await cache.reached(version_of(written), 10)


async def test_our_own_kinds_come_and_go_as_structs(client: Client, namespace: str) -> None:
    crd = yaml.safe_load((CRDS / "butler.butlerlabs.dev_networkpools.yaml").read_text())
    await client.apply(CUSTOM_RESOURCE_DEFINITIONS, crd, force=True)
    pools = resource_of(NetworkPool)
    cache = Cache(client, pools, namespace=namespace, backoff=QUICK)
    cache.index("cidr", lambda pool: [pool.spec.cidr])
    async with following(cache.run()):
        # Until the definition is established the list is a 404, which a cache sits out.
        await until(lambda: cache.has_synced, lambda: cache.last_error)
        pool = NetworkPool(
            metadata=ObjectMeta(name="lab", namespace=namespace), spec=NetworkPoolSpec(cidr="10.40.0.0/24")
        )
        made = await client.create(pools, pool)
        cache.wrote(made)
        assert cache.by("cidr", "10.40.0.0/24") == [made]
        status = {"metadata": {"resourceVersion": version_of(made)}, "status": {"allocatedIPs": 7}}
        seen = await client.patch(pools, "lab", status, namespace, subresource="status")
        assert isinstance(seen, NetworkPool)
        await until(lambda: cache.values() == [seen], "the watch shows the status")
        with pytest.raises(errors.Invalid, match="cidr"):
            await client.patch(pools, "lab", {"spec": {"cidr": "not a network"}}, namespace)
        await client.delete(pools, "lab", namespace, uid=uid_of(made))
        await until(lambda: len(cache) == 0, "and its end")


async def test_an_operator_starts_works_and_stops(client: Client, namespace: str) -> None:
    operator = Operator(client, "test", port=0)
    cache = operator.cache(CONFIGMAPS, namespace=namespace)
    task = asyncio.create_task(operator.run(handle_signals=False))
    await until(lambda: operator.address is not None and not operator.why_unready(), "ready")
    await client.create(CONFIGMAPS, config_map("a"), namespace)
    await until(lambda: Key(namespace, "a") in cache, "seen")
    assert not operator.why_unhealthy()
    operator.stop()
    await asyncio.wait_for(task, 10)
