"""Built-in kinds: the catalog, and behaviour that is not a matter of agreement with one object at a time.

What each kind accepts, adds and refuses is compared with a real kube-apiserver in tests/agreement.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeserver.builtin.catalog import (
    builtin_resources,
    created_by_put,
    generation_parts,
    needs_resource_version,
    type_name,
)
from kubeserver.builtin.configuration import SECRET, SIZE_LIMIT
from kubeserver.builtin.events import from_core, to_core
from kubeserver.builtin.namespaces import STRATEGY as NAMESPACE
from kubeserver.builtin.pods import STRATEGY as POD
from kubeserver.builtin.pods import qos_class
from kubeserver.builtin.quantities import canonical, value_of
from kubeserver.builtin.volumes import PERSISTENT_VOLUME_CLAIM
from kubeserver.builtin.workloads import DAEMON_SET
from kubeserver.schemas.builtin_types import builtin_types
from kubeserver.schemas.decode import take
from kubeserver.wire.status import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kubeserver.resources import Resource

Json = dict[str, Any]

RESOURCES = builtin_resources(builtin_types().__getitem__)


class World:
    def __init__(self, **tables: list[Json]) -> None:
        self.tables = tables

    def objects(self, group: str, plural: str, namespace: str | None = None) -> Iterable[Json]:
        return self.tables.get(plural, [])

    def now(self) -> str:
        return "2026-01-01T00:00:00Z"


class TestCatalog:
    def test_every_kind_has_the_schema_of_its_type(self) -> None:
        for resource in RESOURCES:
            assert resource.schema.name == type_name(resource.group, resource.version, resource.kind)

    def test_names_are_unique_within_a_group(self) -> None:
        names = [(resource.group, name) for resource in RESOURCES for name in (resource.plural, *resource.short_names)]
        assert len(names) == len(set(names))

    @pytest.mark.parametrize(
        ("plural", "singular"),
        [("ingresses", "ingress"), ("networkpolicies", "networkpolicy"), ("endpoints", "endpoints"), ("pods", "pod")],
    )
    def test_singular_names(self, plural: str, singular: str) -> None:
        assert next(resource.singular for resource in RESOURCES if resource.plural == plural) == singular

    def test_both_event_kinds_show_the_same_objects(self) -> None:
        tables = {resource.table for resource in RESOURCES if resource.kind == "Event"}
        assert tables == {("", "events")}

    def test_reviews_can_only_be_created(self) -> None:
        reviews = [resource for resource in RESOURCES if resource.kind.endswith("Review")]
        assert len(reviews) == 6
        assert all(review.verbs == ("create",) for review in reviews)

    @pytest.mark.parametrize(
        ("group", "plural", "parts"),
        [
            ("", "configmaps", None),
            ("", "services", None),
            ("", "pods", ("spec",)),
            ("apps", "deployments", ("spec", "metadata.annotations")),
            ("scheduling.k8s.io", "priorityclasses", ()),
        ],
    )
    def test_what_makes_a_new_generation(self, group: str, plural: str, parts: tuple[str, ...] | None) -> None:
        assert generation_parts(group, plural) == parts

    def test_which_kinds_put_may_create_or_overwrite(self) -> None:
        assert created_by_put("coordination.k8s.io", "leases")
        assert not created_by_put("", "configmaps")
        assert needs_resource_version("coordination.k8s.io", "leases")
        assert not needs_resource_version("", "configmaps")

    @pytest.mark.parametrize("resource", RESOURCES, ids=lambda entry: entry.group_resource)
    def test_defaults_are_a_fixpoint(self, resource: Resource) -> None:
        item = take(
            {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "a"}}, resource
        ).obj
        resource.strategy.default(item)
        once = deepcopy(item)
        resource.strategy.default(item)
        assert item == once


OLD_EVENT: Json = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e", "namespace": "n"},
    "involvedObject": {"kind": "Pod", "name": "p"},
    "reason": "R",
    "message": "m",
    "source": {"component": "c"},
    "firstTimestamp": "2026-01-01T00:00:00Z",
    "lastTimestamp": "2026-01-01T00:00:00Z",
    "count": 3,
    "type": "Normal",
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}


class TestEvents:
    def test_an_old_event_in_new_words(self) -> None:
        shown = from_core(OLD_EVENT)
        assert shown["apiVersion"] == "events.k8s.io/v1"
        assert (shown["note"], shown["regarding"]["name"], shown["deprecatedCount"]) == ("m", "p", 3)
        assert not {"message", "involvedObject", "count", "reportingController"} & shown.keys()

    def test_there_and_back_again(self) -> None:
        assert to_core(from_core(OLD_EVENT)) == OLD_EVENT


class TestNamespaces:
    def test_the_name_is_a_label_that_no_user_can_change(self) -> None:
        item: Json = {"metadata": {"name": "a", "labels": {"kubernetes.io/metadata.name": "b", "x": "y"}}}
        NAMESPACE.default(item)
        assert item["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a", "x": "y"}

    def test_a_generated_name_is_a_label_too(self) -> None:
        item: Json = {"metadata": {"generateName": "a-"}}
        NAMESPACE.default(item)
        item["metadata"]["name"] = "a-x"
        NAMESPACE.prepare_create(World(), item)
        assert item["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a-x"}
        assert item["spec"]["finalizers"] == ["kubernetes"]

    def test_only_finalizing_changes_the_finalizers(self) -> None:
        old = {"metadata": {"name": "a"}, "spec": {"finalizers": ["kubernetes"]}}
        new: Json = {"metadata": {"name": "a"}, "spec": {"finalizers": []}}
        NAMESPACE.prepare_update(World(), new, old)
        assert new["spec"]["finalizers"] == ["kubernetes"]


class TestSecrets:
    def test_a_secret_has_a_size_limit(self) -> None:
        item: Json = {"metadata": {"name": "a"}, "stringData": {"x": "a" * (SIZE_LIMIT + 1)}}
        SECRET.default(item)
        assert "stringData" not in item
        (error,) = SECRET.validate(item)
        assert error.text() == "data: Too long: may not be more than 1048576 bytes"
        item = {"metadata": {"name": "a"}, "stringData": {"x": "a" * SIZE_LIMIT}}
        SECRET.default(item)
        assert SECRET.validate(item) == []


class TestPods:
    def pod(self, **spec: Any) -> Json:
        spec.setdefault("containers", [{"name": "c", "image": "a:1"}])
        item: Json = {"metadata": {"name": "p", "namespace": "n"}, "spec": spec}
        POD.default(item)
        return item

    def created(self, item: Json, **tables: list[Json]) -> Json:
        tables.setdefault("serviceaccounts", [{"metadata": {"name": "default"}}])
        POD.prepare_create(World(**tables), item)
        assert POD.validate(item) == []
        return item

    def test_a_token_is_mounted_unless_the_pod_or_its_account_objects(self) -> None:
        mounts = self.created(self.pod())["spec"]["containers"][0]["volumeMounts"]
        assert mounts[0]["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"
        assert "volumes" not in self.created(self.pod(automountServiceAccountToken=False))["spec"]
        account = [{"metadata": {"name": "default"}, "automountServiceAccountToken": False}]
        assert "volumes" not in self.created(self.pod(), serviceaccounts=account)["spec"]

    def test_a_pull_secret_comes_from_the_account(self) -> None:
        account = [{"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "s"}]}]
        assert self.created(self.pod(), serviceaccounts=account)["spec"]["imagePullSecrets"] == [{"name": "s"}]

    def test_priority_comes_from_the_class(self) -> None:
        classes: list[Json] = [{"metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"}]
        spec = self.created(self.pod(priorityClassName="high"), priorityclasses=classes)["spec"]
        assert (spec["priority"], spec["preemptionPolicy"]) == (7, "Never")
        classes[0]["globalDefault"] = True
        assert self.created(self.pod(), priorityclasses=classes)["spec"]["priorityClassName"] == "high"

    def test_a_given_priority_must_be_that_of_the_class(self) -> None:
        with pytest.raises(ApiError) as refused:
            self.created(self.pod(priority=5))
        assert refused.value.code == 403

    @pytest.mark.parametrize(
        ("resources", "qos"),
        [
            ({}, "BestEffort"),
            ({"requests": {"cpu": "1"}}, "Burstable"),
            ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}}, "Guaranteed"),
            ({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}, "Burstable"),
        ],
    )
    def test_quality_of_service(self, resources: Json, qos: str) -> None:
        assert qos_class({"containers": [{"resources": resources}]}) == qos

    def test_an_image_may_change_and_a_command_may_not(self) -> None:
        old = self.created(self.pod(automountServiceAccountToken=False))
        new = deepcopy(old)
        new["spec"]["containers"][0]["image"] = "a:2"
        assert POD.validate_update(new, old) == []
        new["spec"]["containers"][0]["command"] = ["x"]
        (error,) = POD.validate_update(new, old)
        assert error.kind == "FieldValueForbidden"


class TestClaims:
    def claim(self, size: str, phase: str = "Bound") -> Json:
        spec = {
            "storageClassName": "s",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
        }
        return {"metadata": {"name": "c"}, "spec": spec, "status": {"phase": phase, "capacity": {"storage": "1Gi"}}}

    def test_a_bound_claim_grows_where_its_class_allows(self) -> None:
        classes: list[Json] = [{"metadata": {"name": "s"}, "allowVolumeExpansion": True}]
        new, old = self.claim("2Gi"), self.claim("1Gi")
        PERSISTENT_VOLUME_CLAIM.prepare_update(World(storageclasses=classes), new, old)
        assert PERSISTENT_VOLUME_CLAIM.validate_update(new, old) == []
        with pytest.raises(ApiError, match="must support resize"):
            PERSISTENT_VOLUME_CLAIM.prepare_update(World(), new, old)

    def test_a_claim_does_not_shrink(self) -> None:
        (error,) = PERSISTENT_VOLUME_CLAIM.validate_update(self.claim("512Mi"), self.claim("1Gi"))
        assert error.detail == "field can not be less than status.capacity"


def test_a_daemon_set_counts_its_templates() -> None:
    old: Json = {
        "metadata": {"annotations": {"deprecated.daemonset.template.generation": "4"}},
        "spec": {"template": 1},
    }
    new: Json = {"metadata": {}, "spec": {"template": 2}}
    DAEMON_SET.prepare_update(World(), new, old)
    assert new["metadata"]["annotations"]["deprecated.daemonset.template.generation"] == "5"


class TestQuantities:
    @pytest.mark.parametrize(
        ("text", "kept"),
        [
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("0", "0"),
            ("1e9", "1e9"),
            ("2000000k", "2G"),
            ("0.1Ki", "102400m"),
            ("100u", "100u"),
            ("-1.5", "-1500m"),
            ("1025", "1025"),
            (2, "2"),
            ("nope", "nope"),
        ],
    )
    def test_the_form_it_is_kept_in(self, text: Any, kept: str) -> None:
        assert canonical(text) == kept

    @given(
        st.integers(-(10**9), 10**9),
        st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "Ti", "u", "e3", "e-3"]),
    )
    def test_the_form_says_the_same_and_is_final(self, number: int, suffix: str) -> None:
        kept = canonical(f"{number}{suffix}")
        assert value_of(kept) == value_of(f"{number}{suffix}")
        assert canonical(kept) == kept
