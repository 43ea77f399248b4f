"""The hosted control plane: what a TenantCluster says about it, in Steward's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from blueprints import blueprint, machine_os
from butler.capi.steward import control_plane
from butler.rules.tenant.blueprint import Unbuildable, Versions

if TYPE_CHECKING:
    from butler.api.objects import Json


def spec(cluster: Json | None = None) -> Json:
    found: Json = control_plane(blueprint("harvester", cluster))["spec"]
    return found


def test_a_plain_control_plane_has_our_defaults_and_not_stewards() -> None:
    assert spec() == {
        "version": "v1.33.2",
        "replicas": 1,
        "dataStoreName": "default",
        "addons": {"coreDNS": {}, "kubeProxy": {}, "konnectivity": {}},
        "kubelet": {"cgroupfs": "systemd", "preferredAddressTypes": ["InternalIP", "ExternalIP", "Hostname"]},
        "network": {"serviceType": "LoadBalancer"},
    }


def test_it_runs_the_control_planes_version_and_not_the_workers() -> None:
    made = control_plane(blueprint("harvester", versions=Versions("v1.34.0", "v1.33.2")))
    assert made["spec"]["version"] == "v1.34.0"


def test_every_wish_is_passed_on() -> None:
    made = spec(
        {
            "controlPlane": {
                "replicas": 3,
                "serviceType": "ClusterIP",
                "certSANs": ["api.example.com"],
                "dataStoreRef": {"name": "postgres"},
            }
        }
    )
    assert made["replicas"] == 3
    assert made["network"] == {"serviceType": "ClusterIP", "certSANs": ["api.example.com"]}
    assert made["dataStoreName"] == "postgres"


def test_only_components_that_are_given_have_resources() -> None:
    made = spec(
        {
            "controlPlane": {
                "resources": {"apiServer": {"requests": {"cpu": 2}, "limits": {"memory": "1Gi"}}, "scheduler": {}}
            }
        }
    )
    assert made["apiServer"] == {"resources": {"requests": {"cpu": "2"}, "limits": {"memory": "1Gi"}}}
    assert made["scheduler"] == {"resources": {}}
    assert "controllerManager" not in made


def test_talos_workers_join_through_trustd_whose_certificate_has_the_same_names() -> None:
    made = spec({**machine_os(type="talos"), "controlPlane": {"certSANs": ["api.example.com"]}})
    assert made["addons"]["workerBootstrap"] == {
        "provider": "talos",
        "talos": {"port": 50001, "certSANs": ["api.example.com"]},
        "csrApproval": {"autoApprove": True},
    }
    assert made["kubelet"]["cgroupfs"] == "cgroupfs"
    assert "controlPlaneEndpoint" not in made, "capi-steward writes it"


@pytest.mark.parametrize("name", ["api.example.com:6443", "10.1.2.3:443", "[fd00::1]:443"])
def test_a_certificate_name_with_a_port_is_refused(name: str) -> None:
    with pytest.raises(Unbuildable) as refused:
        spec({"controlPlane": {"certSANs": ["fd00::1", name]}})
    assert refused.value.field == "spec.controlPlane.certSANs"
    assert name in refused.value.problem
