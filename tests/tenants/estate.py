"""A platform with tenants, as its users have it: kubectl to write, and a witness to see what comes of it.

`Estate` is one management cluster with Butler and the world at work. `Site` is what one test has of it: a namespace for
its clusters, a pool whose network no other test has, and a provider that takes addresses from it. `Tenant` is a
TenantCluster. Nothing in here knows Butler's code: what a test learns, it learns from the API server.
"""

from __future__ import annotations

import base64
import itertools
import json
import secrets
import subprocess
from typing import TYPE_CHECKING, Any

from blueprints import SETTINGS
from control_planes import BIN, ControlPlane
from ipam_operator import Desk
from tenants.witness import CLUSTER_API
from unit.providers import given

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tenants.witness import Json, Witness

HOME = "butler-system"
API = "butler.butlerlabs.dev/v1alpha1"
ON_PREMISES = ("harvester", "nutanix", "proxmox")
CLOUDS = ("aws", "gcp", "azure")
NO_SERVER = "https://127.0.0.1:9"
"""Where connections are refused at once: an unreachable provider keeps no cluster from being described to it."""
VERSION = "v1.32.4"
_networks = itertools.count(secrets.randbelow(1000))


class Estate:
    """One management cluster with all processes running."""

    def __init__(self, plane: ControlPlane, witness: Witness, directory: Path, desk: Desk | None = None) -> None:
        self.plane = plane
        self.witness = witness
        self.directory = directory
        self._desk = desk or Desk(plane, HOME)
        self._sites: list[Site] = []

    def close(self) -> None:
        self._desk.close()

    def part(self) -> Estate:
        """The same estate as one test has it, who is to leave it as it was."""
        return Estate(self.plane, self.witness, self.directory, self._desk)

    def delete_clusters(self) -> None:
        """Ask for the end of every cluster that was made through this."""
        for site in self._sites:
            for obj in self.witness.list("tenantclusters", site.namespace):
                self.send("DELETE", f"{site.path('tenantclusters')}/{obj['metadata']['name']}")

    def site(self, provider: str = "proxmox", **options: Any) -> Site:
        """A place for clusters, applied; see `Site.describe`."""
        site = self.bare_site(provider)
        self.apply(*site.describe(**options))
        return site

    def bare_site(self, provider: str = "proxmox") -> Site:
        """A place for clusters where nothing is but a namespace."""
        site = Site(self, provider)
        self._sites.append(site)
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": site.namespace}})
        return site

    # Writing.

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.plane.kubectl(*arguments, stdin=stdin).stdout

    def kubectl_apply(self, *objects: Json) -> None:
        """What users type. It takes a moment of a core, so most tests send the same request themselves: `apply`."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(listed))

    def refused(self, obj: Json) -> str:
        """What kubectl says of an object that the server must not take."""
        said = self.plane.kubectl("apply", "-f", "-", stdin=json.dumps(obj), check=False)
        assert said.returncode != 0, f"it was taken: {said.stdout}"
        return said.stderr

    def apply(self, *objects: Json) -> list[Json]:
        """`kubectl apply --server-side` without kubectl; the objects as the server has them now."""
        return [self._apply(obj) for obj in objects]

    def _apply(self, obj: Json) -> Json:
        meta = obj["metadata"]
        path = f"{_path(obj['kind'], meta['namespace'])}/{meta['name']}?fieldManager=kubectl&force=true"
        return self.send("PATCH", path, obj, "application/apply-patch+yaml")

    def patch(self, path: str, patch: Json) -> Json:
        """A merge patch, as `kubectl patch` sends it."""
        return self.send("PATCH", path, patch, "application/merge-patch+json")

    def delete(self, path: str) -> None:
        self.send("DELETE", path)

    def send(self, method: str, path: str, body: Json | None = None, kind: str = "application/json") -> Json:
        code, answer = self._desk.send(method, path, body, kind)
        assert code in (200, 201, 202), f"{method} {path}: {answer}"
        return dict(answer)

    def find(self, path: str) -> Json | None:
        code, answer = self._desk.send("GET", path)
        assert code in (200, 404), answer
        return dict(answer) if code == 200 else None

    def until(self, look: Callable[[], Any], what: str) -> Any:
        return self.witness.until(look, lambda: what)


def _path(kind: str, namespace: str) -> str:
    if kind == "Secret":
        return f"/api/v1/namespaces/{namespace}/secrets"
    return f"/apis/{API}/namespaces/{namespace}/{kind.lower()}s"


class Site:
    """A namespace, a pool and a provider of one test's own."""

    def __init__(self, estate: Estate, provider: str) -> None:
        number = next(_networks) % (60 * 256)
        self.estate = estate
        self.kind = provider
        self.network = f"10.{64 + number // 256}.{number % 256}"
        self.other_network = f"172.{16 + number // 256 % 16}.{number % 256}"
        mark = f"{number:x}-{secrets.token_hex(2)}"
        self.namespace, self.pool, self.other_pool, self.provider, self.secret = (
            f"{text}-{mark}" for text in ("team", "pool", "other", provider, "login")
        )

    # Describing.

    def describe(
        self, *, size: int = 24, network: Json | None = None, spec: Json | None = None, other: int = 0
    ) -> list[Json]:
        """Secret, ProviderConfig, and a pool of `size` addresses from .16 on, another one if it has a size.

        `network` and `spec` change the ProviderConfig.
        """
        if self.kind == "nutanix":  # chooses machines' addresses itself, so load balancers have a pool of their own
            both = [{"name": self.pool, "types": ["nodes"]}, {"name": self.other_pool, "types": ["loadbalancer"]}]
            network, other = {"poolRefs": both, **(network or {})}, other or size
        objects = [self.login()]
        if self.kind in ON_PREMISES:
            objects.append(self.describe_pool(size=size))
        if other:
            objects.append(self.describe_other_pool(size=other))
        return [*objects, self.describe_provider(network, spec)]

    def login(self, **changes: bytes | None) -> Json:
        """The Secret with the provider's credentials; see `given.secret`."""
        if self.kind == "harvester":
            changes = {"kubeconfig": given.kubeconfig(NO_SERVER), **changes}
        if self.kind == "proxmox":  # its Cluster API provider takes tokens only
            changes = {"username": b"butler@pve!capi", "password": given.UUID.encode(), **changes}
        data = {key: base64.b64encode(value).decode() for key, value in given.secret(self.kind, **changes).items()}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self.secret, "namespace": HOME},
            "data": data,
        }

    def describe_pool(self, *, size: int = 24) -> Json:
        return _pool(self.pool, self.network, size)

    def describe_other_pool(self, *, size: int = 24) -> Json:
        return _pool(self.other_pool, self.other_network, size)

    def describe_provider(self, network: Json | None = None, spec: Json | None = None) -> Json:
        settings = dict(SETTINGS[self.kind])
        if "endpoint" in settings:
            settings["endpoint"] = NO_SERVER
        wanted: Json = {"provider": self.kind, "credentialsRef": {"name": self.secret}, self.kind: settings}
        if self.kind in ON_PREMISES:
            wanted["network"] = {
                "mode": "ipam",
                "poolRefs": [{"name": self.pool}],
                "gateway": f"{self.network}.1",
                "dnsServers": [f"{self.network}.2"],
                **(network or {}),
            }
            wanted["network"] = {key: value for key, value in wanted["network"].items() if value is not None}
        metadata = {"name": self.provider, "namespace": HOME}
        return {"apiVersion": API, "kind": "ProviderConfig", "metadata": metadata, "spec": {**wanted, **(spec or {})}}

    def describe_cluster(self, name: str, *, replicas: int = 1, **spec: Any) -> Json:
        workers = {"replicas": replicas, **spec.pop("workers", {})}
        return {
            "apiVersion": API,
            "kind": "TenantCluster",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "kubernetesVersion": VERSION,
                "providerConfigRef": {"name": self.provider},
                "workers": workers,
                **spec,
            },
        }

    def path(self, plural: str) -> str:
        return f"/apis/{API}/namespaces/{self.namespace}/{plural}"

    # Doing.

    def cluster(self, name: str = "web", **spec: Any) -> Tenant:
        """Apply a TenantCluster; the spec is that of the API, and `replicas` its workers."""
        self.estate.apply(self.describe_cluster(name, **spec))
        tenant = self.tenant(name)
        self.estate.until(tenant.get, f"the witness sees {name}")
        return tenant

    def tenant(self, name: str) -> Tenant:
        return Tenant(self, name)

    def edit_provider(self, network: Json | None = None, spec: Json | None = None) -> None:
        self.estate.apply(self.describe_provider(network, spec))

    def held(self) -> int:
        """Allocated addresses of the pool, as the allocations say."""
        return sum(
            (obj.get("status") or {}).get("allocatedCount", 0)
            for obj in self.estate.witness.list("ipallocations", HOME)
            if obj["spec"]["poolRef"]["name"] == self.pool and phase_of(obj) == "Allocated"
        )

    def addresses(self, first: int, last: int) -> list[str]:
        return [f"{self.network}.{number}" for number in range(first, last + 1)]


class Tenant:
    """A TenantCluster and what it is made of."""

    def __init__(self, site: Site, name: str) -> None:
        self.site = site
        self.estate = site.estate
        self.witness = site.estate.witness
        self.name = name
        self.namespace = site.namespace
        self._known: Json = {}

    # What it says.

    def find(self) -> Json | None:
        return self.witness.get("tenantclusters", self.namespace, self.name)

    def get(self) -> Json:
        self._known = self.find() or self._known  # what was known of a cluster that is gone is still true of it
        return self._known

    @property
    def status(self) -> Json:
        return dict(self.get().get("status") or {})

    @property
    def phase(self) -> str:
        return str(self.status.get("phase"))

    @property
    def uid(self) -> str:
        return str(self.get()["metadata"]["uid"])

    @property
    def home(self) -> str:
        """The namespace of its objects."""
        return f"{self.name}-{self.uid[:8]}"

    def condition(self, kind: str) -> Json:
        return next((item for item in self.status.get("conditions", ()) if item["type"] == kind), {})

    def message(self, kind: str) -> str:
        return str(self.condition(kind).get("message", ""))

    def story(self) -> str:
        """What it says of itself, for a test that fails."""
        said = [f"{self.namespace}/{self.name} is {self.phase}, deletion {self.status.get('deletion')}"]
        said += [
            f"  {condition['type']}={condition['status']} {condition['reason']}: {condition['message']}"
            for condition in self.status.get("conditions", ())
        ]
        for plural in ("ipallocations", "clusters", "stewardcontrolplanes", "machinedeployments", "machines"):
            for obj in self.witness.list(plural):
                labels = obj["metadata"].get("labels", {})
                if labels.get("butler.butlerlabs.dev/tenant-uid") == self.get().get("metadata", {}).get("uid") or (
                    obj["metadata"]["namespace"] == self.status.get("tenantNamespace")
                ):
                    said.append(f"  {plural}/{obj['metadata']['name']}: {json.dumps(obj.get('status'))[:600]}")
        return "\n".join(said)

    # Waiting.

    def until(self, look: Callable[[], Any], what: str) -> Any:
        return self.witness.until(look, lambda: f"{what}\n{self.story()}")

    def is_current(self) -> bool:
        """Whether the status speaks of the spec as it is."""
        found = self.get()
        return bool(found and found["metadata"]["generation"] == self.status.get("observedGeneration"))

    def is_phase(self, phase: str) -> Json:
        self.until(lambda: self.is_current() and self.phase == phase, f"{self.name} is {phase}")
        return self.get()

    def ready(self, workers: int | None = None) -> Json:
        """Ready, with all conditions, and nothing under way."""

        def look() -> bool:
            wanted = self.get()["spec"]["workers"]["replicas"] if workers is None else workers
            holds = self.condition("AddonsReady").get("status") == self.condition("Ready").get("status") == "True"
            return (
                self.is_current()
                and self.phase == "Ready"
                and holds
                and self.status.get("workerNodesReady") == wanted
                and len(self.machines()) == wanted
            )

        self.until(lambda: self.find() is not None and look(), f"{self.name} is Ready")
        return self.get()

    def says(self, kind: str, status: str, reason: str) -> str:
        """Wait until a condition says this of the spec as it is; its message."""

        def look() -> bool:
            found = self.condition(kind)
            return (found.get("status"), found.get("reason")) == (status, reason) and self.is_current()

        self.until(lambda: self.find() is not None and look(), f"{kind} is {status} for {reason}")
        return self.message(kind)

    def gone(self) -> None:
        """Nothing is left of it: no object, no namespace, no addresses. The witness hears of each kind by itself."""
        self.get()
        self.until(lambda: self.find() is None, f"{self.name} is gone")
        for plural in ("clusters", "machines", "machinesets"):
            self.until(lambda plural=plural: not self.witness.list(plural, self.home), f"its {plural} are gone")
        self.until(lambda: self.witness.get("namespaces", "", self.home) is None, f"{self.home} is gone")
        self.until(lambda: not self.allocations(), "its addresses are given back")
        self.until(lambda: not self.addons(), "its addons are gone")

    # Changing.

    def edit(self, spec: Json | None = None, **metadata: Any) -> Json:
        """Change the spec, or annotations and the like; waits until the witness has seen it."""
        body = {"metadata": metadata, **({"spec": spec} if spec is not None else {})}
        written = self.estate.patch(self.path, body)
        version = int(written["metadata"]["resourceVersion"])
        self.until(lambda: int(self.get()["metadata"]["resourceVersion"]) >= version, "the change is seen")
        return written

    def delete(self) -> None:
        self.get()
        self.estate.delete(self.path)

    @property
    def path(self) -> str:
        return f"{self.site.path('tenantclusters')}/{self.name}"

    def part(self, plural: str, name: str) -> str:
        """The path of one of its Cluster API objects."""
        return CLUSTER_API[plural].replace(f"/{plural}", f"/namespaces/{self.home}/{plural}/{name}")

    # What it is made of.

    def allocations(self, kind: str | None = None) -> list[Json]:
        """Those that hold or want addresses, the first one first."""
        found = [
            obj
            for obj in self.witness.list("ipallocations", HOME)
            if obj["metadata"].get("labels", {}).get("butler.butlerlabs.dev/tenant-uid") == self.uid
            and phase_of(obj) != "Released"
            and kind in (None, obj["spec"]["type"])
        ]
        return sorted(found, key=lambda obj: (obj["metadata"]["creationTimestamp"], obj["metadata"]["name"]))

    def addresses(self, kind: str) -> list[str]:
        return [
            address for allocation in self.allocations(kind) for address in allocation["status"].get("addresses", ())
        ]

    def machines(self) -> list[Json]:
        return self.witness.list("machines", self.home)

    def machine_addresses(self) -> list[str]:
        return sorted(
            address["address"]
            for machine in self.machines()
            for address in (machine.get("status") or {}).get("addresses", ())
            if address["type"] == "InternalIP"
        )

    def deployment(self) -> Json:
        return self.witness.get("machinedeployments", self.home, f"{self.name}-workers") or {}

    def control_plane(self) -> Json:
        return self.witness.get("stewardcontrolplanes", self.home, self.name) or {}

    def addons(self) -> dict[str, str]:
        """The phase of each of its addons."""
        return {
            obj["spec"]["addon"]: phase_of(obj)
            for obj in self.witness.list("tenantaddons", self.namespace)
            if obj["spec"]["clusterRef"]["name"] == self.name
        }

    def events(self, reason: str) -> list[Json]:
        return [
            obj
            for obj in self.witness.list("events", self.namespace)
            if obj["reason"] == reason and obj["involvedObject"]["name"] == self.name
        ]

    def annotate(self, plural: str, name: str, **annotations: str | None) -> None:
        """Tell the world something about an object in the tenant namespace."""
        told = {f"world.butler.butlerlabs.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
        self.estate.patch(self.part(plural, name), {"metadata": {"annotations": told}})

    # The tenant itself.

    def kubeconfig(self) -> Path:
        """The file that a user makes of the Secret which the status names."""
        path = self.estate.directory / f"{self.home}.kubeconfig"
        if not path.exists():
            secret = self.status["kubeconfigSecretRef"]["name"]
            found = self.estate.find(f"/api/v1/namespaces/{self.status['tenantNamespace']}/secrets/{secret}")
            assert found is not None
            path.touch(mode=0o600)
            path.write_bytes(base64.b64decode(found["data"]["admin.conf"]))
        return path

    def kubectl(self, *arguments: str) -> str:
        """The real kubectl, on the tenant."""
        command = [str(BIN / "kubectl"), "--kubeconfig", str(self.kubeconfig()), *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def inside(self) -> ControlPlane:
        return ControlPlane.from_kubeconfig("tenant", self.kubeconfig(), self.estate.directory / self.home)


def _pool(name: str, network: str, size: int) -> Json:
    return {
        "apiVersion": API,
        "kind": "NetworkPool",
        "metadata": {"name": name, "namespace": HOME},
        "spec": {
            "cidr": f"{network}.0/24",
            "tenantAllocation": {
                "start": f"{network}.16",
                "end": f"{network}.{15 + size}",
                "defaults": {"nodesPerTenant": 2, "lbPoolPerTenant": 2},
            },
        },
    }


def phase_of(obj: Json) -> str:
    return str((obj.get("status") or {}).get("phase"))
