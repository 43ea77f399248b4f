"""What the validation of built-in kinds has in common: short ways to say what is wrong, and checks of small values.

The words are Kubernetes'; each check returns a list of errors, empty if there is nothing to say.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Any, Final

from kubeserver.wire.names import dns_label, dns_subdomain, label_key, label_value
from kubeserver.wire.status import FieldError

if TYPE_CHECKING:
    from collections.abc import Iterable

Json = dict[str, Any]

IMMUTABLE: Final = "field is immutable"
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PERCENT: Final = re.compile("[0-9]+%")
_PORT_NAME: Final = re.compile("[-a-z0-9]+")
_CONFIG_KEY: Final = re.compile("[-._a-zA-Z0-9]+")


def required(path: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", path, detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueInvalid", path, detail, value)


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError("FieldValueForbidden", path, detail)


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError("FieldValueDuplicate", path, "", value)


def too_long(path: str, limit: int) -> FieldError:
    return FieldError("FieldValueTooLong", path, f"may not be more than {limit} bytes")


def unsupported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    return FieldError("FieldValueNotSupported", path, "", value, tuple(supported))


def one_of(path: str, value: Any, supported: tuple[str, ...]) -> list[FieldError]:
    return [] if value in supported else [unsupported(path, value, supported)]


def subdomain(path: str, value: str) -> list[FieldError]:
    return [invalid(path, value, text) for text in dns_subdomain(value)]


def label(path: str, value: str) -> list[FieldError]:
    return [invalid(path, value, text) for text in dns_label(value)]


def qualified_name(path: str, value: str) -> list[FieldError]:
    return [invalid(path, value, text) for text in label_key(value)]


def not_negative(path: str, value: Any) -> list[FieldError]:
    if isinstance(value, int) and value < 0:
        return [invalid(path, value, "must be greater than or equal to 0")]
    return []


def port_number(path: str, value: Any) -> list[FieldError]:
    if isinstance(value, int) and 1 <= value <= 65535:
        return []
    return [invalid(path, value, "must be between 1 and 65535, inclusive")]


def port_name(path: str, value: str) -> list[FieldError]:
    found = []
    if len(value) > 15:
        found.append("must be no more than 15 bytes")
    if not _PORT_NAME.fullmatch(value):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= letter <= "z" for letter in value):
        found.append("must contain at least one letter (a-z)")
    if "--" in value:
        found.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return [invalid(path, value, text) for text in found]


def port_number_or_name(path: str, value: int | str) -> list[FieldError]:
    return port_name(path, value) if isinstance(value, str) else port_number(path, value)


def config_key(path: str, key: str) -> list[FieldError]:
    """The name of an entry of a ConfigMap or Secret: it must be able to become a file's name."""
    found = []
    if len(key.encode()) > 253:
        found.append("must be no more than 253 bytes")
    if not _CONFIG_KEY.fullmatch(key):
        found.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
            "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        )
    if key in (".", ".."):
        found.append(f"must not be '{key}'")
    elif key.startswith(".."):
        found.append("must not start with '..'")
    return [invalid(path, key, text) for text in found]


def env_name(path: str, name: str) -> list[FieldError]:
    """The name of an environment variable: anything printable but '='."""
    if name and all(" " <= letter <= "~" and letter != "=" for letter in name):
        return []
    detail = "a valid environment variable name must consist only of printable ASCII characters other than '='"
    return [invalid(path, name, detail)]


def ip_address(path: str, value: str) -> list[FieldError]:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return [invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    return []


def cidr(path: str, value: str) -> list[FieldError]:
    try:
        network = ipaddress.ip_network(value, strict=False)
    except ValueError:
        network = None
    if network is None or "/" not in value:
        return [invalid(path, value, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")]
    if value.partition("/")[0] != str(network.network_address):
        return [invalid(path, value, "must not have bits set beyond the prefix length")]
    return []


def percent_or_count(path: str, value: Any) -> list[FieldError]:
    """A number that is not negative, or a percentage."""
    if isinstance(value, str):
        if _PERCENT.fullmatch(value):
            return []
        detail = (
            "a valid percent string must be a numeric string followed by an ending '%' "
            "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
        )
        return [invalid(path, value, detail)]
    return not_negative(path, value)


def at_most_100_percent(path: str, value: Any) -> list[FieldError]:
    if isinstance(value, str) and _PERCENT.fullmatch(value) and int(value[:-1]) > 100:
        return [invalid(path, value, "must not be greater than 100%")]
    return []


def is_nothing(value: Any) -> bool:
    """Whether a count or percentage is zero."""
    return value in (0, "0%")


def label_selector(path: str, selector: Json | None) -> list[FieldError]:
    """A `metav1.LabelSelector`."""
    errors: list[FieldError] = []
    if selector is None:
        return errors
    for key, value in (selector.get("matchLabels") or {}).items():
        errors += [invalid(f"{path}.matchLabels", key, text) for text in label_key(key)]
        errors += [invalid(f"{path}.matchLabels", value, text) for text in label_value(value)]
    for index, expression in enumerate(selector.get("matchExpressions") or []):
        where = f"{path}.matchExpressions[{index}]"
        operator, values = expression.get("operator", ""), expression.get("values") or []
        if operator in ("In", "NotIn"):
            if not values:
                errors.append(required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(forbidden(f"{where}.values", detail))
        else:
            errors.append(invalid(f"{where}.operator", operator, "not a valid selector operator"))
        errors += [
            invalid(f"{where}.key", expression.get("key", ""), text) for text in label_key(expression.get("key", ""))
        ]
        for position, value in enumerate(values):
            errors += [invalid(f"{where}.values[{position}]", value, text) for text in label_value(value)]
    return errors


def unchanged(path: str, new: Any, old: Any, detail: str = IMMUTABLE) -> list[FieldError]:
    """The error for a field that may not change and did."""
    return [] if new == old else [invalid(path, new, detail)]


def put_default(item: Json, key: str, value: Any) -> None:
    """Set what is missing or was given as null or as the empty text."""
    if item.get(key) in (None, ""):
        item[key] = value


def show_times(status: Json, *fields: str) -> None:
    """Conditions show their times even when they have none, as null."""
    for condition in status.get("conditions") or ():
        for field in fields:
            condition.setdefault(field, None)


def child(item: Json, key: str) -> Json:
    """The object under a key, made if it is not there."""
    found = item.get(key)
    if not isinstance(found, dict):
        found = item[key] = {}
    return found
