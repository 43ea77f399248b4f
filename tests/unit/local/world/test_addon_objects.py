"""What the charts of addons leave on a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from butler.api.objects import key_of
from butler.local.world.addon_objects import ADDON, objects, status_of
from butler.tenant.addons import CHARTS, platform_version

Json = dict[str, Any]


def kinds(addon: str, values: Json | None = None) -> set[tuple[str, str]]:
    return {(obj["kind"], obj["metadata"]["name"]) for obj in objects(addon, "1.0.0", values or {})}


def one(addon: str, kind: str, values: Json | None = None) -> Json:
    found = [obj for obj in objects(addon, "1.0.0", values or {}) if obj["kind"] == kind]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("addon", [*CHARTS, "something-else"])
def test_every_object_is_labelled_unique_and_lives_in_the_charts_namespace(addon: str) -> None:
    made = objects(addon, platform_version(addon) or "1.0.0", {})
    assert {obj["metadata"]["labels"][ADDON] for obj in made} == {addon}
    names = [(obj["kind"], key_of(obj)) for obj in made]
    assert len(set(names)) == len(names)
    home = CHARTS[addon].namespace if addon in CHARTS else addon
    assert {obj["metadata"].get("namespace", home) for obj in made} == {home}
    assert (("Namespace", ("", home)) in names) is (home != "kube-system")


def test_each_addon_brings_what_people_look_for() -> None:
    assert {("Service", "traefik"), ("Deployment", "traefik"), ("IngressClass", "traefik")} <= kinds("traefik")
    assert ("CustomResourceDefinition", "ipaddresspools.metallb.io") in kinds("metallb")
    assert ("CustomResourceDefinition", "l2advertisements.metallb.io") in kinds("metallb")
    assert {("DaemonSet", "cilium"), ("Deployment", "cilium-operator")} <= kinds("cilium")
    assert {("StorageClass", "longhorn"), ("DaemonSet", "longhorn-manager")} <= kinds("longhorn")
    assert ("CustomResourceDefinition", "clusterissuers.cert-manager.io") in kinds("cert-manager")
    assert ("Service", "ingress-nginx-controller") in kinds("nginx")
    assert kinds("something-else") == {("Namespace", "something-else"), ("Deployment", "something-else")}


def test_the_services_of_ingress_controllers_are_the_platforms_load_balancers() -> None:
    for addon in ("traefik", "nginx"):
        service = one(addon, "Service")
        assert service["spec"]["type"] == "LoadBalancer"
        assert [port["port"] for port in service["spec"]["ports"]] == [80, 443]
        assert service["metadata"]["labels"]["butler.butlerlabs.dev/platform-lb"] == "true"


def test_values_change_services_as_in_the_charts() -> None:
    annotations = {"metallb.io/loadBalancerIPs": "10.0.0.9"}
    traefik = one("traefik", "Service", {"service": {"type": "NodePort", "annotations": annotations}})
    assert traefik["spec"]["type"] == "NodePort"
    assert traefik["metadata"]["annotations"]["metallb.io/loadBalancerIPs"] == "10.0.0.9"
    pinned = one("traefik", "Service", {"service": {"spec": {"loadBalancerIP": "10.0.0.9"}}})
    assert pinned["spec"]["loadBalancerIP"] == "10.0.0.9"
    nginx = one("nginx", "Service", {"controller": {"service": {"loadBalancerIP": "10.0.0.9"}}})
    assert nginx["spec"]["loadBalancerIP"] == "10.0.0.9"
    assert ("Service", "traefik") not in kinds("traefik", {"service": {"enabled": False}})


@pytest.mark.parametrize(
    "values", [{"service": "LoadBalancer"}, {"service": None}, {"deployment": {"replicas": "two"}}]
)
def test_values_of_the_wrong_shape_change_nothing(values: Json) -> None:
    assert objects("traefik", "1.0.0", values) == objects("traefik", "1.0.0", {})


def test_workloads_look_as_if_all_their_pods_ran() -> None:
    deployment = one("traefik", "Deployment", {"deployment": {"replicas": 3}})
    status = status_of(deployment, nodes=7)
    assert status is not None
    assert (status["readyReplicas"], status["availableReplicas"]) == (3, 3)
    daemons = status_of({"kind": "DaemonSet", "metadata": {"generation": 4}}, nodes=7)
    assert daemons is not None
    assert (daemons["numberReady"], daemons["observedGeneration"]) == (7, 4)
    assert status_of(one("traefik", "Service"), nodes=7) is None
