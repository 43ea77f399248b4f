"""What goes wrong in a storm: processes are killed and frozen, and etcd goes back in time.

Each fault says when controllers could not work because of it: nothing is asked of them then.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from typing import TYPE_CHECKING, Any

from chaos.eras import holdings
from chaos.platform import Platform
from ipam.history import ALLOCATION
from ipam.oracle import text

if TYPE_CHECKING:
    from ipam.processes import ButlerProcess


class Faults(Platform):
    """The faults, one method each."""

    @contextlib.asynccontextmanager
    async def _outage(self, after: float = 6.0) -> Any:
        """`after`: seconds that a replica gets to lead again, which a lease and a start take."""
        since, position = time.monotonic(), len(self._outages)
        self._outages.append((since, math.inf))
        try:
            yield
        finally:
            self._outages[position] = (since, time.monotonic() + after)

    def _chosen(self) -> ButlerProcess:
        return self.rng.choice(self.replicas)

    async def kill_replica(self) -> None:
        async with self._outage():
            replica = self._chosen()
            replica.kill()
            await asyncio.sleep(self.rng.uniform(0, 1))
            self._start_replicas()

    async def kill_both(self) -> None:
        async with self._outage():
            for replica in self.replicas:
                replica.kill()
            await asyncio.sleep(self.rng.uniform(0, 2))
            self._start_replicas()

    async def freeze_replica(self) -> None:
        """Longer than its lease: it wakes in the belief that it still leads."""
        async with self._outage():
            replica = self._chosen()
            replica.freeze()
            await asyncio.sleep(self.rng.uniform(0.5, 6))
            replica.thaw()

    async def toggle_lease(self) -> None:
        """Both work at once, or one at a time."""
        async with self._outage():
            self.lease = not self.lease
            for replica in self.replicas:
                replica.kill()
            self._start_replicas()

    async def toggle_webhooks(self) -> None:
        async with self._outage():
            self.webhooks = not self.webhooks
            for replica in self.replicas:
                replica.kill()
            if not self.webhooks:
                path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
                await self._send(self.homes, "DELETE", path)
            self._start_replicas()

    async def restart_world(self) -> None:
        await asyncio.to_thread(self.world.restart)

    async def kill_metallb(self) -> None:
        if self.metallb is not None and self.metallb.is_running:
            self.metallb.kill()
            await asyncio.sleep(self.rng.uniform(0, 2))
            await self.metallb.start()

    async def kill_apiserver(self) -> None:
        async with self._outage(10):
            broke_at = time.monotonic()
            await asyncio.to_thread(self.server.restart_apiserver)
            await self._new_era("restart", broke_at)

    async def snapshot(self) -> None:
        folder = self._folder / f"snapshot-{next(self._numbers)}"
        await asyncio.to_thread(self.server.snapshot, folder)
        self._snapshots.append(folder)

    async def restore(self) -> None:
        """Etcd goes back; the controllers live on. Sometimes one of them is frozen meanwhile."""
        if not self._snapshots:
            return
        sleeper = self._chosen() if self.rng.random() < 0.5 else None
        async with self._outage(15):
            if sleeper is not None:
                sleeper.freeze()
            broke_at = time.monotonic()
            self._restoring = True  # until it is known what the restore took, nothing can be judged
            await asyncio.to_thread(self.server.restore, self.rng.choice(self._snapshots[-3:]))
            await asyncio.to_thread(self.world.restart)
            await self._hang_up()
            ever = [
                revision.after
                for revision in self.eras.witness.history.revisions
                if revision.kind == ALLOCATION and revision.after
            ]
            before = [held for allocation in ever for held in holdings([allocation]).values()]
            await self._new_era("restore", broke_at)
            self._in_sight.clear()  # what is held now came with the snapshot, or was granted before tenants answered
            self._restored_at = time.monotonic()
            now = holdings(self.eras.witness.state(ALLOCATION).values())
            self._restored = set(now)
            after = {(held.owner, held.span) for held in now.values()}
            for held in before:
                if (held.owner, held.span) not in after:
                    self._note(f"the restore takes {text(held.span)} from {held.name}")
                    self.lost |= {(held.owner, address) for address in range(held.span[0], held.span[1] + 1)}
            self._restoring = False
            if sleeper is not None:
                await asyncio.sleep(self.rng.uniform(0, 4))
                sleeper.thaw()
