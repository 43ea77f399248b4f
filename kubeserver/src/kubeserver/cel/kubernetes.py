"""The functions that Kubernetes adds to CEL: addresses, URLs, quantities, versions and named formats."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote

from kubeserver.cel.values import (
    NO_OVERLOAD,
    NONE,
    CelError,
    Format,
    IPAddress,
    Network,
    Optional,
    Quantity,
    Semver,
    Url,
    checked_int,
    compare,
    parse_quantity,
    parse_semver,
)
from kubeserver.schemas.formats import FORMATS
from kubeserver.wire.goformat import quote as quoted
from kubeserver.wire.names import dns_1035_label, dns_label, dns_subdomain, label_key, label_value

if TYPE_CHECKING:
    from collections.abc import Callable

_INTERFACES: Final = (ipaddress.IPv4Interface, ipaddress.IPv6Interface)


# Addresses


def _parsed_ip(text: Any) -> IPAddress:
    if not isinstance(text, str):
        raise CelError(NO_OVERLOAD)
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        raise CelError(
            f"IP Address {quoted(text)} parse error during conversion from string: "
            f"ParseAddr({quoted(text)}): {_why_no_ip(text)}"
        ) from None
    if isinstance(found, ipaddress.IPv6Address):
        if found.scope_id is not None:
            raise CelError(f"IP address {quoted(text)} with zone value is not allowed")
        if found.ipv4_mapped is not None:
            raise CelError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return found


def _why_no_ip(text: str) -> str:
    """Go's words for what keeps a text from being an address."""
    first = next((character for character in text if character in ".:%"), "")
    if first == ".":
        return _why_no_ipv4(text)
    if first == ":":
        return _why_no_ipv6(text.partition("%")[0])
    return "missing IPv6 address" if first else "unable to parse IP"


def _why_no_ipv4(text: str) -> str:
    fields = text.split(".")
    for place, field in enumerate(fields):
        digits = re.match("[0-9]*", field)
        read = digits.end() if digits else 0
        if len(field) > 1 and read > 1 and field[0] == "0":
            return "IPv4 field has octet with leading zero"
        if read and int(field[:read]) > 255:
            return "IPv4 field has value >255"
        if read < len(field):
            return f"unexpected character (at {quoted('.'.join([field[read:], *fields[place + 1 :]]))})"
        if not field:
            rest = "." + ".".join(fields[place + 1 :]) if place + 1 < len(fields) else text[-1:]
            return f"IPv4 field must have at least one digit (at {quoted(rest)})"
        if place == 3 and len(fields) > 4:
            return "IPv4 address too long"
    return "IPv4 address too short"


def _why_no_ipv6(text: str) -> str:
    rest, groups, gap = text.removeprefix("::") if text.startswith("::") else text, 0, text.startswith("::")
    while rest and groups < 8:
        group = re.match("[0-9A-Fa-f]*", rest)
        read = group.end() if group else 0
        if read == 0:
            return f"each colon-separated field must have at least one digit (at {quoted(rest)})"
        if read > 4:
            return f"each group must have 4 or less digits (at {quoted(rest)})"
        groups += 1
        after = rest[read:]
        if not after:
            rest = ""
            break
        if after[0] != ":":
            return f"unexpected character, want colon (at {quoted(after)})"
        if after == ":":
            return f"colon must be followed by more characters (at {quoted(after)})"
        rest = after[1:]
        if rest.startswith(":"):
            if gap:
                return f"multiple :: in address (at {quoted(rest)})"
            gap, rest = True, rest[1:]
    if rest:
        return f"trailing garbage after address (at {quoted(rest)})"
    return "address string too short" if groups < 8 else "the :: must expand to at least one field of zeros"


def _ip(value: Any) -> IPAddress:
    if isinstance(value, _INTERFACES):
        return value.ip
    return _parsed_ip(value)


def _is(parse: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def parsed(text: Any) -> bool:
        try:
            parse(text)
        except CelError as problem:
            if str(problem) == NO_OVERLOAD:
                raise
            return False
        return True

    return parsed


def _canonical(text: Any) -> bool:
    return bool(str(_parsed_ip(text)) == text)


def _address(value: Any) -> IPAddress:
    if not isinstance(value, (ipaddress.IPv4Address, ipaddress.IPv6Address)) or isinstance(value, _INTERFACES):
        raise CelError(NO_OVERLOAD)
    return value


def _link_local_multicast(value: Any) -> bool:
    address = _address(value)
    if isinstance(address, ipaddress.IPv4Address):
        return address in ipaddress.IPv4Network("224.0.0.0/24")
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


def _global_unicast(value: Any) -> bool:
    address = _address(value)
    broadcast = address == ipaddress.IPv4Address("255.255.255.255")
    apart = (address.is_unspecified, address.is_loopback, address.is_multicast, address.is_link_local)
    return not broadcast and not any(apart)


def _parsed_cidr(text: Any) -> Network:
    if not isinstance(text, str):
        raise CelError(NO_OVERLOAD)
    head, slash, length = text.rpartition("/")
    why = ""
    if not slash:
        why = "no '/'"
    elif not re.fullmatch("0|[1-9][0-9]*", length):
        why = f"bad bits after slash: {quoted(length)}"
    else:
        try:
            found = ipaddress.ip_interface(text)
        except ValueError:
            try:
                ipaddress.ip_address(head)
                why = "prefix length out of range"
            except ValueError:
                why = f"ParseAddr({quoted(head)}): {_why_no_ip(head)}"
        else:
            if isinstance(found, ipaddress.IPv6Interface) and found.ip.ipv4_mapped is not None:
                raise CelError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
            if "%" not in head:
                return found
            why = "IPv6 zones cannot be present in a prefix"
    raise CelError(
        "network address parse error during conversion from string: "
        f"network address parse error during conversion from string: netip.ParsePrefix({quoted(text)}): {why}"
    )


def _contains_ip(network: Any, value: Any) -> bool:
    if isinstance(value, str):
        try:
            address = _parsed_ip(value)
        except CelError:
            raise CelError(NO_OVERLOAD) from None
    else:
        address = _address(value)
    return bool(address.version == network.version and address in network.network)


def _contains_cidr(network: Any, value: Any) -> bool:
    other = _parsed_cidr(value) if isinstance(value, str) else value
    if other.version != network.version or other.network.prefixlen < network.network.prefixlen:
        return False
    return other.ip in network.network


def _masked(network: Any) -> Network:
    return ipaddress.ip_interface(str(network.network))


# URLs

_URL: Final = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?://(?P<authority>[^/?#]*))?(?P<path>[^?]*)(?:\?(?P<query>.*))?",
    re.DOTALL,
)


def _parsed_url(text: Any) -> Url:
    if not isinstance(text, str):
        raise CelError(NO_OVERLOAD)
    match = _URL.fullmatch(text)
    if not FORMATS["uri"](text) or match is None:
        why = "empty url" if not text else "invalid URI for request"
        raise CelError(f"URL parse error during conversion from string: parse {quoted(text)}: {why}")
    host = (match["authority"] or "").rpartition("@")[2]
    return Url((match["scheme"] or "").lower(), host, match["path"], match["query"] or "", text)


def _hostname(url: Url) -> str:
    if url.host.startswith("["):
        return url.host[1:].partition("]")[0]
    return url.host.partition(":")[0]


def _port(url: Url) -> str:
    return url.host.rpartition("]")[2].partition(":")[2]


# Quantities and versions


def _quantity(text: Any) -> Quantity:
    found = parse_quantity(text) if isinstance(text, str) else None
    if found is None:
        raise CelError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    return found


def _whole(quantity: Quantity) -> int:
    if not _is_whole(quantity):
        raise CelError("cannot convert value to integer")
    return checked_int(int(quantity.amount))


def _is_whole(quantity: Quantity) -> bool:
    return quantity.amount.denominator == 1 and -(1 << 63) <= quantity.amount < 1 << 63


def _amount(value: Any) -> Any:
    return value.amount if isinstance(value, Quantity) else value


def _semver(text: Any, lenient: bool = False) -> Semver:
    if not isinstance(text, str):
        raise CelError(NO_OVERLOAD)
    found = parse_semver(text, lenient=lenient)
    if found is None:
        raise CelError("No Major.Minor.Patch elements found")
    return found


def _is_semver(text: Any, lenient: bool = False) -> bool:
    return parse_semver(text, lenient=lenient) is not None


# Named formats


def _standard(name: str, problem: str) -> Callable[[str], list[str]]:
    return lambda text: [] if FORMATS[name](text) else [problem]


def _prefix(rule: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    return lambda text: rule(text[:-1] + "a" if text.endswith("-") else text)


_CHECKS: Final[dict[str, Callable[[str], list[str]]]] = {
    "dns1123Label": dns_label,
    "dns1123Subdomain": dns_subdomain,
    "dns1035Label": dns_1035_label,
    "qualifiedName": label_key,
    "dns1123LabelPrefix": _prefix(dns_label),
    "dns1123SubdomainPrefix": _prefix(dns_subdomain),
    "dns1035LabelPrefix": _prefix(dns_1035_label),
    "labelValue": label_value,
    "uri": _standard("uri", "invalid URI for request"),
    "uuid": _standard("uuid", "does not match the UUID format"),
    "byte": _standard("byte", "invalid base64"),
    "date": _standard("date", "invalid date"),
    "datetime": _standard("datetime", "invalid datetime"),
}


def _validated(format_: Format, text: str) -> Optional:
    problems = _CHECKS[format_.name](text)
    return Optional(problems, present=True) if problems else NONE


def _named_format(name: str) -> Optional:
    return Optional(Format(name), present=True) if name in _CHECKS else NONE


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "ip": _ip,
    "isIP": _is(_parsed_ip),
    "ip.isCanonical": _canonical,
    "family": lambda address: _address(address).version,
    "isUnspecified": lambda address: _address(address).is_unspecified,
    "isLoopback": lambda address: _address(address).is_loopback,
    "isLinkLocalMulticast": _link_local_multicast,
    "isLinkLocalUnicast": lambda address: _address(address).is_link_local,
    "isGlobalUnicast": _global_unicast,
    "cidr": _parsed_cidr,
    "isCIDR": _is(_parsed_cidr),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "masked": _masked,
    "prefixLength": lambda network: network.network.prefixlen,
    "url": _parsed_url,
    "isURL": _is(_parsed_url),
    "getScheme": lambda url: url.scheme,
    "getHost": lambda url: url.host,
    "getHostname": _hostname,
    "getPort": _port,
    "getEscapedPath": lambda url: quote(url.path, safe="/%:@!$&'()*+,;=~-._"),
    "getQuery": lambda url: parse_qs(url.query, keep_blank_values=True),
    "quantity": _quantity,
    "isQuantity": lambda text: isinstance(text, str) and parse_quantity(text) is not None,
    "sign": lambda quantity: (quantity.amount > 0) - (quantity.amount < 0),
    "isGreaterThan": lambda one, other: compare(one, other) > 0,
    "isLessThan": lambda one, other: compare(one, other) < 0,
    "compareTo": compare,
    "asApproximateFloat": lambda quantity: float(quantity.amount),
    "asInteger": _whole,
    "isInteger": _is_whole,
    "add": lambda one, other: Quantity(one.amount + _amount(other)),
    "sub": lambda one, other: Quantity(one.amount - _amount(other)),
    "semver": _semver,
    "isSemver": _is_semver,
    "major": lambda version: version.major,
    "minor": lambda version: version.minor,
    "patch": lambda version: version.patch,
    "validate": _validated,
    "format.named": _named_format,
    **{f"format.{name}": (lambda name=name: Format(name)) for name in _CHECKS},
}
