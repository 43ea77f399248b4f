"""Nutanix: Prism Central says who we are; the list of its clusters, where we may see it, tells the version."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from butler.providers.http import NoAnswer, Reply, ask
from butler.rules.provider.probe_outcome import Accepted, CredentialsRefused, unexpected, version_text
from butler.rules.provider.settings import nutanix_url

if TYPE_CHECKING:
    from butler.providers.probes.question import ProbeQuestion
    from butler.rules.provider.probe_outcome import Outcome

_ALL_CLUSTERS = b'{"kind":"cluster","length":100}'


async def probe(asked: ProbeQuestion) -> Outcome:
    settings = asked.spec.nutanix
    assert settings is not None, "the schema asks for the block of the provider"
    base = f"{nutanix_url(settings)}/api/nutanix/v3"
    pair = f"{asked.credentials['username']}:{asked.credentials['password']}".encode()
    headers = {
        "Authorization": f"Basic {base64.b64encode(pair).decode()}",
        "Accept": "application/json",
        "Content-Type": "application/json",
    }
    tls = asked.trust(insecure=settings.insecure)
    me = await ask("GET", f"{base}/users/me", headers=headers, tls=tls, patience=asked.patience)
    if me.status in (401, 403):
        return CredentialsRefused("Prism Central does not accept username and password: correct them in the Secret")
    if me.status != 200:
        return unexpected(me.status, "Prism Central")
    try:
        listed = await ask(
            "POST", f"{base}/clusters/list", headers=headers, body=_ALL_CLUSTERS, tls=tls, patience=asked.patience
        )
    except NoAnswer:
        listed = Reply(0, b"")
    return _accepted(listed, settings.cluster_uuid)


def _accepted(listed: Reply, wanted: str) -> Accepted:
    message = "Prism Central accepts the credentials"
    entities = listed.at("entities") if listed.status == 200 else None
    if not isinstance(entities, list):
        return Accepted(message)
    found = {_at(entity, "metadata", "uuid"): entity for entity in entities}
    central = next((entity for entity in entities if "PRISM_CENTRAL" in (_services(entity) or ())), found.get(wanted))
    total = listed.at("metadata", "total_matches")
    if wanted not in found and isinstance(total, int) and total <= len(entities):
        message += f", but knows no cluster {wanted}: correct spec.nutanix.clusterUUID"
    return Accepted(message, version_text(_at(central, "status", "resources", "config", "build", "version")))


def _services(entity: Any) -> list[Any] | None:
    found = _at(entity, "status", "resources", "config", "service_list")
    return found if isinstance(found, list) else None


def _at(value: Any, *path: str) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value
