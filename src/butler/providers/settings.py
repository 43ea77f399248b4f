"""What the schema cannot say about a provider's settings: URLs that lead somewhere, UUIDs that are UUIDs.

Read by admission, which tells the author at once, and by the controller, for what was stored without admission. Also
the one place that turns settings into the address of a provider's API, so that what was checked is what is asked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from butler.api.providers import Provider
from butler.ipam.layout import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from butler.api.providerconfig import ProviderConfigSpec, ProviderNetwork
    from butler.api.providers import NutanixSettings, ProxmoxSettings

NUTANIX_PORT: Final = 9440
UUID: Final = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_REGION: Final = re.compile(r"[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}")
_ONE_KEY: Final = {Provider.HARVESTER, Provider.GCP}


def settings_problems(spec: ProviderConfigSpec) -> list[Problem]:
    """Everything that is wrong with a provider's own settings, by field."""
    return [*_of_block(spec), *_of_credentials(spec)]


def _of_block(spec: ProviderConfigSpec) -> Iterator[Problem]:
    if spec.harvester is not None and spec.harvester.endpoint is not None:
        yield from _endpoint("spec.harvester.endpoint", spec.harvester.endpoint, path=True)
    if (nutanix := spec.nutanix) is not None:
        yield from _endpoint("spec.nutanix.endpoint", nutanix.endpoint)
        in_url = _port(nutanix.endpoint)
        if in_url is not None and nutanix.port not in (in_url, NUTANIX_PORT):
            yield Problem("spec.nutanix.port", f"{nutanix.port} is not the port that endpoint names: keep one of them")
        for field, value in (
            ("clusterUUID", nutanix.cluster_uuid),
            ("subnetUUID", nutanix.subnet_uuid),
            ("imageUUID", nutanix.image_uuid),
            ("storageContainerUUID", nutanix.storage_container_uuid),
        ):
            if value is not None and not UUID.fullmatch(value):
                yield Problem(f"spec.nutanix.{field}", f"{value!r} is no UUID: Prism shows it next to the name")
    if (proxmox := spec.proxmox) is not None:
        yield from _endpoint("spec.proxmox.endpoint", proxmox.endpoint, plain=proxmox.insecure)
    if spec.aws is not None and not _REGION.fullmatch(spec.aws.region):
        yield Problem("spec.aws.region", f"{spec.aws.region!r} is no region: write it as in eu-central-1")
    if spec.azure is not None and not UUID.fullmatch(spec.azure.subscription_id):
        yield Problem(
            "spec.azure.subscriptionID", f"{spec.azure.subscription_id!r} is no UUID: give the id, not the name"
        )


def _of_credentials(spec: ProviderConfigSpec) -> Iterator[Problem]:
    reference = spec.credentials_ref
    if reference is not None and reference.key is not None and spec.provider not in _ONE_KEY:
        yield Problem(
            "spec.credentialsRef.key",
            f"provider {spec.provider} reads several keys, each by its own name, so none can be chosen: remove it",
        )


def foreign_secret(spec: ProviderConfigSpec, namespace: str, home: str) -> Problem | None:
    """A Secret that this ProviderConfig may not name: who may write here could have it sent to a server of theirs."""
    reference = spec.credentials_ref
    if reference is None or reference.namespace in (None, namespace) or namespace == home:
        return None
    return Problem(
        "spec.credentialsRef.namespace",
        f"only a ProviderConfig in {home} may name a Secret of another namespace: copy the Secret to {namespace}",
    )


def gateway_of(network: ProviderNetwork, pool: str) -> str | None:
    """The gateway of machines with addresses of a pool."""
    own = next((reference.gateway for reference in network.pool_refs if reference.name == pool), None)
    return own or network.gateway


def nutanix_url(settings: NutanixSettings) -> str:
    """Prism Central, with its port."""
    base = settings.endpoint.rstrip("/")
    return base if _port(base) is not None else f"{base}:{settings.port}"


def proxmox_url(settings: ProxmoxSettings) -> str:
    """The Proxmox host."""
    return settings.endpoint.rstrip("/")


def _port(url: str) -> int | None:
    try:
        return urlsplit(url).port
    except ValueError:
        return None


def _endpoint(field: str, url: str, *, path: bool = False, plain: bool = False) -> Iterator[Problem]:
    """What is wrong with a URL; `path`: it may have one, `plain`: it may do without TLS."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        yield Problem(field, "is not a URL: write it as in https://prism.example.com")
        return
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        yield Problem(field, "is not the URL of a server: write it as in https://prism.example.com")
    elif "@" in parts.netloc:
        yield Problem(field, "must not hold a user name: credentials belong into the Secret")
    elif parts.path not in ("", "/") and not path:
        yield Problem(field, f"must name the server alone: leave out {parts.path}")
    elif parts.scheme == "http" and not plain:
        yield Problem(field, "would send the credentials unprotected: use https")
