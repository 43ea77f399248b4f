"""Proxmox VE: a login with user and password, or an API token as it is, then the version."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from butler.providers.outcomes import Accepted, Refused, Unclear, unexpected, version_text
from butler.providers.probes.asked import FORM, form
from butler.providers.settings import proxmox_url
from butler.providers.web import ask

if TYPE_CHECKING:
    from butler.providers.outcomes import Outcome
    from butler.providers.probes.asked import Asked


async def probe(asked: Asked) -> Outcome:
    settings = asked.spec.proxmox
    assert settings is not None, "the schema asks for the block of the provider"
    base, tls = f"{proxmox_url(settings)}/api2/json", asked.trust(insecure=settings.insecure)
    username, password = asked.credentials["username"], asked.credentials["password"]
    if "!" in username:
        headers = {"Authorization": f"PVEAPIToken={username}={password}"}
        refusal = Refused("Proxmox does not accept the API token: correct username (user@realm!token) and password")
    else:
        refusal = Refused("Proxmox does not accept username and password: correct them in the Secret")
        login = await ask(
            "POST",
            f"{base}/access/ticket",
            headers={"Content-Type": FORM},
            body=form(username=username, password=password),
            tls=tls,
            patience=asked.patience,
        )
        if login.status in (401, 403):
            return refusal
        ticket = login.at("data", "ticket")
        if login.status != 200:
            return unexpected(login.status, "Proxmox")
        if login.at("data", "NeedTFA"):
            return Refused("Proxmox wants a second factor from this user: make an API token, and use that")
        if not isinstance(ticket, str):
            return Unclear("the server does not answer a login as Proxmox does: is this the address of its API?")
        headers = {"Cookie": f"PVEAuthCookie={quote(ticket, safe='')}"}
    version = await ask("GET", f"{base}/version", headers=headers, tls=tls, patience=asked.patience)
    if version.status in (401, 403):
        return refusal
    if version.status != 200:
        return unexpected(version.status, "Proxmox")
    message = "Proxmox accepts the credentials"
    if "!" not in username:
        message += "; tenant clusters need an API token: put user@realm!token under username, its secret under password"
    return Accepted(message, version_text(version.at("data", "version")))
