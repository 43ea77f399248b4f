"""Who comes and goes in the demo: eight clusters that stay, guests, and the Services that teams publish."""

from __future__ import annotations

from typing import Final, NamedTuple


class Role(NamedTuple):
    namespace: str
    name: str


EIGHT: Final = (
    Role("team-finance", "billing"),
    Role("team-shop", "checkout"),
    Role("team-data", "data-lake"),
    Role("team-platform", "identity"),
    Role("team-shop", "mobile"),
    Role("team-finance", "payments"),
    Role("team-shop", "search"),
    Role("team-shop", "web"),
)
"""Those of the worked example. They come first and stay."""

GUESTS: Final = (
    Role("team-finance", "ledger"),
    Role("team-data", "reports"),
    Role("team-shop", "catalog"),
    Role("team-platform", "observability"),
    Role("team-data", "recommendations"),
    Role("team-shop", "reviews"),
    Role("team-finance", "fraud-check"),
    Role("team-platform", "registry"),
    Role("team-shop", "loyalty"),
    Role("team-data", "streams"),
)
"""Those that come when it gets busy, and leave again."""

SERVICES: Final = ("api", "webhooks", "grpc", "partner-api", "status-page")
"""What a team puts behind an address of its own, beside the platform's ingress."""
