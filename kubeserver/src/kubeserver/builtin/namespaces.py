"""Namespace: it carries its own name as a label, and goes only when the finalizer in its spec is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin.checks import invalid, qualified_name
from kubeserver.resources import Strategy, World

if TYPE_CHECKING:
    from kubeserver.wire.status import FieldError

Json = dict[str, Any]

NAME_LABEL: Final = "kubernetes.io/metadata.name"
FINALIZER: Final = "kubernetes"


def default(namespace: Json) -> None:
    metadata = namespace.setdefault("metadata", {})
    if metadata.get("name"):
        labels = metadata.get("labels") or {}
        metadata["labels"] = {**labels, NAME_LABEL: metadata["name"]}
    namespace["spec"] = namespace.get("spec") or {}
    namespace["status"] = namespace.get("status") or {}
    namespace["status"]["phase"] = namespace["status"].get("phase") or "Active"


def prepare_create(_: World, namespace: Json) -> None:
    default(namespace)  # generateName has become a name by now
    namespace["status"] = {"phase": "Active"}
    finalizers = namespace["spec"].get("finalizers") or []
    if FINALIZER not in finalizers:
        finalizers = [*finalizers, FINALIZER]
    namespace["spec"]["finalizers"] = finalizers


def prepare_update(_: World, namespace: Json, old: Json) -> None:
    """Only the finalize subresource changes the spec; it does not come here."""
    before = (old.get("spec") or {}).get("finalizers")
    namespace["spec"] = {**namespace.get("spec", {}), "finalizers": before} if before else {}


def validate(namespace: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    for finalizer in (namespace.get("spec") or {}).get("finalizers") or ():
        errors += qualified_name("spec.finalizers", finalizer) or _unknown("spec.finalizers", finalizer)
    return errors + _phase(namespace)


def _unknown(path: str, finalizer: str) -> list[FieldError]:
    if "/" in finalizer or finalizer in (FINALIZER, "orphan", "foregroundDeletion"):
        return []
    return [invalid(path, finalizer, "name is neither a standard finalizer name nor is it fully qualified")]


def _phase(namespace: Json) -> list[FieldError]:
    phase = (namespace.get("status") or {}).get("phase", "")
    if namespace["metadata"].get("deletionTimestamp"):
        if phase != "Terminating":
            detail = "may only be 'Terminating' if `deletionTimestamp` is not empty"
            return [invalid("status.Phase", phase, detail)]
    elif phase != "Active":
        return [invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")]
    return []


STRATEGY: Final = Strategy(
    default=default,
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    validate=validate,
    selectable={"status.phase": lambda namespace: str((namespace.get("status") or {}).get("phase") or "")},
)
