"""An OpenID provider as it describes itself: where its pages are, and the keys that it signs with.

Both are fetched when they are needed and kept for a while; a signature by a key that is not known yet has the keys
fetched again, though not more often than `KEYS_AT_MOST`, or any client could make us ask all day.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import msgspec
from jwt import PyJWK
from jwt.exceptions import PyJWKError

from butler.kube.recent_results import RecentResults
from butler.server.access.public_url import is_loopback

KEEP: Final = 3600.0
KEYS_AT_MOST: Final = 10.0
LONGEST: Final = 1_000_000
TIMEOUT: Final = aiohttp.ClientTimeout(total=10)


class ProviderTrouble(Exception):
    """The provider does not answer, or not as it should; a sentence for the log."""


class OidcMetadata(msgspec.Struct, frozen=True):
    """What we need of the discovery document."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    id_token_signing_alg_values_supported: tuple[str, ...] = ("RS256",)
    authorization_response_iss_parameter_supported: bool = False


class _Keys(msgspec.Struct, frozen=True):
    keys: list[dict[str, Any]]


class OidcProviderClient:
    """One provider."""

    def __init__(self, issuer: str, *, ca: Path | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.issuer = issuer
        self._ca = ca
        self._recent = RecentResults(KEEP, clock=clock)

    async def metadata(self) -> OidcMetadata:
        return await self._recent.of("metadata", self._fetch_metadata)

    async def _fetch_metadata(self) -> OidcMetadata:
        url = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
        found: OidcMetadata = self._read(await self._get(url), OidcMetadata)
        if found.issuer != self.issuer:
            raise ProviderTrouble(f"{self.issuer} says that it is {found.issuer}: give --oidc-issuer as it does")
        for endpoint in (found.authorization_endpoint, found.token_endpoint, found.jwks_uri):
            need_safe(endpoint)
        return found

    async def key(self, kid: str | None, alg: str) -> PyJWK:
        """The key that a signature names."""
        for fresh in (False, True):
            keys = await self._recent.of("keys", self._fetch_keys, within=KEYS_AT_MOST if fresh else KEEP)
            fitting = [
                py_jwk for py_jwk in keys if (kid is None or py_jwk.key_id == kid) and py_jwk.algorithm_name == alg
            ]
            if len(fitting) == 1:
                return fitting[0]
        raise ProviderTrouble(f"{self.issuer} has no key {kid!r} for {alg}")

    async def _fetch_keys(self) -> list[PyJWK]:
        found = self._read(await self._get((await self.metadata()).jwks_uri), _Keys)
        return _usable(found.keys)

    async def redeem(self, form: dict[str, str], headers: dict[str, str]) -> dict[str, Any]:
        """What the token endpoint answers."""
        endpoint = (await self.metadata()).token_endpoint
        answer: dict[str, Any] = self._read(
            await self._fetch("POST", endpoint, data=form, headers=headers), dict[str, Any]
        )
        return answer

    async def _get(self, url: str) -> bytes:
        need_safe(url)
        return await self._fetch("GET", url)

    async def _fetch(self, method: str, url: str, **options: Any) -> bytes:
        # Redirects are not followed: no other server gets to see what is sent here, or to answer for the provider.
        tls = ssl.create_default_context(cafile=self._ca) if self._ca else True
        try:
            async with (
                aiohttp.ClientSession(timeout=TIMEOUT, headers={"Accept": "application/json"}) as session,
                session.request(method, url, allow_redirects=False, ssl=tls, **options) as answer,
            ):
                if answer.status != 200:
                    raise ProviderTrouble(f"{_without_query(url)} answers HTTP {answer.status}")
                body = bytearray()
                async for chunk in answer.content.iter_chunked(65536):
                    body += chunk
                    if len(body) > LONGEST:
                        raise ProviderTrouble(f"{_without_query(url)} answers more than {LONGEST} bytes")
                return bytes(body)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ProviderTrouble(f"{_without_query(url)} cannot be reached: {error or 'no answer in time'}") from error

    def _read(self, raw: bytes, kind: Any) -> Any:
        try:
            return msgspec.json.decode(raw, type=kind)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise ProviderTrouble(f"{self.issuer} answers what is not understood: {error}") from error


def need_safe(url: str) -> None:
    """Only https is spoken with a provider, but for one on this very machine."""
    at = urlsplit(url)
    if at.scheme == "https" and at.hostname:
        return
    if at.scheme == "http" and is_loopback(at.hostname or ""):
        return
    raise ProviderTrouble(f"{_without_query(url)} is not https, and passwords travel there")


def _usable(keys: list[dict[str, Any]]) -> list[PyJWK]:
    """Public keys for signatures; others, and kinds that are unknown here, are passed over as the standard says."""
    found = []
    for key in keys:
        if key.get("use", "sig") != "sig" or key.get("kty") == "oct":
            continue
        for alg in _ALGORITHMS.get(str(key.get("kty")), ()) if "alg" not in key else (None,):
            try:
                found.append(PyJWK.from_dict(key, alg))
            except (PyJWKError, ValueError, TypeError):
                continue
    return found


_ALGORITHMS: Final[dict[str, tuple[str, ...]]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}


def _without_query(url: str) -> str:
    return url.partition("?")[0]
