"""The certificate that is served: where its files change, as those of a mounted Secret do, no restart is needed."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Final

import uvicorn

log = logging.getLogger(__name__)
LOOK_EVERY: Final = 30.0


async def keep_certificate(config: uvicorn.Config, certificate: Path | None, key: Path | None) -> None:
    """Follow the files for as long as it is served. New connections get the new certificate."""
    if certificate is None or key is None:
        await asyncio.Event().wait()
        return
    known = _age(certificate, key)
    while True:
        await asyncio.sleep(LOOK_EVERY)
        now = _age(certificate, key)
        if now == known or now is None or config.ssl is None:
            continue
        try:
            config.ssl.load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            # Half of the pair may have been written yet; the old one is served on.
            log.warning("the new certificate %s cannot be used yet: %s", certificate, error)
            continue
        known = now
        log.info("a new certificate is served: %s", certificate)


def _age(*files: Path) -> tuple[int, ...] | None:
    try:
        return tuple(file.stat().st_mtime_ns for file in files)
    except OSError:
        return None
