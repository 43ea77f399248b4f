"""Every page of the console with an address that shows it, held against the router so that none is forgotten."""

from __future__ import annotations

import re
from pathlib import Path

ROUTES = Path(__file__).parents[2] / "console" / "src" / "routes.tsx"
HOME, TEAM = "butler-system", "team-platform"
SHOWN: dict[str, dict[str, str]] = {
    "": {"overview": "/"},
    "pools": {"pools": "/pools"},
    "pools/:namespace/:name": {
        "pool": f"/pools/{HOME}/production-pool",
        "pool-allocations": f"/pools/{HOME}/production-pool?tab=allocations",
        "pool-over-time": f"/pools/{HOME}/production-pool?tab=time",
        "pool-settings": f"/pools/{HOME}/production-pool?tab=settings",
    },
    "tenants": {"tenants": "/tenants"},
    "tenants/new": {"new-tenant": "/tenants/new"},
    "tenants/:namespace/:name": {
        "tenant": f"/tenants/{TEAM}/payments",
        "tenant-activity": f"/tenants/{TEAM}/payments?tab=activity",
        "tenant-yaml": f"/tenants/{TEAM}/payments?tab=yaml",
    },
    "plan": {"plan": "/plan?tenants=12&provider=harvester-production"},
    "providers": {"providers": "/providers"},
    "providers/:namespace/:name": {"provider": f"/providers/{HOME}/harvester-production"},
    "addresses/*": {"addresses": "/addresses", "address": "/addresses?q=10.92.90.50"},
    "allocations": {"allocations": "/allocations"},
    "allocations/:namespace/:name": {"allocation": f"/allocations/{HOME}/payments-nodes"},
    "activity": {"activity": "/activity"},
    "sessions": {"sessions": "/sessions"},
    "*": {"not-found": "/no/such/page"},
}
"""For each route of the router: what its pages are called here, and where they are."""
PAGES: dict[str, str] = {name: path for pages in SHOWN.values() for name, path in pages.items()}


def routes_of_the_router() -> set[str]:
    """The paths under the shell, as routes.tsx has them; the first page has none."""
    pages = ROUTES.read_text().split("const pages", 1)[1].split("];", 1)[0]
    return {*re.findall(r'path: "([^"]*)"', pages), *([""] if "index: true" in pages else [])}
