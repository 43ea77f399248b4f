"""PersistentVolume, PersistentVolumeClaim and StorageClass: stored and checked; nothing here provides storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin.checks import (
    IMMUTABLE,
    child,
    forbidden,
    invalid,
    label_selector,
    put_default,
    qualified_name,
    required,
    show_times,
    subdomain,
    unchanged,
    unsupported,
)
from kubeserver.builtin.quantities import canonical_resources, value_of
from kubeserver.resources import Strategy, World
from kubeserver.wire.status import forbidden as refusal

if TYPE_CHECKING:
    from fractions import Fraction

    from kubeserver.wire.status import FieldError

Json = dict[str, Any]

_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES: Final = ("Block", "Filesystem")
_NOT_A_SOURCE: Final = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)


def default_claim(claim: Json) -> None:
    spec = child(claim, "spec")
    put_default(spec, "volumeMode", "Filesystem")
    canonical_resources(child(spec, "resources"), "limits", "requests")
    status = child(claim, "status")
    put_default(status, "phase", "Pending")
    canonical_resources(status, "capacity", "allocatedResources")
    show_times(status, "lastProbeTime", "lastTransitionTime")


def prepare_claim(world: World, claim: Json) -> None:
    """A claim that names no class gets the default one, the newest if several say they are."""
    claim["status"] = {"phase": "Pending"}
    if claim["spec"].get("storageClassName") is not None:
        return
    key = "storageclass.kubernetes.io/is-default-class"
    defaults = [
        obj
        for obj in world.objects("storage.k8s.io", "storageclasses")
        if (obj["metadata"].get("annotations") or {}).get(key) == "true"
    ]
    if defaults:
        newest = max(defaults, key=lambda default: str(default["metadata"].get("creationTimestamp") or ""))
        claim["spec"]["storageClassName"] = newest["metadata"]["name"]


def prepare_claim_update(world: World, claim: Json, old: Json) -> None:
    """A bound claim grows only where its class says that volumes can."""
    now, then = _storage(claim["spec"]), _storage(old["spec"])
    if now is None or then is None or now <= then or (old.get("status") or {}).get("phase") != "Bound":
        return
    name = old["spec"].get("storageClassName") or ""
    classes = world.objects("storage.k8s.io", "storageclasses")
    if not any(class_["metadata"]["name"] == name and class_.get("allowVolumeExpansion") for class_ in classes):
        why = (
            "only dynamically provisioned pvc can be resized and "
            "the storageclass that provisions the pvc must support resize"
        )
        raise refusal("", "persistentvolumeclaims", claim["metadata"].get("name", ""), why)


def validate_claim(claim: Json) -> list[FieldError]:
    return validate_claim_spec(claim.get("spec") or {}, "spec")


def validate_claim_spec(spec: Json, path: str) -> list[FieldError]:
    modes = spec.get("accessModes") or []
    errors = [] if modes else [required(f"{path}.accessModes", "at least 1 access mode is required")]
    errors += label_selector(f"{path}.selector", spec.get("selector"))
    errors += _modes(modes, f"{path}.accessModes")
    where = f"{path}.resources[storage]"
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    value = value_of(asked)
    if asked is None:
        errors.append(required(where))
    elif value is not None and value <= 0:
        errors.append(invalid(where, str(asked), "must be greater than zero"))
    if spec.get("storageClassName"):
        errors += subdomain(f"{path}.storageClassName", spec["storageClassName"])
    if spec.get("volumeMode") not in (None, *_VOLUME_MODES):
        errors.append(unsupported(f"{path}.volumeMode", spec["volumeMode"], _VOLUME_MODES))
    return errors


def _modes(modes: list[str], path: str) -> list[FieldError]:
    errors = [unsupported(path, mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES]
    if "ReadWriteOncePod" in modes and any(mode in _ACCESS_MODES[:3] for mode in modes):
        errors.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def validate_claim_update(claim: Json, old: Json) -> list[FieldError]:
    """Only a bound claim may change, and only in size; its volume is set once, by the controller that binds it."""
    new, before = dict(claim["spec"]), dict(old["spec"])
    bound = (old.get("status") or {}).get("phase") == "Bound"
    freely = ["volumeName"] if not before.get("volumeName") else []
    freely += ["resources", "volumeAttributesClassName"] if bound else []
    for obj in (new, before):
        for field in freely:
            obj.pop(field, None)
    errors: list[FieldError] = []
    if new != before:
        changeable = "resources.requests and volumeAttributesClassName for bound claims"
        errors.append(forbidden("spec", f"spec is immutable after creation except {changeable}"))
    now, then = _storage(claim["spec"]), _storage(old["spec"])
    held = value_of(((old.get("status") or {}).get("capacity") or {}).get("storage")) or 0
    if now is not None and then is not None and now < then and now <= held:
        errors.append(forbidden("spec.resources.requests.storage", "field can not be less than status.capacity"))
    return errors


def _storage(spec: Json) -> Fraction | None:
    return value_of(((spec.get("resources") or {}).get("requests") or {}).get("storage"))


def default_volume(volume: Json) -> None:
    spec = child(volume, "spec")
    put_default(spec, "persistentVolumeReclaimPolicy", "Retain")
    put_default(spec, "volumeMode", "Filesystem")
    canonical_resources(spec, "capacity")
    if (spec.get("hostPath") or {}).get("type", "") is None or (
        spec.get("hostPath") is not None and "type" not in spec["hostPath"]
    ):
        spec["hostPath"]["type"] = ""
    put_default(child(volume, "status"), "phase", "Pending")


def _prepare_volume(world: World, volume: Json) -> None:
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": world.now()}


def validate_volume(volume: Json) -> list[FieldError]:
    spec: Json = volume.get("spec") or {}
    modes = spec.get("accessModes") or []
    errors = [] if modes else [required("spec.accessModes")]
    errors += _modes(modes, "spec.accessModes")
    capacity = spec.get("capacity") or {}
    if not capacity:
        errors.append(required("spec.capacity"))
    if set(capacity) - {"storage"} or not capacity:
        errors.append(unsupported("spec.capacity", capacity or None, ("storage",)))
    sources = [field for field, value in spec.items() if field not in _NOT_A_SOURCE and value is not None]
    errors += [forbidden(f"spec.{source}", "may not specify more than 1 volume type") for source in sources[1:]]
    if not sources:
        errors.append(required("spec", "must specify a volume type"))
    policies = ("Delete", "Recycle", "Retain")
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy not in policies:
        errors.append(unsupported("spec.persistentVolumeReclaimPolicy", policy, policies))
    if spec.get("storageClassName"):
        errors += subdomain("spec.storageClassName", spec["storageClassName"])
    if spec.get("volumeMode") not in (None, *_VOLUME_MODES):
        errors.append(unsupported("spec.volumeMode", spec["volumeMode"], _VOLUME_MODES))
    return errors


def validate_volume_update(volume: Json, old: Json) -> list[FieldError]:
    def source(item: Json) -> Json:
        return {field: value for field, value in item["spec"].items() if field not in _NOT_A_SOURCE}

    errors: list[FieldError] = []
    if source(volume) != source(old):
        detail = "spec.persistentvolumesource is immutable after creation"
        errors.append(forbidden("spec.persistentvolumesource", detail))
    return errors + unchanged("spec.volumeMode", volume["spec"].get("volumeMode"), old["spec"].get("volumeMode"))


def default_class(item: Json) -> None:
    put_default(item, "reclaimPolicy", "Delete")
    put_default(item, "volumeBindingMode", "Immediate")
    item.setdefault("provisioner", "")


def validate_class(item: Json) -> list[FieldError]:
    provisioner = item.get("provisioner") or ""
    errors: list[FieldError] = qualified_name("provisioner", provisioner.lower()) if provisioner else []
    if item.get("reclaimPolicy") not in ("Delete", "Retain"):
        errors.append(unsupported("reclaimPolicy", item.get("reclaimPolicy"), ("Delete", "Retain")))
    modes = ("Immediate", "WaitForFirstConsumer")
    if item.get("volumeBindingMode") not in modes:
        errors.append(unsupported("volumeBindingMode", item.get("volumeBindingMode"), modes))
    return errors if provisioner else [*errors, required("provisioner")]


def validate_class_update(item: Json, old: Json) -> list[FieldError]:
    fixed = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
    return [invalid(field, None, IMMUTABLE) for field in fixed if item.get(field) != old.get(field)]


PERSISTENT_VOLUME_CLAIM: Final = Strategy(
    default=default_claim,
    prepare_create=prepare_claim,
    prepare_update=prepare_claim_update,
    validate=validate_claim,
    validate_update=validate_claim_update,
)
PERSISTENT_VOLUME: Final = Strategy(
    default=default_volume,
    prepare_create=_prepare_volume,
    validate=validate_volume,
    validate_update=validate_volume_update,
)
STORAGE_CLASS: Final = Strategy(default=default_class, validate=validate_class, validate_update=validate_class_update)
