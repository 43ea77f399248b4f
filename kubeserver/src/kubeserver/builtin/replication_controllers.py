"""ReplicationController: the ancestor of ReplicaSet, whose selector is a plain map of labels.

Few people make one today, but kubectl counts on the kind: `apply --prune` and `cluster-info dump` give up on a server
that does not have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin.checks import child, invalid, not_negative, required, show_times
from kubeserver.builtin.pod_defaults import default_template
from kubeserver.builtin.workloads import NOT_MATCHING, pods_for_ever, status_counts
from kubeserver.resources import Strategy, World

if TYPE_CHECKING:
    from kubeserver.wire.status import FieldError

Json = dict[str, Any]


def default(item: Json) -> None:
    """The labels of the template serve as selector and as labels of the object where those are not given."""
    spec = child(item, "spec")
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    if template := spec.get("template"):
        default_template(template)
        if labels := (template.get("metadata") or {}).get("labels"):
            if not spec.get("selector"):
                spec["selector"] = dict(labels)
            if not item["metadata"].get("labels"):
                item["metadata"]["labels"] = dict(labels)
    status = item.setdefault("status", {})
    status.setdefault("replicas", 0)
    show_times(status, "lastTransitionTime")


def _prepare_create(_: World, item: Json) -> None:
    item["status"] = {"replicas": 0}


def validate(item: Json) -> list[FieldError]:
    spec: Json = item.get("spec") or {}
    selector, template = spec.get("selector"), spec.get("template")
    errors = not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    if not selector:
        errors.append(required("spec.selector"))
    if template is None:
        errors.append(required("spec.template"))
    else:
        labels = (template.get("metadata") or {}).get("labels") or {}
        if selector and any(labels.get(name) != value for name, value in selector.items()):
            errors.append(invalid("spec.template.metadata.labels", labels, NOT_MATCHING))
        errors += pods_for_ever(spec, "ReplicationController")
    errors += not_negative("spec.replicas", spec.get("replicas"))
    return errors + status_counts(item, "fullyLabeledReplicas", "readyReplicas", "availableReplicas")


STRATEGY: Final = Strategy(default=default, prepare_create=_prepare_create, validate=validate)
