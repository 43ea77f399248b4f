"""The eight tenants of the example, up in a world on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from server.eventually import eventually

if TYPE_CHECKING:
    from control_planes import ControlPlane
    from server.conftest import Api

EXAMPLES = Path(__file__).parents[2] / "examples" / "eight-tenants"
TEAM = "team-platform"
NAMES = ["billing", "checkout", "data-lake", "identity", "mobile", "payments", "search", "web"]


async def eight_tenants(api: Api, plane: ControlPlane) -> None:
    """Make them as the README says, and wait until all are ready."""
    plane.kubectl("apply", "-f", str(EXAMPLES))

    async def ready() -> None:
        found = await api.get(f"/tenants?namespace={TEAM}&phase=Ready")
        assert [item["name"] for item in found["items"]] == NAMES

    await eventually(ready, seconds=90)
