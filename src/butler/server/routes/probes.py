"""Is it alive, is it ready: for kubelets and load balancers. Why it is not is told in the log alone."""

from __future__ import annotations

import logging
from typing import Final

from litestar import Response, Router, get
from litestar.enums import MediaType

from butler.kube.client import Client
from butler.kube.errors import KubeError
from butler.kube.operator import Operator
from butler.kube.recent_results import RecentResults

log = logging.getLogger(__name__)
PATIENCE: Final = 2.0
REMEMBER: Final = 2.0
"""Seconds that an answer of the API server is good for: any client may ask here, and none shall make us ask all day."""


class _Reach:
    """Whether the API server answers."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._recent = RecentResults(REMEMBER)

    async def why_not(self) -> str:
        return await self._recent.of("readyz", self._ask)

    async def _ask(self) -> str:
        try:
            await self._client.raw("/readyz", timeout=PATIENCE)
        except KubeError as error:
            return f"the API server: {error}"
        return ""


def routes(operator: Operator) -> Router:
    reach = _Reach(operator.client)

    @get("/healthz", include_in_schema=False)
    async def healthz() -> Response[str]:
        return _verdict(operator.why_unhealthy())

    @get("/readyz", include_in_schema=False)
    async def readyz() -> Response[str]:
        why = operator.why_unready() + operator.why_unhealthy()
        return _verdict(why or list(filter(None, [await reach.why_not()])))

    return Router("/", route_handlers=[healthz, readyz])


def _verdict(why: list[str]) -> Response[str]:
    if why:
        log.info("not well: %s", "; ".join(why))
    return Response("not now\n" if why else "ok\n", status_code=503 if why else 200, media_type=MediaType.TEXT)
