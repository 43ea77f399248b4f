"""A platform in a storm: users, faults and a checker, on a real Kubernetes whose etcd may go back in time.

Two replicas of the controller, the world of stand-ins, the real MetalLB on one tenant, and a management cluster that is
killed and restored under them. A round is a storm of so many seconds, then calm: faults end, all processes run, and
when nothing moves any more the rules of rest are asked. All chance comes from the seed, so a seed replays the plan;
what happens between the steps is up to the machine.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

import aiohttp

from chaos.eras import holdings
from chaos.faults import Faults
from chaos.judge import Look, granted_in_sight, rest, sampled, still_lost
from chaos.platform import items
from chaos.users import REAL, Users
from ipam.history import POOL
from ipam.story import Violation
from metallb_controller import MetallbController
from tenants.rules import MACHINE, Tenant, home_of, tenant_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ipam.history import Json

SETTLE_SECONDS = 240.0
QUIET_SECONDS = 12.0
"""Longer than a replica takes to start and to lead on a busy machine: until then nothing moves either."""
PUT_RIGHT_SECONDS = 10.0
"""After a restore, for what `--check-tenants-every` finds, with a start of the world in between."""
TENANT_UID = "butler.butlerlabs.dev/tenant-uid"
NO_METALLB = "MetalLB is not installed"
"""Said rightly of a tenant that a restore brought back after its control plane was gone: its addons are on record as
installed, and the stand-in that installs them believes the record."""
LEFT_OUT = os.environ.get("CHAOS_WITHOUT", "").split(",")
"""Steps that are not played, by name, to find out which one a fault needs."""
OUR_METALLB = {"metadata": {"annotations": {"local.butlerlabs.dev/served-by": "another"}}}
"""Tells the world to leave the Services of a tenant to another MetalLB."""


class Storm(Users, Faults):
    """One seeded run. Use as an async context manager."""

    async def serve_really(self) -> None:
        """Let the real MetalLB serve one tenant, in place of its stand-in."""
        await self.create_tenant(REAL)
        deadline = time.monotonic() + 120
        while not (cluster := self._clusters().get(REAL)) or (cluster.get("status") or {}).get("phase") != "Ready":
            assert time.monotonic() < deadline, f"tenant {REAL} is not Ready: {cluster}"
            await asyncio.sleep(0.2)
        await self._insist_patch(self.api.path("tenantaddons", f"{REAL}-metallb"), OUR_METALLB)
        found = await self._inside(cluster)
        assert found is not None
        kubeconfig = self._folder / f"{home_of(REAL, cluster['metadata']['uid'])}.kubeconfig"
        self.metallb = MetallbController(kubeconfig, self._folder)
        await self.metallb.__aenter__()

    async def _insist_patch(self, path: str, patch: Json) -> None:
        status, answer = await self.api.send("PATCH", path, patch, "application/merge-patch+json")
        assert status == 200, answer

    async def _look(self, cluster: Json) -> Look | None:
        try:
            found = await self._inside(cluster)
            if found is None:
                return None
            session, url = found
            services = await items(session, f"{url}/api/v1/services")
            pools = await items(session, f"{url}/apis/metallb.io/v1beta1/namespaces/metallb-system/ipaddresspools")
        except (aiohttp.ClientError, TimeoutError, OSError, AssertionError, ValueError):
            return None
        seen = tenant_of("", (), [pool for pool in pools if pool["metadata"]["name"] == "default-pool"], ())
        shown = {service["metadata"]["name"]: tenant_of("", (), (), [service]).balancers for service in services}
        return Look(cluster["metadata"]["uid"], cluster["metadata"]["name"], shown, seen.announced)

    async def sample(self) -> None:
        """One look at all tenants between two consistent lists of the allocations."""
        era, restored = self.eras.count, set(self.lost)
        one, before = await self._send(self.homes, "GET", self.homes.path("ipallocations"))
        found = await asyncio.gather(*(self._look(cluster) for cluster in self._clusters().values()))
        two, after = await self._send(self.homes, "GET", self.homes.path("ipallocations"))
        if one != 200 or two != 200 or self._restoring or self.eras.count != era or restored != self.lost:
            return
        looks = [look for look in found if look is not None]
        self.shown |= {
            (look.name, address) for look in looks for addresses in look.shown.values() for address in addresses
        }
        self.done["looks at a tenant"] += len(looks)
        held = holdings(before["items"]), holdings(after["items"])
        in_sight = self._in_sight | granted_in_sight(self.eras.witness.history, self._outages)
        wrong = list(sampled(looks, *held, self.lost, in_sight))
        from_snapshot = {uid: found for uid, found in held[0].items() if uid in self._restored}
        known = list(sampled(looks, from_snapshot, held[1], ()))
        for violation in sampled(looks, *held, ()):
            if violation.rule == "S4" and violation not in wrong:
                why = "the snapshot says so" if violation in known else "granted before the Service could be seen"
                self.done[f"S4 excused, {why}"] += 1
                self._note(f"excused, {why}: {violation.told()}")
        # What was published while etcd went back is put right when the tenant is next compared with its allocations.
        recent = time.monotonic() - self._restored_at < PUT_RIGHT_SECONDS
        for violation in [violation for violation in wrong if not (recent and violation.rule == "S5")][:5]:
            self._note(f"BROKEN {violation.told()}")
            self.violations.append(violation)

    # The storm.

    def _steps(self) -> list[tuple[float, Callable[[], Awaitable[None]]]]:
        return [
            *((6, self.create_tenant), (2, self.delete_tenant), (2, self.scale_tenant)),
            *((10, self.add_service), (8, self.remove_service)),
            *((8, self.request), (6, self.release_plain)),
            *((3, self.delete_by_hand), (1, self.clean_up_by_label), (3, self.edit_status), (2, self.edit_pool)),
            *((2, self.kill_replica), (0.7, self.kill_both), (1, self.freeze_replica), (0.5, self.restart_world)),
            *((0.7, self.kill_metallb), (0.4, self.kill_apiserver), (1, self.snapshot), (1.2, self.restore)),
            *((0.3, self.toggle_webhooks), (0.3, self.toggle_lease)),
        ]

    async def rage(self, seconds: float) -> None:
        """Users and faults, by chance."""
        steps = [(weight, step) for weight, step in self._steps() if step.__name__ not in LEFT_OUT]
        until = time.monotonic() + seconds
        sampling = asyncio.create_task(self._keep_sampling())
        try:
            while time.monotonic() < until:
                ((_, step),) = self.rng.choices(steps, [weight for weight, _ in steps])
                self.done[step.__name__] += 1
                self._note(step.__name__)
                await step()
                for replica in self.replicas:
                    replica.insist_alive()
                await asyncio.sleep(self.rng.uniform(0.02, 0.5))
        finally:
            sampling.cancel()
            await asyncio.gather(sampling, return_exceptions=True)

    async def _keep_sampling(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            await self.sample()

    async def calm(self) -> None:
        """All processes run until nothing changes any more; then check the rules of rest."""
        self._note("calm")
        if self.metallb is not None and not self.metallb.is_running:
            await self.metallb.start()
        self._start_replicas()
        await self._until_settled()
        self._note("settled")
        self.lost = still_lost(self.lost, [cluster["metadata"]["uid"] for cluster in self._clusters().values()])
        await asyncio.sleep(3)
        await self.sample()
        history = await self.eras.finish()
        tenants, services = [], {}
        for cluster in self._clusters().values():
            if (cluster.get("status") or {}).get("phase") == "Ready":
                home = home_of(cluster["metadata"]["name"], cluster["metadata"]["uid"])
                inside = await self._read_inside(cluster)
                tenants.append(Tenant(*tenant_of(home, *inside)))
                services[home] = inside[2]
        self.violations += list(rest(history, tenants, services, self.shown))
        self.done["rests"] += 1
        await self._new_era("rest")

    async def _read_inside(self, cluster: Json) -> list[list[Json]]:
        """What a tenant at rest says of itself; its credentials may have changed with a restore."""
        deadline = time.monotonic() + 30
        while True:
            try:
                found = await self._inside(cluster)
                assert found is not None, f"{cluster['metadata']['name']} is Ready and has no kubeconfig"
                session, url = found
                return [await items(session, url + path) for path in _INSIDE]
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
                await self._hang_up()
                await asyncio.sleep(1)

    async def _until_settled(self) -> None:
        deadline = time.monotonic() + SETTLE_SECONDS
        while (why := self._why_unsettled()) or time.monotonic() - self.eras.witness.last_change < QUIET_SECONDS:
            if time.monotonic() > deadline:
                latest = self.eras.witness.history.revisions[-5:]
                told = [f"{revision.kind} {revision.name} by {revision.writer}" for revision in latest]
                rule = "L1" if why else "L3"
                self.violations.append(Violation(rule, f"not at rest after {SETTLE_SECONDS:.0f} s: {why} {told}"))
                return
            await asyncio.sleep(0.2)

    def _why_unsettled(self) -> str:
        for name, cluster in self._clusters().items():
            status = cluster.get("status") or {}
            if cluster["metadata"].get("deletionTimestamp"):
                return f"tenant {name} has to go: {status.get('deletion')}"
            network = next((c for c in status.get("conditions") or () if c["type"] == "NetworkReady"), {})
            if self._restored_at and NO_METALLB in _unready(status):
                continue
            if status.get("phase") != "Ready" and network.get("status") != "False":
                return f"tenant {name} is {status.get('phase')}: {_unready(status)}"
            if status.get("phase") != "Ready" and self._holds_half(cluster):
                return f"tenant {name} holds one of its blocks"
        for (_, name), pool in self.eras.witness.state(POOL).items():
            if (pool.get("status") or {}).get("intents"):
                return f"pool {name} has intents"
        for allocation in self._allocations():
            if (allocation.get("status") or {}).get("phase", "Pending") == "Pending":
                return f"{allocation['metadata']['name']} is not answered"
        return ""

    def _holds_half(self, cluster: Json) -> bool:
        """Whether a tenant without machines holds addresses of one kind: it gives them back after some seconds."""
        uid, home = cluster["metadata"]["uid"], home_of(cluster["metadata"]["name"], cluster["metadata"]["uid"])
        if any(namespace == home for namespace, _ in self.eras.witness.state(MACHINE)):
            return False
        live = [obj for obj in self._allocations() if (obj.get("status") or {}).get("phase") == "Allocated"]
        mine = [obj for obj in live if (obj["metadata"].get("labels") or {}).get(TENANT_UID) == uid]
        return len({obj["spec"]["type"] for obj in mine}) == 1

    def report(self) -> str:
        """What was played, and what came of it."""
        played = ", ".join(f"{name} {count}" for name, count in sorted(self.done.items()))
        answered = ", ".join(f"{name}: {count}" for name, count in sorted(self.answers.items()))
        lines = [
            f"seed {self.seed}: {self.eras.count} eras, {self.eras.revisions} revisions judged",
            f"  played: {played}",
            f"  answers: {answered}",
            f"  L1 under faults: {self.patience.told()}",
        ]
        return "\n".join(lines)

    def broken(self) -> list[Violation]:
        return [*self.eras.violations, *self.violations, *self.patience.violations]


def _unready(status: Json) -> str:
    unmet = [c for c in status.get("conditions") or () if c["status"] != "True"]
    return "; ".join(f"{c['type']}: {c['message']}" for c in unmet)[:500]


_INSIDE = (
    "/api/v1/nodes",
    "/apis/metallb.io/v1beta1/namespaces/metallb-system/ipaddresspools",
    "/api/v1/services",
)
