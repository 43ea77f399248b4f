"""Azure: an access token for the application, in return for its secret."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from butler.providers.http import ask
from butler.providers.probes.question import FORM, form
from butler.rules.provider.probe_outcome import Accepted, CredentialsRefused, unexpected

if TYPE_CHECKING:
    from butler.providers.probes.question import ProbeQuestion
    from butler.rules.provider.probe_outcome import Outcome

_SCOPE: Final = "https://management.azure.com/.default"
_CODE: Final = re.compile(r"AADSTS[0-9]{4,10}")
_ADVICE: Final = {
    "AADSTS7000215": "clientSecret is wrong: give the secret's value, not its id",
    "AADSTS7000222": "clientSecret has expired: create a new one",
    "AADSTS700016": "tenantID has no application clientID: correct one of them",
    "AADSTS90002": "there is no tenant tenantID: correct it",
}
_REFUSALS: Final = ("invalid_client", "unauthorized_client", "invalid_grant", "access_denied")


async def probe(asked: ProbeQuestion) -> Outcome:
    given = asked.credentials
    reply = await ask(
        "POST",
        asked.clouds.azure.format(tenant=given["tenantID"]),
        headers={"Content-Type": FORM},
        body=form(
            grant_type="client_credentials",
            client_id=given["clientID"],
            client_secret=given["clientSecret"],
            scope=_SCOPE,
        ),
        tls=asked.clouds.tls,
        patience=asked.patience,
    )
    if reply.status == 200 and isinstance(reply.at("access_token"), str):
        return Accepted("Azure accepts the application's secret")
    # The description quotes ids and addresses; only its code is told.
    found = _CODE.search(str(reply.at("error_description")))
    code = found[0] if found else ""
    refused = reply.status == 400 and (reply.at("error") in _REFUSALS or code in _ADVICE)
    if reply.status in (401, 403) or refused:
        advice = _ADVICE.get(code, "correct clientID, clientSecret and tenantID in the Secret")
        return CredentialsRefused(f"Azure does not accept the application{f' ({code})' if code else ''}: {advice}")
    return unexpected(reply.status, "Azure")
