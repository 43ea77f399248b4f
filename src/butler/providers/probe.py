"""Asking a provider whether it takes the credentials: which module asks, and what it is given.

A probe reads and changes nothing. It costs one to three requests with short time limits. It always ends with an
outcome and never raises for what a provider or a Secret can do, because the caller has a status to write.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from butler.api.providers import Provider
from butler.providers import credentials
from butler.providers.http import PATIENCE, NoAnswer, Patience, Untrusted
from butler.providers.probes import aws, azure, gcp, harvester, nutanix, proxmox
from butler.providers.probes.question import CLOUDS, CloudEndpoints, ProbeQuestion
from butler.rules.provider.probe_outcome import Outcome, ProviderUnreachable, Unclear

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import datetime

    from butler.api.providerconfig import ProviderConfig

__all__ = ["CLOUDS", "CloudEndpoints", "can_be_asked", "probe"]

log = logging.getLogger(__name__)

_PROBES: Final[Mapping[Provider, Callable[[ProbeQuestion], Awaitable[Outcome]]]] = {
    Provider.HARVESTER: harvester.probe,
    Provider.NUTANIX: nutanix.probe,
    Provider.PROXMOX: proxmox.probe,
    Provider.AWS: aws.probe,
    Provider.GCP: gcp.probe,
    Provider.AZURE: azure.probe,
}
_OWN_AUTHORITY: Final = (Provider.NUTANIX, Provider.PROXMOX)


def can_be_asked(provider: Provider) -> bool:
    """Whether there is a server to ask."""
    return provider in _PROBES


async def probe(
    config: ProviderConfig,
    data: Mapping[str, bytes],
    *,
    now: datetime,
    clouds: CloudEndpoints = CLOUDS,
    patience: Patience = PATIENCE,
) -> Outcome:
    """Ask with a Secret's data that `credentials.check` has found nothing wrong with."""
    try:
        asked = ProbeQuestion(config.spec, credentials.read(config, data), now, clouds, patience)
        return await _PROBES[config.spec.provider](asked)
    except Untrusted as error:
        advice = "; put its authority into key ca.pem of the Secret" if "ca.pem" not in data else ""
        return ProviderUnreachable(f"{error}{advice if config.spec.provider in _OWN_AUTHORITY else ''}")
    except NoAnswer as error:
        return ProviderUnreachable(str(error))
    except Exception as error:
        # The text of an unforeseen error may quote what must not be told.
        log.error(
            "ProviderConfig %s/%s: its provider could not be asked (%s)",
            config.metadata.namespace,
            config.metadata.name,
            type(error).__name__,
        )
        return Unclear(f"the provider could not be asked ({type(error).__name__})")
