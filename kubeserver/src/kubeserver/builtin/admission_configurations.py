"""ValidatingWebhookConfiguration and MutatingWebhookConfiguration: whom to ask about writes.

What they do is in `webhooks`; here is what they may say.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from kubeserver.builtin.checks import (
    duplicate,
    invalid,
    label_selector,
    one_of,
    port_number,
    put_default,
    qualified_name,
    required,
)
from kubeserver.resources import Strategy
from kubeserver.wire.names import dns_1035_label, dns_subdomain
from kubeserver.wire.status import FieldError

Json = dict[str, Any]

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_URL_FORM: Final = "; desired format: https://host[/path]"


def default_validating(configuration: Json) -> None:
    for hook in configuration.get("webhooks") or ():
        _default_hook(hook)


def default_mutating(configuration: Json) -> None:
    for hook in configuration.get("webhooks") or ():
        _default_hook(hook)
        put_default(hook, "reinvocationPolicy", "Never")


def _default_hook(hook: Json) -> None:
    put_default(hook, "failurePolicy", "Fail")
    put_default(hook, "matchPolicy", "Equivalent")
    for field in ("namespaceSelector", "objectSelector"):
        if hook.get(field) is None:
            hook[field] = {}
    if hook.get("timeoutSeconds") is None:
        hook["timeoutSeconds"] = 10
    hook.setdefault("admissionReviewVersions", None)
    hook.setdefault("sideEffects", None)
    client = hook.setdefault("clientConfig", {})
    if client.get("service") is not None and client["service"].get("port") is None:
        client["service"]["port"] = 443
    for rule in hook.get("rules") or ():
        put_default(rule, "scope", "*")


def validate_validating(configuration: Json) -> list[FieldError]:
    return _hooks(configuration, mutating=False)


def validate_mutating(configuration: Json) -> list[FieldError]:
    return _hooks(configuration, mutating=True)


def _hooks(configuration: Json, *, mutating: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, hook in enumerate(configuration.get("webhooks") or ()):
        path = f"webhooks[{index}]"
        errors += _hook(hook, path, mutating=mutating)
        errors += _review_versions(hook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions")
        name = hook.get("name") or ""
        if name and name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
    return errors


def _hook(hook: Json, path: str, *, mutating: bool) -> list[FieldError]:
    errors = _name(f"{path}.name", hook.get("name") or "")
    for index, rule in enumerate(hook.get("rules") or ()):
        errors += _rule(rule, f"{path}.rules[{index}]")
    errors += one_of(f"{path}.failurePolicy", hook.get("failurePolicy"), ("Fail", "Ignore"))
    errors += one_of(f"{path}.matchPolicy", hook.get("matchPolicy"), ("Equivalent", "Exact"))
    if hook.get("sideEffects") is None:
        errors.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}"))
    else:
        errors += one_of(f"{path}.sideEffects", hook["sideEffects"], _SIDE_EFFECTS)
    timeout = hook.get("timeoutSeconds")
    if timeout is not None and not 1 <= timeout <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        errors.append(invalid(f"{path}.timeoutSeconds", timeout, detail))
    for field in ("namespaceSelector", "objectSelector"):
        errors += label_selector(f"{path}.{field}", hook.get(field))
    if mutating:
        policy = hook.get("reinvocationPolicy")
        errors += one_of(f"{path}.reinvocationPolicy", policy, ("IfNeeded", "Never"))
    errors += _client(hook.get("clientConfig") or {}, f"{path}.clientConfig")
    return errors + _conditions(hook.get("matchConditions") or [], f"{path}.matchConditions")


def _name(path: str, name: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    wrong = dns_subdomain(name)
    if wrong:
        return [invalid(path, name, ",".join(wrong))]
    if name.count(".") < 2:
        return [invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def _rule(rule: Json, path: str) -> list[FieldError]:
    operations = rule.get("operations") or []
    errors: list[FieldError] = []
    if not operations:
        errors.append(required(f"{path}.operations"))
    if len(operations) > 1 and "*" in operations:
        detail = "if '*' is present, must not specify other operations"
        errors.append(invalid(f"{path}.operations", operations, detail))
    for index, operation in enumerate(operations):
        errors += one_of(f"{path}.operations[{index}]", operation, _OPERATIONS)
    for field, title in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(field) or []
        if not values:
            errors.append(required(f"{path}.{field}"))
        if len(values) > 1 and "*" in values:
            detail = f"if '*' is present, must not specify other {title}"
            errors.append(invalid(f"{path}.{field}", values, detail))
    for index, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            errors.append(required(f"{path}.apiVersions[{index}]"))
    errors += _resources(rule.get("resources") or [], f"{path}.resources")
    return errors + one_of(f"{path}.scope", rule.get("scope"), ("*", "Cluster", "Namespaced"))


def _resources(resources: list[str], path: str) -> list[FieldError]:
    if not resources:
        return [required(path)]
    errors: list[FieldError] = []
    whole_resources: set[str] = set()  # x of x/*
    whole_subresources: set[str] = set()  # x of */x
    for index, each in enumerate(resources):
        where = f"{path}[{index}]"
        plural, slash, subresource = each.partition("/")
        if not each:
            errors.append(required(where))
        if not slash:
            continue
        for covered, by in (
            (plural in whole_resources, f"{plural}/*"),
            (subresource in whole_subresources, f"*/{subresource}"),
        ):
            if covered:
                errors.append(invalid(where, each, f"if '{by}' is present, must not specify {each}"))
        if subresource == "*":
            whole_resources.add(plural)
        if plural == "*":
            whole_subresources.add(subresource)
    if len(resources) > 1 and "*/*" in resources:
        errors.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    plain = [resource for resource in resources if "/" not in resource]
    if "*" in resources and plain[-1] != "*":
        detail = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(path, resources, detail))
    return errors


def _client(client: Json, path: str) -> list[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    if url is not None:
        return url_errors(url, f"{path}.url")
    return _service(service or {}, f"{path}.service")


def url_errors(url: str, path: str) -> list[FieldError]:
    """What is wrong with the address of a webhook."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        return [required(path, f"url must be a valid URL: {error}{_URL_FORM}")]
    errors: list[FieldError] = []
    if parts.scheme != "https":
        errors.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}"))
    if not parts.netloc:
        errors.append(invalid(path, "", f"host must be specified{_URL_FORM}"))
    if "@" in parts.netloc:
        user = parts.netloc.rpartition("@")[0]
        errors.append(invalid(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        errors.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        errors.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return errors


def _service(service: Json, path: str) -> list[FieldError]:
    errors = [required(f"{path}.{field}") for field in ("name", "namespace") if not service.get(field)]
    errors += [
        invalid(error.path, error.value, f"port is not valid: {error.detail}")
        for error in port_number(f"{path}.port", service.get("port", 0))
    ]
    target = service.get("path") or "/"
    if target == "/":
        return errors
    if not target.startswith("/"):
        errors.append(invalid(f"{path}.path", target, "must start with a '/'"))
    for index, step in enumerate(target[1:].removesuffix("/").split("/")):
        wrong = dns_subdomain(step) if step else []
        if not step:
            errors.append(invalid(f"{path}.path", target, f"segment[{index}] may not be empty"))
        errors += [invalid(f"{path}.path", target, f"segment[{index}]: {text}") for text in wrong]
    return errors


def _conditions(conditions: list[Json], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if len(conditions) > 64:
        errors.append(FieldError("FieldValueTooMany", path, "must have at most 64 items", len(conditions)))
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        where, name = f"{path}[{index}]", condition.get("name") or ""
        if not (condition.get("expression") or "").strip():
            errors.append(required(f"{where}.expression"))
        errors += qualified_name(f"{where}.name", name) if name else [required(f"{where}.name")]
        if name and name in names:
            errors.append(duplicate(f"{where}.name", name))
        names.add(name)
    return errors


def _review_versions(versions: list[str], path: str) -> list[FieldError]:
    known = ", ".join(_REVIEW_VERSIONS)
    if not versions:
        return [required(path, f"must specify one of {known}")]
    errors: list[FieldError] = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            errors.append(invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        errors += [invalid(f"{path}[{index}]", version, text) for text in dns_1035_label(version)]
    if not any(version in _REVIEW_VERSIONS for version in versions):
        errors.append(invalid(path, versions, f"must include at least one of {known}"))
    return errors


VALIDATING: Final = Strategy(default=default_validating, validate=validate_validating)
MUTATING: Final = Strategy(default=default_mutating, validate=validate_mutating)
