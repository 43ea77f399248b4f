"""The commands of the pages, typed in their order on a fresh embedded control plane with the world around it.

What a page shows is what must come out, but for ages, ports, random names and where lines are folded; and, where many
clusters ask at the same time, for which of them gets which address. The examples are applied whole.

Secrets of providers are not typed: a ProviderConfig that finds one asks the provider, and no test may call a cloud.
That they hold what Butler reads is shown in tests/unit/test_documentation.py.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from butler.processes.local import DEMO_GRACE_SECONDS
from butler.processes.local_welcome import ConsoleAddress, WelcomeFacts, welcome
from control_planes import BIN
from local_server import LocalServer
from pages import ROOT, steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from butler.local.control_plane import ControlPlane

PAGES = (
    "README.md",
    "docs/addresses.md",
    "docs/console.md",
    "docs/load-balancers.md",
    "docs/local.md",
    "docs/monitoring.md",
    "docs/providers.md",
    "docs/tenants.md",
)
STARTED_WITH = {"docs/load-balancers.md": ("--shrink-after", "10")}
NOT_TYPED = (
    # what the fixture stands for
    "make run",
    "butleradm local up",
    "butleradm local world",
    "butleradm controller run",
    # what would be shown to a cloud
    "kubectl create secret",
)
VARIES = (
    (r"\b(\d+m)?\d+s$", "AGE"),
    (r"127\.0\.0\.1:\d+", "SERVER"),
    (r"-workers-[a-z0-9]{5}-[a-z0-9]{5}\b", "-workers-X"),
    (r"\b([a-z]+)-[0-9a-f]{8}\b", r"\1-UID"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "TIME"),
)
MANY_ASK = ("docs/tenants.md", "docs/load-balancers.md")
VARIES_WHERE_MANY_ASK = ((r"\b10\.92\.9[0-3]\.\d+\b(?!/)", "ADDRESS"),)
PATIENCE = 180


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalServer]:
    page = request.getfixturevalue("page") if "page" in request.fixturenames else ""
    console = page == "docs/console.md"
    with LocalServer(tmp_path, controllers=True, console=console, options=STARTED_WITH.get(page, ())) as running:
        if console:
            address = ("configmap/butler-console-address", "-n", "butler-console")
            running.plane.kubectl("wait", "--for=create", *address, "--timeout=60s")
        yield running


def type_in(server: LocalServer, folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a line in a shell, in a folder that has the examples, with Butler's commands at hand."""
    if not (folder / "examples").exists():
        (folder / "examples").symlink_to(ROOT / "examples")
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "KUBECONFIG": str(server.plane.kubeconfig)}
    return subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def comparable(text: str, page: str) -> str:
    """Without what differs from run to run, and without folds."""
    for pattern, stands_for in VARIES + (VARIES_WHERE_MANY_ASK if page in MANY_ASK else ()):
        text = re.sub(pattern, stands_for, text, flags=re.MULTILINE)
    return " ".join(text.split())


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_tells_to_type_works_and_prints_what_it_shows(
    page: str, server: LocalServer, tmp_path: Path
) -> None:
    typed = [step for step in steps(ROOT / page) if not any(text in step.command for text in NOT_TYPED)]
    assert typed
    for step in typed:
        result = type_in(server, tmp_path, step.command)
        refused = any(word in step.shown for word in ("is invalid", "Error from server"))
        assert (result.returncode != 0) == refused, f"$ {step.command}\n{result.stdout}{result.stderr}"
        if step.shown:
            assert comparable(result.stdout + result.stderr, page) == comparable(step.shown, page), step.command


def test_what_make_run_prints_is_what_the_readme_shows(server: LocalServer, tmp_path: Path) -> None:
    (shown,) = [step.shown for step in steps(ROOT / "README.md") if step.command == "make run"]
    plane = SimpleNamespace(kubeconfig=Path("HOME/kubeconfig"), url="https://127.0.0.1:1", directory=Path("HOME"))
    console = ConsoleAddress("http://127.0.0.1:1", "http://127.0.0.1:1/link?token=...")
    printed = welcome(cast("ControlPlane", plane), 1.4, WelcomeFacts(console=console, demo_grace=DEMO_GRACE_SECONDS))
    normal = shown.replace("/home/you/.butler/local", "HOME")
    assert printed == re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", normal)
    for line in re.findall(r"^  (kubectl .*)$", shown, re.MULTILINE):
        result = type_in(server, tmp_path, line)
        assert result.returncode == 0, f"{line}: {result.stderr}"


def test_every_example_is_accepted_without_a_warning(server: LocalServer, tmp_path: Path) -> None:
    for example in sorted((ROOT / "examples").iterdir()):
        if example.suffix != ".md" and example.name != "tour":  # docs/tour.md makes its pools by hand, first
            # A cluster needs the provider that it names; without it, admission says so.
            needed = "-f examples/provider-config.yaml " if example.name == "tenant-cluster.yaml" else ""
            result = type_in(server, tmp_path, f"kubectl apply {needed}-f examples/{example.name}")
            assert (result.returncode, result.stderr) == (0, ""), example.name
            # Two of them describe the same network, so each goes before the next one comes.
            for command in (
                "delete tenantclusters --all --all-namespaces",
                "delete ipallocations --all -n butler-system",
                f"delete --ignore-not-found {needed}-f examples/{example.name}",
            ):
                gone = type_in(server, tmp_path, f"kubectl {command}")
                assert gone.returncode == 0, gone.stderr
