"""ConfigMap and Secret: bags of named texts."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin.checks import config_key, forbidden, invalid, required, too_long, unchanged
from kubeserver.resources import Strategy

if TYPE_CHECKING:
    from kubeserver.wire.status import FieldError

Json = dict[str, Any]

SIZE_LIMIT: Final = 1024 * 1024
_WHEN_IMMUTABLE: Final = "field is immutable when `immutable` is set"
_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"


def default_secret(secret: Json) -> None:
    secret["type"] = secret.get("type") or "Opaque"
    given = secret.pop("stringData", None)
    if given:
        data = secret.get("data") or {}
        for key, text in given.items():
            data[key] = base64.b64encode(text.encode()).decode()
        secret["data"] = data
    _drop_empty(secret, "data")


def validate_secret(secret: Json) -> list[FieldError]:
    data: Json = secret.get("data") or {}
    errors: list[FieldError] = []
    size = 0
    for key, value in data.items():
        errors += config_key(f"data[{key}]", key)
        size += _decoded_size(value)
    if size > SIZE_LIMIT:
        errors.append(too_long("data", SIZE_LIMIT))
    return errors + _of_type(secret, data)


def _of_type(secret: Json, data: Json) -> list[FieldError]:
    match secret.get("type"):
        case "kubernetes.io/service-account-token":
            annotations = (secret.get("metadata") or {}).get("annotations") or {}
            if not annotations.get(_ACCOUNT_NAME):
                return [required(f"metadata.annotations[{_ACCOUNT_NAME}]")]
        case "kubernetes.io/dockercfg":
            return _json_entry(data, ".dockercfg")
        case "kubernetes.io/dockerconfigjson":
            return _json_entry(data, ".dockerconfigjson")
        case "kubernetes.io/basic-auth":
            if "username" not in data and "password" not in data:
                return [required("data[username]"), required("data[password]")]
        case "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                return [required("data[ssh-privatekey]")]
        case "kubernetes.io/tls":
            return [required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
    return []


def _json_entry(data: Json, key: str) -> list[FieldError]:
    if key not in data:
        return [required(f"data[{key}]")]
    content = _decoded(data[key])
    try:
        good = isinstance(json.loads(content), dict)
        why = "json: cannot unmarshal into Go value of type map[string]interface {}"
    except ValueError:
        good = False
        why = "invalid character" if content.strip() else "unexpected end of JSON input"
    return [] if good else [invalid(f"data[{key}]", "<secret contents redacted>", why)]


def validate_secret_update(secret: Json, old: Json) -> list[FieldError]:
    errors = unchanged("type", secret.get("type"), old.get("type"))
    return errors + _immutable(secret, old, "data")


def default_config_map(config: Json) -> None:
    _drop_empty(config, "data")
    _drop_empty(config, "binaryData")


def validate_config_map(config: Json) -> list[FieldError]:
    data, binary = config.get("data") or {}, config.get("binaryData") or {}
    errors: list[FieldError] = []
    size = 0
    for key, value in data.items():
        errors += config_key(f"data[{key}]", key)
        if key in binary:
            errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        size += len(value.encode())
    for key, value in binary.items():
        errors += config_key(f"binaryData[{key}]", key)
        size += _decoded_size(value)
    if size > SIZE_LIMIT:
        errors.append(too_long("[]", SIZE_LIMIT))
    return errors


def validate_config_map_update(config: Json, old: Json) -> list[FieldError]:
    return _immutable(config, old, "data", "binaryData")


def _immutable(new: Json, old: Json, *fields: str) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    errors = [] if new.get("immutable") else [forbidden("immutable", _WHEN_IMMUTABLE)]
    return errors + [
        forbidden(field, _WHEN_IMMUTABLE) for field in fields if (new.get(field) or {}) != (old.get(field) or {})
    ]


def _decoded(value: str) -> bytes:
    try:
        return base64.b64decode(value)
    except (binascii.Error, ValueError):
        return b""


def _decoded_size(value: str) -> int:
    return len(value) * 3 // 4 - value.count("=", -2)


def _drop_empty(item: Json, field: str) -> None:
    if not item.get(field):
        item.pop(field, None)


SECRET: Final = Strategy(
    default=default_secret,
    validate=validate_secret,
    validate_update=validate_secret_update,
    selectable={"type": lambda secret: str(secret.get("type") or "")},
)
CONFIG_MAP: Final = Strategy(
    default=default_config_map, validate=validate_config_map, validate_update=validate_config_map_update
)
