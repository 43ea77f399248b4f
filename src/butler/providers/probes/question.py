"""What a probe is given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from butler.providers.http import trust

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping
    from datetime import datetime

    from butler.api.providerconfig import ProviderConfigSpec
    from butler.providers.http import Patience

FORM: Final = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class CloudEndpoints:
    """Where clouds are asked; others than the public ones in tests only. `{region}` and `{tenant}` are filled in."""

    aws: str = "https://sts.{region}.{domain}"
    gcp: str = "https://oauth2.googleapis.com/token"
    azure: str = "https://login.microsoftonline.com/{tenant}/oauth2/v2.0/token"
    tls: ssl.SSLContext | None = None
    """Whom to believe there; None: the system's authorities."""


CLOUDS: Final = CloudEndpoints()


@dataclass(frozen=True, slots=True)
class ProbeQuestion:
    """One question to one provider."""

    spec: ProviderConfigSpec
    credentials: Mapping[str, str] = field(repr=False)
    now: datetime
    clouds: CloudEndpoints
    patience: Patience

    def trust(self, *, insecure: bool) -> ssl.SSLContext:
        """Whom to believe: the authority in the Secret, where there is one."""
        authority = self.credentials.get("ca.pem")
        return trust(authority.encode() if authority else None, insecure=insecure)


def form(**values: str) -> bytes:
    """A body as HTML forms send it."""
    return urlencode(values).encode()
