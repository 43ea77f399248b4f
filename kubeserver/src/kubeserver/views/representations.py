"""An answer in the shape the client asked for: objects as they are, rows of a table, or metadata alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

from kubeserver.views.tables import (
    Representation,
    TableView,
    include_object,
    negotiate,
    partial_metadata,
    partial_metadata_list,
)
from kubeserver.wire.messages import Request, Response, decode, encode
from kubeserver.wire.status import ApiError

if TYPE_CHECKING:
    from kubeserver.cluster import LogicalCluster
    from kubeserver.resources import Resource
    from kubeserver.storage.store import Entry

Json = dict[str, Any]


_Dumper: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_OFFERED: Final = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_OFFERED_STREAMS: Final = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"


def _negotiated(resource: Resource, accept: str, *, streaming: bool) -> Representation:
    """What the client gets; the refusal speaks of all that Kubernetes has, so that clients see no difference."""
    try:
        return negotiate(accept, streaming=streaming)
    except ApiError as refusal:
        if refusal.code != 406:
            raise
        refusal.message = f"only the following media types are accepted: {_OFFERED}"
        if not resource.custom and ";as=" not in accept:
            refusal.message = f"406: Not Acceptable\n\nAvailable representations: {_OFFERED}, {_OFFERED_STREAMS}"
            refusal.details = {}
        raise


class View:
    """How one request wants to see the objects of one resource."""

    def __init__(
        self, cluster: LogicalCluster, resource: Resource, request: Request, *, streaming: bool = False
    ) -> None:
        self._cluster = cluster
        self._resource = resource
        self.wanted: Representation = _negotiated(resource, request.headers.get("accept", ""), streaming=streaming)
        self._table: TableView | None = None
        if self.wanted.shape == "Table":
            include = include_object(request.query.get("includeObject", ""))
            self._table = TableView(resource, include, self.wanted.version)

    @property
    def plain(self) -> bool:
        """Whether objects are shown as they are."""
        return self.wanted.shape == "Object"

    @property
    def as_it_is(self) -> bool:
        """Whether the JSON of an object is the answer."""
        return self.plain and not self.wanted.yaml

    def one(self, obj: Json, *, headers: bool = True) -> Json:
        if self._table is not None:
            metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            return self._table.table([obj], metadata, self._cluster.clock(), headers=headers)
        return obj if self.plain else partial_metadata(obj, self.wanted.version)

    def many(self, objects: list[Json], metadata: Json) -> Json:
        if self._table is not None:
            return self._table.table(objects, metadata, self._cluster.clock())
        if not self.plain:
            return partial_metadata_list(objects, metadata, self.wanted.version)
        kind = self._resource.list_kind or f"{self._resource.kind}List"
        return {"kind": kind, "apiVersion": self._resource.api_version, "metadata": metadata, "items": objects}

    def bookmark(self, metadata: Json) -> Json:
        obj = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}
        return self.one(obj, headers=False)

    def answer(self, code: int, body: bytes) -> Response:
        if self.wanted.yaml:
            return Response(code, yaml.dump(decode(body), Dumper=_Dumper).encode(), self.wanted.content_type)
        return Response(code, body, self.wanted.content_type)

    def answer_entry(self, code: int, entry: Entry) -> Response:
        """One stored object."""
        if self.plain:
            return self.answer(code, self._cluster.show(self._resource, entry.value, entry.revision))
        return self.answer_one(code, self._cluster.load(self._resource, entry))

    def answer_one(self, code: int, obj: Json) -> Response:
        return self.answer(code, encode(self.one(obj)))
