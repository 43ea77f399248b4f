"""`butleradm provider`: from a printed example to a provider that is found to be in order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from cli.terminal import Cli, eventually

if TYPE_CHECKING:
    from pathlib import Path

    from control_planes import ControlPlane

SECRET = """\
---
apiVersion: v1
kind: Secret
metadata: {name: proxmox, namespace: butler-system}
stringData: {username: "butler@pve!token", password: 11111111-2222-3333-4444-555555555555}
"""


@pytest.fixture(scope="module")
def example(adm: Cli, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the program prints to start from, with an address where no server answers, and the Secret."""
    path = tmp_path_factory.mktemp("provider") / "proxmox.yaml"
    printed = adm("provider", "create", "--example", "proxmox")
    path.write_text(printed.replace("https://pve.example.com:8006", "https://127.0.0.1:9") + SECRET)
    return path


def test_where_there_are_no_providers_it_says_what_to_do(adm: Cli) -> None:
    said = adm.run("provider", "list", "-n", "nowhere")
    assert (said.code, said.out) == (0, "")
    assert "`butleradm provider create --example harvester` prints one to start from" in said.err


def test_a_file_is_judged_before_it_is_made(adm: Cli, example: Path, tmp_path: Path) -> None:
    assert "nothing is wrong with it" in adm("provider", "validate", "-f", str(example))
    objects = list(yaml.safe_load_all(example.read_text()))
    config = next(obj for obj in objects if obj["kind"] == "ProviderConfig")
    config["spec"]["network"]["gateway"] = "10.9.9.9"
    config["spec"]["nonsense"] = True
    secret = next(obj for obj in objects if obj["kind"] == "Secret")
    secret["stringData"]["password"] = "hunter2"
    bad = tmp_path / "bad.yaml"
    bad.write_text(yaml.safe_dump_all(objects))
    said = adm.run("provider", "validate", "-f", str(bad), "-o", "json")
    assert said.code == 8, str(said)
    answer = json.loads(said.out)
    assert answer["valid"] is False
    about = {finding["about"]: finding["message"] for finding in answer["findings"]}
    assert "lies in none of the pools for nodes" in about["spec.network.gateway"]
    assert "password must be the secret" in about["Secret butler-system/proxmox"]
    assert any("nonsense" in value for value in about.values()), "the server's own rules count too"
    assert "hunter2" not in said.out + said.err
    refused = adm.refused(1, "provider", "create", "-f", str(bad))
    assert "10.9.9.9 lies in none of the pools" in refused
    assert refused.endswith("nothing was created")


def test_a_provider_is_made_from_a_file_with_its_pools_and_its_secret(
    adm: Cli, plane: ControlPlane, example: Path
) -> None:
    dry = adm.run("provider", "create", "-f", str(example), "--dry-run=client")
    assert "kind: ProviderConfig" in dry.out
    assert "11111111-2222" not in dry.out + dry.err, "the contents of a Secret are not shown"
    assert "created (server dry run)" in adm("provider", "create", "-f", str(example), "--dry-run=server")
    said = adm.run("provider", "create", "proxmox", "-f", str(example), "--wait", "--timeout", "50")
    assert said.code == 0, str(said)
    assert said.out.splitlines() == [
        "networkpool.butler.butlerlabs.dev/proxmox-pool created",
        "secret/proxmox created",
        "providerconfig.butler.butlerlabs.dev/proxmox created",
    ]
    assert "Ready, with room for about" in said.err
    again = adm.run("provider", "create", "-f", str(example))
    assert again.code == 6, str(again)
    assert "networkpool.butler.butlerlabs.dev/proxmox-pool exists already, and is left as it is" in again.out
    assert "exists already: change it with kubectl edit" in again.error
    assert plane.kubectl("get", "secret", "proxmox", "-n", "butler-system", "-o", "name").stdout


def test_it_is_listed_and_told_with_its_pools_in_order(adm: Cli, example: Path) -> None:
    row = adm("provider", "list", "--no-headers").split()
    assert row[:4] == ["proxmox", "proxmox", "ipam", "yes"]
    assert row[6] == "proxmox-pool"
    shown = adm("provider", "get", "proxmox")
    for part in ("Room:         for about 111 more tenants", "  proxmox-pool   nodes and load balancers", "fixed: 4"):
        assert part in shown, shown
    assert adm("provider", "get", "proxmox", "-o", "jsonpath={.spec.proxmox.storage}") == "ceph"
    narrow = adm.in_terminal("provider", "get", "proxmox", columns=60, NO_COLOR="1")
    assert max(map(len, narrow.out.splitlines())) <= 60, str(narrow)
    assert example.exists()


def test_one_that_cannot_be_reached_has_a_finding(adm: Cli) -> None:
    eventually(lambda: "Reachable:    no" in adm("provider", "get", "proxmox"), "Butler has asked it")
    said = adm.run("provider", "validate", "proxmox")
    assert said.code == 8, str(said)
    assert "Butler cannot reach the provider" in said.out


def test_mistakes_are_told_in_one_sentence(adm: Cli, example: Path, tmp_path: Path) -> None:
    assert "did you mean proxmox?" in adm.refused(3, "provider", "get", "proxmux")
    assert "the NAME of a provider, or -f FILE" in adm.refused(2, "provider", "validate")
    assert "a provider is written in a file" in adm.refused(2, "provider", "create", "x")
    assert "--example only prints" in adm.refused(2, "provider", "create", "-f", str(example), "--example", "aws")
    assert "the file is about proxmox" in adm.refused(2, "provider", "create", "other", "-f", str(example))
    odd = tmp_path / "odd.yaml"
    odd.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")
    assert "v1 Pod does not belong here" in adm.refused(2, "provider", "create", "-f", str(odd))
    head = example.read_text() + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: odd}\n"
    for shape, complaint in (
        ("stringData: [a]", "stringData must hold keys with values"),
        ("data: [a]", "data must hold keys with values"),
        ("data: {password: hunter2}", "data.password is not base64"),
    ):
        odd.write_text(head + shape)
        for command in ("validate", "create"):
            assert complaint in adm.refused(2, "provider", command, "-f", str(odd))
    assert "ask an administrator" in adm.refused(4, "provider", "list", "--as", "stranger")
    assert "no Kubernetes API server is configured" in Cli(None).refused(5, "provider", "list")


def test_a_watch_ends_with_ctrl_c(adm: Cli) -> None:
    said = adm.in_terminal("provider", "list", "--watch", until=lambda text: "proxmox-pool" in text)
    assert said.code == 130, str(said)
