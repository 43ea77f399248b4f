"""Manifests that people hand to commands with `-f`: YAML or JSON, one object or several, a file or `-` for stdin."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml

from butler.api import GROUP
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import Failure

if TYPE_CHECKING:
    from collections.abc import Collection

    from butler.api.objects import Json

CORE = "v1"
PROVIDER_ORDER = ("NetworkPool", "Secret", "ProviderConfig")
"""In which order the objects of a provider's file are made: what is named, before what names it."""
MAPPINGS = (
    "spec",
    "spec.workers",
    "spec.workers.machineTemplate",
    "spec.workers.machineTemplate.os",
    "spec.networking",
)
"""What the options of a command are written into: it has to be a mapping before the server can say what else."""


def read_documents(path: str, kinds: Collection[str]) -> list[Json]:
    """The objects in a file, each of one of these kinds of Butler's (or a Secret, where that is among them)."""
    where = "stdin" if path == "-" else path
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        found: list[Any] = [document for document in yaml.safe_load_all(text) if document is not None]
    except OSError as error:
        raise Failure(f"{where} cannot be read: {error.strerror}", Exit.USAGE) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        raise Failure(f"{where} is not YAML{f' (line {mark.line + 1})' if mark else ''}", Exit.USAGE) from None
    if not found:
        raise Failure(f"{where} holds no object", Exit.USAGE)
    for document in found:
        _check(document, where, kinds)
    return found


def provider_objects(file: str, name: str | None) -> list[Json]:
    """What the file of a provider holds, in the order in which it is made; the ProviderConfig comes last."""
    found = read_documents(file, PROVIDER_ORDER)
    configs = [document for document in found if document["kind"] == "ProviderConfig"]
    if len(configs) != 1:
        raise click.UsageError(f"{file} must hold one ProviderConfig, and holds {len(configs)}")
    for document in found:
        document["metadata"] = dict(document.get("metadata") or {})
    meta = configs[0]["metadata"]
    if name and meta.get("name") not in (None, name):
        raise click.UsageError(f"the file is about {meta['name']}, and the command about {name}: leave one of them out")
    meta["name"] = name or meta.get("name")
    for document in found:
        if not document["metadata"].get("name"):
            raise click.UsageError(f"{file}: the {document['kind']} needs a name in metadata.name")
    return sorted(found, key=lambda document: PROVIDER_ORDER.index(document["kind"]))


def _check(document: Any, where: str, kinds: Collection[str]) -> None:
    if not isinstance(document, dict) or not isinstance(document.get("metadata", {}), dict):
        raise Failure(
            f"{where}: a Kubernetes object was expected, with apiVersion, kind, metadata and spec", Exit.USAGE
        )
    kind, version = document.get("kind"), str(document.get("apiVersion") or "")
    is_ours = version.partition("/")[0] == GROUP and kind in kinds
    is_secret = (kind, version) == ("Secret", CORE) and "Secret" in kinds
    if not (is_ours or is_secret):
        raise Failure(
            f"{where}: {version or 'no apiVersion'} {kind} does not belong here, only {_listed(kinds)}", Exit.USAGE
        )
    which = f"{where}: {kind} {document.get('metadata', {}).get('name') or ''}".rstrip()
    _check_shape(document, which)
    if is_secret:
        _check_secret(document, which)


def _check_shape(document: Json, which: str) -> None:
    for key in ("name", "namespace"):
        if not isinstance(document.get("metadata", {}).get(key), str | None):
            raise Failure(f"{which}: metadata.{key} must be text: put it in quotes", Exit.USAGE)
    for path in MAPPINGS:
        value: Any = document
        for key in path.split("."):
            value = value.get(key)
            if value is None:
                break
        if value is not None and not isinstance(value, dict):
            found = "a list" if isinstance(value, list) else "a single value"
            raise Failure(f"{which}: {path} must hold fields with names, and is {found}", Exit.USAGE)


def _check_secret(secret: Json, which: str) -> None:
    """Refuse what the server would refuse, in words that never quote what is in it; base64 may have line breaks."""
    for section in ("data", "stringData"):
        fields = secret.get(section)
        if fields is None:
            continue
        if not isinstance(fields, dict):
            raise Failure(f"{which}: {section} must hold keys with values, as in `password: secret`", Exit.USAGE)
        for key, value in fields.items():
            if not isinstance(value, str):
                raise Failure(f"{which}: {section}.{key} must be text: put it in quotes", Exit.USAGE)
            if section == "data":
                fields[key] = _without_breaks(value, f"{which}: data.{key}")


def _without_breaks(value: str, which: str) -> str:
    joined = value.replace("\n", "").replace("\r", "")
    try:
        base64.b64decode(joined, validate=True)
    except ValueError:
        raise Failure(f"{which} is not base64: write it as it is, under stringData", Exit.USAGE) from None
    return joined


def _listed(kinds: Collection[str]) -> str:
    return " and ".join(f"a {kind}" for kind in kinds)
