"""Tokens of service accounts: signed claims that say which account, in which logical cluster, until when."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

if TYPE_CHECKING:
    from kubeserver.pki import Pki

Json = dict[str, Any]

_SHORTEST: Final = 600
_LONGEST: Final = 1 << 32
_USUAL: Final = 3600


@dataclass(slots=True, frozen=True)
class Claims:
    """What a verified token says."""

    namespace: str
    name: str
    uid: str


class TokenIssuer:
    """Signs and verifies the tokens of one logical cluster; a token of another one is not recognised."""

    def __init__(self, pki: Pki, issuer: str) -> None:
        self._pki = pki
        self.issuer = issuer

    def issue(self, account: Json, seconds: int | None, audiences: list[str] | None) -> tuple[str, int, float]:
        """A token for a ServiceAccount object, for how many seconds, and when it expires."""
        metadata = account["metadata"]
        now = time.time()
        lifetime = min(max(seconds or _USUAL, _SHORTEST), _LONGEST)
        expires = now + lifetime
        claims = {
            "iss": self.issuer,
            "aud": audiences or [self.issuer],
            "sub": f"system:serviceaccount:{metadata['namespace']}:{metadata['name']}",
            "iat": int(now),
            "nbf": int(now),
            "exp": int(expires),
            "jti": str(uuid4()),
            "kubernetes.io": {
                "namespace": metadata["namespace"],
                "serviceaccount": {"name": metadata["name"], "uid": metadata["uid"]},
            },
        }
        return self._pki.sign_token(claims), lifetime, expires

    def verified(self, token: str) -> Claims | None:
        """Whom a token stands for; None if it is not ours, not for us, or no longer valid."""
        claims = self._pki.verify_token(token)
        if claims is None or claims.get("iss") != self.issuer or self.issuer not in (claims.get("aud") or ()):
            return None
        if not claims.get("nbf", 0) <= time.time() < claims.get("exp", 0):
            return None
        account = claims["kubernetes.io"]
        return Claims(account["namespace"], account["serviceaccount"]["name"], account["serviceaccount"]["uid"])
