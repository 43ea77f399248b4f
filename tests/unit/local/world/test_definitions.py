"""There is a definition for every kind that Butler builds or reads, and what people see is like the real ones."""

from __future__ import annotations

from butler.api.objects import Key
from butler.capi.naming import KINDS
from butler.local.world.cluster_api import endpoint_of, status
from butler.local.world.definitions import definition, definitions
from butler.local.world.kinds import CLUSTERS
from butler.local.world.view import adoption, cluster_key

CLUSTER = {"metadata": {"name": "web", "namespace": "web-ns", "uid": "1", "generation": 4}, "spec": {}}


def test_every_kind_has_a_definition() -> None:
    names = {obj["metadata"]["name"] for obj in definitions()}
    assert {f"{kind.plural}.{kind.group}" for kind in KINDS} <= names
    assert len(names) == len(definitions())


def test_definitions_have_a_status_and_take_anything() -> None:
    for obj in definitions():
        (version,) = obj["spec"]["versions"]
        assert version["subresources"]["status"] == {}
        assert version["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"]
        assert version["additionalPrinterColumns"]


def test_what_can_be_scaled_can_be_scaled_with_kubectl() -> None:
    scaled = [obj["spec"]["names"]["kind"] for obj in definitions() if "scale" in _subresources(obj)]
    assert sorted(scaled) == ["MachineDeployment", "MachineSet"]


def _subresources(found: dict[str, object]) -> dict[str, object]:
    return found["spec"]["versions"][0]["subresources"]  # type: ignore[index,no-any-return]


def test_a_definition_is_marked_with_what_it_says() -> None:
    first, second = (obj["metadata"]["annotations"] for obj in definitions()[:2])
    assert first != second
    assert "annotations" not in definition(KINDS[0])["metadata"]


def test_an_object_is_adopted_once() -> None:
    orphan = {"metadata": {"name": "web", "namespace": "web-ns", "resourceVersion": "7"}, "spec": {}}
    change = adoption(orphan, CLUSTER, CLUSTERS, controller=True, finalizer="f")
    assert change is not None
    assert change["metadata"]["resourceVersion"] == "7"
    adopted = {"metadata": orphan["metadata"] | change["metadata"], "spec": {}}
    assert adoption(adopted, CLUSTER, CLUSTERS, controller=True, finalizer="f") is None
    assert cluster_key(adopted) == Key("web-ns", "web")


def test_a_cluster_says_what_its_parts_say() -> None:
    nothing = status(CLUSTER, None, None, "")
    assert (nothing["phase"], nothing["infrastructureReady"], nothing["controlPlaneReady"]) == ("Pending", False, False)
    cluster = CLUSTER | {
        "spec": {"infrastructureRef": {"name": "web"}, "controlPlaneEndpoint": {"host": "h", "port": 1}}
    }
    assert status(cluster, None, None, "")["phase"] == "Provisioning"
    both = status(cluster, {"status": {"ready": True, "initialized": True}}, {"status": {"ready": True}}, "")
    assert (both["phase"], both["infrastructureReady"], both["controlPlaneReady"]) == ("Provisioned", True, True)


def test_an_endpoint_without_a_host_is_none() -> None:
    assert endpoint_of({"spec": {"controlPlaneEndpoint": {"host": "", "port": 0}}}) is None
    assert endpoint_of({}) is None
