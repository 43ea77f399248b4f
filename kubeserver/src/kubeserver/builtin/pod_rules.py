"""What a pod's spec may say.

The fields that people get wrong by hand are checked as kube-apiserver does, in its order. What only a kubelet or
a scheduler could act on (affinities, security contexts beyond ids, exotic volumes) is accepted as its schema
allows, because nothing here would act on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin.checks import (
    PROTOCOLS,
    config_key,
    duplicate,
    env_name,
    forbidden,
    invalid,
    label,
    not_negative,
    one_of,
    port_name,
    port_number,
    port_number_or_name,
    qualified_name,
    required,
    subdomain,
    unsupported,
)
from kubeserver.builtin.quantities import value_of
from kubeserver.wire.names import label_value, validate_labels
from kubeserver.wire.status import FieldError

if TYPE_CHECKING:
    from collections.abc import Iterable

Json = dict[str, Any]

_MAX_INT32: Final = 2**31 - 1
_RESTART: Final = ("Always", "OnFailure", "Never")
_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PULL: Final = ("Always", "IfNotPresent", "Never")
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def validate_pod_spec(spec: Json, path: str) -> list[FieldError]:
    volumes, errors = _volumes(spec.get("volumes") or [], f"{path}.volumes")
    errors += _containers(spec, volumes, path)
    errors += _host_network(spec, path)
    errors += _enumerated(f"{path}.restartPolicy", spec.get("restartPolicy"), _RESTART)
    errors += _enumerated(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS)
    errors += validate_labels(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    errors += _security_context(spec.get("securityContext") or {}, f"{path}.securityContext")
    if spec.get("serviceAccountName"):
        errors += subdomain(f"{path}.serviceAccountName", spec["serviceAccountName"])
    if spec.get("nodeName"):
        errors += subdomain(f"{path}.nodeName", spec["nodeName"])
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _MAX_INT32:
        where = f"{path}.activeDeadlineSeconds"
        errors.append(invalid(where, deadline, f"must be between 1 and {_MAX_INT32}, inclusive"))
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            errors += label(f"{path}.{field}", spec[field])
    errors += _tolerations(spec.get("tolerations") or [], f"{path}.tolerations")
    if spec.get("priorityClassName"):
        errors += subdomain(f"{path}.priorityClassName", spec["priorityClassName"])
    if spec.get("preemptionPolicy"):
        known = ("Never", "PreemptLowerPriority")
        errors += one_of(f"{path}.preemptionPolicy", spec["preemptionPolicy"], known)
    return errors


def _enumerated(path: str, value: Any, known: tuple[str, ...]) -> list[FieldError]:
    return one_of(path, value, known) if value else [required(path)]


def _volumes(volumes: list[Json], path: str) -> tuple[set[str], list[FieldError]]:
    names: set[str] = set()
    errors: list[FieldError] = []
    for index, volume in enumerate(volumes):
        where = f"{path}[{index}]"
        found = _volume_source(volume, where)
        name = volume.get("name") or ""
        found += label(f"{where}.name", name) if name else [required(f"{where}.name")]
        if name in names:
            found.append(duplicate(f"{where}.name", name))
        if not found:
            names.add(name)
        errors += found
    return names, errors


def _volume_source(volume: Json, path: str) -> list[FieldError]:
    given = [field for field, value in volume.items() if field != "name" and value is not None]
    if not given:
        return [required(path, "must specify a volume type")]
    errors = [forbidden(f"{path}.{field}", "may not specify more than 1 volume type") for field in given[1:]]
    source = volume[given[0]]
    where = f"{path}.{given[0]}"
    match given[0]:
        case "secret" if not source.get("secretName"):
            errors.append(required(f"{where}.secretName"))
        case "configMap" if not source.get("name"):
            errors.append(required(f"{where}.name"))
        case "persistentVolumeClaim" if not source.get("claimName"):
            errors.append(required(f"{where}.claimName"))
        case "hostPath":
            if not source.get("path"):
                errors.append(required(f"{where}.path"))
            elif ".." in source["path"].split("/"):
                errors.append(invalid(f"{where}.path", source["path"], "must not contain '..'"))
        case "nfs":
            errors += [required(f"{where}.{field}") for field in ("server", "path") if not source.get(field)]
    for item_index, item in enumerate(source.get("items") or () if isinstance(source, dict) else ()):
        if given[0] in ("secret", "configMap"):
            for field in ("key", "path"):
                if not item.get(field):
                    errors.append(required(f"{where}.items[{item_index}].{field}"))
    return errors


def _containers(spec: Json, volumes: set[str], path: str) -> list[FieldError]:
    regular = spec.get("containers") or []
    errors: list[FieldError] = []
    if not regular:
        errors.append(required(f"{path}.containers"))
    names: set[str] = set()
    for index, container in enumerate(regular):
        where = f"{path}.containers[{index}]"
        errors += _container(container, volumes, where)
        errors += _unique_name(container, names, where)
        errors += _lifecycle(container, where)
    errors += _host_ports(regular, f"{path}.containers")
    init_names = set(names)
    for index, container in enumerate(spec.get("initContainers") or []):
        where = f"{path}.initContainers[{index}]"
        errors += _container(container, volumes, where)
        errors += _unique_name(container, init_names, where)
        if container.get("restartPolicy") == "Always":
            errors += _lifecycle(container, where)
        else:
            errors += [
                forbidden(f"{where}.{field}", "may not be set for init containers without restartPolicy=Always")
                for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
                if container.get(field) is not None
            ]
    return errors


def _unique_name(container: Json, names: set[str], path: str) -> list[FieldError]:
    name = container.get("name") or ""
    if name in names:
        return [duplicate(f"{path}.name", name)]
    names.add(name)
    return []


def _container(container: Json, volumes: set[str], path: str) -> list[FieldError]:
    name = container.get("name") or ""
    errors = label(f"{path}.name", name) if name else [required(f"{path}.name")]
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    policy = container.get("terminationMessagePolicy")
    errors += _enumerated(f"{path}.terminationMessagePolicy", policy, ("File", "FallbackToLogsOnError"))
    errors += _ports(container.get("ports") or [], f"{path}.ports")
    errors += _environment(container, path)
    errors += _mounts(container.get("volumeMounts") or [], volumes, f"{path}.volumeMounts")
    errors += _enumerated(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), _PULL)
    errors += validate_resources(container.get("resources") or {}, f"{path}.resources")
    return errors + _security_context(container.get("securityContext") or {}, f"{path}.securityContext")


def _ports(ports: list[Json], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        where, name = f"{path}[{index}]", port.get("name") or ""
        if name:
            found = port_name(f"{where}.name", name)
            errors += found
            if not found and name in names:
                errors.append(duplicate(f"{where}.name", name))
            names.add(name)
        number = port.get("containerPort") or 0
        errors += port_number(f"{where}.containerPort", number) if number else [required(f"{where}.containerPort")]
        if port.get("hostPort"):
            errors += port_number(f"{where}.hostPort", port["hostPort"])
        errors += _enumerated(f"{where}.protocol", port.get("protocol"), PROTOCOLS)
    return errors


def _host_ports(containers: list[Json], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in seen:
                errors.append(duplicate(f"{path}[{index}].ports[{position}].hostPort", key))
            seen.add(key)
    return errors


def _environment(container: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, variable in enumerate(container.get("env") or ()):
        where = f"{path}.env[{index}]"
        name = variable.get("name") or ""
        errors += env_name(f"{where}.name", name) if name else [required(f"{where}.name")]
        if variable.get("valueFrom") is not None:
            errors += _value_from(variable, f"{where}.valueFrom")
    for index, source in enumerate(container.get("envFrom") or ()):
        where = f"{path}.envFrom[{index}]"
        given = [field for field in ("configMapRef", "secretRef") if source.get(field) is not None]
        for field in given:
            if not source[field].get("name"):
                errors.append(required(f"{where}.{field}.name"))
        if not given:
            errors.append(invalid(where, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            errors.append(invalid(where, "", "may not have more than one field specified at a time"))
    return errors


def _value_from(variable: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    source = variable["valueFrom"]
    given = [field for field, value in source.items() if value is not None]
    for field in given:
        if field in ("configMapKeyRef", "secretKeyRef"):
            where = f"{path}.{field}"
            if not source[field].get("name"):
                errors.append(required(f"{where}.name"))
            key = source[field].get("key") or ""
            errors += config_key(f"{where}.key", key) if key else [required(f"{where}.key")]
        elif field == "fieldRef" and not source[field].get("fieldPath"):
            errors.append(required(f"{path}.fieldRef.fieldPath"))
    if not given:
        detail = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        )
        errors.append(invalid(path, "", detail))
    elif variable.get("value"):
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def _mounts(mounts: list[Json], volumes: set[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        where, name, target = f"{path}[{index}]", mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            errors.append(required(f"{where}.name"))
        if name not in volumes:
            errors.append(FieldError("FieldValueNotFound", f"{where}.name", "", name))
        if not target:
            errors.append(required(f"{where}.mountPath"))
        if target in seen:
            errors.append(invalid(f"{where}.mountPath", target, "must be unique"))
        seen.add(target)
    return errors


def validate_resources(resources: Json, path: str) -> list[FieldError]:
    """Limits and requests of a container."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    errors = [*_amounts(limits, f"{path}.limits"), *_amounts(requests, f"{path}.requests")]
    for name, amount in requests.items():
        if name not in limits:
            continue
        wanted, limit = value_of(amount), value_of(limits[name])
        if wanted is not None and limit is not None and wanted > limit:
            detail = f"must be less than or equal to {name} limit of {limits[name]}"
            errors.append(invalid(f"{path}.requests", str(amount), detail))
    return errors


def _amounts(amounts: Json, path: str) -> Iterable[FieldError]:
    for name, amount in amounts.items():
        where = f"{path}[{name}]"
        yield from qualified_name(where, name)
        if "/" not in name and name not in ("cpu", "memory", "ephemeral-storage") and not name.startswith("hugepages-"):
            yield invalid(where, name, "must be a standard resource type or fully qualified")
            yield invalid(where, name, "must be a standard resource for containers")
        value = value_of(amount)
        if value is not None and value < 0:
            yield invalid(where, str(amount), "must be greater than or equal to 0")


def _security_context(context: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        value = context.get(field)
        if value is not None and not 0 <= value <= _MAX_INT32:
            errors.append(invalid(f"{path}.{field}", value, f"must be between 0 and {_MAX_INT32}, inclusive"))
    return errors


def _lifecycle(container: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for hook in ("postStart", "preStop"):
        handler = (container.get("lifecycle") or {}).get(hook)
        if handler is not None:
            errors += _handler(handler, f"{path}.lifecycle.{hook}")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is None:
            continue
        where = f"{path}.{name}"
        errors += _handler(probe, where)
        for field in (
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ):
            errors += not_negative(f"{where}.{field}", probe.get(field))
        if name != "readinessProbe" and probe.get("successThreshold") != 1:
            errors.append(invalid(f"{where}.successThreshold", probe.get("successThreshold"), "must be 1"))
    return errors


def _handler(handler: Json, path: str) -> list[FieldError]:
    given = [field for field in _HANDLERS if handler.get(field) is not None]
    if not given:
        return [required(path, "must specify a handler type")]
    errors = [forbidden(f"{path}.{field}", "may not specify more than 1 handler type") for field in given[1:]]
    action, where = handler[given[0]], f"{path}.{given[0]}"
    match given[0]:
        case "exec" if not action.get("command"):
            errors.append(required(f"{where}.command"))
        case "httpGet":
            errors += port_number_or_name(f"{where}.port", action.get("port", 0))
            errors += one_of(f"{where}.scheme", action.get("scheme"), ("HTTP", "HTTPS"))
        case "tcpSocket" | "grpc":
            errors += port_number_or_name(f"{where}.port", action.get("port", 0))
    return errors


def _host_network(spec: Json, path: str) -> list[FieldError]:
    if not spec.get("hostNetwork"):
        return []
    return [
        invalid(f"{path}.containers[{index}].ports[{position}].hostPort", port.get("hostPort") or 0, detail)
        for index, container in enumerate(spec.get("containers") or ())
        for position, port in enumerate(container.get("ports") or ())
        for detail in ("must match `containerPort` when `hostNetwork` is true",)
        if port.get("hostPort") and port["hostPort"] != port.get("containerPort")
    ]


def _tolerations(tolerations: list[Json], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, toleration in enumerate(tolerations):
        where = f"{path}[{index}]"
        key, operator = toleration.get("key") or "", toleration.get("operator") or ""
        value, effect = toleration.get("value") or "", toleration.get("effect") or ""
        if key:
            errors += qualified_name(f"{where}.key", key)
        elif operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(invalid(f"{where}.operator", operator, detail))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(invalid(f"{where}.effect", effect, detail))
        if operator in ("Equal", ""):
            wrong = label_value(value)
            if wrong:
                errors.append(invalid(f"{where}.operator", value, ";".join(wrong)))
        elif operator == "Exists":
            if value:
                errors.append(invalid(f"{where}.operator", value, "value must be empty when `operator` is 'Exists'"))
        else:
            errors.append(unsupported(f"{where}.operator", operator, ("Equal", "Exists")))
        if effect and effect not in _EFFECTS:
            errors.append(unsupported(f"{where}.effect", effect, _EFFECTS))
    return errors
