"""Flatcar Container Linux: Kubernetes comes as a system extension, an image that systemd lays over /usr.

Flatcar publishes one per Kubernetes version. Ignition fetches it before the first boot ends and links it to where
systemd-sysext looks; containerd is part of Flatcar itself. An image that already carries Kubernetes gets the same
version again, which changes nothing. `additionalConfig` is a Container Linux Config, which the kubeadm provider merges
into its own; it is text inside the template, so it is written by an encoder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import yaml

if TYPE_CHECKING:
    from butler.capi.blueprint import Json

EXTENSIONS: Final = "https://extensions.flatcar.org/extensions"
_FOLDER: Final = "/opt/extensions/kubernetes"


def preparation(kubernetes_version: str) -> Json:
    """The part of a kubeadm configuration that makes a machine ready to join."""
    image = f"kubernetes-{kubernetes_version}-x86-64.raw"
    config = {
        "storage": {
            "files": [
                {
                    "filesystem": "root",
                    "path": f"{_FOLDER}/{image}",
                    "mode": 0o644,
                    "contents": {"remote": {"url": f"{EXTENSIONS}/{image}"}},
                }
            ],
            "links": [
                {
                    "filesystem": "root",
                    "path": "/etc/extensions/kubernetes.raw",
                    "target": f"{_FOLDER}/{image}",
                    "hard": False,
                }
            ],
        },
        "systemd": {
            "units": [
                {
                    "name": "kubeadm.service",
                    "dropins": [
                        {
                            "name": "10-after-extensions.conf",
                            "contents": "[Unit]\n"
                            "After=systemd-sysext.service containerd.service network-online.target\n"
                            "Requires=systemd-sysext.service containerd.service\n",
                        }
                    ],
                }
            ]
        },
    }
    return {
        "ignition": {
            "containerLinuxConfig": {"strict": True, "additionalConfig": yaml.safe_dump(config, sort_keys=True)}
        },
        "preKubeadmCommands": ["systemctl enable --now kubelet"],
    }
