"""A tenant's kubeconfig, written by a user who may write Secrets in the tenant namespace and no more."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import yaml

from control_planes import BIN
from tenants.flows.alongside import alongside

if TYPE_CHECKING:
    from tenants.estate import Estate, Json, Tenant


class Bait:
    """A server on this machine that is no tenant: it counts its clients, and sends them a secret."""

    def __init__(self) -> None:
        self.asked = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                asked = connection.recv(65536)
                # The stand-ins of the world are not Butler, and believe each other's Secrets.
                self.asked += b"butler-world" not in asked
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 24\r\n\r\nthe password is hunter2.")

    def close(self) -> None:
        self._socket.close()


def _kubeconfig(tenant: Tenant) -> Json:
    found = tenant.estate.find(f"/api/v1/namespaces/{tenant.home}/secrets/web-admin-kubeconfig")
    assert found is not None
    return dict(yaml.safe_load(base64.b64decode(found["data"]["admin.conf"])))


def _write(tenant: Tenant, document: Json) -> None:
    data = {"admin.conf": base64.b64encode(yaml.safe_dump(document).encode()).decode()}
    tenant.estate.patch(f"/api/v1/namespaces/{tenant.home}/secrets/web-admin-kubeconfig", {"data": data})


def _left_to_itself(tenant: Tenant) -> None:
    """So that the world does not put the kubeconfig right."""
    tenant.edit({"paused": True})
    tenant.until(
        lambda: (tenant.witness.get("clusters", tenant.home, "web") or {})["spec"].get("paused"), "Cluster API is told"
    )


def _butlerctl(tenant: Tenant) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KUBECONFIG": str(tenant.estate.plane.kubeconfig)}
    return subprocess.run(
        [BIN / "butlerctl", "cluster", "kubeconfig", "web", "-n", tenant.namespace],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@alongside
def test_a_kubeconfig_that_leads_elsewhere_is_not_followed(estate: Estate) -> None:
    web = estate.site().cluster()
    web.ready()
    _left_to_itself(web)
    with closing(Bait()) as bait:
        document = _kubeconfig(web)
        document["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{bait.port}"}
        _write(web, document)
        web.until(
            lambda: "leads to another server than status.controlPlaneEndpoint" in web.message("LoadBalancersReady"),
            "its condition says what is wrong",
        )
        said = _butlerctl(web)
        assert said.returncode != 0
        assert "leads to another server than status.controlPlaneEndpoint" in said.stderr
        assert "hunter2" not in f"{web.status} {said}"
        assert bait.asked == 0
    web.edit({"paused": False})


@alongside
def test_a_command_in_any_entry_is_not_handed_out(estate: Estate) -> None:
    """Neither to the person who asks for the kubeconfig, nor to Cluster API, which would run it."""
    web = estate.site().cluster()
    web.ready()
    handed = _butlerctl(web)
    assert handed.returncode == 0, handed.stderr
    assert [context["name"] for context in yaml.safe_load(handed.stdout)["contexts"]] == ["web"]
    _left_to_itself(web)
    document = _kubeconfig(web)
    command = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", "id"]}
    document["users"].append({"name": "prod", "user": {"exec": command}})
    document["contexts"].append({"name": "prod", "context": {**document["contexts"][0]["context"], "user": "prod"}})
    _write(web, document)
    web.until(lambda: "exec is not allowed" in web.message("LoadBalancersReady"), "its condition says what is wrong")
    said = _butlerctl(web)
    assert said.returncode != 0
    assert "exec is not allowed" in said.stderr
    copy = estate.find(f"/api/v1/namespaces/{web.home}/secrets/web-kubeconfig")
    assert copy is not None
    assert b"exec" not in base64.b64decode(copy["data"]["value"])
    web.edit({"paused": False})
