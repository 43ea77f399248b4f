"""How machines with Rocky Linux and Flatcar become nodes."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from blueprints import CLOUDS, PROVIDERS, SSH_KEY, blueprint, machine_os
from butler.capi.bootstrap import kubeadm_template
from butler.rules.tenant.blueprint import Unbuildable, Versions

if TYPE_CHECKING:
    from butler.api.objects import Json


def spec(provider: str = "proxmox", cluster: Json | None = None, config: Json | None = None) -> Json:
    made = kubeadm_template(blueprint(provider, cluster, config, versions=Versions("v1.34.0", "v1.33.2")))
    found: Json = made["spec"]["template"]["spec"]
    return found


def test_rocky_is_prepared_for_the_workers_version_by_cloud_init() -> None:
    made = spec(cluster=machine_os(version="9.4"))
    assert made["format"] == "cloud-config"
    assert made["preKubeadmCommands"] == ["/usr/local/sbin/butler-prepare-node v1.33.2 9.4"]
    assert [file["path"] for file in made["files"]] == ["/usr/local/sbin/butler-prepare-node"]
    assert made["files"][0]["permissions"] == "0755"


def test_the_script_for_rocky_is_correct_shell() -> None:
    script = spec()["files"][0]["content"]
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    # cloud-init takes the whole configuration for a Jinja template.
    assert not any(mark in script for mark in ("{{", "{%", "{#"))


def test_flatcar_gets_kubernetes_as_a_system_extension_by_ignition() -> None:
    made = spec(cluster=machine_os(type="flatcar"))
    assert made["format"] == "ignition"
    config = yaml.safe_load(made["ignition"]["containerLinuxConfig"]["additionalConfig"])
    (file,), (link,) = config["storage"]["files"], config["storage"]["links"]
    assert "kubernetes-v1.33.2-x86-64.raw" in file["contents"]["remote"]["url"]
    assert link["target"] == file["path"]
    (unit,) = config["systemd"]["units"]
    assert "EnvironmentFile=/etc/proxmox-env\n" in unit["dropins"][0]["contents"]


@pytest.mark.parametrize("provider", sorted(set(PROVIDERS) - {"proxmox", "aws"}))
def test_flatcar_is_refused_where_no_provider_hands_ignition_to_machines(provider: str) -> None:
    with pytest.raises(Unbuildable) as refused:
        spec(provider, machine_os(type="flatcar"))
    assert refused.value.field == "spec.workers.machineTemplate.os.type"


def test_talos_has_no_bootstrap_template() -> None:
    with pytest.raises(Unbuildable, match="talos has no bootstrap template"):
        spec(cluster=machine_os(type="talos"))


@pytest.mark.parametrize(("system", "user"), [("rocky", "rocky"), ("flatcar", "core")])
def test_a_public_key_belongs_to_the_distributions_usual_user(system: str, user: str) -> None:
    (found,) = spec(cluster=machine_os(type=system, sshAuthorizedKey=SSH_KEY))["users"]
    assert found == {"name": user, "sudo": "ALL=(ALL) NOPASSWD:ALL", "sshAuthorizedKeys": [SSH_KEY]}


def test_without_a_public_key_no_user_can_log_in() -> None:
    assert "users" not in spec()


def test_the_clusters_time_servers_go_before_the_providers() -> None:
    config = {"network": {"timeServers": ["p"]}}
    assert spec(cluster={"timeServers": ["c"]}, config=config)["ntp"] == {"enabled": True, "servers": ["c"]}
    assert spec(config=config)["ntp"]["servers"] == ["p"]
    assert "ntp" not in spec()


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_external_cloud_provider_is_announced_to_the_kubelet(provider: str, wanted: bool) -> None:
    made = spec(provider, {"controlPlane": {"externalCloudProvider": wanted}})
    arguments = made["joinConfiguration"].get("nodeRegistration", {}).get("kubeletExtraArgs", {})
    assert arguments.get("cloud-provider") == ("external" if wanted else None)


def test_on_proxmox_a_node_says_itself_which_machine_it_is() -> None:
    for system, variable in (("rocky", "{{ ds.meta_data.instance_id }}"), ("flatcar", "${COREOS_CUSTOM_INSTANCE_ID}")):
        node = spec(cluster=machine_os(type=system))["joinConfiguration"]["nodeRegistration"]
        assert node["kubeletExtraArgs"]["provider-id"] == f"proxmox://{variable}"


@pytest.mark.parametrize("provider", CLOUDS)
def test_clouds_find_their_machines_by_the_nodes_name(provider: str) -> None:
    assert "local_hostname" in spec(provider)["joinConfiguration"]["nodeRegistration"]["name"]
