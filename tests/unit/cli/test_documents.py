"""Manifests that people hand to commands: what makes no sense is told before anything is asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from butler.cli.toolkit.documents import provider_objects, read_documents
from butler.cli.toolkit.session import Failure

if TYPE_CHECKING:
    from pathlib import Path

CLUSTER = {"apiVersion": "butler.butlerlabs.dev/v1alpha1", "kind": "TenantCluster", "metadata": {"name": "web"}}
PROVIDER = {"apiVersion": "butler.butlerlabs.dev/v1alpha1", "kind": "ProviderConfig", "metadata": {"name": "lab"}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}}


def written(folder: Path, *objects: Any) -> str:
    path = folder / "file.yaml"
    path.write_text("\n---\n".join(json.dumps(obj) for obj in objects))
    return str(path)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"spec": [1]}, "TenantCluster web: spec must hold fields with names, and is a list"),
        ({"spec": 0}, "spec must hold fields with names, and is a single value"),
        ({"spec": {"workers": 3}}, "spec.workers must hold fields with names, and is a single value"),
        ({"spec": {"workers": {"machineTemplate": "big"}}}, "spec.workers.machineTemplate must hold fields"),
        ({"spec": {"workers": {"machineTemplate": {"os": "rocky"}}}}, "spec.workers.machineTemplate.os must hold"),
        ({"spec": {"networking": ["a"]}}, "spec.networking must hold fields with names, and is a list"),
        ({"metadata": {"name": 7}}, "metadata.name must be text: put it in quotes"),
        ({"metadata": {"namespace": ["a"]}}, "metadata.namespace must be text"),
        ({"metadata": None}, "a Kubernetes object was expected"),
    ],
)
def test_a_cluster_of_another_shape_is_refused(tmp_path: Path, more: Any, why: str) -> None:
    with pytest.raises(Failure) as found:
        read_documents(written(tmp_path, {**CLUSTER, **more}), ("TenantCluster",))
    assert why in found.value.message
    assert vars(found.value)["exit_code"] == 2


@pytest.mark.parametrize("spec", [None, {}, {"workers": None, "networking": {}}])
def test_what_is_left_out_is_no_mistake(tmp_path: Path, spec: Any) -> None:
    body = {**CLUSTER, "spec": spec}
    assert read_documents(written(tmp_path, body), ("TenantCluster",)) == [body]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"stringData": ["hunter2"]}, "Secret keys: stringData must hold keys with values"),
        ({"data": ["hunter2"]}, "Secret keys: data must hold keys with values"),
        ({"data": {"password": "hunter2"}}, "Secret keys: data.password is not base64: write it as it is, under"),
        ({"data": {"password": "pässword"}}, "data.password is not base64"),
        ({"stringData": {"password": 1234567}}, "stringData.password must be text: put it in quotes"),
        ({"data": {"password": None}}, "data.password must be text"),
    ],
)
def test_a_secret_of_another_shape_is_refused_and_never_quoted(tmp_path: Path, more: Any, why: str) -> None:
    with pytest.raises(Failure) as found:
        provider_objects(written(tmp_path, PROVIDER, {**SECRET, **more}), None)
    assert why in found.value.message
    assert not {"hunter2", "1234567", "pässword"} & set(found.value.message.split())
    assert vars(found.value)["exit_code"] == 2


def test_base64_may_be_written_in_several_lines_as_the_server_takes_it(tmp_path: Path) -> None:
    secret = {**SECRET, "data": {"kubeconfig": "aHVu\ndGVy\nMg==\n"}}
    made = provider_objects(written(tmp_path, PROVIDER, secret), None)
    assert made[0]["data"] == {"kubeconfig": "aHVudGVyMg=="}
