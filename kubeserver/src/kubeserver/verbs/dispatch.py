"""From a verb on a resource to the function that does it, with the checks that belong to the request itself.

What is refused here is refused whatever the object says: a verb the resource does not have, a body in an unknown
format, a name in the body that is not the one in the URL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from kubeserver.builtin.catalog import SUBRESOURCES
from kubeserver.patching.patches import json_patch, merge_patch
from kubeserver.patching.strategic import strategic_merge
from kubeserver.verbs import deletes, reads, scale, watches, writes
from kubeserver.verbs.answers import Access, answer_review, bound, issue_token, pod_log
from kubeserver.verbs.bodies import (
    JSON_PATCH,
    PATCHES,
    part,
    read_any,
    read_apply,
    read_object,
    read_options,
    read_patch,
)
from kubeserver.verbs.glance import glance
from kubeserver.verbs.patched import refusal_of_changes, refusal_of_result
from kubeserver.verbs.writes import Write
from kubeserver.views.representations import View
from kubeserver.wire.messages import JSON, Request, Response, Stream, decode, encode, respond
from kubeserver.wire.names import path_segment
from kubeserver.wire.options import (
    META,
    DeleteOptions,
    WriteOptions,
    delete_options,
    list_options,
    write_options,
)
from kubeserver.wire.status import (
    ApiError,
    FieldError,
    bad_request,
    invalid,
    not_found,
)

if TYPE_CHECKING:
    from kubeserver.cluster import LogicalCluster
    from kubeserver.resources import Resource
    from kubeserver.storage.store import Entry
    from kubeserver.verbs.admission import Admission

Json = dict[str, Any]

SUCCESS: Final = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_COLLECTION_AT_ONCE: Final = 16
_OPTIONS: Final = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}


class Verbs:
    """The verbs of one logical cluster."""

    def __init__(self, cluster: LogicalCluster, admission: Admission, access: Access) -> None:
        self._cluster = cluster
        self._admission = admission
        self._access = access

    async def answer(self, resource: Resource, request: Request) -> Response | Stream:
        info = request.info
        if info.subresource:
            return await self._subresource(resource, request)
        self._check_verb(resource, request)
        match info.verb:
            case "get":
                return await reads.get(self._cluster, resource, request)
            case "list":
                return await reads.list_(self._cluster, resource, request)
            case "watch":
                return await watches.watch(self._cluster, resource, request)
            case "delete":
                return await self._delete(resource, request)
            case "deletecollection":
                return await self._delete_collection(resource, request)
            case _:
                return await self._write(resource, request)

    def _check_verb(self, resource: Resource, request: Request) -> None:
        info = request.info
        unnamed = info.verb in ("update", "patch") and not info.name
        if unnamed and resource.custom:
            raise bad_request("name must be provided")
        if info.verb not in resource.verbs or unnamed or (info.verb == "create" and info.name):
            raise method_not_allowed_at_all()
        if info.name and (why := path_segment(info.name)):
            if "/" in info.name:
                raise unknown_resource()
            raise bad_request(f'Name parameter invalid: "{info.name}": {", ".join(why)}')
        if resource.namespaced and info.verb in ("create", "deletecollection") and not info.namespace:
            raise method_not_allowed_at_all()

    # Writes.

    async def _write(self, resource: Resource, request: Request) -> Response:
        info = request.info
        options = write_options(request.query, _OPTIONS[info.verb])
        write = self._new_write(resource, request, options)
        if info.verb == "patch":
            return await self._patch(write)
        obj = await self._read(write)
        self._check_identity(write, obj)
        if info.verb == "update":
            return await writes.replace(write, obj)
        if resource.verbs == ("create",):
            return answer_review(self._access, resource, request, obj, self._cluster.now())
        return await writes.create(write, obj)

    async def _patch(self, write: Write) -> Response:
        request, resource, options = write.request, write.resource, write.options
        if request.content_type in PATCHES.apply:
            if not options.manager:
                raise _bad_patch_options(
                    FieldError("FieldValueRequired", "fieldManager", "is required for apply patch")
                )
            size = len(request.body)
            config = await write.apart(size, lambda: read_apply(request, options.field_validation, write.warnings))
            self._check_identity(write, config, fill=False)
            return await writes.server_side_apply(write, config)
        if options.force is not None:
            raise _bad_patch_options(
                FieldError("FieldValueForbidden", "force", "may not be specified for non-apply patch")
            )
        changes = await write.apart(len(request.body), lambda: read_patch(request, resource))

        def patched(old: Json) -> Json:
            return self._accept_patched(write, _patched(write, old, changes), changes)

        return await writes.patch(write, patched)

    async def _read(self, write: Write) -> Json:
        """The object in the body of a request."""
        request, resource = write.request, write.resource
        validation = write.options.field_validation
        return await write.apart(len(request.body), lambda: read_object(request, resource, validation, write.warnings))

    def _accept_patched(self, write: Write, obj: Json, changes: Any) -> Json:
        """A patched object is read like a sent one; what is wrong with it is told as a fault of the patch."""
        sent = encode(obj)
        try:
            accepted = read_object(
                write.request, write.resource, write.options.field_validation, write.warnings, obj=obj
            )
        except ApiError as refusal:
            if write.request.content_type in PATCHES.strategic:
                raise refusal_of_changes(changes, refusal) from None
            raise refusal_of_result(write.resource, write.name, sent, refusal) from None
        self._check_identity(write, accepted)
        return accepted

    def _check_identity(self, write: Write, obj: Json, *, fill: bool = True) -> None:
        """The name and namespace in the body are those of the URL; what may be left out is filled in."""
        metadata = obj["metadata"]
        namespace, name = metadata.get("namespace") or "", metadata.get("name") or ""
        if write.resource.namespaced and namespace and namespace != write.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if not write.resource.namespaced and namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if write.request.info.name and name != write.name:
            if name:
                raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({write.name})")
            if write.request.info.verb == "update":
                raise bad_request(
                    f"the name of the object ({write.name} based on URL) was undeterminable: name must be provided"
                )
            metadata["name"] = write.name
        if fill and write.resource.namespaced and not namespace:
            metadata["namespace"] = write.namespace

    def _new_write(self, resource: Resource, request: Request, options: WriteOptions, subresource: str = "") -> Write:
        info = request.info
        return Write(
            cluster=self._cluster,
            resource=resource,
            request=request,
            options=options,
            admission=self._admission,
            namespace=info.namespace if resource.namespaced else "",
            name=info.name,
            subresource=subresource,
        )

    # Deletions.

    async def _delete(self, resource: Resource, request: Request) -> Response:
        options = await self._delete_options(resource, request)
        write = self._new_write(resource, request, WriteOptions(dry_run=options.dry_run))
        return await deletes.delete(write, options)

    async def _delete_options(self, resource: Resource, request: Request) -> DeleteOptions:
        write = self._new_write(resource, request, WriteOptions())
        return delete_options(request.query, await write.apart(len(request.body), lambda: read_options(request)))

    async def _delete_collection(self, resource: Resource, request: Request) -> Response | Stream:
        options = await self._delete_options(resource, request)
        cluster = self._cluster
        wanted = await reads.selection(cluster, resource, request, list_options(request.query))
        stored = list(cluster.store.entries_latest(cluster.table(resource), request.info.namespace or None))
        entries = await reads.matching(cluster, resource, request, stored, wanted)

        async def one(entry: Entry) -> None:
            write = self._new_write(resource, request, WriteOptions(dry_run=options.dry_run))
            write.name = entry.key.name
            uid = glance(entry.value).uid
            same = DeleteOptions(options.dry_run, options.grace_period, options.propagation, uid)
            try:
                await deletes.ask_to_go(write, same)
            except ApiError as error:
                if error.code != 404:
                    raise

        caller = request.caller(cluster.name)
        await cluster.turns.each(caller, entries, one, at_once=_COLLECTION_AT_ONCE)
        request.headers = {**request.headers, "accept": JSON}
        metadata = {"resourceVersion": str(cluster.store.revision)}
        return await reads.listed(cluster, resource, request, View(cluster, resource, request), metadata, entries)

    # Subresources.

    async def _subresource(self, resource: Resource, request: Request) -> Response:
        info = request.info
        if info.subresource == "status" and resource.status:
            return await self._status(resource, request)
        if info.subresource == "scale" and resource.scale:
            return await self._scale(resource, request)
        known = next(
            (
                subresource
                for subresource in SUBRESOURCES
                if (subresource.group, subresource.plural, subresource.name)
                == (resource.group, resource.plural, info.subresource)
            ),
            None,
        )
        if resource.custom:
            raise not_found(resource.group, resource.plural, info.name)
        if known is None:
            raise unknown_resource()
        if info.verb not in known.verbs:
            raise method_not_allowed_at_all()
        return await self._own_subresource(resource, request)

    async def _own_subresource(self, resource: Resource, request: Request) -> Response:
        """Subresources that only one kind has."""
        if request.info.subresource == "finalize":
            return await self._finalize(resource, request)
        if request.info.subresource == "log":
            return pod_log(self._cluster, resource, request)
        options = write_options(request.query, "CreateOptions")
        write = self._new_write(resource, request, options, request.info.subresource)
        body = await write.apart(len(request.body), lambda: read_any(request))
        if request.info.subresource == "token":
            return issue_token(self._access, self._cluster, resource, request, body)
        if request.info.subresource == "binding":
            await writes.patch(write, lambda pod: bound(pod, body))
        else:
            await deletes.delete(write, delete_options({}, part(body, "deleteOptions", dict, "Eviction")))
        return respond(201, SUCCESS)

    async def _status(self, resource: Resource, request: Request) -> Response:
        if request.info.verb == "get":
            return await reads.get(self._cluster, resource, request)
        if request.info.verb not in ("update", "patch"):
            raise method_not_allowed_at_all()
        options = write_options(request.query, _OPTIONS[request.info.verb])
        write = self._new_write(resource, request, options, "status")
        if request.info.verb == "patch":
            return await self._patch(write)
        obj = await self._read(write)
        self._check_identity(write, obj)
        return await writes.replace(write, obj)

    async def _finalize(self, resource: Resource, request: Request) -> Response:
        """PUT namespaces/x/finalize: the only way to change a namespace's own finalizers."""
        options = write_options(request.query, "UpdateOptions")
        write = self._new_write(resource, request, options, "finalize")
        obj = await self._read(write)
        self._check_identity(write, obj)
        return await writes.replace(write, obj)

    async def _scale(self, resource: Resource, request: Request) -> Response:
        info, cluster = request.info, self._cluster
        if info.verb == "get":
            entry = cluster.store.get(cluster.key(resource, info.namespace, info.name))
            if entry is None:
                raise not_found(resource.group, resource.plural, info.name)
            return respond(200, scale.scale_of(resource, cluster.load(resource, entry)))
        if info.verb not in ("update", "patch"):
            raise method_not_allowed_at_all()
        options = write_options(request.query, _OPTIONS[info.verb])
        request.headers = {**request.headers, "accept": JSON}  # what the write answers is read again below
        write = self._new_write(resource, request, options, "scale")
        changes = sent = None
        if info.verb == "patch":
            changes = await write.apart(len(request.body), lambda: read_patch(request, resource))
        if changes is None:
            sent = await write.apart(len(request.body), lambda: read_any(request))

        def scaled(old: Json) -> Json:
            wanted = sent if sent is not None else _patched(write, scale.scale_of(resource, old), changes)
            return scale.scaled(resource, old, wanted)

        answer = await writes.patch(write, scaled)
        return Response(200, encode(scale.scale_of(resource, decode(answer.body))))


def _patched(write: Write, old: Json, changes: Any) -> Json:
    kind = write.request.content_type
    if kind == JSON_PATCH:
        return cast("Json", json_patch(old, changes))
    if kind in PATCHES.strategic:
        merged = strategic_merge(write.resource.schema, old, changes)
        return {**merged, "apiVersion": old["apiVersion"], "kind": old["kind"]}  # not for a patch to say
    return merge_patch(old, changes)


def _bad_patch_options(error: FieldError) -> ApiError:
    return invalid(META, "PatchOptions", "", [error])


def unknown_resource() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource", details={})


def method_not_allowed_at_all() -> ApiError:
    return ApiError(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource", details={}
    )
