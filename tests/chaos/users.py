"""What users do in a storm: they create and delete tenants, Services and requests, and edit what they should not."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import aiohttp

from chaos.platform import HOME, TEAM, Platform, items
from ipam.estate import named
from ipam.oracle import number, text
from ipam.story import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from ipam.history import Json

MOST_TENANTS = 7
REAL = "real"
"""The tenant whose Services the real MetalLB serves."""


class Users(Platform):
    """What they do, one method each."""

    async def _ask(self, what: str, method: str, path: str, body: object = None, kind: str = "application/json") -> int:
        status, _ = await self._send(self.homes, method, path, body, kind)
        self.answers[f"{what} {status}"] += 1
        return status

    async def _merge(self, what: str, path: str, patch: Json) -> int:
        return await self._ask(what, "PATCH", path, patch, "application/merge-patch+json")

    async def create_tenant(self, name: str = "") -> None:
        if len(self._clusters()) >= MOST_TENANTS:
            return
        spec = {
            "kubernetesVersion": "v1.33.2",
            "providerConfigRef": {"name": "lab", "namespace": HOME},
            "workers": {"replicas": self.rng.choice([1, 2, 2])},
        }
        body = named("TenantCluster", {"name": name or f"t{next(self._numbers)}"}, spec)
        await self._ask("create tenant", "POST", self.api.path("tenantclusters"), body)

    async def delete_tenant(self) -> None:
        names = [name for name in self._clusters() if name != REAL]
        if names:
            await self._ask("delete tenant", "DELETE", self.api.path("tenantclusters", self.rng.choice(names)))

    async def scale_tenant(self) -> None:
        if names := list(self._clusters()):
            path = self.api.path("tenantclusters", self.rng.choice(names))
            await self._merge("scale tenant", path, {"spec": {"workers": {"replicas": self.rng.choice([1, 2, 3])}}})

    async def request(self) -> None:
        """A plain request, by hand; sometimes for a range of its own."""
        spec: Json = {
            "poolRef": {"name": "plain"},
            "tenantClusterRef": {"name": "elsewhere", "namespace": TEAM},
            "type": "nodes",
            "count": self.rng.choice([1, 2, 3, 5, 8]),
        }
        if self.rng.random() < 0.2:
            first = number("10.42.0.16") + self.rng.randrange(20)
            spec["pinnedRange"] = {"startAddress": text((first, first)), "endAddress": text((first + 1, first + 1))}
        body = named("IPAllocation", {"name": f"hand-{next(self._numbers)}"}, spec)
        await self._ask("request", "POST", self.homes.path("ipallocations"), body)

    async def release_plain(self) -> None:
        await self._delete_one("plain delete", lambda obj: obj["spec"]["poolRef"]["name"] == "plain")

    async def delete_by_hand(self) -> None:
        """Of a tenant that lives: admission refuses it, or the finalizer holds it while it is used."""
        await self._delete_one("delete by hand", lambda obj: obj["spec"]["poolRef"]["name"] != "plain")

    async def _delete_one(self, what: str, wanted: Callable[[Json], bool]) -> None:
        names = [obj["metadata"]["name"] for obj in self._allocations() if wanted(obj)]
        if names:
            await self._ask(what, "DELETE", self.homes.path("ipallocations", self.rng.choice(names)))

    async def clean_up_by_label(self) -> None:
        """The clean-up command of the manual, for a tenant that may well live."""
        if names := list(self._clusters()):
            selector = f"butler.butlerlabs.dev%2Ftenant%3D{self.rng.choice(names)}"
            path = f"{self.homes.path('ipallocations')}?labelSelector={selector}"
            await self._ask("clean up by label", "DELETE", path)

    async def edit_status(self) -> None:
        """What a person with an editor may try."""
        held = [obj for obj in self._allocations() if (obj.get("status") or {}).get("phase") == "Allocated"]
        gone = [obj for obj in self._allocations() if (obj.get("status") or {}).get("phase") == "Released"]
        edits: list[tuple[list[Json], Json]] = [
            (held, {"phase": "Pending"}),
            (held, {"phase": "Failed"}),
            (gone, {"phase": "Allocated"}),
            (held, {"startAddress": "10.42.0.15"}),
            (held, {"endAddress": "10.40.0.1O"}),
        ]
        among, status = self.rng.choice(edits)
        if among:
            found = self.rng.choice(among)["metadata"]
            path = self.homes.path("ipallocations", found["name"], "status")
            # Only for the version that is wrong to edit so: it may have moved on.
            patch = {"metadata": {"resourceVersion": found["resourceVersion"]}, "status": status}
            if await self._merge("edit status", path, patch) == 200:
                self.violations.append(Violation("status rules", f"{found['name']} was edited to {status}"))

    async def edit_pool(self) -> None:
        """Windows that grow and shrink, blocks that are kept back and given again."""
        name, network = self.rng.choice([("nodes", "10.40.0"), ("balancers", "10.41.0"), ("plain", "10.42.0")])
        spec: Json
        if self.rng.random() < 0.6:
            spec = {"tenantAllocation": {"end": f"{network}.{self.rng.choice([27, 33, 39, 45])}"}}
        else:
            spec = {"reserved": self.rng.choice([[], [{"cidr": f"{network}.{self.rng.choice([20, 24, 28])}/31"}]])}
        await self._merge("edit pool", self.homes.path("networkpools", name), {"spec": spec})

    async def add_service(self) -> None:
        if (found := await self._some_tenant()) is not None:
            session, url = found
            meta = {"name": f"s{next(self._numbers)}"}
            spec = {"type": "LoadBalancer", "ports": [{"port": 80}], "selector": {"app": "x"}}
            body = {"metadata": meta, "spec": spec}
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
                async with session.post(f"{url}/api/v1/namespaces/default/services", json=body) as answer:
                    self.answers[f"add service {answer.status}"] += 1

    async def remove_service(self) -> None:
        if (found := await self._some_tenant()) is None:
            return
        session, url = found
        # AssertionError: the credentials are of a tenant that a restore has taken away.
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError, AssertionError):
            services = [service for service in await items(session, f"{url}/api/v1/namespaces/default/services")
                        if service["spec"].get("type") == "LoadBalancer"]  # fmt: skip
            if services:
                name = self.rng.choice(services)["metadata"]["name"]
                async with session.delete(f"{url}/api/v1/namespaces/default/services/{name}") as answer:
                    self.answers[f"remove service {answer.status}"] += 1
