"""What comes of asking a provider whether it takes the credentials.

A refusal is a fact about the credentials. Silence is not: a provider that cannot be reached from here, for a moment
or for good, may be reached by Cluster API very well, so nothing may be held up by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_LONGEST_VERSION: Final = 100


@dataclass(frozen=True, slots=True)
class Accepted:
    """The provider answers and knows us."""

    message: str
    version: str | None = None


@dataclass(frozen=True, slots=True)
class CredentialsRefused:
    """The provider answers and does not take the credentials."""

    message: str


@dataclass(frozen=True, slots=True)
class ProviderUnreachable:
    """No server answers."""

    message: str


@dataclass(frozen=True, slots=True)
class Unclear:
    """A server answers, but its answer does not say whether the credentials are valid."""

    message: str


@dataclass(frozen=True, slots=True)
class Awaited:
    """The provider was asked a while ago."""

    message: str = "it was asked, and has not answered yet"


Outcome = Accepted | CredentialsRefused | ProviderUnreachable | Unclear | Awaited


def version_text(value: object) -> str | None:
    """A version as a provider reports it, fit to be shown; None where it reports none."""
    if not isinstance(value, str) or not value or not value.isprintable():
        return None
    return value[:_LONGEST_VERSION]


def unexpected(status: int, who: str) -> Unclear:
    """For an answer that the provider does not document."""
    if 300 <= status < 400:
        return Unclear(f"{who} redirects to another address, where no credentials are sent: correct the endpoint")
    return Unclear(f"{who} answers with HTTP status {status}: is this the address of its API?")
