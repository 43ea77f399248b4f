"""Elastic tenants as their users have them, and a record of both sides that is judged at the end of each story.

`Elastic` is one management cluster with Butler and the world at work. `Place` is what one test has of it: a provider in
elastic mode, a pool for load balancers alone, so that its arithmetic can be done in one's head, and another for nodes.
`ElasticTenant` is a tenant of it with its Services. Nothing in here knows Butler's code: what a test learns, it learns
from the API servers of both sides.
"""

from __future__ import annotations

import os
import subprocess
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from control_planes import BIN
from elastic import rules
from elastic.chronicle import ADDRESS_POOL, DEFAULT_POOL, SERVICE, is_growth, phase, shown, tenant_of
from elastic.rest import at_rest, written_since
from elastic.telling import insist, line
from ipam import invariants
from ipam.history import ALLOCATION
from ipam.oracle import text
from ipam_operator import Desk
from tenants.estate import HOME, Estate, Site, Tenant, _pool

if TYPE_CHECKING:
    import http.client
    from collections.abc import Callable
    from pathlib import Path

    from control_planes import ControlPlane
    from elastic.butler_process import Butler
    from elastic.record import Record, Side
    from tenants.witness import Json

GRACE, SETTLE = 2.0, 0.2
"""What the controller of these tests was told with --shrink-after and --drain-settle."""
QUIET = 1.0
PATIENCE = 120.0
SILENCE = 2.0
METALLB = "/apis/metallb.io/v1beta1/namespaces/metallb-system"


class FreshDesk(Desk):
    """Calls again after a pause: a server hangs up on those who are silent, which a write cannot tell from a loss."""

    def _line(self) -> http.client.HTTPSConnection:
        line, now = super()._line(), time.monotonic()
        if now - getattr(self._lines, "used", now) > SILENCE:
            line.close()
        self._lines.used = now
        return line


class Elastic(Estate):
    """One management cluster with all processes running, and a record of it."""

    def __init__(
        self, plane: ControlPlane, record: Record, butler: Butler, directory: Path, desk: Desk | None = None
    ) -> None:
        super().__init__(plane, record.management, directory, desk or FreshDesk(plane, HOME))
        self.record = record
        self.butler = butler
        self._places: list[Place] = []
        self._parts: list[Elastic] = []

    def part(self) -> Elastic:
        part = Elastic(self.plane, self.record, self.butler, self.directory, self._desk)
        self._parts.append(part)
        return part

    def close(self) -> None:
        for part in (self, *self._parts):
            part._leave()
        super().close()

    def _leave(self) -> None:
        for place in self._places:
            place.leave()

    def place(self, *, counted: bool = True, **terms: Any) -> Place:
        """A place for elastic tenants, see `Place`, once its pools are counted; without a controller they never are."""
        place = Place(self, **terms)
        self._sites.append(place)
        self._places.append(place)
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": place.namespace}})
        self.apply(*place.describe())
        names = [place.pool, *([place.spare_pool] if place.spare else [])]
        if counted:
            self.until(lambda: all(map(self._is_counted, names)), f"{names} know what they can give")
        return place

    def _is_counted(self, pool: str) -> bool:
        found = self.witness.get("networkpools", HOME, pool) or {}
        return bool((found.get("status") or {}).get("largestFreeBlock"))

    def delete_clusters(self) -> None:
        self._leave()
        super().delete_clusters()

    def timeline(self, *chosen: ElasticTenant) -> list[str]:
        """What happened to the addresses of these tenants, or all of this part, and to their Services, as seen."""
        every = [tenant for place in self._places for tenant in place.tenants]
        tenants = {tenant.uid: tenant for tenant in chosen or every}
        seen = [
            ("", revision)
            for revision in self.record.management.written()
            if revision.kind == ALLOCATION and tenant_of(revision.obj) in tenants
        ]
        for tenant in tenants.values():
            seen += [
                (tenant.name, revision)
                for revision in tenant.side.written()
                if revision.kind in (SERVICE, ADDRESS_POOL)
            ]
        seen.sort(key=lambda pair: pair[1].seconds)
        return [f"{where:>4}{line(revision, seen[0][1].seconds)}" for where, revision in seen]

    def types(self, command: str, kubeconfig: Path | None = None) -> str:
        """What a command prints in a terminal, both streams; it must succeed."""
        paths = {"KUBECONFIG": str(kubeconfig or self.plane.kubeconfig), "PATH": f"{BIN}:{os.environ['PATH']}"}
        result = subprocess.run(
            ["sh", "-c", command],
            env={**os.environ, **paths}, text=True, timeout=60, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert result.returncode == 0, f"{command}\n{result.stdout}"
        return result.stdout

    def sees(self, command: str) -> list[list[str]]:
        """The cells of the table that a command prints."""
        return [line.split() for line in self.types(command).splitlines()]


class Place(Site):
    """A provider with its terms for load balancers, and pools that no other test uses.

    `size` addresses from .16 on in the first pool, `spare` in a second one; `pools` names those that the provider uses,
    in the order of its references, with priorities if given.
    """

    def __init__(
        self,
        estate: Elastic,
        *,
        size: int = 24,
        spare: int = 0,
        mode: str = "elastic",
        initial: int = 2,
        increment: int = 1,
        quota: int | None = None,
    ) -> None:
        super().__init__(estate, "proxmox")
        self.elastic = estate
        self.size, self.spare = size, spare
        self.mode, self.initial, self.increment, self.quota = mode, initial, increment, quota
        self.spare_pool = self.pool.replace("pool", "spare", 1)
        self.spare_network = self.network.replace("10.", "100.", 1)
        self.pools: list[Json] = [{"name": self.pool}]
        self.tenants: list[ElasticTenant] = []
        self.judged: list[ElasticTenant] | None = None
        """Those of the tenants that a verdict is about; None: all."""

    # Describing.

    def describe(self, **_: Any) -> list[Json]:
        spare = [_pool(self.spare_pool, self.spare_network, self.spare)] if self.spare else []
        pools = [self.describe_pool(size=self.size), self.describe_other_pool(size=64), *spare]
        return [self.login(), *pools, self.describe_provider()]

    def describe_provider(self, network: Json | None = None, spec: Json | None = None) -> Json:
        nodes = {"name": self.other_pool, "types": ["nodes"], "gateway": f"{self.other_network}.1"}
        balancers = [{"types": ["loadbalancer"], **pool} for pool in self.pools]
        sizes = {
            "initialPoolSize": self.initial,
            "growthIncrement": self.increment,
            "defaultPoolSize": self.initial or 1,
        }
        terms: Json = {
            "poolRefs": [*balancers, nodes],
            "loadBalancer": {"allocationMode": self.mode, **sizes},
            **({"quotaPerTenant": {"maxLoadBalancerIPs": self.quota}} if self.quota is not None else {}),
        }
        return super().describe_provider({**terms, **(network or {})}, spec)

    def set(self, **terms: Any) -> Json:
        """Change the provider while its tenants live: mode, initial, increment, quota, pools."""
        for name, value in terms.items():
            assert hasattr(self, name), name
            setattr(self, name, value)
        (applied,) = self.estate.apply(self.describe_provider())
        return applied

    def change(self, **terms: Any) -> None:
        """The same, and wait until Butler knows of it."""
        applied = self.set(**terms)

        def noticed() -> bool:
            found = self.estate.witness.get("providerconfigs", HOME, self.provider) or {}
            seen = (found.get("status") or {}).get("observedGeneration", 0)
            return bool(seen >= applied["metadata"]["generation"])

        self.estate.until(noticed, f"Butler has noticed {terms}")  # it hears of Services in another way

    def address(self, last: int) -> str:
        return f"{self.network}.{last}"

    def range(self, first: int, last: int | None = None) -> str:
        """As default-pool has it."""
        return f"{self.network}.{first}-{self.network}.{last or first}"

    # Tenants.

    def tenant(self, name: str) -> ElasticTenant:
        return ElasticTenant(self, name)

    def begin(self, name: str = "web", **spec: Any) -> ElasticTenant:
        """A tenant, recorded from the moment it has an API server."""
        self.cluster(name, **spec)
        return self.followed(name)

    def followed(self, name: str) -> ElasticTenant:
        """A tenant that was asked for, recorded as soon as there is something to record."""
        tenant = self.tenant(name)
        tenant.until(lambda: tenant.status.get("kubeconfigSecretRef"), f"{name} has a kubeconfig")
        tenant.follow()
        self.tenants.append(tenant)
        return tenant

    def started(self, name: str = "web", **spec: Any) -> ElasticTenant:
        tenant = self.begin(name, **spec)
        tenant.ready()
        return tenant

    def leave(self) -> None:
        """Record no more, before the tenants go."""
        for tenant in self.tenants:
            self.elastic.record.leave(tenant.uid)
            tenant.desk.close()

    # Judging.

    def verdict(self, *, quiet: float = QUIET, but: str = "") -> None:
        """Everything is at rest, and over the whole record of both sides no rule was broken, but that one."""
        record, uids = self.elastic.record, self._uids()
        self._rest()
        deadline = time.monotonic() + PATIENCE
        while True:
            before = record.chronicle(uids)
            time.sleep(quiet)
            after = record.chronicle(uids)
            if not (written := written_since(after, before)):
                break
            if time.monotonic() > deadline:
                insist(written, "it never comes to rest: ")
        self._rest()
        insist([violation for violation in rules.check(after) if violation.rule != but], f"{self.namespace}: ")
        history = record.history([self.pool, self.spare_pool, self.other_pool])
        # Ranges of many tenants go back at once, and a controller knows its own writes in the order of their answers:
        # counters may speak of a state that never was, until all answers are there.
        invariants.insist(invariants.check(history, views_in_order=False), history)
        invariants.insist(invariants.at_rest(history), history)

    def _uids(self) -> list[str]:
        return [tenant.uid for tenant in (self.tenants if self.judged is None else self.judged)]

    def _rest(self) -> None:
        record, uids = self.elastic.record, self._uids()
        look = partial(record.now, uids)
        told = partial(self._why_restless, look)
        began = time.monotonic()
        restless: list[str] = []

        def rests() -> bool:
            wrong = [f"{violation.rule}: {violation.what}" for violation in at_rest(look())]
            if wrong and wrong != restless:
                restless[:] = wrong
                print(f"+{time.monotonic() - began:.1f} s not at rest: {'; '.join(wrong)}")
            return not wrong

        self.estate.witness.until(rests, told, PATIENCE)

    def _why_restless(self, look: Callable[[], Any]) -> str:
        wrong = "; ".join(f"{violation.rule}: {violation.what}" for violation in at_rest(look()))
        return "\n".join([f"at rest: {wrong}", *(tenant.story() for tenant in self.tenants)])


class ElasticTenant(Tenant):
    """A tenant cluster with its Services and what MetalLB may announce there."""

    def __init__(self, place: Place, name: str) -> None:
        super().__init__(place, name)
        self.place = place
        self.record = place.elastic.record

    def follow(self) -> None:
        plane = self.inside()
        self.desk = FreshDesk(plane, "default")
        self.side: Side = self.record.tenant(self.uid, plane)

    def send(self, method: str, path: str, body: Json | None = None, kind: str = "application/json") -> Json:
        code, answer = self.desk.send(method, path, body, kind)
        assert code in (200, 201, 202), f"{method} {path}: {answer}"
        return dict(answer)

    def merge(self, path: str, patch: Json) -> Json:
        return self.send("PATCH", path, patch, "application/merge-patch+json")

    # Services.

    def add(
        self,
        *names: str,
        annotations: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
        finalizers: list[str] | None = None,
        port: int = 80,
        **spec: Any,
    ) -> None:
        """Services of type LoadBalancer in namespace default."""
        for name in names:
            meta = {"name": name, "annotations": annotations or {}, "labels": labels or {}}
            wanted = {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"port": port}], **spec}
            body = {"metadata": {**meta, "finalizers": finalizers or []}, "spec": wanted}
            self.send("POST", "/api/v1/namespaces/default/services", body)

    def remove(self, *names: str) -> None:
        for name in names:
            self.send("DELETE", self.service_path(name))

    def service_path(self, name: str) -> str:
        return f"/api/v1/namespaces/default/services/{name}"

    def service(self, name: str, namespace: str = "default") -> Json:
        return self.side.get("services", namespace, name) or {}

    def address(self, name: str, namespace: str = "default") -> str:
        """What a Service shows; empty while it has nothing."""
        found = self.service(name, namespace)
        return ",".join(text((number, number)) for number in sorted(shown(found))) if found else ""

    def gets(self, *names: str, namespace: str = "default") -> list[str]:
        """Wait until these Services have addresses; the addresses, each a different one."""
        self.sees(lambda: all(self.address(name, namespace) for name in names), f"{names} have addresses")
        found = [self.address(name, namespace) for name in names]
        assert len(set(found)) == len(found), found
        return found

    def sees(self, look: Callable[[], Any], what: str) -> Any:
        """Wait for something on the tenant, or on both sides."""
        return self.side.until(look, lambda: f"{what}\n{self.story()}", PATIENCE)

    def stays(self, look: Callable[[], Any], what: str, seconds: float = 3 * GRACE) -> None:
        """It is so, and remains so for some grace times."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            assert look(), f"{what}\n{self.story()}"
            time.sleep(0.1)

    def story(self) -> str:
        said = [super().story(), f"  loadBalancers {self.status.get('loadBalancers')}"]
        if hasattr(self, "side"):
            services = {f"{where}/{name}": self.address(name, where) for where, name in self._balancers()}
            said.append(f"  default-pool {(self.pool() or {}).get('spec')}, Services {services}")
        return "\n".join(said)

    def names(self) -> list[str]:
        """Its load balancers in namespace default."""
        return [name for namespace, name in self._balancers() if namespace == "default"]

    def _balancers(self) -> list[tuple[str, str]]:
        found = [obj for obj in self.side.list("services") if obj["spec"].get("type") == "LoadBalancer"]
        return [(obj["metadata"]["namespace"], obj["metadata"]["name"]) for obj in found]

    # MetalLB.

    def pool(self) -> Json | None:
        return self.side.get("ipaddresspools", *DEFAULT_POOL)

    def published(self) -> list[str]:
        """The entries of default-pool; nothing where there is none."""
        return list(((self.pool() or {}).get("spec") or {}).get("addresses") or ())

    def publishes(self, *entries: str) -> None:
        self.sees(lambda: self.published() == list(entries), f"default-pool has {entries}")

    def edit_pool(self, spec: Json) -> None:
        """As a user of the tenant does it."""
        path = f"{METALLB}/ipaddresspools/default-pool"
        written = self.send(
            "PATCH", f"{path}?fieldManager=kubectl-edit", {"spec": spec}, "application/merge-patch+json"
        )
        self.record.edited(self.uid, int(written["metadata"]["resourceVersion"]))

    def delete_pool(self) -> None:
        self.send("DELETE", f"{METALLB}/ipaddresspools/default-pool")

        def gone() -> list[int]:
            found = [
                revision for revision in self.side.written() if revision.key == DEFAULT_POOL and revision.after is None
            ]
            return [revision.version for revision in found]

        for version in self.sees(gone, "the pool was deleted"):
            self.record.edited(self.uid, version)

    # Addresses.

    def growths(self) -> list[Json]:
        """Growth allocations that hold addresses or wait for them."""
        return [allocation for allocation in self.allocations("loadbalancer") if is_growth(allocation)]

    def grown(self) -> dict[str, int]:
        """All growth allocations that were ever made for it, with their counts."""
        made = [revision.obj for revision in self.record.management.written() if revision.kind == ALLOCATION]
        mine = [obj for obj in made if tenant_of(obj) == self.uid and is_growth(obj)]
        return {obj["metadata"]["uid"]: obj["spec"]["count"] for obj in mine}

    def shrinks_to(self, addresses: int) -> None:
        def look() -> bool:
            return len(self.addresses("loadbalancer")) == addresses and len(self.growths()) == len(
                [growth for growth in self.growths() if phase(growth) == "Allocated"]
            )

        self.until(look, f"{self.name} holds {addresses} addresses")

    def use(self) -> Json:
        return dict(self.status.get("loadBalancers") or {})
