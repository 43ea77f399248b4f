"""Who is asking.

A request proves who it is with a client certificate, a static token or a service account's token; each is one
function of what came with the request. What becomes of a request without a proof, or with a wrong one, is the
server's to decide (`server.py`).

Tokens are kept as SHA-256 digests and compared as digests: the table cannot be read back, and the time a lookup
takes says nothing about a token. Nothing here logs or repeats a token.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

AUTHENTICATED: Final = "system:authenticated"
MASTERS: Final = "system:masters"
SERVICE_ACCOUNT_PREFIX: Final = "system:serviceaccount:"
SERVICE_ACCOUNTS: Final = "system:serviceaccounts"


@dataclass(slots=True, frozen=True)
class User:
    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)

    def info(self) -> dict[str, object]:
        """The user as reviews and admission requests carry it."""
        found: dict[str, object] = {"username": self.name}
        if self.uid:
            found["uid"] = self.uid
        if self.groups:
            found["groups"] = list(self.groups)
        if self.extra:
            found["extra"] = {key: list(values) for key, values in self.extra.items()}
        return found


def authenticated(user: User) -> User:
    """The user as a member of `system:authenticated`, the group of all users whose credentials were accepted."""
    if AUTHENTICATED in user.groups:
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED))


def service_account(
    namespace: str, name: str, uid: str = "", extra: Mapping[str, tuple[str, ...]] | None = None
) -> User:
    """The user that a service account is."""
    return User(
        f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}",
        uid,
        (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}"),
        extra or {},
    )


def token_digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def bearer_token(authorization: str) -> str:
    """The token of an `Authorization` header; empty if it carries none."""
    scheme, _, token = authorization.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


@dataclass(slots=True)
class Authenticator:
    """The proofs one logical cluster accepts.

    `tokens` maps a token's digest to its user. `verify_token` is asked about every other token that looks like a
    JWT and returns the service account's user, or None.
    """

    tokens: dict[str, User] = field(default_factory=dict)
    verify_token: Callable[[str], User | None] = lambda _: None

    def by_token(self, token: str) -> User | None:
        found = self.tokens.get(token_digest(token))
        if found is None and token.count(".") == 2:
            found = self.verify_token(token)
        return authenticated(found) if found else None

    def user(self, *, authorization: str = "", certificate: tuple[str, tuple[str, ...]] | None = None) -> User | None:
        """The user behind a request: a verified certificate's (CN, Os) first, then the bearer token."""
        if certificate and certificate[0]:
            return authenticated(User(certificate[0], groups=certificate[1]))
        token = bearer_token(authorization)
        return self.by_token(token) if token else None
