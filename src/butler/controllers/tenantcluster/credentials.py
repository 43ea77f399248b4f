"""The Secrets of providers, read when a cluster needs them and kept for a moment: many clusters cost one read."""

from __future__ import annotations

import asyncio
import base64
import binascii
import time
from typing import TYPE_CHECKING, Final

from butler.api.objects import Key, annotations_of
from butler.kube.recent_results import RecentResults
from butler.kube.resource import SECRETS
from butler.providers.credentials import server_in
from butler.rules.provider.settings import secret_key, secret_not_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from butler.api.providerconfig import ProviderConfig
    from butler.kube.client import Client

KEPT: Final = 30.0


class NotAllowed(Exception):
    """A Secret that the ProviderConfig may not use, and why."""


class Credentials:
    """What providers' Secrets hold. `clock` is monotonic."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._recent = RecentResults(KEPT, clock=clock)

    async def of(self, provider: ProviderConfig) -> tuple[Key, Mapping[str, str]]:
        """Where the Secret is, and what it holds; NotFound when it is not there, NotAllowed when it is not for this."""
        key = secret_key(provider)
        if key is None:
            return Key("", ""), {}
        annotations, texts = await self._recent.of(key, lambda: self._read(key))
        server = None
        if provider.spec.harvester is not None and provider.spec.harvester.endpoint:
            server = await asyncio.to_thread(server_in, provider, {name: text.encode() for name, text in texts.items()})
        if why_not := secret_not_for(provider, annotations, server):
            raise NotAllowed(why_not)
        return key, texts

    async def _read(self, key: Key) -> tuple[Mapping[str, str], Mapping[str, str]]:
        secret = await self._client.get(SECRETS, key.name, key.namespace)
        return annotations_of(secret), decoded(secret.get("data") or {})


def decoded(data: Mapping[str, str]) -> Mapping[str, str]:
    """The texts in a Secret's data."""
    found = {}
    for name, value in data.items():
        try:
            found[name] = base64.b64decode(value).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue  # nothing that a provider reads is binary; the ProviderConfig says what is wrong with it
    return found
