"""What a provider says of a user, and who that is to Kubernetes. Checks everything, believes nothing else."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Any, Final

import jwt
from jwt.exceptions import InvalidTokenError

from butler.server.access.provider import OidcProviderClient
from butler.server.access.sessions import RESERVED, Identity

ALGORITHMS: Final = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
"""Signatures with a key that only the provider has. `none` and shared secrets are not among them."""
LEEWAY: Final = 60
MOST_GROUPS: Final = 500
LONGEST_NAME: Final = 253
KEPT: Final = (RESERVED, "butler:", "kubeadm:")
"""How names begin that already mean something in a cluster: an identity provider gives no user such a name."""


class NotLetIn(Exception):
    """Why a user whom the provider sent is not let in, in a sentence for them."""


@dataclass(frozen=True, slots=True)
class IdTokenClaims:
    """Which claims tell who a user is, and what stands before what they say."""

    user: str = "sub"
    groups: str = "groups"
    user_prefix: str = "oidc:"
    groups_prefix: str = "oidc:"


async def verified(token: str, provider: OidcProviderClient, client_id: str, nonce: str) -> dict[str, Any]:
    """The claims of an ID token that was signed by the provider, for us, for this login, and is still good."""
    try:
        header = jwt.get_unverified_header(token)
        alg = header.get("alg")
        offered = (await provider.metadata()).id_token_signing_alg_values_supported
        if alg not in ALGORITHMS or alg not in offered:
            raise NotLetIn("the identity provider signed in a way that is not accepted")
        key = await provider.key(header.get("kid"), alg)
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[alg],
            audience=client_id,
            issuer=provider.issuer,
            leeway=LEEWAY,
            options={"require": ["exp", "iat", "iss", "aud", "sub"]},
        )
    except InvalidTokenError as error:
        raise NotLetIn(f"what the identity provider said is not valid ({error})") from error
    audience = claims["aud"]
    party = claims.get("azp")
    if (isinstance(audience, list) and len(audience) > 1 and party is None) or party not in (None, client_id):
        raise NotLetIn("what the identity provider said was meant for another application")
    said = claims.get("nonce")
    if not isinstance(said, str) or not hmac.compare_digest(said.encode(), nonce.encode()):
        raise NotLetIn("what the identity provider said belongs to another login")
    return claims


def identity_of(claims: dict[str, Any], wanted: IdTokenClaims) -> Identity:
    """Who the claims say it is. Pure."""
    name = claims.get(wanted.user)
    if not isinstance(name, str):
        raise NotLetIn(f"the identity provider does not say who you are: the claim {wanted.user} is missing")
    if wanted.user == "email" and claims.get("email_verified") is not True:
        # Many providers let people write any address into their profile: without this word it says nothing.
        raise NotLetIn("the identity provider does not say that it has verified your mail address: have it do that")
    groups = claims.get(wanted.groups, [])
    if isinstance(groups, str):
        groups = [groups]
    if not isinstance(groups, list) or len(groups) > MOST_GROUPS or not all(isinstance(group, str) for group in groups):
        raise NotLetIn(f"the claim {wanted.groups} is not a list of up to {MOST_GROUPS} names")
    for group in (name, *groups):
        _need_plain(group)
    every = tuple(_prefixed(wanted.groups_prefix, group) for group in groups)
    return Identity(_prefixed(wanted.user_prefix, name), every, "oidc")


def _need_plain(name: str) -> None:
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise NotLetIn("a name that the identity provider gave cannot be one in Kubernetes")
    if name.lower().startswith(RESERVED):
        raise NotLetIn(f"{name} is a name that Kubernetes keeps for itself: no person may log in with it")


def _prefixed(prefix: str, name: str) -> str:
    found = f"{prefix}{name}"
    if found.lower().startswith(KEPT):
        raise NotLetIn(f"{found} is a name that Kubernetes or Butler keeps for itself: choose another prefix")
    return found
