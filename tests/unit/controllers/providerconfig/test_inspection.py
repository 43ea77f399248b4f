"""When a Secret is read and a provider asked: on news, by the clock, and not a moment more often."""

from __future__ import annotations

import asyncio
import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from aiohttp import web

from butler.api.labels import ProviderReason
from butler.api.objects import Key
from butler.controllers.providerconfig import inspection
from butler.controllers.providerconfig.inspection import Inspection, secret_key
from butler.controllers.providerconfig.settings import ProviderSettings
from butler.kube.errors import Forbidden, ServiceUnavailable, Status
from butler.rules.provider.probe_outcome import Accepted, Awaited, CredentialsRefused, ProviderUnreachable
from unit.controllers.fake_server import not_found
from unit.providers.given import Appliance, appliance, config, secret

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from butler.api.providerconfig import ProviderConfig

NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
LAB = Key("butler-system", "lab")
ME = "GET /api/nutanix/v3/users/me"


class Secrets:
    """As much of an API server as is read here."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] | None = None
        self.version = 0
        self.reads = 0
        self.trouble: Exception | None = None

    def put(self, data: dict[str, bytes] | None) -> None:
        self.data, self.version = data, self.version + 1

    async def get(self, resource: Any, name: str, namespace: str) -> Any:
        self.reads += 1
        if self.trouble is not None:
            raise self.trouble
        if self.data is None:
            raise not_found(name, "secrets", "")
        encoded = {key: base64.b64encode(value).decode() for key, value in self.data.items()}
        return {"metadata": {"name": name, "uid": "s", "resourceVersion": str(self.version)}, "data": encoded}


class Office:
    """An inspection with a clock that stands still until it is told to go."""

    def __init__(self, prism: Appliance) -> None:
        self.prism = prism
        self.secrets = Secrets()
        self.secrets.put(secret("nutanix", ca__pem=prism.ca))
        self.time = 1000.0
        self.woken: list[Key] = []
        self.inspection = Inspection(
            self.secrets,  # type: ignore[arg-type]
            ProviderSettings(),
            self.woken.append,
            lambda: NOW,
            lambda: self.time,
        )
        self.config: ProviderConfig = config("nutanix", endpoint=prism.url)

    @property
    def asked(self) -> int:
        return self.prism.asked.count(ME)

    async def look(self) -> Any:
        known, _ = await self.inspection.look(self.config)
        return known

    async def settled(self) -> None:
        """Wait for questions in the background."""
        while self.inspection._asking:  # noqa: ASYNC110 (there is no event for it)
            await asyncio.sleep(0.01)


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with appliance(tmp_path / "prism") as prism:
        prism.on(ME, {})
        found = Office(prism)
        yield found
        found.inspection.forget(LAB)


async def test_the_first_look_is_waited_for_and_the_next_ones_cost_nothing(office: Office) -> None:
    known = await office.look()
    assert known.state.reason is ProviderReason.COMPLETE
    assert isinstance(known.outcome, Accepted)
    assert office.woken == []
    for _ in range(3):
        assert await office.look() is known
    assert (office.secrets.reads, office.asked) == (1, 1)


async def test_after_five_minutes_it_is_asked_again_in_the_background(office: Office) -> None:
    before = (await office.look()).outcome
    _, again = await office.inspection.look(office.config)
    assert 270 <= again <= 330
    office.time += 331
    hanging = asyncio.Event()

    async def hang(request: web.Request, _: bytes) -> web.Response:
        await hanging.wait()
        return web.Response(status=401)

    office.prism.answers[ME] = hang
    known = await office.look()  # comes back at once, though the provider says nothing
    assert known.outcome is before
    assert office.woken == []
    hanging.set()
    await office.settled()
    assert office.woken == [LAB]
    assert isinstance((await office.look()).outcome, CredentialsRefused)


async def test_who_refused_is_left_alone_for_an_hour(office: Office) -> None:
    office.prism.on(ME, {}, 401)
    assert isinstance((await office.look()).outcome, CredentialsRefused)
    office.time += 3000
    await office.look()
    await office.settled()
    assert office.asked == 1
    office.time += 1000
    await office.look()
    await office.settled()
    assert office.asked == 2


async def test_a_new_secret_is_shown_at_once(office: Office) -> None:
    office.prism.on(ME, {}, 401)
    await office.look()
    office.secrets.put(secret("nutanix", password=b"better", ca__pem=office.prism.ca))
    assert isinstance((await office.look()).outcome, CredentialsRefused)  # the controller was not told yet
    office.prism.on(ME, {})
    office.inspection.secret_changed(LAB)
    known = await office.look()
    assert isinstance(known.outcome, Accepted)
    assert known.refusal is None


async def test_a_secret_that_is_told_of_and_is_the_same_is_not_shown_again(office: Office) -> None:
    await office.look()
    office.inspection.secret_changed(LAB)
    await office.look()
    assert (office.secrets.reads, office.asked) == (2, 1)


async def test_an_edit_is_looked_at_anew(office: Office) -> None:
    await office.look()
    metadata = msgspec.structs.replace(office.config.metadata, generation=2)
    office.config = msgspec.structs.replace(office.config, metadata=metadata)
    await office.look()
    assert (office.secrets.reads, office.asked) == (2, 2)


async def test_a_refusal_outlives_silence(office: Office) -> None:
    office.prism.on(ME, {}, 401)
    await office.look()
    office.time += 4000
    office.prism.on(ME, {}, 500)
    await office.look()
    await office.settled()
    known = await office.look()
    assert not isinstance(known.outcome, CredentialsRefused)
    assert isinstance(known.refusal, CredentialsRefused)


@pytest.mark.parametrize(
    ("data", "reason", "said"),
    [
        (None, "SecretNotFound", "Secret butler-system/login does not exist: create it with username and password"),
        ({"username": b"x"}, "Malformed", "Secret butler-system/login: key password is missing (it has username)"),
    ],
)
async def test_without_usable_credentials_no_provider_is_asked(
    office: Office, data: dict[str, bytes] | None, reason: str, said: str
) -> None:
    office.secrets.put(data)
    known = await office.look()
    assert known.state.reason == reason
    assert known.state.message.startswith(said)
    assert known.outcome is None
    assert office.asked == 0


async def test_a_secret_that_may_not_be_read_is_said_and_trouble_is_raised(office: Office) -> None:
    office.secrets.trouble = Forbidden(403, Status(reason="Forbidden"))
    assert (await office.look()).state.reason is ProviderReason.SECRET_UNREADABLE
    office.inspection.secret_changed(LAB)
    office.secrets.trouble = ServiceUnavailable(503, Status())
    with pytest.raises(ServiceUnavailable):
        await office.look()
    office.secrets.trouble = None
    assert (await office.look()).state.reason is ProviderReason.COMPLETE  # the news is not lost with the trouble


async def test_settings_that_make_no_sense_are_not_asked(office: Office) -> None:
    office.config = config("nutanix", endpoint=office.prism.url, clusterUUID="prod")
    known = await office.look()
    assert known.state.complete
    assert known.outcome is None
    assert office.asked == 0


async def test_a_local_provider_needs_nothing(office: Office) -> None:
    office.config = config("local")
    known = await office.look()
    assert (known.state.reason, known.outcome) == (ProviderReason.NOT_NEEDED, None)
    assert secret_key(office.config) is None
    assert office.secrets.reads == 0


async def test_a_secret_of_another_namespace_is_not_even_read(office: Office) -> None:
    reference = msgspec.structs.replace(office.config.spec.credentials_ref, namespace="butler-system")
    metadata = msgspec.structs.replace(office.config.metadata, namespace="team-a")
    spec = msgspec.structs.replace(office.config.spec, credentials_ref=reference)
    office.config = msgspec.structs.replace(office.config, metadata=metadata, spec=spec)
    assert (await office.look()).state.reason is ProviderReason.SECRET_NOT_ALLOWED
    assert (office.secrets.reads, office.asked) == (0, 0)


async def test_nothing_of_a_secret_is_remembered(office: Office) -> None:
    await office.look()
    assert "correct-horse" not in repr(office.inspection._known)


async def test_a_provider_that_is_gone_is_forgotten_with_its_question(office: Office) -> None:
    office.prism.on(ME, {}, 500)
    await office.look()
    office.time += 400
    await office.look()
    office.inspection.forget(LAB)
    assert not office.inspection._asking
    assert not office.inspection._known
    assert office.woken == []


async def test_the_first_answer_is_waited_for_only_for_a_moment(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "FIRST_WAIT", 0.05)
    answering = asyncio.Event()

    async def hang(request: web.Request, _: bytes) -> web.Response:
        await answering.wait()
        return web.Response(status=200)

    office.prism.answers[ME] = hang
    assert isinstance((await office.look()).outcome, Awaited)
    assert isinstance((await office.look()).outcome, Awaited)
    assert office.woken == []
    answering.set()
    await office.settled()
    assert office.woken == [LAB]
    assert isinstance((await office.look()).outcome, Accepted)
    assert office.asked == 1


async def test_an_unreachable_provider_is_told_as_that(office: Office) -> None:
    office.config = config("nutanix", endpoint="https://127.0.0.1:1")
    assert isinstance((await office.look()).outcome, ProviderUnreachable)
