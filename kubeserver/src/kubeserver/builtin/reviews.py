"""The kinds that are questions: created, answered and never stored.

Each function takes what the user posted and returns the answer. `review` is the way in: it knows which question
a resource is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubeserver.access.authentication import User
from kubeserver.access.authorization import Attributes
from kubeserver.wire.status import FieldError, bad_request, invalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeserver.access.authorization import Authorizer

Json = dict[str, Any]

_AUTHORIZATION = "authorization.k8s.io"
_ONE_OF = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


def review(
    kind: str,
    user: User,
    body: Json,
    authorizer: Authorizer,
    *,
    namespace: str = "",
    now: str = "",
    by_token: Callable[[str], User | None] = lambda _: None,
) -> Json:
    """Answer a review of any kind; `namespace` is that of the path, for the local one."""
    match kind:
        case "SelfSubjectAccessReview":
            return self_subject_access_review(user, body, authorizer)
        case "SubjectAccessReview":
            return subject_access_review(body, authorizer)
        case "LocalSubjectAccessReview":
            return local_subject_access_review(body, authorizer, namespace)
        case "SelfSubjectRulesReview":
            return self_subject_rules_review(user, body, authorizer)
        case "SelfSubjectReview":
            return self_subject_review(user, body, now)
        case "TokenReview":
            return token_review(body, by_token)
    raise ValueError(f"{kind} is not a review")


def self_subject_access_review(user: User, body: Json, authorizer: Authorizer) -> Json:
    spec = body.get("spec") or {}
    _refuse_invalid([*_attribute_errors(spec), *_metadata_errors(body)])
    return {**body, "status": _answer(user, spec, authorizer)}


def subject_access_review(body: Json, authorizer: Authorizer) -> Json:
    spec = body.get("spec") or {}
    _refuse_invalid([*_subject_errors(spec), *_metadata_errors(body)])
    return {**body, "status": _answer(_subject(spec), spec, authorizer)}


def local_subject_access_review(body: Json, authorizer: Authorizer, namespace: str) -> Json:
    spec = body.get("spec") or {}
    errors = [*_subject_errors(spec), *_metadata_errors(body, local=True)]
    resource = spec.get("resourceAttributes")
    if resource is not None and resource.get("namespace", "") != namespace:
        path = "spec.resourceAttributes.namespace"
        value = resource.get("namespace", "")
        errors.append(FieldError("FieldValueInvalid", path, "must match metadata.namespace", value))
    if spec.get("nonResourceAttributes") is not None:
        path, value = "spec.nonResourceAttributes", spec["nonResourceAttributes"]
        errors.append(FieldError("FieldValueInvalid", path, "disallowed on this kind of request", value))
    _refuse_invalid(errors)
    return {**body, "status": _answer(_subject(spec), spec, authorizer)}


def self_subject_rules_review(user: User, body: Json, authorizer: Authorizer) -> Json:
    namespace = (body.get("spec") or {}).get("namespace", "")
    if not namespace:
        raise bad_request("no namespace on request")
    granted = authorizer.granted(user, namespace)
    resource_rules, path_rules = [], []
    for grant in granted.grants:
        rule = grant.rule
        if rule.get("resources"):
            keys = ("verbs", "apiGroups", "resources", "resourceNames")
            resource_rules.append({key: rule[key] for key in keys if rule.get(key)})
        if rule.get("nonResourceURLs"):
            path_rules.append({key: rule[key] for key in ("verbs", "nonResourceURLs") if rule.get(key)})
    status: Json = {"resourceRules": resource_rules, "nonResourceRules": path_rules, "incomplete": False}
    if granted.errors:
        status["evaluationError"] = ", ".join(granted.errors)
    return {**body, "metadata": {}, "spec": {}, "status": status}


def self_subject_review(user: User, body: Json, now: str) -> Json:
    metadata = {"creationTimestamp": now} if now else {}
    return {**body, "metadata": metadata, "status": {"userInfo": user.info()}}


def token_review(body: Json, by_token: Callable[[str], User | None]) -> Json:
    token = (body.get("spec") or {}).get("token", "")
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    user = by_token(token)
    if user is None:
        return {**body, "status": {"user": {}, "error": "invalid bearer token"}}
    return {**body, "status": {"authenticated": True, "user": user.info()}}


def _subject(spec: Json) -> User:
    extra = {key.lower(): tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), extra)


def _answer(user: User, spec: Json, authorizer: Authorizer) -> Json:
    resource = spec.get("resourceAttributes")
    if resource is not None:
        wanted = Attributes(
            user,
            resource.get("verb", ""),
            group=resource.get("group", ""),
            version=resource.get("version", ""),
            resource=resource.get("resource", ""),
            subresource=resource.get("subresource", ""),
            namespace=resource.get("namespace", ""),
            name=resource.get("name", ""),
        )
    else:
        about = spec["nonResourceAttributes"]
        wanted = Attributes(user, about.get("verb", ""), path=about.get("path", ""))
    decision = authorizer.authorize(wanted)
    status: Json = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return status


def _subject_errors(spec: Json) -> list[FieldError]:
    errors = _attribute_errors(spec)
    if not spec.get("user") and not spec.get("groups"):
        detail = "at least one of user or group must be specified"
        errors.append(FieldError("FieldValueInvalid", "spec.user", detail, ""))
    return errors


def _attribute_errors(spec: Json) -> list[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (path is None):
        return [FieldError("FieldValueInvalid", "spec", _ONE_OF, path)]
    return []


def _metadata_errors(body: Json, *, local: bool = False) -> list[FieldError]:
    allowed = {"managedFields", "namespace"} if local else {"managedFields"}
    metadata = {key: value for key, value in (body.get("metadata") or {}).items() if value}
    if not metadata.keys() - allowed:
        return []
    detail = "must be empty except for namespace" if local else "must be empty"
    return [FieldError("FieldValueInvalid", "metadata", detail, metadata)]


def _refuse_invalid(errors: list[FieldError]) -> None:
    if errors:
        raise invalid(_AUTHORIZATION, "", "", errors)  # the real server does not name the kind either
