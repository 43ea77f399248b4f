"""What the schema cannot say about a provider's settings: URLs that lead somewhere, UUIDs that are UUIDs.

Read by admission, which tells the author at once, and by the controller, for what was stored without admission. Also
the one place that turns settings into the address of a provider's API, so that what was checked is what is asked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from butler.api.labels import Annotation
from butler.api.objects import Key
from butler.api.providers import Provider
from butler.ipam.layout import FieldProblem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from butler.api.ipallocation import IPAllocationType
    from butler.api.providerconfig import ProviderConfig, ProviderConfigSpec, ProviderNetwork
    from butler.api.providers import NutanixSettings, ProxmoxSettings

NUTANIX_PORT: Final = 9440
UUID: Final = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_REGION: Final = re.compile(r"[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}")
_ONE_KEY: Final = {Provider.HARVESTER, Provider.GCP}


def settings_problems(spec: ProviderConfigSpec) -> list[FieldProblem]:
    """Everything that is wrong with a provider's own settings, by field."""
    return [*_of_block(spec), *_of_credentials(spec)]


def _of_block(spec: ProviderConfigSpec) -> Iterator[FieldProblem]:
    if spec.harvester is not None and spec.harvester.endpoint is not None:
        yield from _endpoint("spec.harvester.endpoint", spec.harvester.endpoint, path=True)
    if (nutanix := spec.nutanix) is not None:
        yield from _endpoint("spec.nutanix.endpoint", nutanix.endpoint)
        in_url = _port(nutanix.endpoint)
        if in_url is not None and nutanix.port not in (in_url, NUTANIX_PORT):
            yield FieldProblem(
                "spec.nutanix.port", f"{nutanix.port} is not the port that endpoint names: keep one of them"
            )
        for field, value in (
            ("clusterUUID", nutanix.cluster_uuid),
            ("subnetUUID", nutanix.subnet_uuid),
            ("imageUUID", nutanix.image_uuid),
            ("storageContainerUUID", nutanix.storage_container_uuid),
        ):
            if value is not None and not UUID.fullmatch(value):
                yield FieldProblem(f"spec.nutanix.{field}", f"{value!r} is no UUID: Prism shows it next to the name")
    if (proxmox := spec.proxmox) is not None:
        yield from _endpoint("spec.proxmox.endpoint", proxmox.endpoint, plain=proxmox.insecure)
    if spec.aws is not None and not _REGION.fullmatch(spec.aws.region):
        yield FieldProblem("spec.aws.region", f"{spec.aws.region!r} is no region: write it as in eu-central-1")
    if spec.azure is not None and not UUID.fullmatch(spec.azure.subscription_id):
        yield FieldProblem(
            "spec.azure.subscriptionID", f"{spec.azure.subscription_id!r} is no UUID: give the id, not the name"
        )


def _of_credentials(spec: ProviderConfigSpec) -> Iterator[FieldProblem]:
    reference = spec.credentials_ref
    if reference is not None and reference.key is not None and spec.provider not in _ONE_KEY:
        yield FieldProblem(
            "spec.credentialsRef.key",
            f"provider {spec.provider} reads several keys, each by its own name, so none can be chosen: remove it",
        )


def foreign_secret(spec: ProviderConfigSpec, namespace: str, home: str) -> FieldProblem | None:
    """A Secret that this ProviderConfig may not name: who may write here could have it sent to a server of theirs."""
    reference = spec.credentials_ref
    if reference is None or reference.namespace in (None, namespace) or namespace == home:
        return None
    return FieldProblem(
        "spec.credentialsRef.namespace",
        f"only a ProviderConfig in {home} may name a Secret of another namespace: copy the Secret to {namespace}",
    )


def secret_key(config: ProviderConfig) -> Key | None:
    """The Secret that a ProviderConfig names; None when it needs none."""
    reference = config.spec.credentials_ref
    return Key(reference.namespace or config.metadata.namespace, reference.name) if reference else None


def destination(spec: ProviderConfigSpec, namespace: str) -> tuple[object, ...]:
    """All that says which credentials are sent where, and how well protected."""
    reference = spec.credentials_ref
    secret = (reference.namespace or namespace, reference.name, reference.key) if reference else None
    harvester = spec.harvester.endpoint if spec.harvester else None
    nutanix = (nutanix_url(spec.nutanix), spec.nutanix.insecure) if spec.nutanix else None
    proxmox = (proxmox_url(spec.proxmox), spec.proxmox.insecure) if spec.proxmox else None
    return spec.provider, secret, harvester, nutanix, proxmox


def secret_not_for(config: ProviderConfig, annotations: Mapping[str, str], server: str | None = None) -> str:
    """Why a Secret with these annotations may not be used by a ProviderConfig, as a sentence; empty when it may.

    `server` is the one that the credentials themselves name, as a kubeconfig does. Who may write a ProviderConfig need
    not be allowed to read the Secrets that it names, so what happens to them is for the owner of the Secret to say.
    """
    own, secret = Key(config.metadata.namespace, config.metadata.name), secret_key(config)
    if secret is not None and secret.namespace != own.namespace:
        allowed = _listed(annotations.get(Annotation.PROVIDER_CONFIGS, ""))
        if str(own) not in allowed:
            return (
                f"it lies in another namespace and does not allow it: annotate it with"
                f" {Annotation.PROVIDER_CONFIGS}={own}, or copy it to namespace {own.namespace}"
            )
    url = endpoint_of(config.spec)
    hosts = _listed(annotations.get(Annotation.HOSTS, ""))
    if url is None or (not hosts and server is None):
        return ""
    host, at = _host(url), _host(url, port=True)
    if hosts and not {host, at} & set(hosts):
        return f"its annotation {Annotation.HOSTS} does not name {host}, where this ProviderConfig would send it"
    if not hosts and server is not None and at != _host(server, port=True):
        return (
            f"its kubeconfig is for another server than spec.harvester.endpoint: leave the endpoint out, or annotate it"
            f" with {Annotation.HOSTS}={at}"
        )
    return ""


def endpoint_of(spec: ProviderConfigSpec) -> str | None:
    """Where a ProviderConfig has credentials sent; None where they say it themselves, or it is fixed."""
    if spec.harvester is not None and spec.harvester.endpoint:
        return spec.harvester.endpoint
    if spec.nutanix is not None:
        return nutanix_url(spec.nutanix)
    return proxmox_url(spec.proxmox) if spec.proxmox is not None else None


def _listed(text: str) -> list[str]:
    return [part.strip().lower() for part in text.split(",") if part.strip()]


def _host(url: str, *, port: bool = False) -> str:
    try:
        parts = urlsplit(url)
        host, number = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return ""
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{number or (80 if parts.scheme == 'http' else 443)}" if port else shown


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


def _endpoint(field: str, url: str, *, path: bool = False, plain: bool = False) -> Iterator[FieldProblem]:
    """What is wrong with a URL; `path`: it may have one, `plain`: it may do without TLS."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        yield FieldProblem(field, "is not a URL: write it as in https://prism.example.com")
        return
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        yield FieldProblem(field, "is not the URL of a server: write it as in https://prism.example.com")
    elif "@" in parts.netloc:
        yield FieldProblem(field, "must not hold a user name: credentials belong into the Secret")
    elif parts.path not in ("", "/") and not path:
        yield FieldProblem(field, f"must name the server alone: leave out {parts.path}")
    elif parts.scheme == "http" and not plain:
        yield FieldProblem(field, "would send the credentials unprotected: use https")


def pools_for(type_: IPAllocationType, network: ProviderNetwork) -> tuple[str, ...]:
    """The pools of a provider that serve a type of allocation, in the order in which they are asked."""
    fitting = [ref for ref in network.pool_refs if not ref.types or type_ in ref.types]
    return tuple(ref.name for ref in sorted(fitting, key=lambda ref: ref.priority))
