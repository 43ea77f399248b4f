"""Proxmox VE: an API token, and the version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.providers.http import ask
from butler.rules.provider.probe_outcome import Accepted, CredentialsRefused, Unclear, unexpected, version_text
from butler.rules.provider.settings import proxmox_url

if TYPE_CHECKING:
    from butler.providers.probes.question import ProbeQuestion
    from butler.rules.provider.probe_outcome import Outcome


async def probe(asked: ProbeQuestion) -> Outcome:
    settings = asked.spec.proxmox
    assert settings is not None, "the schema asks for the block of the provider"
    token = f"{asked.credentials['username']}={asked.credentials['password']}"
    answer = await ask(
        "GET",
        f"{proxmox_url(settings)}/api2/json/version",
        headers={"Authorization": f"PVEAPIToken={token}"},
        tls=asked.trust(insecure=settings.insecure),
        patience=asked.patience,
    )
    if answer.status in (401, 403):
        return CredentialsRefused(
            "Proxmox does not accept the API token: correct username (user@realm!token) and password"
        )
    if answer.status != 200:
        return unexpected(answer.status, "Proxmox")
    version = answer.at("data", "version")
    if not isinstance(version, str):
        return Unclear("the server does not answer as Proxmox does: is this the address of its API?")
    return Accepted("Proxmox accepts the credentials", version_text(version))
