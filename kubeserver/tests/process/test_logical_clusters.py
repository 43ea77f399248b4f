"""Logical clusters: made and removed over HTTP, each a cluster of its own that knows nothing of the others."""

from __future__ import annotations

import asyncio
import base64
import ssl
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from api_servers import ControlPlane
from server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Json = dict[str, Any]

VISITOR = {"Impersonate-User": "visitor"}
GADGETS: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("clusters")) as running:
        yield running
        assert "Traceback" not in running.log()


def make(server: ServerProcess, name: str) -> ControlPlane:
    """Create a logical cluster and open it with the kubeconfig that the answer carries."""
    code, text = server.plane.request("PUT", f"/clusters/{name}")
    assert code in (200, 201), text
    path = server.data_dir.parent / f"given-{name.replace('/', '-')}"
    path.write_text(text)
    return ControlPlane.from_kubeconfig(name, path, path.with_suffix(".client"))


def config_map(name: str) -> Json:
    return {"metadata": {"name": name}, "data": {"from": name}}


def configs(plane: ControlPlane) -> set[str]:
    code, found = plane.request("GET", "/api/v1/namespaces/default/configmaps")
    assert code == 200
    return {item["metadata"]["name"] for item in found["items"]}


def test_putting_one_makes_it_and_answers_with_its_kubeconfig(server: ServerProcess) -> None:
    code, first = server.plane.request("PUT", "/clusters/team-a/made")
    assert code == 201
    again, second = server.plane.request("PUT", "/clusters/team-a/made")
    assert again == 200
    assert first == second
    kubeconfig = server.data_dir / "clusters/team-a/made/kubeconfig"
    assert kubeconfig.read_text() == first
    assert kubeconfig.stat().st_mode & 0o777 == 0o600
    assert yaml.safe_load(first)["clusters"][0]["cluster"]["server"] == f"{server.url}/clusters/team-a/made"
    _, listed = server.plane.request("GET", "/clusters")
    assert {"namespace": "team-a", "name": "made", "server": f"{server.url}/clusters/team-a/made"} in listed["items"]


def test_kubectl_works_with_the_kubeconfig_of_a_logical_cluster(server: ServerProcess) -> None:
    plane = make(server, "team-a/kubectl")
    plane.kubectl("create", "configmap", "one", "--from-literal=a=b")
    assert plane.kubectl("get", "configmap", "one", "-o", "jsonpath={.data.a}").stdout == "b"
    plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(GADGETS))
    plane.kubectl("wait", "--for=condition=Established", "crd/gadgets.example.com", "--timeout=20s")
    assert "gadgets" in plane.kubectl("api-resources", "--api-group=example.com").stdout
    assert "NAME" in plane.kubectl("get", "namespaces").stdout


def test_objects_and_definitions_of_one_are_not_in_another(server: ServerProcess) -> None:
    one, other = make(server, "team-a/one"), make(server, "team-a/other")
    assert one.request("POST", "/api/v1/namespaces/default/configmaps", config_map("mine"))[0] == 201
    assert one.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", GADGETS)[0] == 201
    one.kubectl("wait", "--for=condition=Established", "crd/gadgets.example.com", "--timeout=20s")
    gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}}
    assert one.request("POST", "/apis/example.com/v1/namespaces/default/gadgets", gadget)[0] == 201
    for stranger in (other, server.plane):
        assert "mine" not in configs(stranger)
        assert stranger.request("GET", "/apis/example.com/v1/namespaces/default/gadgets")[0] == 404
        assert stranger.request("GET", "/apis/example.com/v1")[0] == 404
    # what one deletes, the other keeps
    assert other.request("POST", "/api/v1/namespaces/default/configmaps", config_map("mine"))[0] == 201
    assert one.request("DELETE", "/api/v1/namespaces/default/configmaps/mine")[0] == 200
    assert "mine" in configs(other)


def test_a_certificate_of_one_is_anonymous_in_another(server: ServerProcess) -> None:
    one = make(server, "team-a/certificates")
    two = make(server, "team-b/certificates")
    secrets = "/api/v1/namespaces/default/secrets"
    for holder, elsewhere in ((one, two.url), (one, server.url), (server.plane, one.url), (two, one.url)):
        intruder = ControlPlane("intruder", holder.kubeconfig, elsewhere, holder.ca_file, holder.tls, {})
        code, answer = intruder.request("GET", secrets)
        assert code == 403, answer
        assert 'User "system:anonymous" cannot list resource "secrets"' in answer["message"]
    assert one.request("GET", secrets)[0] == 200


def test_a_service_account_token_of_one_is_refused_in_another(server: ServerProcess) -> None:
    one, two = make(server, "team-a/tokens"), make(server, "team-b/tokens")
    account = {"metadata": {"name": "robot"}}
    for plane in (one, two, server.plane):
        assert plane.request("POST", "/api/v1/namespaces/default/serviceaccounts", account)[0] in (201, 409)
    code, issued = one.request("POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", {"spec": {}})
    assert code == 201
    bearer = {"Authorization": f"Bearer {issued['status']['token']}"}
    for plane, wanted in ((one, 201), (two, 401), (server.plane, 401)):
        robot = ControlPlane("robot", plane.kubeconfig, plane.url, plane.ca_file, plane.anonymous_tls(), bearer)
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        code, answer = robot.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
        assert code == wanted, answer


def test_rights_given_in_one_mean_nothing_in_another(server: ServerProcess) -> None:
    one, two = make(server, "team-a/rights"), make(server, "team-b/rights")
    binding = {
        "metadata": {"name": "visitor"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "visitor"}],
    }
    assert one.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)[0] == 201
    for plane, wanted in ((one, 200), (two, 403), (server.plane, 403)):
        visitor = ControlPlane("visitor", plane.kubeconfig, plane.url, plane.ca_file, plane.tls, VISITOR)
        assert visitor.request("GET", "/api/v1/namespaces/default/configmaps")[0] == wanted


def test_only_administrators_of_the_root_make_list_and_remove(server: ServerProcess) -> None:
    inside = make(server, "team-a/inside")
    rooted = ControlPlane("rooted", inside.kubeconfig, server.url, inside.ca_file, inside.tls, {})
    anonymous = ControlPlane("anonymous", inside.kubeconfig, server.url, inside.ca_file, inside.anonymous_tls(), {})
    visitor = ControlPlane("visitor", inside.kubeconfig, server.url, inside.ca_file, server.plane.tls, VISITOR)
    for plane in (rooted, anonymous, visitor):
        assert plane.request("PUT", "/clusters/team-a/intruded")[0] == 403
        assert plane.request("DELETE", "/clusters/team-a/inside")[0] == 403
        assert plane.request("GET", "/clusters")[0] == 403
    assert "team-a/intruded" not in str(server.plane.request("GET", "/clusters"))
    assert inside.request("GET", "/api/v1/namespaces/default")[0] == 200


def test_an_unknown_cluster_is_not_found_and_says_nothing_of_others(server: ServerProcess) -> None:
    make(server, "team-a/known")
    for path in ("/clusters/team-a/unknown/api/v1/pods", "/clusters/team-a/unknown", "/clusters/known/team-a/version"):
        assert server.plane.request("GET", path) == (404, "404 page not found\n")
    assert server.plane.request("DELETE", "/clusters/team-a/unknown")[0] == 404
    assert server.plane.request("GET", "/clusters/team-a%2Fknown/x/version")[0] == 404


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/clusters/Team/a", "namespace"),
        ("/clusters/team/a.b", "name"),
        ("/clusters/team/-a", "name"),
        ("/clusters/%2e%2e/a", "namespace"),
        ("/clusters/team/%2e%2e%2fx", "name"),
        ("/clusters/team/a%00b", "name"),
        ("/clusters/*/a", "namespace"),
        ("/clusters/team/" + "a" * 64, "name"),
    ],
)
def test_a_name_that_is_no_dns_label_is_refused_with_the_reason(server: ServerProcess, path: str, field: str) -> None:
    code, answer = server.plane.request("PUT", path)
    assert code == 422, answer
    assert answer["reason"] == "Invalid"
    assert {cause["field"] for cause in answer["details"]["causes"]} == {field}
    assert not (server.data_dir / "x").exists()


def test_a_removed_cluster_is_gone_and_a_new_one_of_its_name_is_empty(server: ServerProcess) -> None:
    plane = make(server, "team-c/gone")
    assert plane.request("POST", "/api/v1/namespaces/default/configmaps", config_map("old"))[0] == 201
    uid = plane.request("GET", "/api/v1/namespaces/kube-system")[1]["metadata"]["uid"]
    code, answer = server.plane.request("DELETE", "/clusters/team-c/gone")
    assert (code, answer["status"]) == (200, "Success")
    assert plane.request("GET", "/version")[0] == 404
    assert not (server.data_dir / "clusters/team-c").exists()
    assert "team-c" not in str(server.plane.request("GET", "/clusters")[1])
    again = make(server, "team-c/gone")
    assert "old" not in configs(again)
    assert again.request("GET", "/api/v1/namespaces/kube-system")[1]["metadata"]["uid"] != uid


def test_the_kubeconfig_of_a_removed_cluster_does_not_open_a_new_one_of_its_name(server: ServerProcess) -> None:
    before = make(server, "team-c/reborn")
    assert before.request("GET", "/api/v1/secrets")[0] == 200
    server.plane.request("DELETE", "/clusters/team-c/reborn")
    make(server, "team-c/reborn")
    assert before.request("GET", "/api/v1/secrets")[0] == 403


async def test_a_watch_ends_when_its_cluster_is_removed(server: ServerProcess) -> None:
    plane = make(server, "team-c/watched")
    async with server.session() as session:
        inside = ControlPlane("inside", plane.kubeconfig, plane.url, plane.ca_file, plane.tls, {})
        url = f"{inside.url}/api/v1/configmaps?watch=true&timeoutSeconds=60"
        async with session.get(url, ssl=inside.tls) as watch:
            assert watch.status == 200
            await asyncio.to_thread(server.plane.request, "DELETE", "/clusters/team-c/watched")
            await asyncio.wait_for(watch.content.read(), 10)


async def test_many_who_make_the_same_cluster_at_once_get_the_same_one(server: ServerProcess) -> None:
    async with server.session() as session:

        async def put() -> tuple[int, str]:
            async with session.put("/clusters/team-d/raced") as answer:
                return answer.status, await answer.text()

        answers = await asyncio.gather(*(put() for _ in range(10)))
    assert sorted({code for code, _ in answers}) in ([200, 201], [201])
    assert len({text for _, text in answers}) == 1


def test_clusters_are_there_after_kill_and_restart_also_on_another_port(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        plane = make(server, "team-a/kept")
        make(server, "team-a/removed")
        assert plane.request("POST", "/api/v1/namespaces/default/configmaps", config_map("kept"))[0] == 201
        assert server.plane.request("DELETE", "/clusters/team-a/removed")[0] == 200
        server.kill()
        server.start()
        assert "kept" in configs(plane), "the kubeconfig from before still works"
        assert server.plane.request("GET", "/clusters/team-a/removed/version")[0] == 404
        assert len(server.plane.request("GET", "/clusters")[1]["items"]) == 1
        server.kill()
        server.port = 0
        (server.data_dir / "kubeconfig").unlink()  # so that the port of last time is not known
        server.start()
        path = server.data_dir / "clusters/team-a/kept/kubeconfig"
        moved = ControlPlane.from_kubeconfig("moved", path, tmp_path / "moved")
        assert moved.url.startswith(server.url)
        assert "kept" in configs(moved)


def test_a_certificate_names_its_cluster_and_a_forged_name_needs_our_authority(server: ServerProcess) -> None:
    """The organisational unit decides; a certificate of another authority does not get through TLS at all."""
    plane = make(server, "team-a/forged")
    user = yaml.safe_load(plane.kubeconfig.read_text())["users"][0]["user"]
    pem = base64.b64decode(user["client-certificate-data"])
    text = subprocess.run(
        ["openssl", "x509", "-noout", "-subject"], input=pem, capture_output=True, check=True
    ).stdout.decode()
    assert "team-a/forged" in text.replace("\\/", "/")
    forged = server.data_dir.parent / "forged"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
         "-subj", "/O=system:masters/OU=team-a\\/forged/CN=kubeserver-admin",
         "-keyout", f"{forged}.key", "-out", f"{forged}.crt"],
        capture_output=True, check=True,
    )  # fmt: skip
    tls = plane.anonymous_tls()
    tls.load_cert_chain(f"{forged}.crt", f"{forged}.key")
    intruder = ControlPlane("forged", plane.kubeconfig, plane.url, plane.ca_file, tls, {})
    with pytest.raises((OSError, ssl.SSLError)):
        intruder.request("GET", "/api/v1/namespaces")


async def test_two_hundred_clusters_are_cheap(tmp_path: Path) -> None:
    count = 200
    with ServerProcess(tmp_path) as server:
        before, alone = server.rss_megabytes(), server.starting_seconds
        began = time.monotonic()
        async with server.session() as session:
            for number in range(count):
                async with session.put(f"/clusters/many/c{number}") as answer:
                    assert answer.status == 201
        each = (time.monotonic() - began) / count
        grown = (server.rss_megabytes() - before) / count
        assert server.terminate()[0] == 0
        server.start()
        start = (server.starting_seconds - alone) / count
        restarted = (server.rss_megabytes() - before) / count
        assert len(server.plane.request("GET", "/clusters")[1]["items"]) == count
        assert configs(make(server, "many/c199")) is not None
    print(
        f"per logical cluster: {each * 1000:.1f} ms to make, {start * 1000:.1f} ms to start again, "
        f"{grown:.2f} MB, {restarted:.2f} MB after a restart"
    )
    assert each < 0.15
    assert start < 0.1
    assert max(grown, restarted) < 0.25
