"""What the console is tried on: Butler on one machine with the eight tenants of the example, and the ways into it.

Nothing here knows of browsers. `link` is the real command; `session_of` logs a user in with the server's own code.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from butler.kube import config
from butler.kube.client import Client
from butler.server.access.links import ADDRESS
from butler.server.access.sessions import Identity, Lifetime, Sessions
from butler.server.access.store import open_store
from control_planes import BIN
from server.objects import GROUP, HOME
from server.sealed import RECORDS

if TYPE_CHECKING:
    from control_planes import ControlPlane
    from local_server import LocalServer

EXAMPLES = Path(__file__).parents[2] / "examples" / "eight-tenants"
TEAM = "team-platform"
PATIENCE = 90.0


@dataclass
class Estate:
    """A server with eight tenants."""

    server: LocalServer

    @property
    def plane(self) -> ControlPlane:
        return self.server.plane

    @property
    def url(self) -> str:
        """Where the console is, as the server published it."""
        status, found = self.plane.request("GET", f"/api/v1/namespaces/{RECORDS}/configmaps/{ADDRESS}")
        assert status == 200, found
        return str(found["data"]["url"])

    def fill(self) -> None:
        """Make the eight tenants as the README says, and wait until all are ready."""
        self.plane.kubectl("apply", "-f", str(EXAMPLES))
        ready = ("--for", "condition=Ready", "--timeout", f"{PATIENCE:.0f}s")
        self.plane.kubectl("wait", "tenantcluster", "--all", "-n", TEAM, *ready)

    def link(self) -> str:
        """A link that opens the console once, of `butleradm server link`; waits until the console is there."""
        environment = {**os.environ, "KUBECONFIG": str(self.plane.kubeconfig)}
        until = time.monotonic() + PATIENCE
        while True:
            done = subprocess.run(
                [BIN / "butleradm", "server", "link"], env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode == 0:
                return done.stdout.strip()
            assert time.monotonic() < until, done.stderr
            time.sleep(0.2)

    def start_again(self) -> None:
        """After a kill: on the ports of before; returns when the console answers."""
        self.server.start()
        self.link()

    async def session_of(self, user: str, *groups: str) -> str:
        """Log in a user who has no more rights than Kubernetes gives them; the value of their cookie."""
        async with Client(config.load(self.plane.kubeconfig)) as client:
            store = await open_store(client, RECORDS)
            sessions = Sessions(store, lifetime=Lifetime(), now=lambda: datetime.now(UTC))
            token, _ = await sessions.begin(Identity(user, groups, "link"), "tests")
            return token

    def patch(self, plural: str, name: str, change: dict[str, Any], *, namespace: str = HOME) -> None:
        """Change one of Butler's objects with kubectl, as a user at a terminal does."""
        merge = ("--type", "merge", "-p", json.dumps(change))
        self.plane.kubectl("patch", f"{plural}.{GROUP.split('/', maxsplit=1)[0]}", name, "-n", namespace, *merge)

    def get(self, plural: str, name: str, *, namespace: str = HOME) -> Any:
        status, found = self.plane.request("GET", f"/apis/{GROUP}/namespaces/{namespace}/{plural}/{name}")
        assert status == 200, found
        return found
