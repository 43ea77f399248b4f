"""Admission as a part of the controller process: its server, its certificate and its registration, from start to stop.

Every replica serves, leader or not: `add_admission` makes it a service of the operator. What is answered is decided in
`admission`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from butler.api import HOME_NAMESPACE
from butler.kube.errors import KubeError
from butler.kube.retry import Backoff
from butler.providers.teams import NAMESPACE_HEADS, WITH_A_TEAM, Teams
from butler.webhooks import registration
from butler.webhooks.admission import ALLOCATIONS, POOLS, PROVIDERS, AdmissionWebhook
from butler.webhooks.certificates import FromFiles, FromSecret, SelfMade, UnusableCertificate
from butler.webhooks.registration import AtService, AtUrl, Installed
from butler.webhooks.secret_path import OwnPaths, SharedPaths
from butler.webhooks.server import AdmissionServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from butler.kube.client import Client
    from butler.kube.operator import Operator
    from butler.webhooks.certificates import Source
    from butler.webhooks.secret_path import PathSource

log = logging.getLogger(__name__)

_GOODBYE: Final = 3.0
_AGAIN: Final = Backoff(first=0.2, cap=10.0)
_SECRET: Final = "butler-webhook-certificate"  # noqa: S105 (a name)
_PATH_SECRET: Final = "butler-webhook-path"  # noqa: S105 (a name)
UPGRADE: Final = 300.0
"""Seconds in which the replicas of a version without a secret in the path are replaced, after one of ours started."""


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    """How one process serves admission. Without a service it is for one machine, and leaves no trace at its end."""

    namespace: str = ""
    """Only objects of this namespace; all when empty."""
    host: str = "127.0.0.1"
    port: int = 0
    service: AtService | None = None
    """The Service in front of the replicas; their certificate is then shared through a Secret."""
    certificate: Path | None = None
    key: Path | None = None
    authorities: Path | None = None
    """Files that another program maintains, in place of a certificate of our own."""
    name: str = registration.NAME
    """Of the ValidatingWebhookConfiguration."""
    home_namespace: str = HOME_NAMESPACE


class AdmissionService:
    """Server and registration of one process, from start to stop."""

    def __init__(self, client: Client, admission: AdmissionWebhook, settings: AdmissionSettings) -> None:
        self._client = client
        self._settings = settings
        self._outdated = asyncio.Event()
        self._rng = random.Random()  # noqa: S311  # jitter, not secrets
        self._upgrade = UPGRADE
        self.installed: Installed | None = None
        self.why_unready = "the admission webhooks are starting"
        self.server = AdmissionServer(
            admission.decide,
            _source(client, settings),
            host=settings.host,
            port=settings.port,
            on_registration=self._outdated.set,
            paths=_path_source(client, settings),
        )

    async def run(self) -> None:
        """Serve and stay registered until cancelled; then, on a machine of one's own, take the registration back."""
        await self._insist(self.server.start, "the admission webhooks cannot be served")
        try:
            await self._insist(self._wait_for_upgrade, "the admission webhooks cannot be registered")
            while True:
                self._outdated.clear()
                await self._insist(self._register, "the admission webhooks cannot be registered")
                self.why_unready = ""
                await self._outdated.wait()
        finally:
            # First the registration, then the server: the other way round, writes in between would be refused.
            if self._settings.service is None and self.installed is not None:
                await self._withdraw(self.installed)
            await self.server.stop()

    async def _wait_for_upgrade(self) -> None:
        """Leave alone what replicas of an older version registered, until they are replaced: a Deployment is rolled.

        They know no secret in the path, nor all kinds that we have rules for. Meanwhile we answer as they do.
        """
        if self._settings.service is None or not await registration.has_bare_path(self._client, self._settings.name):
            return
        log.info("an older version serves admission too: its registration is replaced in %.0f s", self._upgrade)
        self.why_unready, self.server.takes_bare_path = "", True
        await asyncio.sleep(self._upgrade)
        # API servers hear of the new configuration a moment after it is written.
        asyncio.get_running_loop().call_later(self._upgrade, setattr, self.server, "takes_bare_path", False)

    async def _register(self) -> None:
        service = self._settings.service
        reach = replace(service, path=self.server.path) if service else AtUrl(self.server.url)
        wanted = registration.configuration(
            reach, self.server.ca_bundle, name=self._settings.name, namespace=self._settings.namespace
        )
        self.installed = await registration.install(self._client, wanted)

    async def _withdraw(self, installed: Installed) -> None:
        try:
            await registration.remove(self._client, installed, timeout=_GOODBYE)
        except KubeError as error:
            log.warning(
                "writes to pools and providers are refused until Butler runs again, or after:"
                " kubectl delete validatingwebhookconfiguration %s (%s)",
                installed.name,
                error,
            )

    async def _insist(self, work: Callable[[], Awaitable[None]], trouble: str) -> None:
        """Try until it works: an API server that is not there yet is no reason to end the process."""
        attempt = 0
        while True:
            try:
                await work()
            except (KubeError, UnusableCertificate) as error:
                if self.why_unready != f"{trouble}: {error}":
                    log.warning("%s: %s", trouble, error)
                self.why_unready = f"{trouble}: {error}"
            else:
                return
            await asyncio.sleep(_AGAIN.delay(attempt, self._rng))
            attempt += 1


def _source(client: Client, settings: AdmissionSettings) -> Source:
    if settings.certificate is not None and settings.key is not None:
        return FromFiles(settings.certificate, settings.key, settings.authorities)
    if settings.service is not None:
        return FromSecret(client, settings.home_namespace, _SECRET, settings.service.hosts)
    return SelfMade(dict.fromkeys((settings.host, "127.0.0.1", "::1", "localhost")))


def _path_source(client: Client, settings: AdmissionSettings) -> PathSource:
    if settings.service is None:
        return OwnPaths()
    return SharedPaths(client, settings.home_namespace, _PATH_SECRET)


def add_admission(operator: Operator, settings: AdmissionSettings | None = None) -> AdmissionService:
    """Let an operator serve admission from its start to its stop.

    Add the controllers first, because the first to ask for a cache sets its options.
    """
    settings = settings or AdmissionSettings()
    admission = AdmissionWebhook(
        operator.client,
        operator.cache(POOLS, namespace=settings.namespace),
        operator.cache(ALLOCATIONS, namespace=settings.namespace),
        providers=operator.cache(PROVIDERS),
        teams=Teams(operator.cache(NAMESPACE_HEADS, label_selector=WITH_A_TEAM)),
        namespace=settings.namespace,
        home=settings.home_namespace,
        events=operator.events,
    )
    service = AdmissionService(operator.client, admission, settings)
    operator.add_service(service.run, why_unready=lambda: service.why_unready)
    return service
