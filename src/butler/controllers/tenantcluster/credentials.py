"""The Secrets of providers, read when a cluster needs them and kept for a moment: many clusters cost one read."""

from __future__ import annotations

import base64
import binascii
import time
from typing import TYPE_CHECKING, Final

from butler.kube.resource import SECRETS, Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from butler.api.providerconfig import ProviderConfig
    from butler.kube.client import Client

KEPT: Final = 30.0


class Credentials:
    """What providers' Secrets hold. `clock` is monotonic."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._kept: dict[Key, tuple[float, Mapping[str, str]]] = {}

    async def of(self, provider: ProviderConfig) -> tuple[Key, Mapping[str, str]]:
        """Where the Secret is, and what it holds; NotFound when it is not there."""
        reference = provider.spec.credentials_ref
        if reference is None:
            return Key("", ""), {}
        key = Key(reference.namespace or provider.metadata.namespace, reference.name)
        kept = self._kept.get(key)
        if kept is None or self._clock() - kept[0] > KEPT:
            secret = await self._client.get(SECRETS, key.name, key.namespace)
            kept = self._kept[key] = (self._clock(), decoded(secret.get("data") or {}))
        return key, kept[1]


def decoded(data: Mapping[str, str]) -> Mapping[str, str]:
    """The texts in a Secret's data."""
    found = {}
    for name, value in data.items():
        try:
            found[name] = base64.b64decode(value).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue  # nothing that a provider reads is binary; the ProviderConfig says what is wrong with it
    return found
