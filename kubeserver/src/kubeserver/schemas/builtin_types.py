"""The shapes of the built-in kinds, read from the table that `tools/extract_builtin_schemas.py` writes."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kubeserver.schemas.schema import parse_named

if TYPE_CHECKING:
    from kubeserver.schemas.schema import Schema

Json = dict[str, Any]

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


@cache
def builtin_types() -> dict[str, Schema]:
    """Every named type, parsed once per process."""
    text = files("kubeserver.schemas").joinpath("builtin_schemas.json").read_bytes()
    return parse_named(msgspec.json.decode(text, type=dict[str, dict[str, Any]]))
