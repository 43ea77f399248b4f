"""Our reading of request bodies, held against a real kube-apiserver's: what is refused, and in which words."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from kubeserver.resources import Resource
from kubeserver.schemas.builtin_types import builtin_types
from kubeserver.schemas.decode import read, strict_error
from kubeserver.wire.status import ApiError

if TYPE_CHECKING:
    from api_servers import ControlPlane


def resource(group: str, plural: str, name: str) -> Resource:
    schema = builtin_types()[f"io.k8s.api.{name}"]
    return Resource(group, "v1", plural, "", name.rpartition(".")[2], namespaced=True, schema=schema)


DEPLOYMENTS = resource("apps", "deployments", "apps.v1.Deployment")
CONFIG_MAPS = resource("", "configmaps", "core.v1.ConfigMap")
SECRETS = resource("", "secrets", "core.v1.Secret")
SERVICES = resource("", "services", "core.v1.Service")


def deployment(rest: str) -> tuple[Resource, str]:
    return DEPLOYMENTS, '{"apiVersion":"apps/v1","kind":"Deployment",' + rest + "}"


def config_map(rest: str) -> tuple[Resource, str]:
    return CONFIG_MAPS, '{"apiVersion":"v1","kind":"ConfigMap",' + rest + "}"


def pod(rest: str) -> tuple[Resource, str]:
    return deployment('"spec":{"template":{"spec":' + rest + "}}")


BODIES: list[tuple[Resource, str]] = [
    (DEPLOYMENTS, "bad json"),
    (DEPLOYMENTS, ""),
    (DEPLOYMENTS, "[]"),
    (DEPLOYMENTS, '{"apiVersion":"v1","kind":"Pod"}'),
    deployment('"spec":{"replicas":"x"}'),
    deployment('"spec":{"replicas":1.5}'),
    deployment('"spec":{"replicas":99999999999}'),
    deployment('"metadata":{"name":5}'),
    deployment('"metadata":{"labels":{"a":1}}'),
    deployment('"metadata":{"labels":["a"]}'),
    deployment('"spec":[]'),
    deployment('"spec":"x"'),
    deployment('"metadata":"x"'),
    deployment('"metadata":{"creationTimestamp":"x"}'),
    deployment('"metadata":{"creationTimestamp":"2020-01-01"}'),
    deployment('"metadata":{"creationTimestamp":5}'),
    deployment('"metadata":{"finalizers":"x"}'),
    deployment('"metadata":{"finalizers":[1]}'),
    deployment('"metadata":{"ownerReferences":[{"controller":"x"}]}'),
    deployment('"metadata":{"generation":"x","managedFields":[{"time":1}]}'),
    pod('{"containers":{}}'),
    pod('{"containers":[{"resources":{"limits":{"cpu":"x"}}}]}'),
    pod('{"containers":[{"resources":{"limits":{"cpu":true}}}]}'),
    pod('{"containers":[{"resources":{"limits":[]}}]}'),
    pod('{"containers":[{"ports":[{"containerPort":"x"}]}]}'),
    pod('{"containers":[{"imagePullPolicy":1}]}'),
    pod('{"nodeSelector":{"a":true}}'),
    deployment('"spec":{"strategy":{"rollingUpdate":{"maxSurge":true}}}'),
    deployment('"spec":{"strategy":{"type":5}}'),
    deployment('"spec":{"paused":"x"}'),
    deployment('"spec":{"foo":1,"replicas":1,"replicas":2},"Spec":1'),
    deployment('"spec":{"template":{"spec":{"containers":[{"x":1,"name":"a","name":"b"}]}}}'),
    (SECRETS, '{"apiVersion":"v1","kind":"Secret","data":{"a":"%%%"}}'),
    (SECRETS, '{"apiVersion":"v1","kind":"Secret","data":{"a":"YQ"}}'),
    (SECRETS, '{"apiVersion":"v1","kind":"Secret","data":{"a":5}}'),
    config_map('"data":{"a":5}'),
    config_map('"data":{"a":"x","a":"y"},"metadata":{"annotations":{"k":"v","k":"w"}}'),
    config_map('"immutable":"yes"'),
    (SERVICES, '{"apiVersion":"v1","kind":"Service","spec":{"type":5}}'),
    (SERVICES, '{"apiVersion":"v1","kind":"Service","spec":{"ports":[{"port":"x"}]}}'),
    (SERVICES, '{"apiVersion":"v1","kind":"Service","spec":{"ports":[{"protocol":1}]}}'),
    (SERVICES, '{"apiVersion":"v1","kind":"Service","spec":{"ipFamilies":[1]}}'),
    (CONFIG_MAPS, '{"apiVersion":"v1","kind":"ConfigMap"'),
    (CONFIG_MAPS, '{"apiVersion":"v1","kind":"ConfigMap"}x'),
    (CONFIG_MAPS, '{"apiVersion":"v1","kind":5}'),
    (CONFIG_MAPS, '{"apiVersion":5,"kind":"ConfigMap"}'),
    (CONFIG_MAPS, "5"),
    (CONFIG_MAPS, '{"apiVersion":"v1","kind":"configmap"}'),
    (CONFIG_MAPS, '{"apiVersion":"v2","kind":"ConfigMap"}'),
    (CONFIG_MAPS, '{"a" 1}'),
    (CONFIG_MAPS, "{a:1}"),
    (CONFIG_MAPS, '{"a":[1 2]}'),
    (CONFIG_MAPS, '{"a":tru}'),
    (CONFIG_MAPS, '{"a":"\\x"}'),
    (CONFIG_MAPS, '{"a":"\\u12"}'),
    (CONFIG_MAPS, '{"a":01}'),
    (CONFIG_MAPS, '{"a":1.}'),
    (CONFIG_MAPS, '{"a":"\n"}'),
    (CONFIG_MAPS, '{"a":1,}'),
]


def answer(server: ControlPlane, path: str, body: str) -> tuple[int, Any]:
    request = urllib.request.Request(server.url + path, body.encode(), dict(server.headers), method="POST")
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, context=server.tls, timeout=30) as found:
            return found.status, json.loads(found.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def ours(target: Resource, body: str) -> str:
    try:
        decoded = read(body.encode(), target)
    except ApiError as refusal:
        return refusal.message
    return strict_error(decoded, target).message if decoded.complaints else "taken"


@pytest.mark.parametrize("control_plane", ["kubernetes"], indirect=True)
def test_bodies_are_refused_as_kubernetes_refuses_them(control_plane: ControlPlane) -> None:
    found = []
    for target, body in BODIES:
        root = f"/apis/{target.group}/v1" if target.group else "/api/v1"
        path = f"{root}/namespaces/default/{target.plural}?dryRun=All&fieldValidation=Strict"
        status, reply = answer(control_plane, path, body)
        theirs = reply["message"] if status == 400 else "taken"
        if theirs != ours(target, body):
            found.append(f"{body}\n  theirs {theirs}\n  ours   {ours(target, body)}")
    assert found == []
