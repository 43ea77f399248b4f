"""The functions expressions may call, by signature.

One line per overload. The checker reads the types; which Python function stands behind a name is in `FUNCTIONS`.
There is one Python function per name, whatever the overload: it looks at its arguments, because values that are
dynamic to the checker (int-or-string) decide only when they come.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from kubeserver.cel import types as t
from kubeserver.cel.functions import FUNCTIONS as _PLAIN
from kubeserver.cel.kubernetes import FUNCTIONS as _OURS

if TYPE_CHECKING:
    from collections.abc import Callable

_SIGNATURES: Final = """
_?_:_(bool, A, A): A
_&&_(bool, bool): bool
_||_(bool, bool): bool
!_(bool): bool
-_(int): int
-_(double): double
_==_(A, A): bool
_!=_(A, A): bool
_+_(int, int): int
_+_(uint, uint): uint
_+_(double, double): double
_+_(string, string): string
_+_(bytes, bytes): bytes
_+_(list(A), list(A)): list(A)
_+_(timestamp, duration): timestamp
_+_(duration, timestamp): timestamp
_+_(duration, duration): duration
_-_(int, int): int
_-_(uint, uint): uint
_-_(double, double): double
_-_(timestamp, timestamp): duration
_-_(timestamp, duration): timestamp
_-_(duration, duration): duration
_*_(int, int): int
_*_(uint, uint): uint
_*_(double, double): double
_/_(int, int): int
_/_(uint, uint): uint
_/_(double, double): double
_%_(int, int): int
_%_(uint, uint): uint
_[_](list(A), int): A
_[_](map(A, B), A): B
_[_](optional(list(A)), int): optional(A)
_[_](optional(map(A, B)), A): optional(B)
_[?_](list(A), int): optional(A)
_[?_](map(A, B), A): optional(B)
_[?_](optional(list(A)), int): optional(A)
_[?_](optional(map(A, B)), A): optional(B)
@in(A, list(A)): bool
@in(A, map(A, B)): bool
size(string): int
size(bytes): int
size(list(A)): int
size(map(A, B)): int
string.size(): int
bytes.size(): int
list(A).size(): int
map(A, B).size(): int
type(A): type(A)
dyn(A): dyn
int(int): int
int(uint): int
int(double): int
int(string): int
int(timestamp): int
int(duration): int
uint(uint): uint
uint(int): uint
uint(double): uint
uint(string): uint
double(double): double
double(int): double
double(uint): double
double(string): double
bool(bool): bool
bool(string): bool
bytes(bytes): bytes
bytes(string): bytes
string(string): string
string(bool): string
string(int): string
string(uint): string
string(double): string
string(bytes): string
string(timestamp): string
string(duration): string
string(IP): string
string(CIDR): string
timestamp(timestamp): timestamp
timestamp(string): timestamp
timestamp(int): timestamp
duration(duration): duration
duration(string): duration
duration(int): duration
matches(string, string): bool
string.matches(string): bool
string.contains(string): bool
string.startsWith(string): bool
string.endsWith(string): bool
string.charAt(int): string
string.indexOf(string): int
string.indexOf(string, int): int
string.lastIndexOf(string): int
string.lastIndexOf(string, int): int
string.lowerAscii(): string
string.upperAscii(): string
string.replace(string, string): string
string.replace(string, string, int): string
string.split(string): list(string)
string.split(string, int): list(string)
string.substring(int): string
string.substring(int, int): string
string.trim(): string
string.format(list(dyn)): string
strings.quote(string): string
list(string).join(): string
list(string).join(string): string
string.find(string): string
string.findAll(string): list(string)
string.findAll(string, int): list(string)
list(A).indexOf(A): int
list(A).lastIndexOf(A): int
list(dyn).flatten(): list(dyn)
list(A).slice(int, int): list(A)
list(A).distinct(): list(A)
list(A).reverse(): list(A)
list(A).first(): optional(A)
list(A).last(): optional(A)
lists.range(int): list(int)
sets.contains(list(A), list(A)): bool
sets.equivalent(list(A), list(A)): bool
sets.intersects(list(A), list(A)): bool
timestamp.getFullYear(): int
timestamp.getFullYear(string): int
timestamp.getMonth(): int
timestamp.getMonth(string): int
timestamp.getDayOfYear(): int
timestamp.getDayOfYear(string): int
timestamp.getDayOfMonth(): int
timestamp.getDayOfMonth(string): int
timestamp.getDate(): int
timestamp.getDate(string): int
timestamp.getDayOfWeek(): int
timestamp.getDayOfWeek(string): int
timestamp.getHours(): int
timestamp.getHours(string): int
timestamp.getMinutes(): int
timestamp.getMinutes(string): int
timestamp.getSeconds(): int
timestamp.getSeconds(string): int
timestamp.getMilliseconds(): int
timestamp.getMilliseconds(string): int
duration.getHours(): int
duration.getMinutes(): int
duration.getSeconds(): int
duration.getMilliseconds(): int
optional.of(A): optional(A)
optional.ofNonZeroValue(A): optional(A)
optional.none(): optional(A)
optional(A).value(): A
optional(A).hasValue(): bool
optional(A).orValue(A): A
optional(A).or(optional(A)): optional(A)
optional.unwrap(list(optional(A))): list(A)
list(optional(A)).unwrapOpt(): list(A)
ip(string): IP
isIP(string): bool
ip.isCanonical(string): bool
IP.family(): int
IP.isUnspecified(): bool
IP.isLoopback(): bool
IP.isLinkLocalMulticast(): bool
IP.isLinkLocalUnicast(): bool
IP.isGlobalUnicast(): bool
cidr(string): CIDR
isCIDR(string): bool
CIDR.containsIP(string): bool
CIDR.containsIP(IP): bool
CIDR.containsCIDR(string): bool
CIDR.containsCIDR(CIDR): bool
CIDR.ip(): IP
CIDR.masked(): CIDR
CIDR.prefixLength(): int
url(string): URL
isURL(string): bool
URL.getScheme(): string
URL.getHost(): string
URL.getHostname(): string
URL.getPort(): string
URL.getEscapedPath(): string
URL.getQuery(): map(string, list(string))
quantity(string): Quantity
isQuantity(string): bool
sign(Quantity): int
Quantity.isGreaterThan(Quantity): bool
Quantity.isLessThan(Quantity): bool
Quantity.compareTo(Quantity): int
Quantity.asApproximateFloat(): double
Quantity.asInteger(): int
Quantity.isInteger(): bool
Quantity.add(Quantity): Quantity
Quantity.add(int): Quantity
Quantity.sub(Quantity): Quantity
Quantity.sub(int): Quantity
semver(string): Semver
semver(string, bool): Semver
isSemver(string): bool
isSemver(string, bool): bool
Semver.isGreaterThan(Semver): bool
Semver.isLessThan(Semver): bool
Semver.compareTo(Semver): int
Semver.major(): int
Semver.minor(): int
Semver.patch(): int
format.named(string): optional(Format)
Format.validate(string): optional(list(string))
"""
_ORDERED: Final = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_NUMBERS: Final = ("int", "uint", "double")
_FORMAT_NAMES: Final = (
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
)
_NAMED: Final = {
    "int": t.INT,
    "uint": t.UINT,
    "double": t.DOUBLE,
    "bool": t.BOOL,
    "string": t.STRING,
    "bytes": t.BYTES,
    "timestamp": t.TIMESTAMP,
    "duration": t.DURATION,
    "dyn": t.DYN,
    "A": t.A,
    "B": t.B,
    "IP": t.IP,
    "CIDR": t.CIDR,
    "URL": t.URL,
    "Quantity": t.QUANTITY,
    "Semver": t.SEMVER,
    "Format": t.FORMAT,
}


@dataclass(slots=True, frozen=True)
class Overload:
    parameters: tuple[t.Type, ...]  # the target first, if it is a member
    result: t.Type
    member: bool


def _generated() -> list[str]:
    lines = []
    for operator in ("<", "<=", ">", ">="):
        lines += [f"_{operator}_({kind}, {kind}): bool" for kind in _ORDERED]
        lines += [f"_{operator}_({one}, {two}): bool" for one in _NUMBERS for two in _NUMBERS if one != two]
    for kind in _ORDERED:
        lines.append(f"list({kind}).isSorted(): bool")
        lines += [f"list({kind}).{name}(): {kind}" for name in ("min", "max")]
        lines.append(f"list({kind}).sort(): list({kind})")
    lines += [f"list({kind}).sum(): {kind}" for kind in ("int", "uint", "double", "duration")]
    lines += [f"format.{name}(): Format" for name in _FORMAT_NAMES]
    return lines


def _type(text: str) -> t.Type:
    text = text.strip()
    if text in _NAMED:
        return _NAMED[text]
    outer, _, inner = text.partition("(")
    parts = [_type(part) for part in _split(inner.removesuffix(")"))]
    return t.Type("optional_type" if outer == "optional" else outer, tuple(parts))


def _split(text: str) -> list[str]:
    """The parts of a comma-separated list that may contain lists."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]] if text.strip() else []


_NAMESPACES: Final = ("optional", "strings", "lists", "sets", "ip", "format")
_LINE: Final = re.compile(r"(?:(?P<target>.+)\.)?(?P<name>[^.(]+)\((?P<arguments>.*)\): (?P<result>.+)")


@cache
def declarations() -> dict[str, tuple[Overload, ...]]:
    """All overloads by function name."""
    found: dict[str, list[Overload]] = {}
    for line in [*_SIGNATURES.strip().splitlines(), *_generated()]:
        match = _LINE.fullmatch(line)
        assert match is not None, line
        target, name = match["target"], match["name"]
        arguments = [_type(part) for part in _split(match["arguments"])]
        member = target is not None and target not in _NAMESPACES
        if member:
            arguments.insert(0, _type(target))
        elif target is not None:
            name = f"{target}.{name}"
        found.setdefault(name, []).append(Overload(tuple(arguments), _type(match["result"]), member))
    return {name: tuple(overloads) for name, overloads in found.items()}


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {**_PLAIN, **_OURS}
TYPE_NAMES: Final = {
    "int": t.INT,
    "uint": t.UINT,
    "double": t.DOUBLE,
    "bool": t.BOOL,
    "string": t.STRING,
    "bytes": t.BYTES,
    "list": t.list_of(t.DYN),
    "map": t.map_of(t.DYN, t.DYN),
    "null_type": t.NULL,
    "type": t.type_of(t.DYN),
    "dyn": t.DYN,
    "optional_type": t.optional_of(t.DYN),
    "google.protobuf.Timestamp": t.TIMESTAMP,
    "google.protobuf.Duration": t.DURATION,
    "net.IP": t.IP,
    "net.CIDR": t.CIDR,
    "kubernetes.URL": t.URL,
    "kubernetes.Quantity": t.QUANTITY,
    "kubernetes.Semver": t.SEMVER,
}
