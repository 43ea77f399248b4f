"""The other faces of an object: a row of a table, or its metadata alone.

kubectl asks for a Table (`application/json;as=Table;v=v1;g=meta.k8s.io`) and prints what it gets; collectors
and caches that need no more ask for PartialObjectMetadata. `negotiate` reads the wish from the Accept header,
`TableView` and the `partial_*` functions fulfil it.

Objects are never changed here, and the rows share their metadata: encode what you get, do not edit it.
Time comes in as `now`, so the same objects at the same moment are the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from kubeserver.resources import PrintedColumn
from kubeserver.views.cells import Since, age, name_of
from kubeserver.views.jsonpath import JsonPathError, bounded, compile_path, printed
from kubeserver.views.printers import columns_of
from kubeserver.views.printers_workloads import row_conditions
from kubeserver.wire.status import ApiError, bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kubeserver.resources import Resource

Json = dict[str, Any]
IncludeObject = Literal["None", "Metadata", "Object"]
Shape = Literal["Object", "Table", "PartialObjectMetadata", "PartialObjectMetadataList", "APIGroupDiscoveryList"]

_META_GROUP: Final = "meta.k8s.io"
_DISCOVERY_GROUP: Final = "apidiscovery.k8s.io"
_NAME: Final = PrintedColumn("Name", format="name", description="The name of the object.", cell=name_of)
_CUSTOM_AGE: Final = PrintedColumn(
    "Age",
    type="date",
    description="Time since the object was created.",
    json_path=".metadata.creationTimestamp",
)


@dataclass(slots=True, frozen=True)
class Representation:
    """What the client wants to read: which shape, in which version of it, written how."""

    media_type: str = "application/json"  # or application/yaml
    shape: Shape = "Object"
    version: str = "v1"
    pretty: bool = False
    profile: str = ""

    @property
    def yaml(self) -> bool:
        return self.media_type == "application/yaml"

    @property
    def content_type(self) -> str:
        """The Content-Type of the answer. Only discovery names its shape in it."""
        if self.shape == "APIGroupDiscoveryList":
            return f"{self.media_type};g={_DISCOVERY_GROUP};v={self.version};as={self.shape}"
        return self.media_type


_MEDIA_TYPES: Final = ("application/json", "application/yaml")
_META_SHAPES: Final = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})


@lru_cache(maxsize=512)
def negotiate(accept: str, *, streaming: bool = False, discovery: bool = False) -> Representation:
    """The first wish of an Accept header that can be fulfilled; ApiError 406 if there is none.

    `discovery` is for `/api` and `/apis`, where the only other shape is the aggregated document.
    """
    if not accept:
        return Representation()
    media_types = _MEDIA_TYPES[:1] if streaming else _MEDIA_TYPES
    for wanted, parameters in _clauses(accept):
        for media_type in media_types:
            if wanted in {media_type, "*/*", "application/*"}:
                found = _acceptable(media_type, parameters, discovery=discovery)
                if found is not None:
                    return found
    raise ApiError(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(_MEDIA_TYPES)}")


def _clauses(accept: str) -> list[tuple[str, dict[str, str]]]:
    found: list[tuple[float, bool, str, dict[str, str]]] = []
    for clause in accept.split(","):
        wanted, *rest = (part.strip() for part in clause.split(";"))
        if wanted == "*":
            wanted = "*/*"
        if wanted.count("/") != 1:
            continue
        parameters = dict(text.split("=") for text in rest if text.count("=") == 1)
        parameters = {key.strip(): value.strip() for key, value in parameters.items()}
        quality = parameters.pop("q", "1")
        found.append((-_quality(quality), wanted.endswith("*"), wanted, parameters))
    found.sort(key=lambda pair: pair[:2])
    return [(wanted, parameters) for _, _, wanted, parameters in found]


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _acceptable(media_type: str, parameters: dict[str, str], *, discovery: bool) -> Representation | None:
    if parameters.get("sv") or parameters.get("stream", "watch") != "watch":
        return None
    pretty = parameters.get("pretty") == "1"
    if not parameters.keys() & {"as", "g", "v"}:
        return Representation(media_type, pretty=pretty)
    group, version = parameters.get("g", ""), parameters.get("v", "")
    shape = parameters.get("as", "")
    if discovery:
        if (shape, group) != ("APIGroupDiscoveryList", _DISCOVERY_GROUP) or version != "v2":
            return None
        return Representation(media_type, "APIGroupDiscoveryList", version, pretty, parameters.get("profile", ""))
    if group == _META_GROUP and version in {"v1", "v1beta1"} and shape in _META_SHAPES:
        return Representation(media_type, shape, version, pretty)  # type: ignore[arg-type]
    return None


def include_object(text: str) -> IncludeObject:
    """The `includeObject` query parameter of a request for a Table."""
    if text in {"None", "Metadata", "Object"}:
        return text  # type: ignore[return-value]
    if text:
        raise bad_request(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{text}": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    return "Metadata"


class TableView:
    """How the objects of one resource become rows. Build it once per request, or keep it with the resource."""

    __slots__ = ("_cells", "_definitions", "_include", "_is_pod", "_version")

    def __init__(self, resource: Resource, include: IncludeObject = "Metadata", version: str = "v1") -> None:
        columns = _columns(resource)
        self._cells = tuple(_cell(column) for column in columns)
        self._definitions = [_definition(column) for column in columns]
        self._include = include
        self._version = f"{_META_GROUP}/{version}"
        self._is_pod = (resource.group, resource.plural) == ("", "pods")

    def table(self, objects: Sequence[Json], list_metadata: Json, now: datetime, *, headers: bool = True) -> Json:
        """A whole Table. A watch sends one per event and sets `headers` only for the first."""
        return {
            "kind": "Table",
            "apiVersion": self._version,
            "metadata": list_metadata,
            "columnDefinitions": self._definitions if headers else None,
            "rows": [self.row(obj, now) for obj in objects],
        }

    def row(self, obj: Json, now: datetime) -> Json:
        with bounded():
            row: Json = {"cells": [cell(obj, now) for cell in self._cells]}
        if self._is_pod and (conditions := row_conditions(obj)):
            row["conditions"] = conditions
        if self._include == "Object":
            row["object"] = obj
        elif self._include == "Metadata":
            row["object"] = {
                "kind": "PartialObjectMetadata",
                "apiVersion": self._version,
                "metadata": obj["metadata"],
            }
        else:
            row["object"] = None
        return row


def table(
    resource: Resource,
    objects: Sequence[Json],
    *,
    include_object: IncludeObject,
    list_metadata: Json,
    now: datetime,
) -> Json:
    """A meta.k8s.io/v1 Table of some objects of one resource."""
    return TableView(resource, include_object).table(objects, list_metadata, now)


def partial_metadata(obj: Json, version: str = "v1") -> Json:
    """An object without anything but its metadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"{_META_GROUP}/{version}",
        "metadata": obj["metadata"],
    }


def partial_metadata_list(objects: Sequence[Json], list_metadata: Json, version: str = "v1") -> Json:
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"{_META_GROUP}/{version}",
        "metadata": list_metadata,
        "items": [partial_metadata(obj, version) for obj in objects],
    }


def _columns(resource: Resource) -> tuple[PrintedColumn, ...]:
    if not resource.custom:
        return resource.columns or columns_of(resource.group, resource.plural)
    return (_NAME, *(resource.columns or (_CUSTOM_AGE,)))


def _definition(column: PrintedColumn) -> Json:
    described = column.description
    if not described and column.json_path:
        described = f"Custom resource definition column (in JSONPath format): {column.json_path}"
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": described,
        "priority": column.priority,
    }


def _cell(column: PrintedColumn) -> Callable[[Json, datetime], Any]:
    if column.cell is not None:
        read = column.cell

        def computed(obj: Json, now: datetime) -> Any:
            value = read(obj)
            if isinstance(value, Since):
                return f"{value.before}{elapsed(value.timestamp, now)}{value.after}"
            return value

        return computed
    try:
        path = compile_path(column.json_path)
    except JsonPathError:
        return lambda _obj, _now: None
    convert = _CONVERSIONS.get(column.type)

    def found(obj: Json, now: datetime) -> Any:
        values = path.find(obj)
        if not values or convert is None:
            return None
        return convert(values[0], now)

    return found


def elapsed(timestamp: str | None, now: datetime) -> str:
    """The time since a timestamp, as tables show it."""
    if not timestamp:
        return "<unknown>"
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return "<invalid>"
    return age(now - (moment if moment.tzinfo else moment.replace(tzinfo=UTC)))


def _as_integer(value: Any, _now: datetime) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _as_number(value: Any, _now: datetime) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _as_boolean(value: Any, _now: datetime) -> bool | None:
    return value if isinstance(value, bool) else None


def _as_date(value: Any, now: datetime) -> str | None:
    return elapsed(value, now) if isinstance(value, str) else None


_CONVERSIONS: Final[dict[str, Callable[[Any, datetime], Any]]] = {
    "string": lambda value, _now: printed(value),
    "integer": _as_integer,
    "number": _as_number,
    "boolean": _as_boolean,
    "date": _as_date,
}
