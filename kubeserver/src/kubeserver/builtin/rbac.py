"""Role, ClusterRole and their bindings: what they may say. What they mean is in `authorization`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin.checks import (
    IMMUTABLE,
    invalid,
    label_selector,
    required,
    subdomain,
    unsupported,
)
from kubeserver.resources import Strategy
from kubeserver.wire.goformat import Struct
from kubeserver.wire.names import path_segment

if TYPE_CHECKING:
    from kubeserver.wire.status import FieldError

Json = dict[str, Any]

GROUP: Final = "rbac.authorization.k8s.io"


def default_role(role: Json) -> None:
    role["rules"] = role.get("rules") or None  # shown as null when there is none


def default_binding(binding: Json) -> None:
    reference = binding.setdefault("roleRef", {})
    reference["apiGroup"] = reference.get("apiGroup") or GROUP
    reference.setdefault("kind", "")
    reference.setdefault("name", "")
    for subject in binding.get("subjects") or ():
        if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = GROUP
        elif not subject.get("apiGroup"):
            subject.pop("apiGroup", None)


def validate_role(role: Json) -> list[FieldError]:
    return _rules(role, namespaced=True)


def validate_cluster_role(role: Json) -> list[FieldError]:
    errors = _rules(role, namespaced=False)
    aggregation = role.get("aggregationRule")
    if aggregation is not None:
        path = "aggregationRule.clusterRoleSelectors"
        selectors = aggregation.get("clusterRoleSelectors") or []
        if not selectors:
            errors.append(required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
        for index, selector in enumerate(selectors):
            errors += label_selector(f"{path}[{index}]", selector)
    return errors


def _rules(role: Json, *, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    rules = role.get("rules") or ()
    for index, rule in enumerate(rules):
        errors += _rule(f"rules[{index}]", rule, namespaced=namespaced)
    return errors + [required(f"rules[{index}].verbs") for index, rule in enumerate(rules) if not rule.get("verbs")]


def _rule(path: str, rule: Json, *, namespaced: bool) -> list[FieldError]:
    errors = []
    paths = rule.get("nonResourceURLs")
    if paths:
        where = f"{path}.nonResourceURLs"
        if namespaced:
            errors.append(invalid(where, paths, "namespaced rules cannot apply to non-resource URLs"))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(invalid(where, paths, detail))
        return errors
    if not rule.get("apiGroups"):
        errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return errors


def validate_role_binding(binding: Json) -> list[FieldError]:
    return _binding(binding, ("Role", "ClusterRole"), namespaced=True)


def validate_cluster_role_binding(binding: Json) -> list[FieldError]:
    return _binding(binding, ("ClusterRole",), namespaced=False)


def _binding(binding: Json, kinds: tuple[str, ...], *, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    reference = binding.get("roleRef") or {}
    if reference.get("apiGroup") != GROUP:
        errors.append(unsupported("roleRef.apiGroup", reference.get("apiGroup", ""), (GROUP,)))
    if reference.get("kind") not in kinds:
        errors.append(unsupported("roleRef.kind", reference.get("kind", ""), kinds))
    name = reference.get("name") or ""
    errors += [invalid("roleRef.name", name, text) for text in path_segment(name)]
    subjects = binding.get("subjects") or ()
    for index, subject in enumerate(subjects):
        errors += _subject(f"subjects[{index}]", subject, namespaced=namespaced)
    errors += [required(f"subjects[{index}].name") for index, subject in enumerate(subjects) if not subject.get("name")]
    return errors if name else [*errors, required("roleRef.name")]


def _subject(path: str, subject: Json, *, namespaced: bool) -> list[FieldError]:
    errors = []
    name, kind, group = subject.get("name") or "", subject.get("kind") or "", subject.get("apiGroup") or ""
    if kind == "ServiceAccount":
        if name:
            errors += subdomain(f"{path}.name", name)
        if group:
            errors.append(unsupported(f"{path}.apiGroup", group, ("",)))
        if not namespaced and not subject.get("namespace"):
            errors.append(required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != GROUP:
            errors.append(unsupported(f"{path}.apiGroup", group, (GROUP,)))
    else:
        errors.append(unsupported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
    return errors


def validate_binding_update(binding: Json, old: Json) -> list[FieldError]:
    now, before = binding.get("roleRef") or {}, old.get("roleRef") or {}
    if now == before:
        return []
    shown = Struct(APIGroup=now.get("apiGroup", ""), Kind=now.get("kind", ""), Name=now.get("name", ""))
    return [invalid("roleRef", shown, IMMUTABLE)]


ROLE: Final = Strategy(default=default_role, validate=validate_role)
CLUSTER_ROLE: Final = Strategy(default=default_role, validate=validate_cluster_role)
ROLE_BINDING: Final = Strategy(
    default=default_binding, validate=validate_role_binding, validate_update=validate_binding_update
)
CLUSTER_ROLE_BINDING: Final = Strategy(
    default=default_binding, validate=validate_cluster_role_binding, validate_update=validate_binding_update
)
