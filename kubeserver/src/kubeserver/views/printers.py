"""What `kubectl get` shows of the built-in kinds: their columns, and a function per cell.

kubectl prints whatever the server puts into a Table, so these columns are the face of the server. Columns of
priority 1 appear with `-o wide`. Kinds that run containers are in `printers_workloads.py`.

A cell must bear any object that validation lets through: what is missing is shown as Kubernetes shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kubeserver.resources import PrintedColumn
from kubeserver.views.cells import (
    AGE,
    CREATED_AT,
    DEFAULT_COLUMNS,
    NAME,
    NONE,
    SHOWN_AT_MOST,
    UNKNOWN,
    UNSET,
    Since,
    count,
    labels_text,
    name_of,
    number,
    part,
    selector_text,
    some_of,
    text,
    wide,
)
from kubeserver.views.printers_workloads import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]


def _service_cluster_ip(obj: Json) -> str:
    addresses = part(obj, "spec", "clusterIPs") or ()
    return str(addresses[0]) if addresses else NONE


def _balancer_addresses(obj: Json) -> list[str]:
    entries = part(obj, "status", "loadBalancer", "ingress") or ()
    return sorted({shown for entry in entries if (shown := entry.get("ip") or entry.get("hostname"))})


def _service_external_ip(obj: Json) -> str:
    spec = obj.get("spec") or {}
    external = list(spec.get("externalIPs") or ())
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(external) or NONE
        case "LoadBalancer":
            return ",".join(_balancer_addresses(obj) + external) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return UNKNOWN


def _service_ports(obj: Json) -> str:
    shown = []
    for port in part(obj, "spec", "ports") or ():
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port.get('port', 0)}{node_port}/{port.get('protocol', '')}")
    return ",".join(shown) or NONE


def _ingress_hosts(obj: Json) -> str:
    rules = part(obj, "spec", "rules") or []
    hosts: list[str] = []
    for rule in rules:
        if len(hosts) == SHOWN_AT_MOST:  # Kubernetes counts rules here, not hosts
            return f"{','.join(hosts)} + {len(rules) - SHOWN_AT_MOST} more..."
        if rule.get("host"):
            hosts.append(rule["host"])
    return ",".join(hosts) or "*"


def _name_with_default(annotation: str) -> Callable[[Json], str]:
    def cell(obj: Json) -> str:
        annotations = obj["metadata"].get("annotations") or {}
        return name_of(obj) + (" (default)" if annotations.get(annotation) == "true" else "")

    return cell


_INGRESS_CLASS_NAME: Final = PrintedColumn(
    "Name", format="name", cell=_name_with_default("ingressclass.kubernetes.io/is-default-class")
)
_STORAGE_CLASS_NAME: Final = PrintedColumn(
    "Name", format="name", cell=_name_with_default("storageclass.kubernetes.io/is-default-class")
)


def _ingress_class_parameters(obj: Json) -> str:
    parameters = part(obj, "spec", "parameters")
    if not parameters:
        return NONE
    group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") is not None else ""
    return f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"


def _endpoints(obj: Json) -> str:
    if not obj.get("subsets"):
        return NONE
    shown: list[str] = []
    for subset in obj["subsets"]:
        addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
        for port in subset.get("ports") or [None]:
            shown += addresses if port is None else [_host_port(address, port.get("port", 0)) for address in addresses]
    return some_of(shown)


def _host_port(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _slice_ports(obj: Json) -> str:
    shown = (
        str(port["port"]) if port.get("port") is not None else str(port.get("name", "*"))
        for port in obj.get("ports") or ()
    )
    return some_of(shown, empty=UNSET)


def _slice_endpoints(obj: Json) -> str:
    addresses = (address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ())
    return some_of(addresses, empty=UNSET)


def _node_status(obj: Json) -> str:
    conditions = {item.get("type"): item for item in part(obj, "status", "conditions") or ()}
    ready = conditions.get("Ready")
    shown = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{shown},SchedulingDisabled" if part(obj, "spec", "unschedulable") else shown


def _node_roles(obj: Json) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = obj["metadata"].get("labels") or {}
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix)}
    roles.add(labels.get("kubernetes.io/role", ""))
    return ",".join(sorted(roles - {""})) or NONE


def _node_address(kind: str) -> Callable[[Json], str]:
    def cell(obj: Json) -> str:
        addresses = part(obj, "status", "addresses") or ()
        return next((str(address.get("address", "")) for address in addresses if address.get("type") == kind), NONE)

    return cell


def _node_kernel(obj: Json) -> str:
    info = part(obj, "status", "nodeInfo") or {}
    kernel = info.get("kernelVersion") or UNKNOWN
    return f"{kernel} ({info['architecture']})" if info.get("architecture") else kernel


def _event_target(obj: Json) -> Json:
    return obj.get("involvedObject") or obj.get("regarding") or {}


def _event_first_seen(obj: Json) -> Since:
    stamp = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime")
    return Since(stamp)


def _event_last_seen(obj: Json) -> Since:
    if series := obj.get("series"):
        return Since(series.get("lastObservedTime"))
    stamp = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    return Since(stamp) if stamp else _event_first_seen(obj)


def _event_object(obj: Json) -> str:
    target = _event_target(obj)
    kind = str(target.get("kind", "")).lower()
    return f"{kind}/{target['name']}" if target.get("name") else kind


def _event_source(obj: Json) -> str:
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    host = source.get("host") or obj.get("reportingInstance") or ""
    return f"{component}, {host}" if host else str(component)


def _event_count(obj: Json) -> int:
    if series := obj.get("series"):
        return int(series.get("count") or 0)
    return int(obj.get("count") or obj.get("deprecatedCount") or 1)


def _event_message(obj: Json) -> str:
    return str(obj.get("message") or obj.get("note") or "").strip()


def _role_ref(obj: Json) -> str:
    return f"{part(obj, 'roleRef', 'kind') or ''}/{part(obj, 'roleRef', 'name') or ''}"


def _subjects(kind: str) -> Callable[[Json], str]:
    def shown(subject: Json) -> str:
        name = str(subject.get("name", ""))
        return f"{subject.get('namespace', '')}/{name}" if kind == "ServiceAccount" else name

    return lambda obj: ", ".join(shown(item) for item in obj.get("subjects") or () if item.get("kind") == kind)


_ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _access_modes(modes: list[str] | None) -> str:
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in (modes or ()))


def _phase(obj: Json) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return str(part(obj, "status", "phase") or "")


def _claim_ref(obj: Json) -> str:
    claim = part(obj, "spec", "claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _storage_class(obj: Json) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    beta = annotations.get("volume.beta.kubernetes.io/storage-class")
    return str(beta if beta is not None else part(obj, "spec", "storageClassName") or "")


def _bound_claim(*path: str) -> Callable[[Json], Any]:
    return lambda obj: part(obj, *path) if part(obj, "spec", "volumeName") else None


def _served_versions(obj: Json) -> str:
    served = [item for item in part(obj, "spec", "versions") or () if item.get("served")]
    return ",".join(sorted(f"{item['name']}{'(storage)' if item.get('storage') else ''}" for item in served))


def _established(obj: Json) -> bool:
    conditions = part(obj, "status", "conditions") or ()
    return any(condition.get("type") == "Established" and condition.get("status") == "True" for condition in conditions)


_VOLUME_ATTRIBUTES: Final = PrintedColumn(
    "VolumeAttributesClass", cell=text("spec", "volumeAttributesClassName", default=UNSET)
)
_VOLUME_MODE: Final = wide("VolumeMode", text("spec", "volumeMode", default=UNSET))
_EVENT: Final = (
    PrintedColumn("Last Seen", cell=_event_last_seen),
    PrintedColumn("Type", cell=text("type")),
    PrintedColumn("Reason", cell=text("reason")),
    PrintedColumn("Object", cell=_event_object),
    wide("Subobject", lambda obj: str(_event_target(obj).get("fieldPath", ""))),
    wide("Source", _event_source),
    PrintedColumn("Message", cell=_event_message),
    wide("First Seen", _event_first_seen),
    wide("Count", _event_count),
    PrintedColumn("Name", format="name", priority=1, cell=name_of),
)
_BINDING: Final = (
    NAME,
    PrintedColumn("Role", cell=_role_ref),
    AGE,
    wide("Users", _subjects("User")),
    wide("Groups", _subjects("Group")),
    wide("ServiceAccounts", _subjects("ServiceAccount")),
)
_WEBHOOKS: Final = (NAME, PrintedColumn("Webhooks", type="integer", cell=count("webhooks")), AGE)

COLUMNS: Final[dict[tuple[str, str], tuple[PrintedColumn, ...]]] = {
    ("", "namespaces"): (NAME, PrintedColumn("Status", cell=text("status", "phase")), AGE),
    ("", "configmaps"): (NAME, PrintedColumn("Data", cell=count("data", "binaryData")), AGE),
    ("", "secrets"): (NAME, PrintedColumn("Type", cell=text("type")), PrintedColumn("Data", cell=count("data")), AGE),
    ("", "serviceaccounts"): (NAME, AGE),
    ("", "services"): (
        NAME,
        PrintedColumn("Type", cell=text("spec", "type")),
        PrintedColumn("Cluster-IP", cell=_service_cluster_ip),
        PrintedColumn("External-IP", cell=_service_external_ip),
        PrintedColumn("Port(s)", cell=_service_ports),
        AGE,
        wide("Selector", lambda obj: labels_text(part(obj, "spec", "selector"))),
    ),
    ("", "endpoints"): (NAME, PrintedColumn("Endpoints", cell=_endpoints), AGE),
    ("", "events"): _EVENT,
    ("events.k8s.io", "events"): _EVENT,
    ("", "nodes"): (
        NAME,
        PrintedColumn("Status", cell=_node_status),
        PrintedColumn("Roles", cell=_node_roles),
        AGE,
        PrintedColumn("Version", cell=text("status", "nodeInfo", "kubeletVersion")),
        wide("Internal-IP", _node_address("InternalIP")),
        wide("External-IP", _node_address("ExternalIP")),
        wide("OS-Image", text("status", "nodeInfo", "osImage", default=UNKNOWN)),
        wide("Kernel-Version", _node_kernel),
        wide("Container-Runtime", text("status", "nodeInfo", "containerRuntimeVersion", default=UNKNOWN)),
    ),
    ("", "persistentvolumes"): (
        NAME,
        PrintedColumn("Capacity", cell=text("spec", "capacity", "storage", default="0")),
        PrintedColumn("Access Modes", cell=lambda obj: _access_modes(part(obj, "spec", "accessModes"))),
        PrintedColumn("Reclaim Policy", cell=text("spec", "persistentVolumeReclaimPolicy")),
        PrintedColumn("Status", cell=_phase),
        PrintedColumn("Claim", cell=_claim_ref),
        PrintedColumn("StorageClass", cell=_storage_class),
        _VOLUME_ATTRIBUTES,
        PrintedColumn("Reason", cell=text("status", "reason")),
        AGE,
        _VOLUME_MODE,
    ),
    ("", "persistentvolumeclaims"): (
        NAME,
        PrintedColumn("Status", cell=_phase),
        PrintedColumn("Volume", cell=text("spec", "volumeName")),
        PrintedColumn("Capacity", cell=lambda obj: _bound_claim("status", "capacity", "storage")(obj) or ""),
        PrintedColumn("Access Modes", cell=lambda obj: _access_modes(_bound_claim("status", "accessModes")(obj))),
        PrintedColumn("StorageClass", cell=_storage_class),
        _VOLUME_ATTRIBUTES,
        AGE,
        _VOLUME_MODE,
    ),
    ("storage.k8s.io", "storageclasses"): (
        _STORAGE_CLASS_NAME,
        PrintedColumn("Provisioner", cell=text("provisioner")),
        PrintedColumn("ReclaimPolicy", cell=text("reclaimPolicy", default="Delete")),
        PrintedColumn("VolumeBindingMode", cell=text("volumeBindingMode", default="Immediate")),
        PrintedColumn("AllowVolumeExpansion", cell=lambda obj: bool(obj.get("allowVolumeExpansion"))),
        AGE,
    ),
    ("scheduling.k8s.io", "priorityclasses"): (
        NAME,
        PrintedColumn("Value", type="integer", cell=number("value")),
        PrintedColumn("Global-Default", type="boolean", cell=lambda obj: bool(obj.get("globalDefault"))),
        AGE,
        PrintedColumn("PreemptionPolicy", cell=text("preemptionPolicy")),
    ),
    ("networking.k8s.io", "ingresses"): (
        NAME,
        PrintedColumn("Class", cell=text("spec", "ingressClassName", default=NONE)),
        PrintedColumn("Hosts", cell=_ingress_hosts),
        PrintedColumn("Address", cell=lambda obj: ",".join(_balancer_addresses(obj))),
        PrintedColumn("Ports", cell=lambda obj: "80, 443" if part(obj, "spec", "tls") else "80"),
        AGE,
    ),
    ("networking.k8s.io", "ingressclasses"): (
        _INGRESS_CLASS_NAME,
        PrintedColumn("Controller", cell=text("spec", "controller")),
        PrintedColumn("Parameters", cell=_ingress_class_parameters),
        AGE,
    ),
    ("networking.k8s.io", "networkpolicies"): (
        NAME,
        PrintedColumn("Pod-Selector", cell=lambda obj: selector_text(part(obj, "spec", "podSelector") or {})),
        AGE,
    ),
    ("discovery.k8s.io", "endpointslices"): (
        NAME,
        PrintedColumn("AddressType", cell=text("addressType")),
        PrintedColumn("Ports", cell=_slice_ports),
        PrintedColumn("Endpoints", cell=_slice_endpoints),
        AGE,
    ),
    ("coordination.k8s.io", "leases"): (NAME, PrintedColumn("Holder", cell=text("spec", "holderIdentity")), AGE),
    ("rbac.authorization.k8s.io", "rolebindings"): _BINDING,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): _BINDING,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _WEBHOOKS,
    ("apiextensions.k8s.io", "customresourcedefinitions"): (
        NAME,
        PrintedColumn("Scope", cell=text("spec", "scope")),
        PrintedColumn("Versions", cell=_served_versions),
        CREATED_AT,
        wide("Group", text("spec", "group")),
        wide("Kind", text("spec", "names", "kind")),
        wide("ShortNames", lambda obj: ",".join(part(obj, "spec", "names", "shortNames") or ())),
        PrintedColumn("Established", type="boolean", priority=1, cell=_established),
    ),
    **WORKLOADS,
}


def columns_of(group: str, plural: str) -> tuple[PrintedColumn, ...]:
    """The columns of a built-in kind; kinds without columns of their own show when they were created."""
    return COLUMNS.get((group, plural), DEFAULT_COLUMNS)
