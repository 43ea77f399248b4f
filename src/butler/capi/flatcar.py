"""Flatcar Container Linux: Kubernetes comes as a system extension, an image that systemd lays over /usr.

Flatcar publishes one per Kubernetes version. Ignition fetches it before the first boot ends and links it to where
systemd-sysext looks; containerd is part of Flatcar itself. An image that already carries Kubernetes gets the same
version again, which changes nothing. `additionalConfig` is a Container Linux Config, which the kubeadm provider merges
into its own; it is text inside the template, so it is written by an encoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import yaml

if TYPE_CHECKING:
    from butler.api.objects import Json

EXTENSIONS: Final = "https://extensions.flatcar.org/extensions"
_FOLDER: Final = "/opt/extensions/kubernetes"


@dataclass(frozen=True, slots=True)
class FlatcarMetadata:
    """Where a machine learns what the provider calls it."""

    environment_file: str
    """Shell variables, such as COREOS_EC2_HOSTNAME."""
    unit: str | None = None
    """What writes that file, where it is not there from the beginning."""


def preparation(kubernetes_version: str, metadata: FlatcarMetadata) -> Json:
    """The part of a kubeadm configuration that makes a machine ready to join."""
    image = f"kubernetes-{kubernetes_version}-x86-64.raw"
    fetched = {
        "filesystem": "root",
        "path": f"{_FOLDER}/{image}",
        "mode": 0o644,
        "contents": {"remote": {"url": f"{EXTENSIONS}/{image}"}},
    }
    link = {
        "filesystem": "root",
        "path": "/etc/extensions/kubernetes.raw",
        "target": f"{_FOLDER}/{image}",
        "hard": False,
    }
    config = {
        "storage": {"files": [fetched], "links": [link]},
        "systemd": {
            "units": [
                {
                    "name": "kubeadm.service",
                    "enabled": True,
                    "dropins": [{"name": "10-butler.conf", "contents": _drop_in(metadata)}],
                }
            ]
        },
    }
    text = yaml.safe_dump(config, sort_keys=True)
    return {
        "ignition": {"containerLinuxConfig": {"strict": True, "additionalConfig": text}},
        "preKubeadmCommands": [
            "envsubst < /etc/kubeadm.yml > /etc/kubeadm.yml.filled",
            "mv /etc/kubeadm.yml.filled /etc/kubeadm.yml",
            "systemctl enable --now kubelet",
        ],
    }


def _drop_in(metadata: FlatcarMetadata) -> str:
    """kubeadm waits for Kubernetes, for containerd and for what tells the machine its name."""
    units = ["systemd-sysext.service", "containerd.service", *([metadata.unit] if metadata.unit else [])]
    lines = [
        "[Unit]",
        f"Requires={' '.join(units)}",
        f"After=network-online.target {' '.join(units)}",
        "[Service]",
        f"EnvironmentFile={metadata.environment_file}",
    ]
    return "\n".join(lines) + "\n"
