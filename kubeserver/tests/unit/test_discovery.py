"""Discovery documents. All built-in entries were compared with those of kube-apiserver 1.37."""

from __future__ import annotations

from typing import Any

import pytest

from kubeserver.resources import ALL_VERBS, Resource, ScaleSubresource
from kubeserver.schemas.schema import Schema
from kubeserver.views.discovery import (
    aggregated,
    api_group,
    api_group_list,
    api_resource_list,
    api_versions,
    etag,
    version_key,
)


def resource(group: str, version: str, plural: str, kind: str, **facts: Any) -> Resource:
    facts = {"namespaced": True, "singular": kind.lower(), **facts}
    return Resource(group=group, version=version, plural=plural, kind=kind, schema=Schema(), **facts)


POOLS = {"custom": True, "status": True, "short_names": ("np",), "categories": ("butler",)}
RESOURCES = [
    resource("zoo.example.com", "v1", "cages", "Cage", custom=True, scale=ScaleSubresource(".spec.n", ".status.n")),
    resource("butler.butlerlabs.dev", "v1beta1", "networkpools", "NetworkPool", **POOLS),
    resource("butler.butlerlabs.dev", "v1", "networkpools", "NetworkPool", **POOLS),
    resource("rbac.authorization.k8s.io", "v1", "roles", "Role"),
    resource(
        "apps", "v1", "deployments", "Deployment", scale=ScaleSubresource("", ""), status=True, short_names=("deploy",)
    ),
    resource("", "v1", "pods", "Pod", status=True, short_names=("po",), categories=("all",)),
    resource(
        "", "v1", "namespaces", "Namespace", namespaced=False, verbs=tuple(v for v in ALL_VERBS if "coll" not in v)
    ),
]


def test_the_core_group_has_one_version_at_one_address() -> None:
    assert api_versions("127.0.0.1:6443") == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
    }


def test_versions_are_preferred_by_maturity_then_number() -> None:
    versions = ["foo1", "v1alpha1", "v1", "v10", "v2beta1", "v11beta2", "v2", "foo10", "v3beta1"]
    assert sorted(versions, key=version_key) == [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v3beta1",
        "v2beta1",
        "v1alpha1",
        "foo1",
        "foo10",
    ]


def test_groups_are_listed_in_kubernetes_order_and_others_by_name() -> None:
    listed = api_group_list(RESOURCES)
    assert [group["name"] for group in listed["groups"]] == [
        "apps",
        "rbac.authorization.k8s.io",
        "butler.butlerlabs.dev",
        "zoo.example.com",
    ]


def test_a_group_names_its_preferred_version() -> None:
    assert api_group("butler.butlerlabs.dev", RESOURCES) == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "butler.butlerlabs.dev",
        "versions": [
            {"groupVersion": "butler.butlerlabs.dev/v1", "version": "v1"},
            {"groupVersion": "butler.butlerlabs.dev/v1beta1", "version": "v1beta1"},
        ],
        "preferredVersion": {"groupVersion": "butler.butlerlabs.dev/v1", "version": "v1"},
    }


@pytest.mark.parametrize("name", ["", "nowhere"])
def test_an_unknown_group_is_not_there(name: str) -> None:
    assert api_group(name, RESOURCES) is None
    assert api_resource_list("nowhere", "v1", RESOURCES) is None


def test_a_version_lists_its_resources_and_their_subresources() -> None:
    assert api_resource_list("apps", "v1", RESOURCES) == {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "apps/v1",
        "resources": [
            {
                "name": "deployments",
                "singularName": "deployment",
                "namespaced": True,
                "kind": "Deployment",
                "verbs": list(ALL_VERBS),
                "shortNames": ["deploy"],
                "storageVersionHash": "8aSe+NMegvE=",
            },
            {
                "name": "deployments/scale",
                "singularName": "",
                "namespaced": True,
                "group": "autoscaling",
                "version": "v1",
                "kind": "Scale",
                "verbs": ["get", "patch", "update"],
            },
            {
                "name": "deployments/status",
                "singularName": "",
                "namespaced": True,
                "kind": "Deployment",
                "verbs": ["get", "patch", "update"],
            },
        ],
    }


def test_the_core_list_has_extra_subresources_and_no_version_of_its_own() -> None:
    listed = api_resource_list("", "v1", RESOURCES)
    assert listed is not None
    assert "apiVersion" not in listed
    assert listed["groupVersion"] == "v1"
    assert [item["name"] for item in listed["resources"]] == [
        "namespaces",
        "namespaces/finalize",
        "pods",
        "pods/binding",
        "pods/eviction",
        "pods/log",
        "pods/status",
    ]


def test_the_aggregated_document_says_it_all_at_once() -> None:
    document = aggregated(RESOURCES, core=False)
    assert [item["metadata"]["name"] for item in document["items"]] == [
        "apps",
        "rbac.authorization.k8s.io",
        "butler.butlerlabs.dev",
        "zoo.example.com",
    ]
    pools = document["items"][2]["versions"]
    assert [pool["version"] for pool in pools] == ["v1", "v1beta1"]
    kind = {"group": "butler.butlerlabs.dev", "version": "v1", "kind": "NetworkPool"}
    assert pools[0] == {
        "version": "v1",
        "resources": [
            {
                "resource": "networkpools",
                "responseKind": kind,
                "scope": "Namespaced",
                "singularResource": "networkpool",
                "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
                "shortNames": ["np"],
                "categories": ["butler"],
                "subresources": [{"subresource": "status", "responseKind": kind, "verbs": ["get", "patch", "update"]}],
            }
        ],
        "freshness": "Current",
    }


def test_the_aggregated_core_document_has_the_nameless_group_alone() -> None:
    document = aggregated(RESOURCES, core=True)
    assert [item["metadata"] for item in document["items"]] == [{}]
    namespaces = document["items"][0]["versions"][0]["resources"][0]
    assert namespaces["scope"] == "Cluster"
    assert namespaces["responseKind"] == {"group": "", "version": "", "kind": "Namespace"}


def test_equal_bytes_have_equal_tags() -> None:
    assert etag(b"a") == etag(b"a") != etag(b"b")
    assert etag(b"a").startswith('"')
