"""Admission as a service of a process: registered when it can be, ready only then, and tidy at its end."""

from __future__ import annotations

import asyncio
import base64
import logging
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pytest

from butler.kube.client import Client
from butler.kube.config import Connection
from butler.kube.operator import Operator
from butler.webhooks.certificates import SelfMade, Serving
from butler.webhooks.registration import AtService
from butler.webhooks.service import AdmissionService, AdmissionSettings, add_admission
from unit.kube.fake_api import FakeApi, refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from butler.webhooks.secret_path import OwnPaths

CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/butler.butlerlabs.dev"
SECRET = "/api/v1/namespaces/butler-system/secrets/butler-webhook-certificate"
SERVICE = AtService("butler-system", "butler-webhooks")


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    server = FakeApi()
    await server.start()
    server.put(CONFIGURATION, {"webhooks": [{"name": "left by an earlier process"}]})
    yield server
    await server.stop()


@asynccontextmanager
async def running(api: FakeApi, **settings: Any) -> AsyncIterator[tuple[Operator, AdmissionService]]:
    async with Client(Connection(api.url), attempts=1) as client:
        operator = Operator(client, "test")
        service = add_admission(operator, AdmissionSettings(**settings))
        service.server._look_every = 0.01
        task = asyncio.create_task(operator.run(handle_signals=False))
        try:
            yield operator, service
        finally:
            operator.stop()
            await asyncio.wait_for(task, 10)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def registered(api: FakeApi) -> dict[str, Any]:
    found: dict[str, Any] = api.objects[CONFIGURATION]["webhooks"][0]["clientConfig"]
    return {**found, "caBundle": base64.b64decode(found["caBundle"])}


async def test_what_was_left_is_replaced_and_taken_away_at_the_end(api: FakeApi) -> None:
    async with running(api) as (operator, service):
        assert "the admission webhooks are starting" in operator.why_unready()
        await until(lambda: not operator.why_unready())
        assert registered(api) == {"url": service.server.url, "caBundle": service.server.ca_bundle}
        assert service.server.url.startswith("https://127.0.0.1:")
    assert CONFIGURATION not in api.objects


async def test_an_api_server_that_is_away_is_waited_for(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    reasons: set[str] = set()

    async def away(request: Any) -> Any:
        if request.method == "PATCH" and len(reasons) < 2:
            reasons.add(f"{len(reasons)}")
            api.refuse.append(refusal(403, "Forbidden", "you may not"))

    api.before = away
    with caplog.at_level(logging.WARNING):
        async with running(api) as (operator, service):
            await until(lambda: "you may not" in service.why_unready)
            assert "the admission webhooks cannot be registered: " in operator.why_unready()[-1]
            await until(lambda: not operator.why_unready())
    assert len([record for record in caplog.records if "cannot be registered" in record.message]) == 1, "said once"


async def test_in_a_cluster_the_registration_outlives_its_server(api: FakeApi) -> None:
    """Otherwise no webhook would guard the pools during the rollout of a Deployment."""
    async with running(api, service=SERVICE) as (operator, service):
        await until(lambda: not operator.why_unready())
        first = service.server.ca_bundle
        service_config = {
            "namespace": "butler-system",
            "name": "butler-webhooks",
            "port": 443,
            "path": service.server.path,
        }
        assert registered(api) == {"service": service_config, "caBundle": first}
        async with running(api, service=SERVICE) as (other, replica):
            await until(lambda: not other.why_unready())
            assert replica.server.ca_bundle == first, "replicas share their authority"
            assert replica.server.path == service.server.path, "and the secret in the path"
    assert registered(api)["caBundle"] == first
    assert SECRET in api.objects


async def test_replicas_of_an_older_version_are_waited_for(api: FakeApi) -> None:
    """They answer under the bare path and know fewer kinds: what they registered stays until they are replaced."""
    old = {"name": "old", "clientConfig": {"service": {"name": "butler-webhooks", "path": "/admission"}}}
    api.put(CONFIGURATION, {"webhooks": [old]})
    async with Client(Connection(api.url), attempts=1) as client:
        operator = Operator(client, "test")
        service = add_admission(operator, AdmissionSettings(service=SERVICE))
        service._upgrade = 0.3
        task = asyncio.create_task(operator.run(handle_signals=False))
        try:
            await until(lambda: not operator.why_unready())
            assert service.server.takes_bare_path
            assert api.objects[CONFIGURATION]["webhooks"] == [old]
            await until(lambda: api.objects[CONFIGURATION]["webhooks"] != [old])
            assert registered(api)["service"]["path"] == service.server.path
            await until(lambda: not service.server.takes_bare_path)
        finally:
            operator.stop()
            await asyncio.wait_for(task, 10)


async def test_a_changed_path_is_registered_anew(api: FakeApi) -> None:
    async with running(api) as (operator, service):
        await until(lambda: not operator.why_unready())
        first = registered(api)["url"]
        assert service.server._paths is not None
        source = cast("OwnPaths", service.server._path_source)
        source._paths = service.server._paths.changed(datetime.now(UTC))
        await until(lambda: registered(api)["url"] not in (first, ""))
        assert registered(api)["url"] == service.server.url


async def test_a_new_authority_is_registered_anew(api: FakeApi, tmp_path: Path) -> None:
    def put(made: Serving) -> None:
        (tmp_path / "new").write_bytes(made.key + made.certificate + made.authorities)
        (tmp_path / "new").rename(tmp_path / "all.pem")

    first, second = await SelfMade(["127.0.0.1"]).fetch(), await SelfMade(["127.0.0.1"]).fetch()
    put(first)
    files = tmp_path / "all.pem"
    async with running(api, certificate=files, key=files) as (operator, service):
        await until(lambda: not operator.why_unready())
        assert first.authorities in registered(api)["caBundle"]
        put(second)
        await until(lambda: second.authorities in registered(api)["caBundle"])
        assert registered(api)["caBundle"] == service.server.ca_bundle


async def test_a_registration_that_cannot_be_taken_away_is_told_with_the_way_out(
    api: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with running(api) as (operator, _):
            await until(lambda: not operator.why_unready())

            async def deny(request: Any) -> Any:
                if request.method == "DELETE":
                    api.refuse.append(refusal(403, "Forbidden", "you may not"))

            api.before = deny
    assert "kubectl delete validatingwebhookconfiguration butler.butlerlabs.dev" in caplog.text
