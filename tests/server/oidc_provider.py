"""A small OpenID provider with keys of its own, over real HTTP: strict about PKCE and codes, lax where tests say so."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

CLIENT = "butler console"  # with a blank, as names of clients are escaped on the wire
SECRET = "test secret: not one of a real provider"


@dataclass
class Signer:
    kid: str
    alg: str
    private: Any

    @classmethod
    def rsa(cls, kid: str) -> Signer:
        return cls(kid, "RS256", rsa.generate_private_key(65537, 2048))

    @classmethod
    def ec(cls, kid: str) -> Signer:
        return cls(kid, "ES256", ec.generate_private_key(ec.SECP256R1()))

    def public(self) -> dict[str, Any]:
        algorithm: Any = RSAAlgorithm if self.alg == "RS256" else ECAlgorithm
        shown = algorithm.to_jwk(self.private.public_key(), as_dict=True)
        return {**shown, "kid": self.kid, "use": "sig", "alg": self.alg}


@dataclass
class OidcProvider:
    """Issues `claims` to every user who logs in."""

    claims: dict[str, Any] = field(default_factory=lambda: {"sub": "ada", "groups": ["platform"]})
    signer: Signer = field(default_factory=lambda: Signer.rsa("first"))
    spoil: Callable[[dict[str, Any]], None] | None = None
    """Changes the claims of a token before it is signed."""
    sign: Callable[[dict[str, Any]], str] | None = None
    """Signs in another way."""
    takes_codes_twice: bool = False
    asked: list[dict[str, str]] = field(default_factory=list)
    key_fetches: int = 0

    async def __aenter__(self) -> OidcProvider:
        self._codes: dict[str, dict[str, str]] = {}
        app = web.Application()
        app.router.add_get("/.well-known/openid-configuration", self._discovery)
        app.router.add_get("/keys", self._keys)
        app.router.add_get("/authorize", self._authorize)
        app.router.add_post("/token", self._token)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.issuer = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _discovery(self, _: web.Request) -> web.Response:
        return web.json_response(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "id_token_signing_alg_values_supported": ["RS256", "ES256", "none", "HS256"],
            }
        )

    async def _keys(self, _: web.Request) -> web.Response:
        self.key_fetches += 1
        stranger = {"kty": "something new", "kid": "x"}
        return web.json_response({"keys": [stranger, self.signer.public()]})

    async def _authorize(self, request: web.Request) -> web.Response:
        asked = dict(request.query)
        self.asked.append(asked)
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked
        back = urlencode({"code": code, "state": asked["state"]})
        return web.Response(status=302, headers={"Location": f"{asked['redirect_uri']}?{back}"})

    async def _token(self, request: web.Request) -> web.Response:
        form = await request.post()
        expected = f"{quote(CLIENT, safe='')}:{quote(SECRET, safe='')}"
        if request.headers.get("Authorization") != f"Basic {base64.b64encode(expected.encode()).decode()}":
            return web.json_response({"error": "invalid_client"}, status=401)
        code = str(form["code"])
        asked = self._codes.get(code) if self.takes_codes_twice else self._codes.pop(code, None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(str(form["code_verifier"]).encode()).digest())
        if asked is None or challenge.decode().rstrip("=") != asked["code_challenge"]:
            return web.json_response({"error": "invalid_grant"}, status=400)
        return web.json_response({"access_token": "x", "token_type": "Bearer", "id_token": self._id_token(asked)})

    def _id_token(self, asked: dict[str, str]) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            **self.claims,
        }
        if self.spoil is not None:
            self.spoil(claims)
        if self.sign is not None:
            return self.sign(claims)
        return jwt.encode(claims, self.signer.private, self.signer.alg, headers={"kid": self.signer.kid})


def unsigned(claims: dict[str, Any]) -> str:
    """A token with `alg: none`."""
    return _written({"alg": "none", "typ": "JWT"}, claims) + "."


def with_shared_secret(claims: dict[str, Any], secret: bytes, kid: str) -> str:
    """A token with `alg: HS256`, by hand, as libraries refuse to sign with a public key."""
    said = _written({"alg": "HS256", "typ": "JWT", "kid": kid}, claims)
    return f"{said}.{_text(hmac.digest(secret, said.encode(), 'sha256'))}"


def _written(*parts: dict[str, Any]) -> str:
    return ".".join(_text(json.dumps(part).encode()) for part in parts)


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
