"""Harvester: a Kubernetes API, asked who we are there, then for its versions.

`/version` alone proves nothing: Kubernetes shows it to every client, and takes a client certificate that it does
not know for none at all. So the server is asked to say as whom it sees us.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.kube.config import from_text
from butler.kube.credentials import ConnectionCredentials
from butler.kube.errors import ConfigError
from butler.providers.credentials import KUBECONFIG
from butler.providers.http import NoAnswer, Reply, ask
from butler.rules.provider.probe_outcome import Accepted, CredentialsRefused, unexpected, version_text

if TYPE_CHECKING:
    from butler.providers.probes.question import ProbeQuestion
    from butler.rules.provider.probe_outcome import Outcome

_WHO_AM_I = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
_ANONYMOUS = "system:anonymous"


async def probe(asked: ProbeQuestion) -> Outcome:
    settings = asked.spec.harvester
    connection = from_text(asked.credentials[KUBECONFIG], source=KUBECONFIG, environ={})
    base = (settings.endpoint if settings is not None and settings.endpoint else connection.server).rstrip("/")
    identity = ConnectionCredentials(connection)
    headers = dict(await identity.headers()) | {"Accept": "application/json", "Content-Type": "application/json"}
    try:
        tls = identity.tls()
    except ConfigError:
        return CredentialsRefused(
            "client-certificate-data and client-key-data of the kubeconfig are no pair: export it anew"
        )

    async def get(path: str) -> Reply:
        return await ask(
            "GET",
            base + path,
            headers=headers,
            tls=tls,
            server_name=connection.server_name,
            patience=asked.patience,
        )

    version = await get("/version")
    if version.status in (401, 403):
        return CredentialsRefused(
            "Harvester does not accept the kubeconfig: export a new one and store it in the Secret"
        )
    kubernetes = version_text(version.at("gitVersion"))
    if version.status != 200 or kubernetes is None:
        return unexpected(version.status, "Harvester")
    review = await ask(
        "POST",
        f"{base}/apis/authentication.k8s.io/v1/selfsubjectreviews",
        headers=headers,
        body=_WHO_AM_I,
        tls=tls,
        server_name=connection.server_name,
        patience=asked.patience,
    )
    # Servers before Kubernetes 1.28 do not know the question: then /version has to do.
    if review.status in (401, 403) or review.at("status", "userInfo", "username") == _ANONYMOUS:
        return CredentialsRefused(
            "Harvester knows no user by this kubeconfig: export a new one and store it in the Secret"
        )
    try:
        setting = await get("/apis/harvesterhci.io/v1beta1/settings/server-version")
    except NoAnswer:
        setting = Reply(0, b"")
    own = version_text(setting.at("value")) if setting.status == 200 else None
    text = f"{own} (Kubernetes {kubernetes})" if own else f"Kubernetes {kubernetes}"
    return Accepted("Harvester accepts the kubeconfig", text)
