"""The write path: create, replace and every kind of patch, down to one compare-and-swap.

All of them end in `_insert` or `_change`, which follow the order of kube-apiserver, because clients can see it:

    decode -> default -> ownership of fields -> mutating webhooks -> prepare -> validate -> validating webhooks -> store

A change is always computed from one stored revision and written only on top of that revision. Where the client
named no resourceVersion (a patch, an unconditional replace), a lost race means reading again and computing again;
where it did, it means 409. Between the last look at the store and the submission there is no `await`, so what a
strategy saw of other objects (which node ports are taken) still holds when the write is queued.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kubeserver import patience
from kubeserver.builtin.catalog import created_by_put, needs_resource_version
from kubeserver.patching.apply import apply
from kubeserver.patching.comparison import same
from kubeserver.patching.managed_fields import (
    Writer,
    keep_times_if_unchanged,
    manager_name,
    track_scale,
    track_write,
)
from kubeserver.schemas.decode import take
from kubeserver.storage.store import Entry, Exists, Missing, ObjectKey, Stale
from kubeserver.verbs import lifecycle
from kubeserver.verbs.glance import glance
from kubeserver.verbs.scale import read
from kubeserver.verbs.validation import validate
from kubeserver.views.representations import View
from kubeserver.wire.messages import LARGE, Request, Response, decode, encode, warning_headers
from kubeserver.wire.names import generated_name, validate_metadata, validate_updated_metadata
from kubeserver.wire.status import (
    STALE,
    ApiError,
    FieldError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kubeserver.cluster import LogicalCluster
    from kubeserver.resources import Resource
    from kubeserver.schemas.schema import Schema
    from kubeserver.verbs.admission import Admission
    from kubeserver.wire.options import WriteOptions

Json = dict[str, Any]
T = TypeVar("T")

_ATTEMPTS: Final = 8  # of a write that lost a race it may try again, and of a generated name


@dataclass(slots=True)
class Write:
    """One write on its way: what is written to, by whom, and the warnings gathered so far."""

    cluster: LogicalCluster
    resource: Resource
    request: Request
    options: WriteOptions
    admission: Admission
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    warnings: list[str] = field(default_factory=list)

    @property
    def view(self) -> View:
        return View(self.cluster, self.resource, self.request)

    @property
    def writer(self) -> Writer:
        return Writer(
            manager=manager_name(
                self.request.query.get("fieldManager", ""), self.request.headers.get("user-agent", "")
            ),
            subresource=self.subresource,
            api_version=self.resource.api_version,
            time=self.cluster.now(),
        )

    @property
    def caller(self) -> str:
        return self.request.caller(self.cluster.name)

    async def apart(self, size: int, work: Callable[[], T]) -> T:
        """Compute something about so many bytes: in the lane if they are many, else here and now."""
        if size <= LARGE:
            return work()
        return await self.cluster.lane.run(self.caller, work, self.request.gone)

    @property
    def key(self) -> ObjectKey:
        return self.cluster.key(self.resource, self.namespace, self.name)

    def missing(self) -> ApiError:
        return not_found(self.resource.group, self.resource.plural, self.name)

    def stale(self) -> ApiError:
        return conflict(self.resource.group, self.resource.plural, self.name, STALE)


async def create(write: Write, obj: Json) -> Response:
    """POST: `obj` is decoded and checked against the path already."""
    return await _insert(write, obj)


async def replace(write: Write, obj: Json) -> Response:
    """PUT: the whole object, on top of the revision it names (or whatever is there, where the kind allows)."""
    resource = write.resource
    version = obj["metadata"].get("resourceVersion", "")

    def replaced(old: Json) -> Json:
        new = {**obj, "metadata": {**obj["metadata"]}}
        if not version and needs_version(resource):
            path = "metadata.resourceVersion"
            error = FieldError("FieldValueInvalid", path, "must be specified for an update", 0)
            raise invalid(resource.group, resource.plural, write.name, [error])
        new["metadata"]["resourceVersion"] = version or old["metadata"]["resourceVersion"]
        return new

    if not created_by_put(resource.group, resource.plural):
        return await _change(write, replaced, again=not version)

    async def created() -> Response:
        return await _insert(write, await write.apart(len(write.request.body), lambda: copy.deepcopy(obj)))

    return await _create_or_change(write, created, lambda: _change(write, replaced, again=not version))


def needs_version(resource: Resource) -> bool:
    return resource.custom or needs_resource_version(resource.group, resource.plural)


async def patch(write: Write, patched: Callable[[Json], Json]) -> Response:
    """PATCH other than apply: `patched` computes the new object from the stored one."""
    return await _change(write, patched, again=True)


async def server_side_apply(write: Write, config: Json) -> Response:
    """Apply: what `config` says is what this manager wants; creates what does not exist."""

    async def created() -> Response:
        if write.subresource:
            raise write.missing()
        if uid := config["metadata"].get("uid"):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise conflict(write.resource.group, write.resource.plural, write.name, why)
        obj = await write.apart(len(write.request.body), lambda: _applied(write, None, copy.deepcopy(config)))
        obj["metadata"].setdefault("name", write.name)
        return await _insert(write, obj, tracked=True)

    return await _create_or_change(
        write,
        created,
        lambda: _change(write, lambda old: _applied(write, old, config), again=True, tracked=True),
    )


async def _create_or_change(
    write: Write, create: Callable[[], Awaitable[Response]], change: Callable[[], Awaitable[Response]]
) -> Response:
    """Create what is not there, change what is, whatever it becomes while webhooks are asked."""
    key = write.key
    for _ in range(_ATTEMPTS):
        existed = write.cluster.store.latest(key) is not None
        try:
            return await (change() if existed else create())
        except ApiError as refusal:
            exists = write.cluster.store.latest(key) is not None
            if exists == existed or refusal.reason not in ("AlreadyExists", "NotFound"):
                raise
            write.warnings.clear()
    raise write.stale()


def _applied(write: Write, old: Json | None, config: Json) -> Json:
    resource = write.resource
    obj = apply(
        resource.schema,
        old,
        config,
        write.writer,
        force=bool(write.options.force),
        kind=resource.kind,
        reset_fields=lifecycle.reset_fields(resource, write.subresource),
        schemas=_schemas(write),
    )
    # A null inside a map of texts is an empty text to a built-in kind, however it came there.
    return obj if resource.custom else take(obj, resource).obj


# Creating.


async def _insert(write: Write, obj: Json, *, tracked: bool = False) -> Response:
    cluster, resource = write.cluster, write.resource
    _check_new(obj)
    _check_place(write, obj)
    await write.apart(len(write.request.body), lambda: _complete_new(write, obj, tracked=tracked))
    given = obj["metadata"]
    obj = await write.admission.mutate(write, "CREATE", obj, None)
    metadata = obj["metadata"]
    if metadata is not given:  # who an object is and where it lives is not for a webhook to say
        _check_new(obj)
        _check_same_namespace(write, obj)
        metadata |= {field: given[field] for field in ("uid", "creationTimestamp")}
    for attempt in range(_ATTEMPTS):
        write.name = str(metadata.get("name") or "")
        lifecycle.prepare_create(resource, obj)
        resource.strategy.prepare_create(cluster, obj)
        # what was taken away may have a default: a status that says Pending
        await write.apart(len(write.request.body), lambda: lifecycle.default(resource, obj, keep_nulls=tracked))
        waited = await _validate(write, obj, None, size=len(write.request.body))
        if await write.admission.validate(write, "CREATE", obj, None) or waited:
            resource.strategy.prepare_create(cluster, obj)  # what was free before the wait may be taken now
        _check_place(write, obj)
        try:
            return await _store_new(write, obj)
        except Exists:
            if attempt + 1 == _ATTEMPTS or not metadata.get("generateName"):
                raise _taken(write) from None
            metadata["name"] = generated_name(metadata["generateName"])
    raise AssertionError("the last attempt returns or raises")


def _complete_new(write: Write, obj: Json, *, tracked: bool) -> None:
    lifecycle.born(write.resource, obj, write.namespace, write.cluster.now())
    lifecycle.default(write.resource, obj, keep_nulls=tracked)
    if not tracked:
        _track(write, None, obj)


def _taken(write: Write) -> ApiError:
    refusal = already_exists(write.resource.group, write.resource.plural, write.name)
    entry = write.cluster.store.latest(write.key)
    if entry is not None and glance(entry.value).deletion_timestamp:
        refusal.message = f"object is being deleted: {refusal.message}"
    return refusal


async def _store_new(write: Write, obj: Json) -> Response:
    write.warnings += write.resource.strategy.warnings(obj)
    if write.options.dry_run:
        if write.cluster.store.latest(write.key) is not None:
            raise Exists
        return await _answer(write, 201, encode(obj))
    kept = write.cluster.kept(write.resource, obj)
    entry = await write.cluster.store.create(write.key, _encoder(kept))
    return await _stored(write, 201, entry)


def _check_new(obj: Json) -> None:
    if obj["metadata"].get("resourceVersion"):
        raise ApiError(500, "", "resourceVersion should not be set on objects to be created")


def _check_same_namespace(write: Write, obj: Json) -> None:
    if (obj["metadata"].get("namespace") or "") != write.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _check_place(write: Write, obj: Json) -> None:
    """Nothing is created in a namespace that is not there, and nothing that would have to go with its kind."""
    if not write.cluster.registry.takes_new(write.resource):
        name = str(obj["metadata"].get("name") or "")
        why = "create not allowed while custom resource definition is terminating"
        raise forbidden(write.resource.group, write.resource.plural, name, why)
    if not write.resource.namespaced:
        return
    entry = write.cluster.store.latest(ObjectKey(write.cluster.name, "", "namespaces", "", write.namespace))
    if entry is None:
        raise not_found("", "namespaces", write.namespace)
    if not glance(entry.value).deletion_timestamp:
        return
    resource, name = write.resource, str(obj["metadata"].get("name") or "")
    why = f"unable to create new content in namespace {write.namespace} because it is being terminated"
    refusal = forbidden(resource.group, resource.plural, name, why)
    assert refusal.details is not None
    refusal.details["causes"] = [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {write.namespace} is being terminated",
            "field": "metadata.namespace",
        }
    ]
    raise refusal


# Changing.


async def _change(write: Write, changed: Callable[[Json], Json], *, again: bool, tracked: bool = False) -> Response:
    said = len(write.warnings)
    for _ in range(_ATTEMPTS):
        del write.warnings[said:]  # what was said about an attempt that came to nothing
        entry = write.cluster.store.latest(write.key)
        if entry is None:
            raise write.missing()
        size = len(write.request.body) + len(entry.value)
        old, new = await write.apart(size, partial(_computed, write, entry, changed, tracked=tracked))
        admitted = await write.admission.mutate(write, "UPDATE", new, old)
        if admitted is not new:
            _check_same_namespace(write, admitted)
            _check_same_revision(write, admitted, old)
            new = lifecycle.prepare_update(write.resource, admitted, old, write.subresource)
        _prepare_change(write, new, old)
        waited = await _validate(write, new, old, size=size)
        if await write.admission.validate(write, "UPDATE", new, old) or waited:
            _prepare_change(write, new, old)  # what was free before the wait may be taken now
        new, is_change = await write.apart(size, partial(_compared, old, new))
        if size > LARGE:
            _prepare_change(write, new, old)
        try:
            return await _store_change(write, entry, new, old, is_change=is_change)
        except Missing:
            raise write.missing() from None
        except Stale:
            if not again:
                raise write.stale() from None
    raise write.stale()


def _computed(write: Write, entry: Entry, changed: Callable[[Json], Json], *, tracked: bool) -> tuple[Json, Json]:
    """The object as it is stored, and as it is to become."""
    old = write.cluster.load(write.resource, entry)
    new = changed(write.cluster.load(write.resource, entry))
    _check_same_revision(write, new, old)
    if write.request.info.verb == "update":
        _check_same_object(write, new, old)
    lifecycle.default(write.resource, new, keep_nulls=tracked)
    new = lifecycle.prepare_update(write.resource, new, old, write.subresource)
    if not tracked:
        _track(write, old, new)
    return old, new


def _check_same_revision(write: Write, new: Json, old: Json) -> None:
    if new["metadata"].get("resourceVersion", "") != old["metadata"]["resourceVersion"]:
        raise write.stale()


def _prepare_change(write: Write, new: Json, old: Json) -> None:
    resource = write.resource
    if write.subresource not in ("status", "finalize", "binding"):
        resource.strategy.prepare_update(write.cluster, new, old)
        lifecycle.count_generation(resource, new, old)


def _check_same_object(write: Write, new: Json, old: Json) -> None:
    """A writer that means an object of the same name which is long gone must not change this one."""
    meant, is_ = new["metadata"].get("uid"), old["metadata"]["uid"]
    if meant and meant != is_:
        why = (
            f"StorageError: invalid object, Code: 4, Key: {storage_key(write)}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: UID in precondition: {meant}, UID in object meta: {is_}"
        )
        raise conflict(write.resource.group, write.resource.plural, write.name, why)


def storage_key(write: Write) -> str:
    """The path under which Kubernetes would keep the object: some refusals show it."""
    resource = write.resource
    parts = (*((resource.group,) if resource.custom else ()), resource.plural, write.namespace, write.name)
    return "/registry/" + "/".join(part for part in parts if part)


def _compared(old: Json, new: Json) -> tuple[Json, bool]:
    """The object to store, and whether that is another one than before."""
    new = keep_times_if_unchanged(old, new)
    return new, not same(old, new)


async def _store_change(write: Write, entry: Entry, new: Json, old: Json, *, is_change: bool) -> Response:
    resource, store = write.resource, write.cluster.store
    write.warnings += resource.strategy.warnings(new)
    if lifecycle.may_go(resource, new) and not write.options.dry_run:
        kept = write.cluster.kept(resource, new)
        gone = await store.delete(write.key, entry.revision, _encoder(kept))
        return await _stored(write, 200, gone)
    if not is_change:
        await store.settled(entry.revision)
        return await _answer(write, 200, encode(old))
    if write.options.dry_run:
        return await _answer(write, 200, encode(new))
    kept = write.cluster.kept(resource, new)
    return await _stored(write, 200, await store.update(write.key, entry.revision, _encoder(kept)))


# Shared by both.


def _track(write: Write, old: Json | None, new: Json) -> None:
    entries = _tracked_scale(write, old, new) if write.subresource == "scale" else _tracked(write, old, new)
    if entries:
        new["metadata"]["managedFields"] = entries
    else:
        new["metadata"].pop("managedFields", None)


def _tracked(write: Write, old: Json | None, new: Json) -> list[Json]:
    return track_write(
        write.resource.schema,
        old,
        new,
        write.writer,
        reset_fields=lifecycle.reset_fields(write.resource, write.subresource),
        schemas=_schemas(write),
    )


def _tracked_scale(write: Write, old: Json | None, new: Json) -> list[Json]:
    assert old is not None
    assert write.resource.scale is not None
    path = write.resource.scale.spec_path
    return track_scale(
        old["metadata"].get("managedFields") or [],
        tuple(path.strip(".").split(".")),
        write.writer,
        changed=read(old, path) != read(new, path),
        versions=tuple(_schemas(write) or ()),
    )


def _schemas(write: Write) -> dict[str, Schema] | None:
    """The schemas of all served versions, where a custom kind has several."""
    if not write.resource.custom:
        return None
    return write.cluster.registry.schemas(write.resource.group, write.resource.plural)


async def _validate(write: Write, new: Json, old: Json | None, *, size: int) -> bool:
    """Refuse what is wrong; whether that was waited for: rules may take long on an object that is not large."""
    if size <= LARGE:
        said = len(write.warnings)
        try:
            with patience.limited():
                _refuse_invalid(write, new, old)
        except patience.Costly:
            del write.warnings[said:]
        else:
            return False
    await write.cluster.lane.run(write.caller, lambda: _refuse_invalid(write, new, old), write.request.gone)
    return True


def _refuse_invalid(write: Write, new: Json, old: Json | None) -> None:
    resource = write.resource
    if old is None:
        errors = validate_metadata(resource, new["metadata"])
    else:
        errors = validate_updated_metadata(resource, new["metadata"], old["metadata"])
    if resource.custom and new["kind"] != resource.kind:
        errors.append(FieldError("FieldValueInvalid", "kind", f"must be {resource.kind}", new["kind"]))
    elif resource.custom:
        errors += validate(
            resource.schema,
            new,
            old,
            subresource=write.subresource,
            scale=resource.scale,
            before=errors,
            warnings=write.warnings,
        )
    errors += resource.strategy.validate(new)
    if old is not None:
        errors += resource.strategy.validate_update(new, old)
    if errors:
        group, kind = resource.table[0] if resource.stored_as else resource.group, str(new.get("kind"))
        raise invalid(group, kind, str(new["metadata"].get("name") or ""), errors)


def _encoder(obj: Json) -> Callable[[int], bytes]:
    def encoded(revision: int) -> bytes:
        obj["metadata"]["resourceVersion"] = str(revision)
        return encode(obj)

    return encoded


async def _stored(write: Write, code: int, entry: Entry) -> Response:
    cluster, resource = write.cluster, write.resource
    if cluster.stored_form_is_shown(resource, entry.revision):
        return await _answer(write, code, entry.value)
    shown = await write.apart(len(entry.value), lambda: cluster.show(resource, entry.value, entry.revision))
    return await _answer(write, code, shown)


async def _answer(write: Write, code: int, body: bytes) -> Response:
    view = write.view
    if view.as_it_is:
        answer = view.answer(code, body)
    elif view.plain:
        answer = await write.apart(len(body), lambda: view.answer(code, body))
    else:
        answer = await write.apart(len(body), lambda: view.answer_one(code, decode(body)))
    answer.headers += warning_headers(write.warnings)
    return answer
