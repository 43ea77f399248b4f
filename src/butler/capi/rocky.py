"""Rocky Linux: what a plain cloud image still lacks to become a node.

An image that was built for Cluster API has everything; then the script only sees that the version is right and ends.
Otherwise it installs containerd and Kubernetes from their makers' package repositories, in exactly the version that
is wanted, and what Longhorn needs for its volumes. It may run twice, and it fails loudly: a node that joins with
another version than the cluster asked for is worse than one that does not join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from butler.api.objects import Json

SCRIPT_PATH: Final = "/usr/local/sbin/butler-prepare-node"

_SCRIPT: Final = r"""#!/bin/bash
# Usage: butler-prepare-node KUBERNETES-VERSION ROCKY-VERSION, such as v1.31.4 9.5
set -euo pipefail
version="${1#v}"
minor="${version%.*}"

. /etc/os-release
if [ "${ID}" != rocky ] || [ "${VERSION_ID}" != "${2}" ]; then
  logger -s -t butler "this image is ${ID} ${VERSION_ID}, the cluster asked for rocky ${2}"
fi

swapoff -a
sed -i '/\sswap\s/s/^/#/' /etc/fstab
printf 'overlay\nbr_netfilter\n' > /etc/modules-load.d/kubernetes.conf
modprobe -a overlay br_netfilter
printf '%s = 1\n' net.ipv4.ip_forward net.bridge.bridge-nf-call-iptables \
  net.bridge.bridge-nf-call-ip6tables > /etc/sysctl.d/90-kubernetes.conf
sysctl --system > /dev/null

if [ "$(kubeadm version -o short 2>/dev/null || true)" != "v${version}" ]; then
  setenforce 0 || true
  sed -i 's/^SELINUX=enforcing/SELINUX=permissive/' /etc/selinux/config
  cat > /etc/yum.repos.d/kubernetes.repo <<REPOSITORY
[kubernetes]
name=Kubernetes ${minor}
baseurl=https://pkgs.k8s.io/core:/stable:/v${minor}/rpm/
gpgkey=https://pkgs.k8s.io/core:/stable:/v${minor}/rpm/repodata/repomd.xml.key
gpgcheck=1
enabled=1
REPOSITORY
  dnf install -y "kubelet-${version}" "kubeadm-${version}" "kubectl-${version}"
fi

if ! command -v containerd > /dev/null; then
  dnf install -y dnf-plugins-core
  dnf config-manager --add-repo https://download.docker.com/linux/rhel/docker-ce.repo
  dnf install -y containerd.io
  containerd config default | sed 's/SystemdCgroup = false/SystemdCgroup = true/' > /etc/containerd/config.toml
fi

if ! command -v iscsiadm > /dev/null; then
  dnf install -y iscsi-initiator-utils nfs-utils
fi

systemctl enable --now iscsid containerd
systemctl restart containerd
systemctl enable kubelet
"""


def preparation(kubernetes_version: str, rocky_version: str) -> Json:
    """The part of a kubeadm configuration that makes a machine ready to join."""
    script = {"path": SCRIPT_PATH, "owner": "root:root", "permissions": "0755", "content": _SCRIPT}
    return {"files": [script], "preKubeadmCommands": [f"{SCRIPT_PATH} {kubernetes_version} {rocky_version}"]}
