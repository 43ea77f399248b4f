"""Is it alive, is it ready: for kubelets and load balancers. Why it is not is told in the log alone."""

from __future__ import annotations

import logging
from typing import Final

from litestar import Response, Router, get
from litestar.enums import MediaType

from butler.kube.errors import KubeError
from butler.kube.operator import Operator

log = logging.getLogger(__name__)
PATIENCE: Final = 2.0


def routes(operator: Operator) -> Router:
    @get("/healthz", include_in_schema=False)
    async def healthz() -> Response[str]:
        return _verdict(operator.why_unhealthy())

    @get("/readyz", include_in_schema=False)
    async def readyz() -> Response[str]:
        why = operator.why_unready() + operator.why_unhealthy()
        if not why:
            try:
                await operator.client.raw("/readyz", timeout=PATIENCE)
            except KubeError as error:
                why = [f"the API server: {error}"]
        return _verdict(why)

    return Router("/", route_handlers=[healthz, readyz])


def _verdict(why: list[str]) -> Response[str]:
    if why:
        log.warning("not well: %s", "; ".join(why))
    return Response("not now\n" if why else "ok\n", status_code=503 if why else 200, media_type=MediaType.TEXT)
