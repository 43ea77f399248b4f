"""The OpenAPI document, with the frames of the stream: `python -m butler.server.openapi > openapi.json`."""

from __future__ import annotations

import json
import sys
from typing import Any, cast

from butler.server.app import build
from butler.server.services import Services
from butler.server.stream_schema import with_stream


def document() -> dict[str, Any]:
    """The document. Nothing runs for it: what routes work with is not touched before a request comes."""
    app = build(cast("Services", None))
    return with_stream(app.openapi_schema.to_schema())


if __name__ == "__main__":
    json.dump(document(), sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
