"""A tenant whose API server is a real Kubernetes, and whose load balancers are served by the real MetalLB.

The management cluster runs only Butler: no Cluster API, no world. The tests play Steward's part themselves,
which is a namespace and a Secret with the tenant's kubeconfig; from there on Butler follows the tenant as it follows
any other. There is one Kubernetes, so there is one such tenant at a time, and each test leaves it empty.
"""

from __future__ import annotations

import asyncio
import base64
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from elastic.chronicle import ADDRESS_POOL, DEFAULT_POOL, TENANT, latest
from elastic.estate import PATIENCE, QUIET, Elastic, ElasticTenant, Place
from elastic.real_metallb.taken_in import seen_size
from elastic.record import CLAIMS_PATH, INSIDE, METALLB, Record, Side
from elastic.rest import Standing, at_rest, written_since
from metallb_controller import NAMESPACE, MetallbController
from tenants.witness import OWN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from control_planes import ControlPlane
    from elastic.butler_process import Butler
    from elastic.chronicle import Chronicle
    from ipam.story import Violation
    from ipam_operator import Desk
    from tenants.witness import Json

STATES = "configurationstates"
POOLS = f"{METALLB}/namespaces/{NAMESPACE}/ipaddresspools"
COMPONENT = {"steward.butlerlabs.dev/component": "admin-kubeconfig"}


class RealRecord(Record):
    """Both sides, and beside them what MetalLB lets be seen of itself."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__(plane, one_store=False)
        self.management = Side(plane, {**OWN, "configmaps": CLAIMS_PATH})

    def tenant(self, uid: str, plane: ControlPlane) -> Side:
        self._watch(plane)
        paths = {**INSIDE, STATES: f"{METALLB}/{STATES}"}
        with self._lock:
            side = self._tenants[uid] = Side(plane, paths)
        side.follow(paths)
        return side


class RealEstate(Elastic):
    """A management cluster with Butler, and a Kubernetes with MetalLB for its tenant."""

    def __init__(
        self,
        plane: ControlPlane,
        record: Record,
        butler: Butler,
        directory: Path,
        kubernetes: ControlPlane,
        metallb: MetallbController,
        desk: Desk | None = None,
    ) -> None:
        super().__init__(plane, record, butler, directory, desk)
        self.kubernetes = kubernetes
        self.metallb = metallb

    def place(self, **terms: Any) -> RealPlace:
        place = RealPlace(self, **terms)
        self._sites.append(place)
        self._places.append(place)
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": place.namespace}})
        self.apply(*place.describe())
        names = [place.pool, *([place.spare_pool] if place.spare else [])]
        self.until(lambda: all(map(self._is_counted, names)), f"{names} know what they can give")
        return place

    def start_metallb(self) -> None:
        asyncio.run(self.metallb.start())

    def stop_butler(self) -> None:
        """As an operator's restart does it."""
        self.butler.__exit__(None, None, None)

    @contextmanager
    def frozen_metallb(self) -> Iterator[None]:
        self.metallb.freeze()
        try:
            yield
        finally:
            self.metallb.thaw()

    def leave_empty(self) -> None:
        """The tenant goes, and nothing of it is left on the Kubernetes that the next one gets."""
        if not self.metallb.is_running:
            self.start_metallb()
        self.metallb.thaw()
        self._leave()
        tenants = [tenant for place in self._places for tenant in place.tenants]
        for tenant in tenants:
            tenant.delete()
        for service in self.kubernetes.request("GET", "/api/v1/services")[1]["items"]:
            if service["spec"].get("type") == "LoadBalancer" or service["metadata"]["namespace"] == "default":
                self._wipe(service)
        for tenant in tenants:
            self.send("DELETE", f"/api/v1/namespaces/{tenant.home}")  # without Cluster API no controller would
            tenant.gone()
        for plural in ("ipaddresspools", "l2advertisements"):
            path = f"{METALLB}/namespaces/{NAMESPACE}/{plural}"
            assert self.kubernetes.request("DELETE", path)[0] == 200

    def _wipe(self, service: Json) -> None:
        meta = service["metadata"]
        if meta["name"] == "kubernetes":
            return
        path = f"/api/v1/namespaces/{meta['namespace']}/services/{meta['name']}"
        if meta.get("finalizers"):
            self.kubernetes.request("PUT", path, {**service, "metadata": {**meta, "finalizers": []}})
        self.kubernetes.request("DELETE", path)


class RealPlace(Place):
    """A place whose one tenant is the Kubernetes with MetalLB."""

    def begin(self, name: str = "web", **spec: Any) -> RealTenant:
        """A tenant that Butler was given the kubeconfig of, recorded from before that moment."""
        assert not self.tenants, "there is one Kubernetes"
        self.cluster(name, **spec)
        tenant = self.tenant(name)
        tenant.until(lambda: tenant.addresses("loadbalancer") or not self.initial, f"{name} has its first addresses")
        tenant.follow()
        self.tenants.append(tenant)
        tenant.be_steward()
        return tenant

    def tenant(self, name: str) -> RealTenant:
        return RealTenant(self, name)

    def comes_to_rest(self, *, quiet: float = QUIET) -> Chronicle:
        """Wait until everything is as it should be at rest, and nothing is written; the record up to then."""
        record, uids = self.elastic.record, [tenant.uid for tenant in self.tenants]
        deadline = time.monotonic() + PATIENCE
        while True:
            self._rest()
            before = record.chronicle(uids)
            time.sleep(quiet)
            after = record.chronicle(uids)
            written = written_since(after, before)
            if not written and not _restless(after):
                return after
            assert time.monotonic() < deadline, f"it never comes to rest: {[violation.what for violation in written]}"

    def _rest(self) -> None:
        record, uids = self.elastic.record, [tenant.uid for tenant in self.tenants]
        look = partial(record.now, uids)
        self.estate.witness.until(lambda: not _restless(look()), partial(self._why_restless, look), PATIENCE)


def _restless(chronicle: Chronicle) -> list[Violation]:
    """What is not as it should be at rest, but for Services that wait for addresses which MetalLB has lost."""
    lost = _lost_by_metallb(chronicle)
    return [violation for violation in at_rest(chronicle) if not (lost and violation.rule == "unserved")]


def _lost_by_metallb(chronicle: Chronicle) -> bool:
    """Whether MetalLB counts all addresses as used though some are free, and quota and pools have no others to give.

    It loses an address when a Service is deleted while it starts: what it had begun to give it stays given.
    """
    (cluster,) = latest(chronicle.management, TENANT)
    standing = Standing(chronicle, cluster)
    pool = standing.metallb.get(DEFAULT_POOL) or {}
    counted = seen_size(pool) == len(standing.published) and pool["status"].get("availableIPv4", 0) == 0
    return counted and (standing.quota_left() <= 0 or not standing.room())


class RealTenant(ElasticTenant):
    """A tenant that is a real Kubernetes with the real MetalLB."""

    @property
    def real(self) -> RealEstate:
        assert isinstance(self.estate, RealEstate)
        return self.estate

    def kubeconfig(self) -> Path:
        return self.real.kubernetes.kubeconfig

    def inside(self) -> ControlPlane:
        return self.real.kubernetes

    def be_steward(self) -> None:
        """What Steward does when a control plane is up."""
        meta = {"name": f"{self.name}-admin-kubeconfig", "labels": COMPONENT}
        data = {"admin.conf": base64.b64encode(self.kubeconfig().read_bytes()).decode()}
        self.real.send("POST", "/api/v1/namespaces", {"metadata": {"name": self.home}})
        self.real.send("POST", f"/api/v1/namespaces/{self.home}/secrets", {"metadata": meta, "data": data})
        # The cluster was usable once: from then on, what is wrong with its load balancers is told.
        reached = {"kubeconfigSecretRef": {"name": meta["name"]}, "controlPlaneEndpoint": self.inside().url}
        self.real.patch(f"{self.path}/status", {"status": reached})

    def add_ingress(self) -> None:
        """Traefik's Service, as its chart makes it."""
        code, answer = self.desk.send("POST", "/api/v1/namespaces", {"metadata": {"name": "traefik"}})
        assert code in (201, 409), answer
        spec = {"type": "LoadBalancer", "selector": {"app": "traefik"}, "ports": [{"port": 443}]}
        body = {"metadata": {"name": "traefik"}, "spec": spec}
        self.send("POST", "/api/v1/namespaces/traefik/services", body)

    # What MetalLB shows.

    def read_pools_at(self) -> str:
        """When MetalLB last read its pools, by its own word."""
        found = self.side.get(STATES, NAMESPACE, "controller") or {}
        conditions = (found.get("status") or {}).get("conditions") or ()
        return next(
            (condition["lastTransitionTime"] for condition in conditions if condition["type"] == "poolReconcilerValid"),
            "",
        )

    def drain_has_begun(self) -> None:
        """Wait until the pool hands out nothing by itself, and MetalLB has taken that in."""
        before = self.read_pools_at()
        self.sees(lambda: not self.hands_out(), "autoAssign is false")
        self.sees(lambda: self.read_pools_at() != before, "MetalLB has read its pools")

    def hands_out(self) -> bool:
        return bool(((self.pool() or {}).get("spec") or {}).get("autoAssign", True))

    def overlap(self, name: str, *addresses: str) -> None:
        """A pool of the tenant's own, as its users may write one."""
        meta = {"name": name, "namespace": NAMESPACE}
        body = {"apiVersion": "metallb.io/v1beta1", "kind": ADDRESS_POOL, "metadata": meta}
        self.send("POST", POOLS, {**body, "spec": {"addresses": list(addresses)}})

    def lift(self, name: str) -> None:
        self.send("DELETE", f"{POOLS}/{name}")

    def keeps_all(self, seconds: float) -> None:
        """Nothing of what it holds goes back, for so long."""
        held = self.addresses("loadbalancer")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            assert self.addresses("loadbalancer") == held, f"something was given back\n{self.story()}"
            time.sleep(0.05)
