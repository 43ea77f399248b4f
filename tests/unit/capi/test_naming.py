"""Names: found again after a restart, changed only when what they stand for changes."""

from __future__ import annotations

import pytest

from blueprints import PROVIDERS, UID, blueprint, contents
from butler.capi import naming
from butler.capi.objects import objects
from butler.rules.tenant_namespace import tenant_namespace


def test_a_tenant_namespace_is_the_cluster_and_the_start_of_its_uid() -> None:
    assert tenant_namespace(blueprint("aws").cluster) == "payments-5f0c9d1e"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_object_says_whose_it_is(provider: str) -> None:
    for obj in objects(blueprint(provider, {"teamRef": {"name": "money"}})):
        assert obj["metadata"]["labels"] == {
            "app.kubernetes.io/managed-by": "butler",
            "butler.butlerlabs.dev/tenant": "payments",
            "butler.butlerlabs.dev/tenant-uid": UID,
            "butler.butlerlabs.dev/source-namespace": "team-payments",
            "butler.butlerlabs.dev/team": "money",
            "cluster.x-k8s.io/cluster-name": "payments",
        }


def test_a_name_by_content_ignores_metadata_and_the_order_of_keys() -> None:
    one = {"kind": "A", "metadata": {"name": "x"}, "spec": {"a": 1, "b": [1, 2]}}
    two = {"spec": {"b": [1, 2], "a": 1}, "metadata": {"name": "y", "labels": {"l": "1"}}, "kind": "A"}
    assert naming.content_name("p", one) == naming.content_name("p", two)
    assert naming.content_name("p", one).startswith("p-")
    assert len(naming.content_name("p", one)) == len("p-") + 8


def test_a_name_by_content_changes_with_any_content() -> None:
    base = {"kind": "A", "metadata": {}, "spec": {"a": 1, "b": [1, 2]}}
    others = [{**base, "spec": {"a": 1, "b": [2, 1]}}, {**base, "spec": {"a": 2, "b": [1, 2]}}, {**base, "kind": "B"}]
    names = {naming.content_name("p", other) for other in (base, *others)}
    assert len(names) == 4


def test_naming_by_content_leaves_the_original_alone() -> None:
    original = {"metadata": {"name": "x", "namespace": "n"}, "spec": {}}
    named = naming.named_by_content("p", original)
    assert original["metadata"]["name"] == "x"
    assert named["metadata"] == {"name": naming.content_name("p", original), "namespace": "n"}


def test_a_secret_is_encoded_as_it_is_stored() -> None:
    secret = naming.make_secret(blueprint("aws"), "s", {"a": "ä\n"})
    assert contents(secret) == {"a": "ä\n"}
    assert secret["type"] == "Opaque"


def test_no_kind_is_listed_twice() -> None:
    assert len(set(naming.KINDS)) == len(naming.KINDS)
    assert len({(kind.group, kind.plural) for kind in naming.KINDS}) == len(naming.KINDS)
