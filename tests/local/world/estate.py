"""Clusters as Butler would describe them, made by hand, and a look at what the world makes of them."""

from __future__ import annotations

import base64
import subprocess
import time
from typing import TYPE_CHECKING, Any

from control_planes import BIN, ControlPlane

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

Json = dict[str, Any]
PATIENCE = 90.0
CAPI = "/apis/cluster.x-k8s.io/v1beta1"
INFRASTRUCTURE = "/apis/infrastructure.cluster.x-k8s.io"
PATHS = {
    "clusters": CAPI,
    "machinedeployments": CAPI,
    "machinesets": CAPI,
    "machines": CAPI,
    "stewardcontrolplanes": "/apis/controlplane.cluster.x-k8s.io/v1alpha1",
    "kubeadmconfigtemplates": "/apis/bootstrap.cluster.x-k8s.io/v1beta1",
    "kubeadmconfigs": "/apis/bootstrap.cluster.x-k8s.io/v1beta1",
    "proxmoxclusters": f"{INFRASTRUCTURE}/v1alpha1",
    "proxmoxmachines": f"{INFRASTRUCTURE}/v1alpha1",
    "proxmoxmachinetemplates": f"{INFRASTRUCTURE}/v1alpha1",
    "harvesterclusters": f"{INFRASTRUCTURE}/v1alpha1",
    "harvestermachines": f"{INFRASTRUCTURE}/v1alpha1",
    "harvestermachinetemplates": f"{INFRASTRUCTURE}/v1alpha1",
    "secrets": "/api/v1",
    **{
        f"{name}{plural}": f"{INFRASTRUCTURE}/{version}"
        for name, version in (("nutanix", "v1beta1"), ("aws", "v1beta2"), ("gcp", "v1beta1"), ("azure", "v1beta1"))
        for plural in ("clusters", "machines", "machinetemplates")
    },
}
MACHINES: dict[str, Json] = {
    "Proxmox": {"sourceNode": "pve1", "templateID": 100, "numCores": 4, "numSockets": 1, "memoryMiB": 8192},
    "Harvester": {
        "cpu": 2,
        "memory": "8Gi",
        "sshUser": "rocky",
        "sshKeyPair": "default/butler",
        "networks": ["default/vlan1"],
        "volumes": [{"volumeType": "image", "imageName": "default/rocky", "volumeSize": "40Gi", "bootOrder": 1}],
    },
    "Nutanix": {
        "bootType": "legacy",
        "vcpuSockets": 4,
        "vcpusPerSocket": 1,
        "memorySize": "8Gi",
        "systemDiskSize": "40Gi",
        "image": {"type": "name", "name": "rocky"},
        "cluster": {"type": "name", "name": "pe1"},
        "subnet": [{"type": "name", "name": "vlan1"}],
    },
    "AWS": {"instanceType": "m5.xlarge"},
    "GCP": {"instanceType": "n2-standard-4"},
    "Azure": {"vmSize": "Standard_D4s_v5", "osDisk": {"osType": "Linux", "diskSizeGB": 40}, "sshPublicKey": ""},
}


def _proxmox(addresses: Sequence[str]) -> Json:
    network = {"addresses": list(addresses), "prefix": 24, "gateway": "10.77.0.1"}
    return {"dnsServers": ["10.77.0.2"], "externalManagedControlPlane": True, "ipv4Config": network}


def _harvester(addresses: Sequence[str]) -> Json:
    spec: Json = {
        "targetNamespace": "default",
        "identitySecret": {"namespace": "default", "name": "harvester"},
        "loadBalancerConfig": {"ipamType": "dhcp"},
    }
    if addresses:
        first, _, last = addresses[0].partition("-")
        pool = {
            "vmNetwork": "default/vlan1",
            "subnet": "10.77.0.0/24",
            "gateway": "10.77.0.1",
            "rangeStart": first,
            "rangeEnd": last,
        }
        spec["vmNetworkConfig"] = {"gateway": "10.77.0.1", "subnetMask": "255.255.255.0", "ipPool": pool}
    return spec


INFRASTRUCTURES: dict[str, Callable[[Sequence[str]], Json]] = {
    "Proxmox": _proxmox,
    "Harvester": _harvester,
    "Nutanix": lambda _: {"prismCentral": {"address": "prism.example", "port": 9440}},
    "AWS": lambda _: {"region": "eu-central-1"},
    "GCP": lambda _: {"project": "butler", "region": "europe-west3"},
    "Azure": lambda _: {"location": "westeurope"},
}


class Tenant:
    """One cluster in a namespace of its own."""

    def __init__(self, plane: ControlPlane, name: str = "web", *, provider: str = "Proxmox") -> None:
        self.plane = plane
        self.name = name
        self.namespace = plane.fresh_namespace("world")
        self.provider = provider
        self.lower = provider.lower()

    # Writing.

    def create(
        self,
        *,
        replicas: int = 2,
        addresses: Sequence[str] = ("10.77.0.10-10.77.0.12",),
        surge: int = 1,
        unavailable: int = 0,
        version: str = "v1.33.2",
        control_plane: Json | None = None,
        **annotations: str,
    ) -> None:
        """All objects, in the order in which Butler applies them."""
        infrastructure = INFRASTRUCTURES[self.provider](addresses)
        self.post(f"{self.lower}clusters", f"{self.provider}Cluster", self.name, infrastructure)
        hosted = {"version": version, "replicas": 1, **(control_plane or {})}
        self.post("stewardcontrolplanes", "StewardControlPlane", self.name, hosted)
        self.template("workers-a")
        config: dict[str, Any] = {"template": {"spec": {"joinConfiguration": {}}}}
        self.post("kubeadmconfigtemplates", "KubeadmConfigTemplate", "workers-a", config)
        cluster = {
            "controlPlaneRef": self.reference("controlplane.cluster.x-k8s.io/v1alpha1", "StewardControlPlane"),
            "infrastructureRef": self.reference(self._infrastructure, f"{self.provider}Cluster"),
        }
        self.post("clusters", "Cluster", self.name, cluster)
        labels = {"cluster.x-k8s.io/cluster-name": self.name, "cluster.x-k8s.io/deployment-name": "workers"}
        bootstrap = self.reference("bootstrap.cluster.x-k8s.io/v1beta1", "KubeadmConfigTemplate", "workers-a")
        machine = {
            "clusterName": self.name,
            "version": version,
            "bootstrap": {"configRef": bootstrap},
            "infrastructureRef": self.reference(self._infrastructure, f"{self.provider}MachineTemplate", "workers-a"),
        }
        spec = {
            "clusterName": self.name,
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
            },
            "template": {"metadata": {"labels": labels}, "spec": machine},
        }
        told = {f"world.butler.butlerlabs.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
        self.post("machinedeployments", "MachineDeployment", "workers", spec, annotations=told)

    def template(self, name: str, **changes: Any) -> None:
        spec = {"template": {"spec": {**MACHINES[self.provider], **changes}}}
        self.post(f"{self.lower}machinetemplates", f"{self.provider}MachineTemplate", name, spec)

    @property
    def _infrastructure(self) -> str:
        return f"infrastructure.cluster.x-k8s.io/{PATHS[f'{self.lower}clusters'].rsplit('/', 1)[1]}"

    def reference(self, version: str, kind: str, name: str = "") -> Json:
        return {"apiVersion": version, "kind": kind, "name": name or self.name, "namespace": self.namespace}

    def path(self, plural: str, name: str = "") -> str:
        return f"{PATHS[plural]}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def post(self, plural: str, kind: str, name: str, spec: Json, **metadata: Any) -> Json:
        group_version = PATHS[plural].removeprefix("/apis/")
        body = {
            "apiVersion": group_version,
            "kind": kind,
            "metadata": {"name": name, **metadata},
            "spec": spec,
        }
        code, answer = self.plane.request("POST", self.path(plural), body)
        assert code == 201, answer
        return dict(answer)

    def patch(self, plural: str, name: str, patch: str) -> None:
        kind = f"{plural}.{PATHS[plural].removeprefix('/apis/').split('/')[0]}"
        self.plane.kubectl("-n", self.namespace, "patch", kind, name, "--type=merge", "-p", patch)

    def delete(self, plural: str, name: str) -> None:
        code, answer = self.plane.request("DELETE", self.path(plural, name))
        assert code == 200, answer

    # Reading.

    def get(self, plural: str, name: str) -> Json | None:
        code, answer = self.plane.request("GET", self.path(plural, name))
        assert code in (200, 404), answer
        return dict(answer) if code == 200 else None

    def list(self, plural: str) -> list[Json]:
        code, answer = self.plane.request("GET", self.path(plural))
        assert code == 200, answer
        return list(answer["items"])

    def status(self, plural: str, name: str) -> Json:
        return dict((self.get(plural, name) or {}).get("status") or {})

    def workers(self) -> Json:
        return self.status("machinedeployments", "workers")

    def machines(self, phase: str | None = None) -> Sequence[Json]:
        return [obj for obj in self.list("machines") if phase in (None, (obj.get("status") or {}).get("phase"))]

    def until(self, look: Callable[[], Any], what: str) -> Any:
        """Look until what is seen counts as true; gives what was seen."""
        deadline = time.monotonic() + PATIENCE
        while not (seen := look()):
            assert time.monotonic() < deadline, f"not within {PATIENCE:.0f} s: {what}; {self.story()}"
            time.sleep(0.05)
        return seen

    def story(self) -> str:
        """What the objects say now, for a failing test."""
        told = []
        for plural in ("clusters", "stewardcontrolplanes", "machinedeployments", "machinesets", "machines"):
            told += [f"{plural}/{obj['metadata']['name']}: {obj.get('status')}" for obj in self.list(plural)]
        return "\n".join(told)

    def ready(self, replicas: int) -> None:
        """Wait until so many workers are ready, and no other machine is left."""

        def look() -> bool:
            found = self.workers()
            counts = [found.get(f"{kind}eplicas") for kind in ("r", "readyR", "updatedR", "availableR")]
            return counts == [replicas] * 4 and len(self.list("machines")) == replicas

        self.until(look, f"{replicas} workers are ready")

    def gone(self) -> None:
        self.until(lambda: self.get("clusters", self.name) is None, "the Cluster is gone")

    # The tenant itself.

    def kubeconfig(self, directory: Path, entry: str = "admin.conf") -> Path:
        secret = self.until(lambda: self.get("secrets", f"{self.name}-admin-kubeconfig"), "there is a kubeconfig")
        path = directory / f"{self.namespace}-{entry}"
        path.touch(mode=0o600)
        path.write_bytes(base64.b64decode(secret["data"][entry]))
        return path

    def inside(self, directory: Path) -> ControlPlane:
        return ControlPlane.from_kubeconfig("tenant", self.kubeconfig(directory), directory / self.namespace)

    def kubectl(self, directory: Path, *arguments: str) -> str:
        """The real kubectl, on the tenant."""
        command = [str(BIN / "kubectl"), "--kubeconfig", str(self.kubeconfig(directory)), *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert result.returncode == 0, result.stderr
        return result.stdout


def internal_ips(nodes: Sequence[Json]) -> list[str]:
    return sorted(
        address["address"]
        for node in nodes
        for address in node["status"]["addresses"]
        if address["type"] == "InternalIP"
    )


def address_of(machine: Json) -> str | None:
    told = (machine.get("status") or {}).get("addresses") or ()
    return next((item["address"] for item in told if item["type"] == "InternalIP"), None)
