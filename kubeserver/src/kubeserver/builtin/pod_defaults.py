"""What a pod's spec says when its author did not: in a Pod, and in the template of every workload.

A template gets less than a Pod does: requests are taken from limits, and service links are turned on, only when
a Pod is really made of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin.checks import put_default
from kubeserver.builtin.quantities import canonical, canonical_resources

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_FILE_MODE: Final = 0o644


def default_template(template: Json) -> None:
    """The template of a workload."""
    template.setdefault("metadata", {})
    template["spec"] = template.get("spec") or {}
    default_pod_spec(template["spec"])


def default_pod_spec(spec: Json) -> None:
    put_default(spec, "restartPolicy", "Always")
    put_default(spec, "dnsPolicy", "ClusterFirst")
    put_default(spec, "schedulerName", "default-scheduler")
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(field) is False:
            del spec[field]
    spec.setdefault("containers", None)
    for container in containers(spec):
        _default_container(container)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    for constraint in spec.get("topologySpreadConstraints") or ():
        constraint.setdefault("maxSkew", 0)


def containers(spec: Json) -> Iterator[Json]:
    for field in CONTAINER_LISTS:
        yield from spec.get(field) or ()


def _default_container(container: Json) -> None:
    put_default(container, "imagePullPolicy", _pull_policy(container.get("image") or ""))
    put_default(container, "terminationMessagePath", "/dev/termination-log")
    put_default(container, "terminationMessagePolicy", "File")
    container["resources"] = container.get("resources") or {}
    canonical_resources(container["resources"], "limits", "requests")
    for port in container.get("ports") or ():
        put_default(port, "protocol", "TCP")
    for name in _PROBES:
        if container.get(name):
            _default_probe(container[name])
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict) and hook.get("httpGet"):
            _default_http_get(hook["httpGet"])
    for variable in container.get("env") or ():
        _default_field_source(variable.get("valueFrom") or {})


def _default_field_source(source: Json) -> None:
    if source.get("fieldRef"):
        put_default(source["fieldRef"], "apiVersion", "v1")
    if source.get("resourceFieldRef"):
        reference = source["resourceFieldRef"]
        reference["divisor"] = canonical(reference.get("divisor") or "0")


def _pull_policy(image: str) -> str:
    """Always for a moving tag, which `latest` and no tag at all are."""
    name, at, _ = image.partition("@")
    last = name.rsplit("/", 1)[-1]
    tag = last.partition(":")[2]
    if at and not tag:
        return "IfNotPresent"
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _default_probe(probe: Json) -> None:
    for field, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        probe[field] = probe.get(field) or value
    if probe.get("httpGet"):
        _default_http_get(probe["httpGet"])
    if probe.get("grpc") and probe["grpc"].get("service") is None:
        probe["grpc"]["service"] = ""


def _default_http_get(action: Json) -> None:
    put_default(action, "path", "/")
    put_default(action, "scheme", "HTTP")


def _default_volume(volume: Json) -> None:
    if not any(value is not None for field, value in volume.items() if field != "name"):
        volume["emptyDir"] = {}
    for field in ("secret", "configMap", "downwardAPI", "projected"):
        source = volume.get(field)
        if source is not None and source.get("defaultMode") is None:
            source["defaultMode"] = _FILE_MODE
    if volume.get("hostPath") is not None and volume["hostPath"].get("type") is None:
        volume["hostPath"]["type"] = ""
    if volume.get("emptyDir") and volume["emptyDir"].get("sizeLimit") is not None:
        volume["emptyDir"]["sizeLimit"] = canonical(volume["emptyDir"]["sizeLimit"])
    if volume.get("image"):
        put_default(volume["image"], "pullPolicy", _pull_policy(volume["image"].get("reference") or ""))
    sources = [volume, *((volume.get("projected") or {}).get("sources") or ())]
    for source in sources:
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            _default_field_source(item)
        token = source.get("serviceAccountToken")
        if token is not None and token.get("expirationSeconds") is None:
            token["expirationSeconds"] = 3600
    _default_claim_template(volume)


def _default_claim_template(volume: Json) -> None:
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template:
        template.setdefault("metadata", {})
        spec = template.setdefault("spec", {})
        put_default(spec, "volumeMode", "Filesystem")
        canonical_resources(spec.setdefault("resources", {}), "limits", "requests")
