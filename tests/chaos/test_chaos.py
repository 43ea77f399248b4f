"""An hour of seeded chaos on a real Kubernetes: `make test-chaos` (CHAOS_MINUTES=20 for each of three seeds).

BUTLER_SEED=7 plays one seed. What was played and measured is printed; a broken rule fails the test with its story.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from run_kubernetes import Kubernetes, find_binaries

from chaos.storm import Storm
from control_planes import ControlPlane
from ipam.processes import Nursery
from tenants.management import install_cluster_api

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MINUTES = float(os.environ.get("CHAOS_MINUTES", "20"))
ROUND_SECONDS = 100.0
SEEDS = [int(os.environ["BUTLER_SEED"])] if os.environ.get("BUTLER_SEED") else [1, 2, 3]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Kubernetes]:
    with Kubernetes(tmp_path / "server", find_binaries()) as started:
        yield started


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as started:
        yield started


@pytest.mark.slow
@pytest.mark.real_metallb
@pytest.mark.timeout(MINUTES * 60 * 3 + 900)
@pytest.mark.parametrize("seed", SEEDS)
async def test_no_promise_breaks_in_a_storm(
    server: Kubernetes, nursery: Nursery, tmp_path: Path, seed: int, request: pytest.FixtureRequest
) -> None:
    plane = ControlPlane.from_kubeconfig("kubernetes", server.kubeconfig, tmp_path / "client")
    crds = str(request.config.rootpath / "charts/butler/crds")
    plane.kubectl("apply", "--server-side", "-f", crds)
    plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", crds)
    install_cluster_api(plane)
    until = time.monotonic() + MINUTES * 60
    async with Storm(server, plane, nursery, tmp_path, seed) as storm:
        await storm.serve_really()
        while time.monotonic() < until:
            await storm.rage(min(ROUND_SECONDS, until - time.monotonic()))
            await storm.calm()
            print(storm.report(), flush=True)
            broken = storm.broken()
            assert not broken, f"seed {seed}: {len(broken)} broken rules; the first:\n\n" + "\n\n".join(
                violation.told() for violation in broken[:8]
            )
