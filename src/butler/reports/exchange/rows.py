"""Allocations as rows of a file, for people and programs beyond Butler: what `ipam export` writes, `ipam import` reads.

A row has these fields; in JSON and YAML they are spelled in camelCase and stand in a list `allocations`.

    pool              the NetworkPool; may be left empty for import, which then finds it by the addresses
    tenant_namespace  namespace of the TenantCluster
    tenant            its name
    type              nodes or loadbalancer
    start             first address
    end               last address, itself included; empty: the one address `start`
    count             how many these are; for import it may be empty, and must agree otherwise
    phase             Allocated, or where the allocation stands; import passes over rows of any other phase
    allocated_at      when they were granted, in UTC; not looked at by import
    name              the IPAllocation; for import, the name to give it if it is free

The order of the fields, and what they mean, never changes; further ones may be added at the end. Reading is strict: a
column that is not known may be a slip of the pen in one that is. Everything that is wrong is told at once.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from butler.api.ipallocation import IPAllocationPhase, IPAllocationType
from butler.api.meta import NAME_LENGTH, NAMESPACE_LENGTH
from butler.api.objects import Key
from butler.api.text import LARGEST_RANGE
from butler.ipam.addresses import BadAddress, Family, Range, address_text, parse_range
from butler.ipam.refusals import invalid_count
from butler.rules.allocation.held import granted_range
from butler.rules.allocation.owner import tenant_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from butler.api.ipallocation import IPAllocation

FIELDS = (
    "pool", "tenant_namespace", "tenant", "type", "start", "end", "count", "phase", "allocated_at", "name",
)  # fmt: skip
NEEDED = ("tenant_namespace", "tenant", "type", "start")
MOST_ROWS = 10_000
"""How many rows one import takes."""
FORMAT = "butler-allocations/v1"
"""What a JSON or YAML file says of itself."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


class UnreadableFile(ValueError):
    """A file that as a whole is no list of allocations; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class ExchangeRow:
    """Addresses that, by a row of the file, a tenant has."""

    where: str
    """Where it is said, as a person finds it: `line 4`, `entry 3`, `Node web-1`."""
    tenant: Key
    type: IPAllocationType
    addresses: Range
    pool: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that makes no sense, and why."""

    where: str
    message: str


@dataclass(frozen=True, slots=True)
class Contents:
    """What was read."""

    rows: tuple[ExchangeRow, ...] = ()
    bad: tuple[BadRow, ...] = ()
    passed_over: tuple[BadRow, ...] = ()
    """Rows which say themselves that no tenant has the addresses now."""


# Writing.


def record(allocation: IPAllocation) -> dict[str, Any]:
    """An allocation as a row, in the order of `FIELDS`; what it has not is None."""
    spec, status, granted = allocation.spec, allocation.status, granted_range(allocation)
    ends = None if granted is None else [address_text(number, granted[0]) for number in granted[1]]
    tenant = tenant_key(allocation)
    return {
        "pool": spec.pool_ref.name,
        "tenant_namespace": tenant.namespace,
        "tenant": tenant.name,
        "type": str(spec.type),
        "start": ends[0] if ends else None,
        "end": ends[1] if ends else None,
        "count": granted[1].size if granted else None,
        "phase": str(status.phase),
        "allocated_at": status.allocated_at.strftime("%Y-%m-%dT%H:%M:%SZ") if status.allocated_at else None,
        "name": allocation.metadata.name,
    }


def in_order(allocations: Iterable[IPAllocation]) -> list[IPAllocation]:
    """By pool and address, so that two exports of one estate are the same; those without addresses last."""

    def place(each: IPAllocation) -> tuple[Any, ...]:
        granted = granted_range(each)
        return each.spec.pool_ref.name, granted is None, granted or (), each.metadata.name

    return sorted(allocations, key=place)


def document(allocations: Iterable[IPAllocation]) -> dict[str, Any]:
    """The whole of a JSON or YAML file."""
    rows = [{_camel(field): value for field, value in record(allocation).items()} for allocation in allocations]
    return {"format": FORMAT, "allocations": rows}


def _camel(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(text.capitalize() for text in rest)


_BY_CAMEL = {_camel(field): field for field in FIELDS}


# Reading.


def read_csv(text: str) -> Contents:
    """The rows of a CSV file with a header. Raises `UnreadableFile`."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    found: list[tuple[str, Mapping[str, Any] | str]] = []
    header: list[str] | None = None
    began = 1
    try:
        for cells in reader:
            where, began = f"line {began}", reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = _header(cells)
                continue
            found.append((where, _cells(header, cells)))
            _bounded(found)
    except csv.Error as error:
        raise UnreadableFile(f"line {reader.line_num} is no CSV ({error}): mend it, or say --format") from None
    if header is None:
        raise UnreadableFile(f"it is empty: begin it with a header, {','.join(FIELDS)}")
    return _read(found)


def _header(cells: Sequence[str]) -> list[str]:
    header = [cell.strip() for cell in cells]
    if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
        raise UnreadableFile("its columns are not separated by commas: separate them by commas")
    for field in header:
        if field not in FIELDS:
            close = get_close_matches(field, FIELDS, 1, 0.6)
            meant = f" (is {close[0]} meant?)" if close else ""
            raise UnreadableFile(
                f"column {_quoted(field)} is not known{meant}: the header may have {', '.join(FIELDS)}"
            )
    if twice := sorted({field for field in header if header.count(field) > 1}):
        raise UnreadableFile(f"column {twice[0]} is there twice: keep one of the two")
    if missing := [field for field in NEEDED if field not in header]:
        raise UnreadableFile(f"its header has no {' and no '.join(missing)}: it needs {', '.join(NEEDED)}")
    return header


def _cells(header: Sequence[str], cells: Sequence[str]) -> Mapping[str, Any] | str:
    if len(cells) > len(header):
        return f"it has {len(cells)} cells, and the header has {len(header)}: quote cells with commas in them"
    return dict(zip(header, (cell.strip() for cell in cells), strict=False))


def read_document(value: Any) -> Contents:
    """The rows of a JSON or YAML file: what `document` makes, or only its list. Raises `UnreadableFile`."""
    if isinstance(value, dict):
        said = value.get("format")
        if said is not None and said != FORMAT:
            raise UnreadableFile(f"its format is {_quoted(said)}: this version reads {FORMAT}")
        value = value.get("allocations")
    if not isinstance(value, list):
        raise UnreadableFile("it has no list of allocations: `butleradm ipam export -o json` shows the form")
    if not value:
        raise UnreadableFile("it is empty: its list of allocations has no entry")
    found: list[tuple[str, Mapping[str, Any] | str]] = []
    for number, each in enumerate(value, 1):
        found.append((f"entry {number}", _entry(each)))
        _bounded(found)
    return _read(found)


def _entry(each: Any) -> Mapping[str, Any] | str:
    if not isinstance(each, dict):
        return f"{_quoted(each)} is no allocation: write a mapping with {', '.join(map(_camel, NEEDED))}"
    fields = {_BY_CAMEL.get(str(name), ""): value for name, value in each.items()}
    if "" in fields:
        stranger = next(str(name) for name in each if str(name) not in _BY_CAMEL)
        close = get_close_matches(stranger, _BY_CAMEL, 1, 0.6)
        meant = f" (is {close[0]} meant?)" if close else ""
        return f"field {_quoted(stranger)} is not known{meant}: it may have {', '.join(_BY_CAMEL)}"
    for field, value in fields.items():
        # YAML reads 10.40 as a number, and a time as a time.
        if not isinstance(value, str | None) and field not in ("count", "allocated_at"):
            return f"{_camel(field)} is {_quoted(value)}, which is no text: put it in quotes"
    return {field: "" if value is None else str(value).strip() for field, value in fields.items()}


def _bounded(found: Sequence[object]) -> None:
    if len(found) > MOST_ROWS:
        raise UnreadableFile(f"it has more than {MOST_ROWS:,} rows: split it, and import one part after the other")


def _read(found: Sequence[tuple[str, Mapping[str, Any] | str]]) -> Contents:
    if not found:
        raise UnreadableFile("it has a header and no rows: nothing is there to import")
    rows: list[ExchangeRow] = []
    bad: list[BadRow] = []
    passed_over: list[BadRow] = []
    for where, fields in found:
        if isinstance(fields, str):
            bad.append(BadRow(where, fields))
            continue
        try:
            idle = _idle(fields.get("phase", ""))
            if idle:
                passed_over.append(BadRow(where, idle))
            else:
                rows.append(_row(where, fields))
        except (BadAddress, UnreadableFile) as error:
            bad.append(BadRow(where, str(error)))
    read = among_themselves(Contents(tuple(rows), tuple(bad), tuple(passed_over)))
    places = {where: place for place, (where, _) in enumerate(found)}
    return replace(read, bad=tuple(sorted(read.bad, key=lambda bad_row: places[bad_row.where])))


def _idle(phase: str) -> str:
    """Why a row of this phase holds nothing; empty for one that does."""
    if phase in ("", IPAllocationPhase.ALLOCATED):
        return ""
    if phase not in tuple(IPAllocationPhase):
        raise UnreadableFile(f"phase {_quoted(phase)} is not known: leave it empty, or write Allocated")
    return f"it is {phase} and holds nothing"


def _row(where: str, fields: Mapping[str, Any]) -> ExchangeRow:
    for field in NEEDED:
        if not fields.get(field):
            raise UnreadableFile(f"it has no {field}: say it")
    tenant = Key(
        _named(fields["tenant_namespace"], "tenant_namespace", _LABEL, NAMESPACE_LENGTH),
        _named(fields["tenant"], "tenant", _LABEL, NAMESPACE_LENGTH),
    )
    if fields["type"] not in tuple(IPAllocationType):
        raise UnreadableFile(f"type {_quoted(fields['type'])} is not known: write {' or '.join(IPAllocationType)}")
    addresses = read_addresses(fields["start"], fields.get("end") or fields["start"])
    count = fields.get("count") or str(addresses.size)
    if count != str(addresses.size):
        raise UnreadableFile(f"count says {_quoted(count)}, but from start to end there are {addresses.size}: mend one")
    pool, name = fields.get("pool", ""), fields.get("name", "")
    return ExchangeRow(
        where,
        tenant,
        IPAllocationType(fields["type"]),
        addresses,
        _named(pool, "pool", _NAME, NAME_LENGTH) if pool else "",
        _named(name, "name", _NAME, NAME_LENGTH) if name else "",
    )


def read_addresses(start: str, end: str) -> Range:
    """A range that one allocation may hold. Raises BadAddress."""
    family, addresses = parse_range(_short(start), _short(end))
    if family is not Family.V4:
        raise BadAddress(f"{start} is an IPv6 address: pools hand out IPv4 only")
    if addresses.size > LARGEST_RANGE:
        raise BadAddress(f"it {invalid_count(addresses.size)[1]}")
    return addresses


def _named(text: str, field: str, pattern: re.Pattern[str], longest: int) -> str:
    if len(text) > longest or not pattern.fullmatch(text):
        raise UnreadableFile(
            f"{field} {_quoted(text)} is no name in Kubernetes: use a-z, 0-9 and - in at most {longest}"
        )
    return text


def among_themselves(contents: Contents) -> Contents:
    """The same, with rows that cannot both be true moved to the bad ones."""
    bad = list(contents.bad)
    good: list[ExchangeRow] = []
    names: dict[str, ExchangeRow] = {}
    furthest: ExchangeRow | None = None
    order = {id(row): place for place, row in enumerate(contents.rows)}
    for row in sorted(contents.rows, key=lambda row: (row.addresses, order[id(row)])):
        twin = names.get(row.name)
        if furthest is not None and row.addresses.first <= furthest.addresses.last:
            bad.append(BadRow(row.where, _clash(row, furthest)))
        elif row.name and twin is not None:
            bad.append(BadRow(row.where, f"its name {row.name} is that of {twin.where}, too: give it another"))
        else:
            good.append(row)
        names.setdefault(row.name, row)
        if furthest is None or row.addresses.last > furthest.addresses.last:
            furthest = row
    good.sort(key=lambda row: order[id(row)])
    return Contents(tuple(good), tuple(bad), contents.passed_over)


def _clash(row: ExchangeRow, other: ExchangeRow) -> str:
    if (row.tenant, row.type, row.addresses) == (other.tenant, other.type, other.addresses):
        return f"it says the same as {other.where}: remove one of the two"
    whose = "the same tenant" if row.tenant == other.tenant else str(other.tenant)
    shared = address_text(row.addresses.first, Family.V4)
    return (
        f"{shared} is in {other.where} too, as {other.type} of {whose}: an address has one owner, so mend one of them"
    )


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"


def _quoted(value: object) -> str:
    """A value as it was written, not at length; what has parts is only named, as they may be without end."""
    if isinstance(value, str):
        return repr(_short(value))
    return str(value)[:60] if isinstance(value, int | float) else f"a {type(value).__name__}"
