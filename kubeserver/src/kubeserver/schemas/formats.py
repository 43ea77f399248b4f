"""The string formats that a custom resource's schema may ask for, as Kubernetes checks them.

A format not listed here is accepted and never checked, which is what Kubernetes does with it. Several checks are
laxer than their names say (`ipv4` takes leading zeros and `::ffff:1.2.3.4`, `uuid` takes missing dashes, `duration`
takes "3 weeks"); they stay lax, because tightening them would refuse objects that a real cluster holds.
"""

from __future__ import annotations

import ipaddress
import re
from datetime import date
from typing import TYPE_CHECKING, Final

from kubeserver.schemas.linear import Automaton
from kubeserver.schemas.regex import compile_go

if TYPE_CHECKING:
    from collections.abc import Callable


def normalized(name: str) -> str:
    """Formats are known by their name without dashes: `date-time` and `datetime` are the same."""
    return name.replace("-", "")


def parse_ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address as Go's lenient parser takes it: leading zeros are fine, zones are not."""
    if re.fullmatch(r"[0-9]+(\.[0-9]+){3}", text):
        parts = [int(part) for part in text.split(".")]
        return ipaddress.IPv4Address(bytes(parts)) if max(parts) < 256 else None
    if ":" not in text or "%" in text:
        return None
    head, dot, _ = text.partition(".")
    if dot:
        prefix, _, _ = head.rpartition(":")
        tail = parse_ip(text[len(prefix) + 1 :])
        if tail is None:
            return None
        text = f"{prefix}:{tail}"
    try:
        return ipaddress.IPv6Address(text)
    except ValueError:
        return None


def is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    found = parse_ip(address)
    if not slash or found is None or not re.fullmatch("[0-9]{1,3}", length):
        return False
    return int(length) <= found.max_prefixlen


def _is_hostname(text: str) -> bool:
    if len(text.encode()) > 255 or any(len(part.encode()) > 63 for part in text.split(".")):
        return False
    return _HOSTNAME().search(text)


def _HOSTNAME() -> Automaton:  # noqa: N802 - a constant that is costly to make and seldom needed
    letter = r"a-zA-Z0-9\p{S}\p{L}"
    label = f"[{letter}](([{letter}-]{{0,61}}[{letter}])?)"
    return compile_go(rf"^([{letter}]((-?[{letter}]{{0,62}})?)|({label}(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}})$")


_ATOM: Final = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\-\u0080-\U0010ffff]+"
_ADDRESS: Final = rf'(?:{_ATOM}(?:\.{_ATOM})*|"(?:[^"\\\r\n]|\\.)*")@(?:{_ATOM}(?:\.{_ATOM})*|\[[0-9A-Fa-f:.]+\])'
_BLANK: Final = r"[ \t\n\r\f\v]*"
# `re` would try every way to cut a long name into atoms.
_EMAIL: Final = Automaton(
    rf'\A{_BLANK}(?:{_ADDRESS}|(?:{_ATOM}|"(?:[^"\\\r\n]|\\.)*"|[. \t\n\r\f\v])*<{_BLANK}{_ADDRESS}{_BLANK}>){_BLANK}\Z'
)
_URI: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.\-]*:|(?=/))(?:%[0-9A-Fa-f]{2}|[^%\x00-\x1f\x7f])*|\*")
_AUTHORITY: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.\-]*:)//([^/?]*)")
_HOST: Final = re.compile(r"(?:[^@]*@)?(?:\[[^\]]*\]|[^\s:\[\]<>\"\\^`{}|#]*)(?::[0-9]*)?")


def _is_uri(text: str) -> bool:
    if not _URI.fullmatch(text):
        return False
    authority = _AUTHORITY.match(text)
    return authority is None or _HOST.fullmatch(authority.group(1)) is not None


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    year, month, day = (int(part) for part in text.split("-"))
    try:
        # Go counts the year 0 as a leap year, Python has no such year.
        date(year or 4, month, day)
    except ValueError:
        return False
    return True


_CLOCK: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")


def _is_date_time(text: str) -> bool:
    if len(text) < 4:
        return False
    parts = text.lower().split("t")
    if len(parts) < 2 or not _is_date(parts[0]):
        return False
    found = _CLOCK.fullmatch(parts[1])
    return found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


_GO_DURATION: Final = re.compile(r"[+-]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_UNITS: Final = re.compile(
    r"(ns|nano.*|us|µs|micro.*|ms|milli.*|s|sec.*|m|min.*|h|hr|hour.*|d|day.*|w|wk|week.*)", re.IGNORECASE
)


def _is_duration(text: str) -> bool:
    if _GO_DURATION.fullmatch(text):
        return True
    return any(_UNITS.fullmatch(unit) for unit in re.findall(r"(?<![0-9])[0-9]+\s*([A-Za-zµ]+)", text))


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{9}[0-9X]", digits):
        return False
    values = [10 if digit == "X" else int(digit) for digit in digits]
    return sum(place * value for place, value in enumerate(values, start=1)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{13}", digits):
        return False
    checksum = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits[:12]))
    return int(digits[12]) == (10 - checksum % 10) % 10


_CARD: Final = re.compile(
    "4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    "|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)


def _is_credit_card(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    if not _CARD.fullmatch(digits):
        return False
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _matches(pattern: str, flags: int = 0) -> Callable[[str], bool]:
    compiled = re.compile(pattern, flags)
    return lambda text: compiled.fullmatch(text) is not None


def _uuid(third: str, fourth: str) -> Callable[[str], bool]:
    return _matches(f"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{third}-?{fourth}-?[0-9a-f]{{12}}", re.IGNORECASE)


_MAC: Final = (
    "(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}|(?:[0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2}"
    "|(?:[0-9A-Fa-f]{2}:){7}[0-9A-Fa-f]{2}|(?:[0-9A-Fa-f]{2}-){7}[0-9A-Fa-f]{2}"
    "|(?:[0-9A-Fa-f]{2}:){19}[0-9A-Fa-f]{2}|(?:[0-9A-Fa-f]{2}-){19}[0-9A-Fa-f]{2}"
    r"|[0-9A-Fa-f]{4}(?:\.[0-9A-Fa-f]{4}){2}|[0-9A-Fa-f]{4}(?:\.[0-9A-Fa-f]{4}){3}|[0-9A-Fa-f]{4}(?:\.[0-9A-Fa-f]{4}){9}"
)
_BYTE_QUAD: Final = "[A-Za-z0-9+/]{4}"
_CHANNEL: Final = r"\s*(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*"

# By normalized name. What is not here is not checked.
FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "bsonobjectid": _matches("[0-9a-fA-F]{24}"),
    "uri": _is_uri,
    "email": _EMAIL.search,
    "hostname": _is_hostname,
    "ipv4": lambda text: "." in text and parse_ip(text) is not None,
    "ipv6": lambda text: ":" in text and parse_ip(text) is not None,
    "cidr": is_cidr,
    "mac": _matches(_MAC),
    "uuid": _uuid("[0-9a-f]{4}", "[0-9a-f]{4}"),
    "uuid3": _uuid("3[0-9a-f]{3}", "[0-9a-f]{4}"),
    "uuid4": _uuid("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
    "uuid5": _uuid("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": lambda text: len(text) == 11 and _matches("[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}")(text),
    "hexcolor": _matches("#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(rf"rgb\({_CHANNEL},{_CHANNEL},{_CHANNEL}\)"),
    "byte": _matches(f"(?:{_BYTE_QUAD})*(?:[A-Za-z0-9+/]{{2}}==|[A-Za-z0-9+/]{{3}}=|{_BYTE_QUAD})"),
    "password": lambda _: True,
    "date": _is_date,
    "duration": _is_duration,
    "datetime": _is_date_time,
    "k8sshortname": _matches("(?=.{0,63}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?"),
    "k8slongname": _matches(r"(?=.{0,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"),
}


def effective(schema_type: str, name: str) -> str:
    """The format that is really checked for a type; empty where Kubernetes ignores what is written."""
    if schema_type in ("", "string"):
        return name if normalized(name) in FORMATS else ""
    if schema_type == "integer":
        return name if name in ("int32", "int64") else ""
    if schema_type == "number":
        return name if name in ("float", "double") else ""
    return ""
