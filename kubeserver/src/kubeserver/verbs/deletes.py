"""Asking objects to go.

An object with nothing that holds it goes at once and the answer is a Status; one with finalizers is only marked, and
the answer is the marked object. What becomes of its dependents is written down as a finalizer too (Foreground and
Orphan), so that the garbage collector can finish it whenever it gets to it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kubeserver.definitions.definition import say_terminating
from kubeserver.storage.store import Entry, Missing, Stale
from kubeserver.verbs import lifecycle
from kubeserver.wire.messages import Response, encode, respond
from kubeserver.wire.status import ApiError, conflict, forbidden

if TYPE_CHECKING:
    from kubeserver.verbs.writes import Write
    from kubeserver.wire.options import DeleteOptions

Json = dict[str, Any]

_ATTEMPTS: Final = 8
_SOON: Final = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"

_KEPT_NAMESPACES: Final = frozenset({"default", "kube-public", "kube-system"})

# Kinds whose deletion answers with the object that went rather than with a Status.
_ANSWERS_WITH_OBJECT: Final = frozenset(
    {
        ("", "namespaces"),
        ("", "persistentvolumeclaims"),
        ("", "persistentvolumes"),
        ("", "pods"),
        ("", "serviceaccounts"),
        ("", "services"),
    }
)


async def delete(write: Write, options: DeleteOptions) -> Response:
    """DELETE of one object."""
    obj, gone = await ask_to_go(write, options)
    resource = write.resource
    if not gone or (resource.group, resource.plural) in _ANSWERS_WITH_OBJECT:
        return Response(200, encode(obj))
    details = {"name": write.name, "group": resource.group, "kind": resource.plural, "uid": obj["metadata"]["uid"]}
    return respond(
        200,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {key: value for key, value in details.items() if value},
        },
    )


async def ask_to_go(write: Write, options: DeleteOptions) -> tuple[Json, bool]:
    """Delete or mark one object; returns it as it last was, and whether it is gone."""
    for _ in range(_ATTEMPTS):
        entry = write.cluster.store.latest(write.key)
        if entry is None:
            raise write.missing()
        old, asked = await write.apart(len(entry.value), partial(_asked_to_go, write, options, entry))
        _check_preconditions(write, options, old)
        _check_kept_namespace(write)
        await write.admission.validate(write, "DELETE", None, old)
        try:
            return await _go(write, options, entry, old, asked)
        except Missing:
            raise write.missing() from None
        except Stale:
            if options.resource_version is not None:
                raise write.stale() from None
    raise write.stale()


def _asked_to_go(write: Write, options: DeleteOptions, entry: Entry) -> tuple[Json, Json]:
    """The object as it is stored, and as it is once it was asked to go."""
    cluster, resource = write.cluster, write.resource
    old, obj = cluster.load(resource, entry), cluster.load(resource, entry)
    finalizers = lifecycle.deletion_finalizers(obj["metadata"], options.propagation)
    if resource.plural == "customresourcedefinitions" and not obj["metadata"].get("deletionTimestamp"):
        # its objects go first: the controller that removes them then removes this finalizer
        finalizers.append(lifecycle.CLEANUP)
        say_terminating(obj, "InstanceDeletionPending", _SOON, cluster.now())
    grace = lifecycle.grace_period(resource, obj, options.grace_period)
    lifecycle.ask_to_go(resource, obj, cluster.now(), grace, finalizers)
    return old, obj


async def _go(write: Write, options: DeleteOptions, entry: Entry, old: Json, obj: Json) -> tuple[Json, bool]:
    cluster, resource = write.cluster, write.resource
    gone = lifecycle.may_go(resource, obj)
    if options.dry_run:
        return obj, gone
    if obj == old and not gone:
        await cluster.store.settled(entry.revision)
        return obj, False
    kept = cluster.kept(resource, old if gone else obj)

    def encoded(revision: int) -> bytes:
        kept["metadata"]["resourceVersion"] = str(revision)
        return encode(kept)

    if gone:
        await cluster.store.delete(write.key, entry.revision, encoded)
        return obj, True
    done = await cluster.store.update(write.key, entry.revision, encoded)
    return await write.apart(len(done.value), lambda: cluster.load(resource, done)), False


def _check_preconditions(write: Write, options: DeleteOptions, old: Json) -> None:
    metadata = old["metadata"]
    if options.uid is not None and options.uid != metadata["uid"]:
        raise _failed(write, f"the UID in the precondition ({options.uid})", f"the UID in record ({metadata['uid']})")
    version = options.resource_version
    if version is not None and version != metadata["resourceVersion"]:
        raise _failed(
            write,
            f"the ResourceVersion in the precondition ({version})",
            f"the ResourceVersion in record ({metadata['resourceVersion']})",
        )


def _check_kept_namespace(write: Write) -> None:
    if (write.resource.group, write.resource.plural) == ("", "namespaces") and write.name in _KEPT_NAMESPACES:
        raise forbidden("", "namespaces", write.name, "this namespace may not be deleted")


def _failed(write: Write, wanted: str, found: str) -> ApiError:
    why = f"{wanted} does not match {found}. The object might have been deleted and then recreated"
    if wanted.startswith("the ResourceVersion"):
        why = f"{wanted} does not match {found}. The object might have been modified"
    return conflict(write.resource.group, write.resource.kind, write.name, why)
