"""Coming in through an OpenID provider: the code flow with PKCE, a state and a nonce.

What belongs to one login travels in a sealed cookie of the browser that began it, so that any replica can finish it
and no other browser can. The server keeps one thing of it: that it was used.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

import aiohttp
import msgspec

from butler.kube.errors import AlreadyExists
from butler.server.access.id_token import IdTokenClaims, NotLetIn, identity_of, verified
from butler.server.access.provider import OidcMetadata, OidcProviderClient, ProviderTrouble
from butler.server.access.records import Records, RecordStore
from butler.server.access.sessions import Identity

CALLBACK: Final = "/api/v1/login/oidc/callback"
PURPOSE: Final = "oidc login"
GOOD_FOR: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """Which provider, and who we are there."""

    issuer: str
    client_id: str
    client_secret_file: Path | None = None
    """None: the provider knows us without one, and PKCE alone keeps others out."""
    name: str = "your identity provider"
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    claims: IdTokenClaims = field(default_factory=IdTokenClaims)
    ca: Path | None = None


class _Login(msgspec.Struct, frozen=True):
    state: str
    nonce: str
    verifier: str
    expires: datetime
    then: str


class _Used(msgspec.Struct, frozen=True):
    expires: datetime


class Oidc:
    """Logins through one provider."""

    def __init__(self, store: RecordStore, settings: OidcSettings, url: str, *, now: Callable[[], datetime]) -> None:
        self.settings = settings
        self._used = Records(store, "login", _Used)
        self._key = store.key
        self._now = now
        self._provider = OidcProviderClient(settings.issuer, ca=settings.ca)
        self._redirect = f"{url}{CALLBACK}"

    async def begin(self, then: str) -> tuple[str, str]:
        """Where to send the browser, and what it has to bring back in its cookie; `then` is where it wanted to go."""
        metadata = await self._provider.metadata()
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        login = _Login(state, nonce, verifier, self._now() + GOOD_FOR, then)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(login.verifier.encode()).digest()).decode().rstrip("=")
        asked = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": self._redirect,
            "scope": " ".join(dict.fromkeys(("openid", *self.settings.scopes))),
            "state": login.state,
            "nonce": login.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        joined = "&" if "?" in metadata.authorization_endpoint else "?"
        return (
            f"{metadata.authorization_endpoint}{joined}{urlencode(asked)}",
            self._key.seal(PURPOSE, msgspec.json.encode(login)),
        )

    async def finish(self, cookie: str, *, state: str, code: str, issuer: str | None) -> tuple[Identity, str]:
        """Who it is, and where they wanted to go; raises `NotLetIn` or `ProviderTrouble`."""
        login = self._read(cookie)
        if login is None or not hmac.compare_digest(login.state.encode(), state.encode()):
            raise NotLetIn("this login was not begun in this browser, or took too long: begin again")
        metadata = await self._provider.metadata()
        if issuer != metadata.issuer and (
            issuer is not None or metadata.authorization_response_iss_parameter_supported
        ):
            raise NotLetIn("the answer came from another identity provider than was asked: begin again")
        token = await self._redeem(metadata, code, login.verifier)
        claims = await verified(token, self._provider, self.settings.client_id, login.nonce)
        await self._use_up(login)
        return identity_of(claims, self.settings.claims), login.then

    async def sweep(self) -> None:
        now = self._now()
        await self._used.sweep(lambda used: used.expires <= now, now)

    def _read(self, cookie: str) -> _Login | None:
        raw = self._key.unseal(PURPOSE, cookie)
        login = msgspec.json.decode(raw, type=_Login) if raw is not None else None
        return login if login is not None and login.expires > self._now() else None

    async def _redeem(self, metadata: OidcMetadata, code: str, verifier: str) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect,
            "client_id": self.settings.client_id,
            "code_verifier": verifier,
        }
        secret, headers = self._secret(), dict[str, str]()
        if secret:
            if "client_secret_basic" in metadata.token_endpoint_auth_methods_supported:
                headers["Authorization"] = aiohttp.encode_basic_auth(
                    *(quote(credential, safe="") for credential in (self.settings.client_id, secret))
                )
            else:
                form["client_secret"] = secret
        token = (await self._provider.redeem(form, headers)).get("id_token")
        if not isinstance(token, str):
            raise ProviderTrouble(f"{metadata.token_endpoint} gives no id_token: is the scope openid allowed there?")
        return token

    def _secret(self) -> str:
        # Read each time: a Secret that is mounted changes under us.
        path = self.settings.client_secret_file
        try:
            return path.read_text("utf-8").strip() if path is not None else ""
        except OSError as error:
            raise ProviderTrouble(f"{path} cannot be read: {error.strerror}") from error

    async def _use_up(self, login: _Login) -> None:
        """Even a provider that takes a code twice lets no user in twice."""
        name = f"butler-console-login-{hashlib.sha256(login.nonce.encode()).hexdigest()[:40]}"
        try:
            await self._used.create(name, _Used(login.expires))
        except AlreadyExists:
            raise NotLetIn("this login was used already: begin again") from None
