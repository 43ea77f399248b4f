"""A small estate to break things on: a namespace, pools, requests, tenants, controllers, and a witness of it all.

Everything a test does as a user goes straight to the server with plain JSON; controllers are real processes, each
with its own line to the server, which a test may disturb. `settle` waits until nothing is left to do and nothing is
written any more; `verdict` reads the witness's record to its end and holds it against the rules.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from fault_proxy import FaultProxy
from ipam import oracle, story
from ipam.history import ALLOCATION, GROUP, POOL, Json, Witness
from ipam.invariants import ALLOCATION_FINALIZER, at_rest, check, claims_its_network, insist
from ipam.processes import ButlerProcess, Nursery, kubeconfig_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from control_planes import ControlPlane

PATIENCE = 90.0
QUIET_SECONDS = 1.0
QUICK = ("--sweep-every", "0.3", "--sighting-gap", "0.5")
POOLS, ALLOCATIONS, TENANTS = "networkpools", "ipallocations", "tenantclusters"


@dataclass(frozen=True)
class Scale:
    """How much of a scenario to play, and which one: the seed decides everything that is left to chance."""

    seed: int
    big: bool = False

    def __str__(self) -> str:
        return f"{'long' if self.big else 'short'}-{self.seed}"

    def of(self, short: int, long: int) -> int:
        return long if self.big else short


def scales(short: int = 1, long: int = 3) -> pytest.MarkDecorator:
    """Parametrize a scenario: everyday in its short form, and long under its own make target. BUTLER_SEED replays."""
    given = os.environ.get("BUTLER_SEED")
    chosen = [int(given)] if given else None
    brief = [Scale(seed) for seed in chosen or range(1, 1 + short)]
    lengthy = [pytest.param(Scale(seed, big=True), marks=pytest.mark.slow) for seed in chosen or range(1, 1 + long)]
    return pytest.mark.parametrize("scale", [*brief, *lengthy], ids=str)


class Api:
    """The server as users have it: JSON in, JSON out."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace

    async def __aenter__(self) -> Api:
        connector = aiohttp.TCPConnector(limit=32, ssl=self.plane.tls)
        self._session = aiohttp.ClientSession(
            self.plane.url, connector=connector, headers=dict(self.plane.headers), timeout=aiohttp.ClientTimeout(60)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()
        await asyncio.sleep(0.02)  # for the transports to notice

    def path(self, plural: str, name: str = "", subresource: str = "") -> str:
        parts = (GROUP, "namespaces", self.namespace, plural, name, subresource)
        return "/".join(part for part in parts if part)

    async def send(
        self, method: str, path: str, body: object = None, kind: str = "application/json"
    ) -> tuple[int, Json]:
        headers = {"Content-Type": kind} if body is not None else {}
        async with self._session.request(method, path, json=body, headers=headers) as answer:
            return answer.status, await answer.json()

    async def create(self, plural: str, obj: Json) -> Json:
        status, answer = await self.send("POST", self.path(plural) + "?fieldManager=test", obj)
        assert status == 201, answer
        return answer

    async def patch(self, plural: str, name: str, patch: Json) -> Json:
        path = self.path(plural, name) + "?fieldManager=test"
        status, answer = await self.send("PATCH", path, patch, "application/merge-patch+json")
        assert status == 200, answer
        return answer

    async def delete(self, plural: str, name: str) -> None:
        status, answer = await self.send("DELETE", self.path(plural, name))
        assert status in (200, 202, 404), answer

    async def get(self, plural: str, name: str) -> Json | None:
        status, answer = await self.send("GET", self.path(plural, name))
        return answer if status == 200 else None

    async def items(self, plural: str) -> list[Json]:
        status, answer = await self.send("GET", self.path(plural))
        assert status == 200, answer
        return list(answer["items"])


class Estate:
    """One scenario's world. Use as an async context manager."""

    def __init__(self, plane: ControlPlane, nursery: Nursery, folder: Path, scale: Scale) -> None:
        self.plane = plane
        self.scale = scale
        self.rng = random.Random(scale.seed)
        self.namespace = plane.fresh_namespace("ipam")
        self.api = Api(plane, self.namespace)
        self.processes: list[ButlerProcess] = []
        self.lines: dict[str, FaultProxy] = {}
        self._nursery = nursery
        self._folder = folder
        self._witness = self._new_witness()
        self._ends = AsyncExitStack()

    def _new_witness(self) -> Witness:
        return Witness(
            self.plane.url,
            self.plane.tls,
            self.plane.headers,
            namespace=self.namespace,
            home_namespace=self.namespace,
        )

    async def __aenter__(self) -> Estate:
        print(f"replay with BUTLER_SEED={self.scale.seed} (namespace {self.namespace} on {self.plane.name})")
        async with AsyncExitStack() as begun:
            await begun.enter_async_context(self.api)
            await begun.enter_async_context(self._witness.watching())
            self._ends = begun.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            print(f"--- {process.name}, {process.lives} lives, the end of its log:\n{process.tail()}")
        await self._ends.aclose()

    # Controllers.

    async def line(self, name: str) -> FaultProxy:
        """A line to the server that can be disturbed."""
        proxy = FaultProxy(self.plane.url, self.plane.tls, self.plane.headers)
        self.lines[name] = await self._ends.enter_async_context(proxy)
        return proxy

    async def butler(
        self, name: str, *options: str, lease: bool = False, exec_: bool = False, start: bool = True
    ) -> ButlerProcess:
        """A controller process on a line of its own (`self.lines[name]`), undisturbed until told otherwise."""
        line = self.lines.get(name) or await self.line(name)
        kubeconfig = kubeconfig_for(line.url, self._folder / f"{name}.kubeconfig")
        scope = ("--namespace", self.namespace, "--home-namespace", self.namespace)
        wanted = [*scope, *(() if lease else ("--no-lease",)), *QUICK, *options]
        process = ButlerProcess(self._nursery, name, kubeconfig, self._folder / f"{name}.log", wanted, exec_=exec_)
        self.processes.append(process)
        if start:
            process.start()
        return process

    # What users do.

    async def pool(self, name: str = "pool", cidr: str = "10.40.0.0/24", **spec: Any) -> Json:
        meta = {"name": name, "namespace": self.namespace}
        return await self.api.create(POOLS, named("NetworkPool", meta, {"cidr": cidr, **spec}))

    async def request(
        self,
        name: str,
        count: int | None = None,
        *,
        pool: str = "pool",
        tenant: str = "no-tenant",
        pinned: tuple[str, str] | None = None,
        born_with_finalizer: bool | None = None,
    ) -> Json:
        """Ask for addresses; as Butler creates requests or as a person does, by chance where it is not said."""
        butlers = self.rng.random() < 0.5 if born_with_finalizer is None else born_with_finalizer
        meta = {"name": name, "namespace": self.namespace} | ({"finalizers": [ALLOCATION_FINALIZER]} if butlers else {})
        spec: Json = {
            "poolRef": {"name": pool},
            "tenantClusterRef": {"name": tenant, "namespace": self.namespace},
            "type": self.rng.choice(["nodes", "loadbalancer"]),
        }
        if count is not None:
            spec["count"] = count
        if pinned is not None:
            spec["pinnedRange"] = {"startAddress": pinned[0], "endAddress": pinned[1]}
        return await self.api.create(ALLOCATIONS, named("IPAllocation", meta, spec))

    async def tenant(self, name: str) -> Json:
        spec = {
            "kubernetesVersion": "v1.33.2",
            "providerConfigRef": {"name": "lab"},
            "teamRef": {"name": "team"},
            "workers": {
                "replicas": 1,
                "machineTemplate": {
                    "cpu": 2, "memory": "4Gi", "os": {"type": "talos", "talos": {"version": "v1.9.3"}},
                },
            },
        }  # fmt: skip
        return await self.api.create(TENANTS, named("TenantCluster", {"name": name, "namespace": self.namespace}, spec))

    # What can be seen.

    @property
    def allocations(self) -> dict[str, Json]:
        """By name, as the witness last saw them."""
        return {key[1]: obj for key, obj in self._witness.state(ALLOCATION).items()}

    def phases(self) -> dict[str, str]:
        return {name: (obj.get("status") or {}).get("phase", "Pending") for name, obj in self.allocations.items()}

    def pool_status(self, name: str = "pool") -> Json:
        return self._witness.state(POOL).get((self.namespace, name), {}).get("status") or {}

    def pool_exists(self, name: str) -> bool:
        return (self.namespace, name) in self._witness.state(POOL)

    def reason(self, name: str) -> str:
        """The reason in an allocation's Ready condition."""
        conditions = (self.allocations[name].get("status") or {}).get("conditions") or ()
        return next((str(condition["reason"]) for condition in conditions if condition["type"] == "Ready"), "")

    async def until(
        self, condition: Callable[[], bool], what: str | Callable[[], str], seconds: float = PATIENCE
    ) -> None:
        """Wait for a state that the witness sees; fails when it does not come, or a controller went by itself."""
        deadline = time.monotonic() + seconds
        while not await self._witness.until(condition, min(2.0, seconds)):
            for process in self.processes:
                process.insist_alive()
            if time.monotonic() > deadline:
                said = what if isinstance(what, str) else what()
                # What went wrong before says more than what did not come about after.
                insist(check(self._witness.history), self._witness.history, f"seed {self.scale.seed}, no {said}: ")
                pytest.fail(f"seed {self.scale.seed}: not within {seconds} s: {said}\n{self.latest()}")

    def latest(self, count: int = 15) -> str:
        """The last revisions, for a failure that is about what did not happen, or happened on and on."""
        began = min((r.seconds for r in self._witness.history.revisions), default=0.0)
        return "\n".join(story.line(r, began) for r in self._witness.history.revisions[-count:])

    def why_unsettled(self, *, tidy: bool = False) -> str:
        """What the controllers still have to do; empty when nothing.

        Intents that were carried out stay for a while, as their removal is no hurry: `tidy` waits for that too.
        """
        for key, pool in self._witness.state(POOL).items():
            status = pool.get("status") or {}
            if pool["metadata"].get("deletionTimestamp"):
                return f"pool {key[1]} has to go"
            if status.get("observedGeneration") != pool["metadata"]["generation"]:
                return f"pool {key[1]} has not been looked at since its last edit"
            if status.get("intents") and tidy:
                return f"pool {key[1]} has intents"
        held = [_span(a) for a in self.allocations.values() if (a.get("status") or {}).get("phase") == "Allocated"]
        for name, allocation in self.allocations.items():
            meta, phase = allocation["metadata"], (allocation.get("status") or {}).get("phase", "Pending")
            if meta.get("deletionTimestamp"):
                return f"{name} has to go"
            if ALLOCATION_FINALIZER not in (meta.get("finalizers") or ()) and phase != "Released":
                return f"{name} has no finalizer"
            if phase == "Pending":
                return f"{name} has not been answered"
            wanted = self._witness.state(POOL).get((self.namespace, allocation["spec"]["poolRef"]["name"]))
            if phase != "Failed" or wanted is None or not claims_its_network(wanted):
                continue
            rules = oracle.rules_of_pool(wanted)
            if rules is not None and oracle.would_fit(rules, held, allocation):
                return f"{name} would fit"
        return ""

    async def settle(self, *, tidy: bool | None = None, quiet: float | None = None) -> None:
        """Until nothing is left to do, and then (L3) nothing is written for a while; longer in long form."""
        tidy = self.scale.big if tidy is None else tidy
        quiet = (QUIET_SECONDS * self.scale.of(1, 5)) if quiet is None else quiet

        def why_not() -> str:
            return self.why_unsettled(tidy=tidy)

        await self.until(lambda: not why_not(), why_not)
        deadline = time.monotonic() + PATIENCE + quiet
        while (still := quiet - (time.monotonic() - self._witness.last_change)) > 0 or why_not():
            if time.monotonic() > deadline:
                pytest.fail(f"L3, seed {self.scale.seed}: it never comes to rest, the last writes:\n{self.latest()}")
            await asyncio.sleep(max(still, 0.05))

    async def verdict(
        self, orphans: Iterable[str] = (), *, views_in_order: bool = True, broken_by_hand: str = ""
    ) -> None:
        """All rules, over everything that happened, but for one that the test itself broke."""
        history = await self._witness.finish()
        context = f"seed {self.scale.seed} on {self.plane.name}: "
        found = check(history, views_in_order=views_in_order)
        insist([violation for violation in found if violation.rule != broken_by_hand], history, context)
        insist(at_rest(history, orphans), history, context)

    def granted(self) -> int:
        """How many grants the record shows, so that a scenario can tell that it proved something."""
        return sum(
            (r.after or {}).get("status", {}).get("phase") == "Allocated"
            and (r.before or {}).get("status", {}).get("phase") != "Allocated"
            for r in self._witness.history.revisions
            if r.kind == ALLOCATION
        )


def named(kind: str, meta: Json, spec: Json) -> Json:
    return {"apiVersion": "butler.butlerlabs.dev/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}


def _span(allocation: Json) -> oracle.Span:
    status = allocation["status"]
    return oracle.number(status["startAddress"]), oracle.number(status["endAddress"])


def folder_name(node_name: str) -> str:
    return re.sub(r"\W+", "-", node_name)[:60]
