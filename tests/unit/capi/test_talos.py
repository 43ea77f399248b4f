"""The machine configuration of Talos workers: what it trusts, whom it joins, and what must never be in it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from blueprints import SSH_KEY, blueprint, contents, machine_os, node_network
from butler.capi.objects import objects
from butler.capi.talos import Trust, bootstrap_secret, machine_config
from butler.rules.tenant.blueprint import Endpoint, Unbuildable, Versions

if TYPE_CHECKING:
    from butler.api.objects import Json

TRUST = Trust("butler.abc", "MACHINE CA", "CLUSTER CA", "abcdef.0123456789abcdef")
TALOS = machine_os(type="talos")


def config(
    cluster: Json | None = None, settings: Json | None = None, *, provider: str = "proxmox", **more: Any
) -> Json:
    found: Json = yaml.safe_load(machine_config(blueprint(provider, cluster or TALOS, settings, **more), TRUST))
    return found


def test_a_worker_trusts_both_authorities_and_has_the_key_of_neither() -> None:
    made = config()
    assert made["machine"]["type"] == "worker"
    assert made["machine"]["token"] == "butler.abc"
    assert made["machine"]["ca"] == {"crt": base64.b64encode(b"MACHINE CA").decode()}
    assert made["cluster"]["ca"] == {"crt": base64.b64encode(b"CLUSTER CA").decode()}
    assert made["cluster"]["token"] == "abcdef.0123456789abcdef"


@pytest.mark.parametrize(("host", "url"), [("10.0.0.9", "https://10.0.0.9:443"), ("fd00::9", "https://[fd00::9]:443")])
def test_a_worker_joins_at_the_endpoint(host: str, url: str) -> None:
    assert config(endpoint=Endpoint(host, 443))["cluster"]["controlPlane"] == {"endpoint": url}


def test_without_an_endpoint_there_is_no_configuration() -> None:
    with pytest.raises(ValueError, match="endpoint"):
        config(endpoint=None)


def test_networks_and_cluster_dns_follow_the_cluster() -> None:
    made = config({**TALOS, "networking": {"podCIDR": "10.1.0.0/16", "serviceCIDR": "172.30.0.0/16"}})
    assert made["cluster"]["network"]["podSubnets"] == ["10.1.0.0/16"]
    assert made["cluster"]["network"]["serviceSubnets"] == ["172.30.0.0/16"]
    assert made["machine"]["kubelet"]["clusterDNS"] == ["172.30.0.10"]


def test_a_service_network_without_a_tenth_address_is_refused() -> None:
    with pytest.raises(Unbuildable) as refused:
        config({**TALOS, "networking": {"serviceCIDR": "172.30.0.0/29"}})
    assert refused.value.field == "spec.networking.serviceCIDR"


def test_the_kubelet_runs_the_workers_version() -> None:
    made = config(versions=Versions("v1.34.0", "v1.33.2"))
    assert made["machine"]["kubelet"]["image"].endswith(":v1.33.2")


def test_the_usual_disk_and_the_versions_installer_are_used_where_nothing_is_said() -> None:
    assert config()["machine"]["install"] == {
        "disk": "/dev/sda",
        "image": "ghcr.io/siderolabs/installer:v1.9.3",
        "wipe": False,
    }


def test_every_setting_of_talos_is_obeyed() -> None:
    given_settings = {"version": "v1.10.1", "installDisk": "/dev/nvme0n1"}
    install = config(machine_os(type="talos", talos=given_settings))["machine"]["install"]
    assert install == {"disk": "/dev/nvme0n1", "image": "ghcr.io/siderolabs/installer:v1.10.1", "wipe": False}
    mine = config(machine_os(type="talos", talos={"installerImage": "registry.example.com/talos:1"}))
    assert mine["machine"]["install"]["image"] == "registry.example.com/talos:1"


def test_time_and_name_servers_are_set_where_they_are_known() -> None:
    made = config({**TALOS, "timeServers": ["ntp.example.com"]}, nodes=node_network(dns_servers=("10.40.0.2",)))
    assert made["machine"]["time"] == {"servers": ["ntp.example.com"]}
    assert made["machine"]["network"] == {"nameservers": ["10.40.0.2"]}
    plain = config(provider="nutanix", dhcp=True)
    assert "time" not in plain["machine"]
    assert "network" not in plain["machine"]


@pytest.mark.parametrize("wanted", [True, False])
def test_an_external_cloud_provider_is_announced_to_the_kubelet(wanted: bool) -> None:
    made = config({**TALOS, "controlPlane": {"externalCloudProvider": wanted}})
    assert ("cloud-provider" in made["machine"]["kubelet"]["extraArgs"]) is wanted


def test_talos_has_no_ssh_which_is_said_before_anything_is_built() -> None:
    with pytest.raises(Unbuildable, match="no SSH"):
        config(machine_os(type="talos", sshAuthorizedKey=SSH_KEY))
    with pytest.raises(Unbuildable, match="no SSH"):
        objects(blueprint("proxmox", machine_os(type="talos", sshAuthorizedKey=SSH_KEY), endpoint=None))


def test_the_secret_is_named_by_its_content_and_typed_as_cluster_api_wants_it() -> None:
    found = blueprint("proxmox", TALOS)
    secret = bootstrap_secret(found, TRUST)
    assert secret["type"] == "cluster.x-k8s.io/secret"
    assert secret["metadata"]["name"].startswith("payments-talos-")
    assert contents(secret)["value"].encode() == machine_config(found, TRUST)
    other = bootstrap_secret(found, Trust("butler.xyz", "MACHINE CA", "CLUSTER CA", "abcdef.0123456789abcdef"))
    assert other["metadata"]["name"] != secret["metadata"]["name"]


def test_trust_is_read_from_stewards_secrets_once_they_are_complete() -> None:
    trustd = {"token": "butler.abc", "os-ca.crt": "MACHINE CA", "admin.key": "private"}
    authority = {"ca.crt": "CLUSTER CA", "ca.key": "private"}
    token = "abcdef.0123456789abcdef"
    assert Trust.read(trustd, authority, token) == TRUST
    assert Trust.read({**trustd, "token": ""}, authority, token) is None
    assert Trust.read(trustd, {}, token) is None
    assert Trust.read(trustd, authority, "") is None


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1))
def test_whatever_a_token_consists_of_it_stays_a_token(token: str) -> None:
    found = blueprint("proxmox", TALOS)
    made = yaml.safe_load(machine_config(found, Trust(token, "MACHINE CA", "CLUSTER CA", token)))
    assert made["machine"]["token"] == token
    assert made["cluster"]["token"] == token
    assert set(made) == {"version", "persist", "machine", "cluster"}
