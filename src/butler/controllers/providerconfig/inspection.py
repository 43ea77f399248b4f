"""Looking at a provider: its Secret is read, checked, and shown to the provider itself.

What came of it is remembered for as long as the ProviderConfig and the Secret stay the same, without the Secret's
content. The first answer about something new is waited for, but only for a moment, as most come within one and spare
a second status; all other answers are awaited in the background, and wake the controller when they bring news. So a
provider that hangs delays no other. One that refused is asked again after a longer pause, since every wrong try counts
against an account.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from butler.api.labels import ProviderReason
from butler.api.objects import Key, annotations_of, key_of, uid_of, version_of
from butler.kube.absence import read
from butler.kube.errors import Forbidden
from butler.kube.resource import SECRETS
from butler.providers import credentials
from butler.providers.probe import can_be_asked, probe
from butler.rules.provider.probe_outcome import Accepted, Awaited, CredentialsRefused, Outcome
from butler.rules.provider.settings import foreign_secret, secret_key, secret_not_for, settings_problems
from butler.rules.provider.status import SecretState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from butler.api.providerconfig import ProviderConfig
    from butler.controllers.providerconfig.settings import ProviderSettings
    from butler.kube.client import Client

FIRST_WAIT: Final = 2.0
"""Seconds for which the first answer is waited for, before the status is written without it."""
JITTER: Final = 0.1
"""By how much of its length a wait differs, so that providers are not all asked in the same moment."""


@dataclass(slots=True)
class Known:
    """What came of the last look."""

    subject: tuple[str, int]
    """Which ProviderConfig, and which generation of it."""
    version: str
    """Which Secret, and which version of it."""
    state: SecretState
    outcome: Outcome | None
    refusal: CredentialsRefused | None
    due: float
    """When to look again."""
    is_waited_for: bool = False
    """Whether a reconcile waits for the answer, and needs no waking."""


@dataclass(frozen=True, slots=True)
class _Secret:
    state: SecretState
    version: str
    data: Mapping[str, bytes]


class Inspection:
    """Looks at providers, and remembers. `wake` is called when a look in the background brought news."""

    def __init__(
        self,
        client: Client,
        settings: ProviderSettings,
        wake: Callable[[Key], None],
        now: Callable[[], datetime],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._settings = settings
        self._wake = wake
        self._now = now
        self._clock = clock
        self._known: dict[Key, Known] = {}
        self._stale: set[Key] = set()
        self._asking: dict[Key, asyncio.Task[None]] = {}
        self._rng = random.Random()  # noqa: S311  # jitter, not secrets

    def secret_changed(self, config: Key) -> None:
        """Read the Secret again at the next look."""
        self._stale.add(config)

    def forget(self, config: Key) -> None:
        """The ProviderConfig is gone, or going."""
        self._stale.discard(config)
        self._drop(config)

    def _drop(self, config: Key) -> None:
        self._known.pop(config, None)
        if (task := self._asking.pop(config, None)) is not None:
            task.cancel()

    async def run(self) -> None:
        """Until cancelled; then no provider is asked any more, and everything is inspected afresh the next time."""
        try:
            await asyncio.Event().wait()
        finally:
            for key in list(self._known):
                self.forget(key)

    async def look(self, config: ProviderConfig) -> tuple[Known, float]:
        """What is known about a provider, and in how many seconds to look again."""
        key, subject = key_of(config), (config.metadata.uid, config.metadata.generation)
        known = self._known.get(key)
        if known is not None and known.subject != subject:
            known = None
        due = known is None or self._clock() >= known.due
        if known is None or due or key in self._stale:
            self._stale.discard(key)  # before the read: what changes during it is news again
            try:
                secret = await self._read(config)
            except BaseException:
                self._stale.add(key)
                raise
            if known is None or known.version != secret.version or known.state != secret.state:
                self._drop(key)
                known = self._known[key] = Known(subject, secret.version, secret.state, None, None, 0.0)
                self._put_off(known)
                if _can_be_asked(config, secret):
                    known.outcome, known.is_waited_for = Awaited(), True
                    try:
                        await asyncio.wait({self._ask(key, config, secret, known)}, timeout=FIRST_WAIT)
                    finally:
                        known.is_waited_for = False
            elif due:
                self._put_off(known)
                if known.outcome is not None and key not in self._asking:
                    self._ask(key, config, secret, known)
        return known, max(0.0, known.due - self._clock())

    def _put_off(self, known: Known) -> None:
        every = (
            self._settings.refused_every if isinstance(known.outcome, CredentialsRefused) else self._settings.look_every
        )
        known.due = self._clock() + every * (1 + self._rng.uniform(-JITTER, JITTER))

    async def _read(self, config: ProviderConfig) -> _Secret:
        key = secret_key(config)
        if key is None:
            return _without(ProviderReason.NOT_NEEDED, f"provider {config.spec.provider} needs no credentials")
        foreign = foreign_secret(config.spec, config.metadata.namespace, self._settings.home_namespace)
        if foreign is not None:
            return _without(ProviderReason.SECRET_NOT_ALLOWED, f"{foreign.field}: {foreign.message}")
        try:
            secret = await read(self._client, SECRETS, key)
        except Forbidden:
            return _without(
                ProviderReason.SECRET_UNREADABLE, f"Butler may not read Secret {key}: give its role the right to"
            )
        if not_for := secret_not_for(config, annotations_of(secret) if secret is not None else {}):
            # In the same words where there is none: the message must not reveal whether it exists.
            return _without(ProviderReason.SECRET_NOT_ALLOWED, f"Secret {key}: {not_for}")
        if secret is None:
            keys = " and ".join(credentials.needed_keys(config))
            return _without(ProviderReason.SECRET_NOT_FOUND, f"Secret {key} does not exist: create it with {keys}")
        version = f"{uid_of(secret)}/{version_of(secret)}"
        data = credentials.decode_data(secret.get("data"))
        # In a thread, because the YAML of a kubeconfig can be made to take long.
        problems = await asyncio.to_thread(credentials.check, config, data)
        if problems:
            return _Secret(SecretState(ProviderReason.MALFORMED, f"Secret {key}: {'; '.join(problems)}"), version, {})
        server = await asyncio.to_thread(credentials.server_in, config, data)
        if not_for := secret_not_for(config, annotations_of(secret), server):
            return _without(ProviderReason.SECRET_NOT_ALLOWED, f"Secret {key}: {not_for}")
        complete = SecretState(
            ProviderReason.COMPLETE, f"Secret {key} holds what provider {config.spec.provider} needs"
        )
        return _Secret(complete, version, data)

    def _ask(self, key: Key, config: ProviderConfig, secret: _Secret, known: Known) -> asyncio.Task[None]:
        asking = self._asking[key] = asyncio.create_task(self._take_in_answer(key, config, secret, known))
        return asking

    async def _take_in_answer(self, key: Key, config: ProviderConfig, secret: _Secret, known: Known) -> None:
        outcome = await probe(config, secret.data, now=self._now(), clouds=self._settings.clouds)
        if self._known.get(key) is not known:
            return
        self._asking.pop(key, None)
        changed = outcome != known.outcome
        known.outcome = outcome
        if isinstance(outcome, CredentialsRefused):
            known.refusal = outcome
            self._put_off(known)
        elif isinstance(outcome, Accepted):
            known.refusal = None
        if changed and not known.is_waited_for:
            self._wake(key)


def _can_be_asked(config: ProviderConfig, secret: _Secret) -> bool:
    """Whether there is a server to ask, at an address that makes sense, and something to show."""
    return secret.state.complete and can_be_asked(config.spec.provider) and not settings_problems(config.spec)


def _without(reason: ProviderReason, message: str) -> _Secret:
    return _Secret(SecretState(reason, message), "", {})
