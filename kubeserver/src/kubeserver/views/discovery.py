"""What the server says it serves.

Clients learn names, scopes and verbs here before they ask for anything else: kubectl turns `po` into
`/api/v1/pods` with it. Newer clients read one aggregated document for `/api` and one for `/apis`; older ones walk
`/apis`, `/apis/GROUP` and `/apis/GROUP/VERSION`. Both forms are made from the same `Resource` facts.

All functions are pure and depend on the set of resources only, so their encoded results can be kept until a
CustomResourceDefinition changes. What is listed must be served: a client that is told of a verb will use it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from kubeserver.builtin.catalog import SUBRESOURCES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kubeserver.builtin.catalog import Subresource
    from kubeserver.resources import Resource

Json = dict[str, Any]

# The order in which Kubernetes lists its own groups; all others follow by name.
_GROUP_ORDER: Final = {
    name: index
    for index, name in enumerate(
        (
            "apiregistration.k8s.io",
            "apps",
            "events.k8s.io",
            "authentication.k8s.io",
            "authorization.k8s.io",
            "autoscaling",
            "batch",
            "certificates.k8s.io",
            "networking.k8s.io",
            "policy",
            "rbac.authorization.k8s.io",
            "storage.k8s.io",
            "admissionregistration.k8s.io",
            "apiextensions.k8s.io",
            "scheduling.k8s.io",
            "coordination.k8s.io",
            "node.k8s.io",
            "discovery.k8s.io",
        )
    )
}
_VERSION: Final = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STAGES: Final = {"": 2, "beta": 1, "alpha": 0}
_CUSTOM_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_SUBRESOURCE_VERBS: Final = ("get", "patch", "update")


def version_key(version: str) -> tuple[int, int, int, int, str]:
    """Sorts versions as Kubernetes prefers them: v2, v1, v1beta2, v1beta1, v1alpha1, then anything else by name."""
    found = _VERSION.fullmatch(version)
    if not found:
        return (1, 0, 0, 0, version)
    major, stage, minor = found.groups()
    return (0, -_STAGES[stage or ""], -int(major), -int(minor or 0), "")


def _group_key(group: str) -> tuple[int, str]:
    return _GROUP_ORDER.get(group, len(_GROUP_ORDER)), group


def etag(body: bytes) -> str:
    """The ETag of a document: the same content, the same tag, wherever it was made."""
    return f'"{hashlib.sha512(body).hexdigest().upper()}"'


def api_versions(server_address: str) -> Json:
    """`/api`: the versions of the core group, and where this server can be reached (`host:port`)."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}],
    }


def api_group_list(resources: Iterable[Resource]) -> Json:
    """`/apis`: every named group with its versions."""
    groups = _versions_by_group(resources)
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(name, versions) for name, versions in groups.items() if name],
    }


def api_group(name: str, resources: Iterable[Resource]) -> Json | None:
    """`/apis/GROUP`; None if there is no such group."""
    versions = _versions_by_group(resources).get(name) if name else None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if versions else None


def _versions_by_group(resources: Iterable[Resource]) -> dict[str, list[str]]:
    found = sorted({(item.group, item.version) for item in resources}, key=lambda resource: version_key(resource[1]))
    found.sort(key=lambda pair: _group_key(pair[0]))
    return {group: [version for _, version in members] for group, members in groupby(found, lambda item: item[0])}


def _group(name: str, versions: Sequence[str]) -> Json:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def api_resource_list(group: str, version: str, resources: Iterable[Resource]) -> Json | None:
    """`/api/v1` or `/apis/GROUP/VERSION`; None if there is no such version."""
    listed = _of(group, version, resources)
    if not listed:
        return None
    head = {"kind": "APIResourceList", "apiVersion": "v1"} if group else {"kind": "APIResourceList"}
    entries = [entry for resource in listed for entry in _legacy_entries(resource)]
    return {**head, "groupVersion": f"{group}/{version}" if group else version, "resources": entries}


def _of(group: str, version: str, resources: Iterable[Resource]) -> list[Resource]:
    found = [resource for resource in resources if (resource.group, resource.version) == (group, version)]
    return sorted(found, key=lambda resource: resource.plural)


def _legacy_entries(resource: Resource) -> list[Json]:
    entry: Json = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if "list" in resource.verbs:
        entry["storageVersionHash"] = _storage_version_hash(resource)
    entries = [entry]
    for name, group, version, kind, verbs in _subresources(resource):
        below: Json = {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
        }
        if (group, version) != (resource.group, resource.version):
            below |= {"group": group, "version": version}
        entries.append({**below, "kind": kind, "verbs": list(verbs)})
    return entries


def _verbs(resource: Resource) -> list[str]:
    """Kubernetes lists the verbs of custom resources in an order of their own."""
    return [verb for verb in _CUSTOM_VERBS if verb in resource.verbs] if resource.custom else list(resource.verbs)


def _storage_version_hash(resource: Resource) -> str:
    """Changes when objects are written in another version, for those who migrate them."""
    version = resource.storage_version or resource.version
    digest = hashlib.sha256(f"{resource.table[0]}/{version}/{resource.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def _subresources(resource: Resource) -> list[tuple[str, str, str, str, tuple[str, ...]]]:
    """(name, group, version, kind, verbs) of each."""
    found: list[tuple[str, str, str, str, tuple[str, ...]]] = []
    if resource.status:
        found.append(("status", resource.group, resource.version, resource.kind, _SUBRESOURCE_VERBS))
    if resource.scale:
        found.append(("scale", "autoscaling", "v1", "Scale", _SUBRESOURCE_VERBS))
    if resource.custom:
        return found
    found += [
        (subresource.name, subresource.kind_group, subresource.kind_version, subresource.kind, subresource.verbs)
        for subresource in SUBRESOURCES
        if _belongs(subresource, resource)
    ]
    return sorted(found)


def _belongs(subresource: Subresource, resource: Resource) -> bool:
    return (subresource.group, subresource.version, subresource.plural) == (
        resource.group,
        resource.version,
        resource.plural,
    )


def aggregated(resources: Iterable[Resource], *, core: bool) -> Json:
    """The APIGroupDiscoveryList (v2) for `/api` (`core`) or `/apis`: all of the above in one answer."""
    resources = list(resources)
    groups = {name: versions for name, versions in _versions_by_group(resources).items() if bool(name) is not core}
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": name} if name else {},
                "versions": [
                    {
                        "version": version,
                        "resources": [_aggregated_entry(resource) for resource in _of(name, version, resources)],
                        "freshness": "Current",
                    }
                    for version in versions
                ],
            }
            for name, versions in groups.items()
        ],
    }


def _aggregated_entry(resource: Resource) -> Json:
    entry: Json = {
        "resource": resource.plural,
        "responseKind": _response_kind(resource, resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    below = [
        {
            "subresource": name,
            "responseKind": _response_kind(resource, group, version, kind),
            "verbs": list(verbs),
        }
        for name, group, version, kind, verbs in _subresources(resource)
    ]
    if below:
        entry["subresources"] = below
    return entry


def _response_kind(resource: Resource, group: str, version: str, kind: str) -> Json:
    """Built-in kinds leave out what equals the place they are listed in; custom ones say it."""
    if not resource.custom and (group, version) == (resource.group, resource.version):
        group = version = ""
    return {"group": group, "version": version, "kind": kind}
