"""Google Cloud: an access token for the service account, in return for a statement signed with its key.

The key's file names the address to ask. It is not followed: a statement goes to Google or nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import jwt
import msgspec

from butler.providers.credentials import SERVICE_ACCOUNT_KEY, ServiceAccountKey, private_key
from butler.providers.http import ask
from butler.providers.probes.question import FORM, form
from butler.rules.provider.probe_outcome import Accepted, CredentialsRefused, Unclear, unexpected

if TYPE_CHECKING:
    from datetime import datetime

    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    from butler.providers.probes.question import ProbeQuestion
    from butler.rules.provider.probe_outcome import Outcome

_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_SECONDS: Final = 600
_REFUSALS: Final = ("invalid_grant", "invalid_client", "unauthorized_client", "access_denied")


async def probe(asked: ProbeQuestion) -> Outcome:
    key = msgspec.json.decode(asked.credentials[SERVICE_ACCOUNT_KEY], type=ServiceAccountKey)
    if key.universe_domain != "googleapis.com":
        return Unclear("the key is for another Google cloud than the public one, which Butler cannot ask")
    signer = private_key(key)
    assert signer is not None, "checked before"
    url = asked.clouds.gcp
    reply = await ask(
        "POST",
        url,
        headers={"Content-Type": FORM},
        body=form(grant_type=_GRANT, assertion=statement(key, signer, url, asked.now)),
        tls=asked.clouds.tls,
        patience=asked.patience,
    )
    if reply.status == 200 and isinstance(reply.at("access_token"), str):
        return Accepted("Google Cloud accepts the service account's key")
    error, description = reply.at("error"), reply.at("error_description")
    if error == "invalid_grant" and "iat and exp" in str(description):
        return Unclear("Google finds that the clock of this machine is wrong, and looks at nothing else: set the clock")
    if reply.status in (401, 403) or (reply.status == 400 and error in _REFUSALS):
        why = f" ({error})" if error in _REFUSALS else ""
        return CredentialsRefused(f"Google Cloud does not accept the service account's key{why}: create a new key")
    return unexpected(reply.status, "Google Cloud")


def statement(key: ServiceAccountKey, signer: RSAPrivateKey, audience: str, now: datetime) -> str:
    """A JSON web token that says who asks whom for what, good for some minutes."""
    issued = int(now.timestamp())
    claims = {
        "iss": key.client_email,
        "scope": _SCOPE,
        "aud": audience,
        "iat": issued,
        "exp": issued + _SECONDS,
    }
    return jwt.encode(claims, signer, algorithm="RS256", headers={"kid": key.private_key_id})
